"""An agent's own program in a real sandbox: it solves, it misbehaves, and nothing of it outlives its episode."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs import registry
from metier.envs.core import ConfigError, Limit, Outcome, SandboxBackend
from metier.harness.policy import AssistantTurn, Message, Role, Stop, open_policy
from metier.harness.policy.inside.policy import NO_KEY
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.owner import OWNER
from metier.harness.testing import ECHO
from metier.scheduler.worker import close_resources
from process_table import alive, descendants
from vendor import Answer, Asked, Script, Vendor, error, whole
from waiting import patience, soon, until

registry.add_registry(ECHO)
pytestmark = pytest.mark.asyncio(loop_scope="module")
FIXTURES = Path(__file__).parents[1] / "fixtures"
GUIDE = Path(__file__).parents[2] / "docs" / "policies.md"
KEY = "sk-a-key-that-nobody-may-see"
SUM = "python3 -c 'print(sum(map(int, open(\"numbers.txt\"))))' > answer; cat answer"


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=[pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"]
)
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[SandboxBackend]:
    async with open_backend(request.param) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The agent's."""
    made = tmp_path / "agent"
    made.mkdir()
    shutil.copy(FIXTURES / "inside_agent.py", made / "agent.py")
    return made


def solver(asked: Asked) -> Answer:
    """A model that has the numbers added up, and is content with what it sees."""
    last = asked.body["messages"][-1]
    if last["role"] == "tool":
        return whole(f"I see: {last['content']}")
    return whole(None, calls=[("c1", "shell", json.dumps({"command": SUM}))], finish="tool_calls")


def settings(vendor: Vendor, folder: Path, *words: str, **chosen: Any) -> dict[str, Any]:
    upstream = {"api_key_env": "METIER_TEST_KEY", "retries": 1, "backoff_s": 0.01, **chosen.pop("upstream", {})}
    return {
        "address": f"{vendor.url}#the-model",
        "command": ["python3", "{folder}/agent.py", *words],
        "folder": str(folder),
        "without": ["wait", "lose"],
        "upstream": upstream,
        **chosen,
    }


async def play(
    backend: SandboxBackend, folder: Path, *words: str, script: Script = solver, seconds: float = 120, **chosen: Any
) -> EpisodeResult:
    """An episode; afterwards its sandbox is as good as new, and no connection to the model is busy."""
    async with Vendor(script) as vendor:
        result = await run_episode(
            Task(env_id="test/Echo-v0", seed=3),
            open_policy("inside", settings(vendor, folder, *words, **chosen)),
            backend,
            Preparer(backend),
            deadline=soon(seconds),
        )
        await close_resources()
    assert not result.replayable and result.steps == ()
    assert KEY not in result.model_dump_json()
    assert EpisodeResult.model_validate_json(result.model_dump_json()) == result
    assert {str(task.get_coro()) for task in asyncio.all_tasks() if "tunnel" in str(task.get_coro())} == set()
    return result


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METIER_TEST_KEY", KEY)


def turns(result: EpisodeResult) -> list[AssistantTurn]:
    return [part for part in result.conversation if isinstance(part, AssistantTurn)]


def end(result: EpisodeResult) -> str:
    """How the agent's stay ended, in words."""
    last = result.conversation[-1]
    assert isinstance(last, Message) and last.text.startswith("[the agent ")
    return last.text


@pytest.mark.parametrize("way", [[], ["stream"]], ids=["whole", "in pieces"])
async def test_an_agent_solves_an_episode_and_what_it_said_is_recorded(
    backend: SandboxBackend, folder: Path, way: list[str]
) -> None:
    result = await play(backend, folder, "solve", *way, upstream={"prices": {"prompt": "1", "output": "1"}})
    assert (result.outcome, result.reward, result.passed) == (Outcome.COMPLETED, 1.0, True)
    roles = [part.role if isinstance(part, Message) else "turn" for part in result.conversation]
    assert roles == [Role.USER, Role.SYSTEM, Role.USER, "turn", Role.TOOL, "turn", Role.USER]
    first, last = turns(result)
    assert first.calls[0].arguments == {"command": SUM}
    assert last.text.startswith("I see: exit code 0")
    assert [(turn.usage.prompt_tokens, str(turn.usage.cost_usd)) for turn in turns(result)] == [(10, "0.000015")] * 2
    assert "exit code 0" in end(result)
    assert result.timings_s["tool"] > 0 and result.timings_s["policy"] > 0


