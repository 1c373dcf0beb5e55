"""Every policy keeps the contract: the scripted ones, a person, a model behind an endpoint or an engine."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs import registry
from metier.envs.core import ConfigError, ToolCall
from metier.harness.policy import POLICIES, open_policy, settings_for
from metier.harness.policy.contract import write_call
from metier.harness.policy.human import HumanPolicy, Keyboard
from metier.harness.testing import ECHO, POLICY, Claim, PolicyCase, ScriptedPolicy, run_suite
from metier.scheduler.worker import close_resources
from metier.trainer import models
from metier.trainer.rollout.chat import Chat
from metier.trainer.rollout.fake import scripted_engine
from metier.trainer.rollout.policy import EnginePolicy
from vendor import Answer, Asked, Vendor, delta, spoken, streamed, whole

registry.add_registry(ECHO)
KEY = "sk-a-key-that-nobody-may-see"
LOOK = {"tool": "shell", "arguments": {"command": "ls"}}
LIGHT_AGENT = str(Path(__file__).parents[1] / "fixtures" / "light_agent.py")
CASES = [
    PolicyCase.of("noop"),
    PolicyCase.of("random", {"seed": 5}),
    PolicyCase.of("scripted", {"calls": [LOOK, {"tool": "submit"}]}),
    PolicyCase.of("replay", {"steps": [{**LOOK, "id": "x"}, {"tool": ""}, {"tool": "submit"}]}),
    PolicyCase.of("oracle", settings_for("oracle", None, env_id="test/Echo-v0", seed=3)),
    PolicyCase.of("human"),
    PolicyCase.of("agent", {"command": [sys.executable, "-IS", LIGHT_AGENT]}),
    PolicyCase.made("ScriptedPolicy", lambda: ScriptedPolicy([ToolCall(tool="submit")])),
]


def _person_who_left() -> HumanPolicy:
    policy = HumanPolicy()
    policy._keyboard = Keyboard(_SILENCE[0])  # pyright: ignore[reportPrivateUsage]
    return policy


_SILENCE = os.pipe()
CASES.append(PolicyCase.made("a person who says nothing", _person_who_left, silent=True))
CASES.append(
    PolicyCase.made(
        "an agent that does nothing", lambda: open_policy("agent", {"command": ["sleep", "600"]}), silent=True
    )
)


def answer(asked: Asked) -> Answer:
    """The same to the same; it also tells what it was told in the header."""
    said = f"after {len(asked.body['messages'])} messages, with {asked.headers.get('authorization', 'no key')}"
    if "tools" not in asked.body:
        return spoken(said + '\n{"tool":"shell","arguments":{"command":"ls"}}')
    call = ("1", "shell", '{"command":"echo ' + said + '"}')
    if not asked.body.get("stream"):
        return whole(said, calls=[call])
    started = {"index": 0, "id": "1", "function": {"name": "shell", "arguments": call[2][:9]}}
    rest = {"index": 0, "function": {"arguments": call[2][9:]}}
    return streamed(delta(content=said), delta(tool_calls=[started]), delta(tool_calls=[rest]), delta("tool_calls"))


@pytest_asyncio.fixture
async def vendor(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Vendor]:
    monkeypatch.setenv("METIER_TEST_KEY", KEY)
    async with Vendor(answer) as server:
        yield server
        await close_resources()


OPENAI: dict[str, dict[str, Any]] = {
    "streamed": {"retries": 0},
    "whole": {"stream": False, "temperature": 0},
    "in text": {"calls": "text", "system": "Be brief.", "images": False},
    "with limits": {
        "requests_per_minute": 1000,
        "tokens_per_minute": 10_000_000,
        "prices": {"prompt": "1", "output": "2"},
    },
}


def claims(case: PolicyCase) -> list[Claim[PolicyCase]]:
    """Those that apply."""
    return [claim for claim in POLICY.claims if not claim.unmet(case)]


ALL = [pytest.param(case, claim, id=f"{case}-{claim}") for case in CASES for claim in claims(case)]


@pytest.mark.parametrize(("case", "claim"), ALL)
async def test_policy(case: PolicyCase, claim: Claim[PolicyCase]) -> None:
    await claim.holds(case)


@pytest.mark.parametrize("claim", POLICY.claims, ids=str)
@pytest.mark.parametrize("settings", OPENAI.values(), ids=list(OPENAI))
async def test_openai(vendor: Vendor, settings: dict[str, Any], claim: Claim[PolicyCase]) -> None:
    chosen = {**settings, "api_key_env": "METIER_TEST_KEY"}
    await claim.holds(PolicyCase.of(f"openai:{vendor.url}#model", chosen, secrets=(KEY,)))
    assert all(asked.headers["authorization"] == f"Bearer {KEY}" for asked in vendor.asked)


SILENT = PolicyCase.of("openai:http://127.0.0.1#model", silent=True)


@pytest.mark.parametrize("claim", claims(SILENT), ids=str)
async def test_openai_where_the_endpoint_hangs(vendor: Vendor, claim: Claim[PolicyCase]) -> None:
    vendor.script = [Answer(raw=True, end="hangs")]
    await claim.holds(PolicyCase.of(f"openai:{vendor.url}#model", {"backoff_s": 0.01}, silent=True))


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Chat:
    return Chat(models.tiny(tmp_path_factory.mktemp("tiny")))


@pytest.mark.parametrize("claim", claims(PolicyCase.made("engine", HumanPolicy)), ids=str)
async def test_engine(chat: Chat, claim: Claim[PolicyCase]) -> None:
    def said(request: Any) -> list[int]:
        call = ToolCall(tool="submit", arguments={"answer": str(len(request.prompt_ids))})
        return [*chat.encode(write_call(call)), chat.end_id]

    async with scripted_engine(said, context_tokens=2**20) as engine:
        await claim.holds(PolicyCase.made("engine", lambda: EnginePolicy(engine=engine, chat=chat)))


def test_every_registered_policy_is_among_the_cases() -> None:
    tried = {case.name for case in CASES} | {"openai", "engine", "inside"}  # the last takes no single turns
    ours = {name for name, entry_point in POLICIES.items() if entry_point.startswith("metier.")}
    assert ours <= tried


async def test_a_policy_that_remembers_is_found_out() -> None:
    class Counting:
        def __init__(self) -> None:
            self.calls = 0

        async def act(self, conversation: Any, tools: Any, *, deadline: Any) -> Any:
            self.calls += 1
            return await ScriptedPolicy([ToolCall(tool="submit", id=str(self.calls))]).act(
                conversation, tools, deadline=deadline
            )

    outcomes = await run_suite(POLICY, PolicyCase.made("counting", Counting))
    assert [one.claim for one in outcomes if not one.held] == [
        "it_keeps_nothing_between_calls",
        "episodes_at_once_do_not_mix",
    ]


def test_a_name_with_an_address_and_another_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="address"):
        open_policy("openai:http://a#b", {"address": "http://c#d"})
    with pytest.raises(ConfigError, match="did you mean openai"):
        open_policy("openia:http://a#b")
    with pytest.raises(ConfigError, match="address"):
        open_policy("noop:here")


def test_a_missing_part_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(POLICIES, "absent", "metier.harness.policy.no_such_module:policy")
    with pytest.raises(ConfigError, match="not installed"):
        open_policy("absent")