async def test_the_agent_of_the_guide_solves_it_too(backend: SandboxBackend, folder: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    (program,) = [example for example in examples if "OPENAI_MODEL" in example]
    (folder / "agent.py").write_text(program)
    result = await play(backend, folder)
    assert (result.passed, len(turns(result))) == (True, 2)


async def test_an_agent_that_crashes_is_graded_with_its_last_words(backend: SandboxBackend, folder: Path) -> None:
    result = await play(backend, folder, "crash")
    assert (result.outcome, result.reward) == (Outcome.COMPLETED, 0.0)
    assert "exit code 1" in end(result) and "a bug of the agent's" in end(result)


async def test_an_agent_that_hangs_ends_at_its_time_with_its_children(backend: SandboxBackend, folder: Path) -> None:
    result = await play(backend, folder, "hang", time_s=1.5)
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.TIME, 0.0)
    assert "time_s" in end(result)


async def test_an_agents_own_time_does_not_hold_its_models(
    backend: SandboxBackend, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = registry.get("test/Echo-v0")
    brief = entry.model_copy(update={"limits": entry.limits.model_copy(update={"agent_s": patience()})})
    monkeypatch.setattr("metier.harness.prepare.get", lambda _: brief)
    slow = Answer(headers=whole("x").headers, pieces=whole("x").pieces, before_s=1.5 * patience())
    result = await play(backend, folder, "crash", script=[slow])
    assert (result.outcome, result.limit) == (Outcome.COMPLETED, None)
    result = await play(backend, folder, "hang")
    assert (result.limit, "agent_s" in end(result)) == (Limit.TIME, True)


@pytest.mark.parametrize(
    ("what", "chosen", "limit"),
    [
        ("endless", {}, Limit.STEPS),
        ("endless", {"max_turns": 2}, Limit.STEPS),
        ("endless", {"max_total_tokens": 40}, Limit.TOKENS),
        ("flood", {"max_turns": 3}, Limit.STEPS),
        ("outlived", {}, Limit.STEPS),
    ],
    ids=lambda value: str(value),
)
async def test_a_budget_that_is_used_up_ends_it(
    backend: SandboxBackend, folder: Path, what: str, chosen: dict[str, Any], limit: Limit
) -> None:
    result = await play(backend, folder, what, **chosen)
    steps = registry.get("test/Echo-v0").limits.steps
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, limit, 0.0)
    assert len(turns(result)) <= chosen.get("max_turns", 3 if "max_total_tokens" in chosen else steps)


async def test_nothing_else_can_be_reached(backend: SandboxBackend, folder: Path) -> None:
    async with Vendor(solver) as other:
        result = await play(backend, folder, "elsewhere", script=[whole("no")])
        assert other.asked == []
    lines = end(result).splitlines()[1:]
    assert len(lines) == 15
    assert [line.split()[-1] for line in lines[:2]] == ["200", "200"]
    assert all(line.split()[-1] in ("400", "404", "405") for line in lines[2:])
    assert turns(result) == []


async def test_rubbish_of_every_kind_harms_nobody(backend: SandboxBackend, folder: Path) -> None:
    result = await play(backend, folder, "rubbish", script=[whole("still here")])
    assert result.outcome is Outcome.COMPLETED
    assert end(result).endswith("still here"), end(result)
    assert len(turns(result)) == 1


async def test_the_agent_sees_no_key_and_no_other_model(backend: SandboxBackend, folder: Path) -> None:
    result = await play(backend, folder, "told", env={"MINE": "set"})
    seen = end(result)
    assert f"OPENAI_API_KEY={NO_KEY}" in seen and "OPENAI_MODEL=the-model" in seen and "MINE=set" in seen
    assert "127.0.0.1" in seen and "sk-a-key" not in seen


async def test_an_endpoint_that_answers_nobody_is_a_failure_of_ours(backend: SandboxBackend, folder: Path) -> None:
    for what in ("persists", "crash"):
        result = await play(backend, folder, what, script=[error(503)])
        assert (result.outcome, result.reward) == (Outcome.POLICY_FAILURE, None)
        assert "HTTP 503" in result.failure
        assert turns(result)[0].stop is Stop.ABORT


async def test_an_endpoint_that_fails_now_and_then_is_the_agents_affair(backend: SandboxBackend, folder: Path) -> None:
    script = [*[error(500, "not this one")] * 2, whole("the probe"), whole("at last")]
    result = await play(backend, folder, "persists", script=script)
    assert result.outcome is Outcome.COMPLETED
    assert "told: 500" in end(result) and end(result).endswith("at last")


async def test_what_the_image_lacks_is_told_before_anything_runs(backend: SandboxBackend, folder: Path) -> None:
    with pytest.raises(ConfigError, match="has no program 'no-such-agent'"):
        await play(backend, folder, command=["no-such-agent"])
    with pytest.raises(ConfigError, match=r"tools of its own \(lose, wait\)"):
        await play(backend, folder, "solve", without=[])


async def test_the_same_sandbox_serves_the_next_one_with_the_port_it_is_told(
    backend: SandboxBackend, folder: Path
) -> None:
    for _ in range(2):
        result = await play(backend, folder, "solve", port=8377)
        assert result.passed


CLIENT = """
import asyncio, json, sys
from metier.envs import registry
from metier.harness.policy import open_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend
from metier.harness.testing import ECHO
from metier.envs.core import Deadline
registry.add_registry(ECHO)
async def main():
    async with open_backend(sys.argv[1]) as backend:
        policy = open_policy("inside", json.loads(sys.argv[2]))
        deadline = Deadline.after(600, limit="episode_s", set_by="test")
        await run_episode(Task(env_id="test/Echo-v0", seed=3), policy, backend, Preparer(backend), deadline=deadline)
asyncio.run(main())
"""


def saying(words: str) -> list[int]:
    """Processes of any namespace with these words in their environment."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if words.encode() in (process / "environ").read_bytes() and int(process.name) != os.getpid():
                found.append(int(process.name))
        except OSError:
            continue
    return found


async def containers(owner: int) -> list[str]:
    """Those that this process made."""
    query = {"all": "1", "filters": json.dumps({"label": [OWNER]})}
    listed = await Engine(socket_path()).checked("GET", "/containers/json", query=query)
    return [each["Id"] for each in listed if each["Labels"][OWNER].startswith(f"{owner}:")]


async def test_a_client_that_is_killed_leaves_nothing_of_its_agent(backend: SandboxBackend, folder: Path) -> None:
    async with Vendor([whole("go on")]) as vendor:
        mark = f"a-mark-of-{os.getpid()}-{backend.name}"
        chosen = settings(vendor, folder, "hang", env={"MARK": mark})
        client = subprocess.Popen([sys.executable, "-c", CLIENT, backend.name, json.dumps(chosen)])
        try:
            async with asyncio.timeout(60 * patience()):
                while not vendor.asked or not saying(mark):
                    assert client.poll() is None
                    await asyncio.sleep(0.05)
            started = descendants(client.pid)
            assert backend.name != "docker" or await containers(client.pid)
        finally:
            client.send_signal(signal.SIGKILL)
            client.wait()
        until(lambda: not saying(mark) and not alive(started), 10)
        async with asyncio.timeout(10 * patience()):
            while backend.name == "docker" and await containers(client.pid):
                await asyncio.sleep(0.05)
        async with asyncio.timeout(10 * patience()):
            while vendor.open_connections:
                await asyncio.sleep(0.05)
