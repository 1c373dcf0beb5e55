"""A command-line agent joins through an MCP server: each call a step, and nothing of it outlives its episode."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from metier.envs import registry
from metier.envs.core import ConfigError, Deadline, Limit, Outcome
from metier.harness.policy import AssistantTurn, Message, Role, open_policy
from metier.harness.policy.agent.door import Door
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.testing import ECHO, FakeBackend
from metier.harness.testing.policies import PIXEL
from metier.harness.tools import tool_specs
from waiting import soon

registry.add_registry(ECHO)
AGENT = str(Path(__file__).parents[1] / "fixtures" / "mcp_agent.py")


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the environment of the test's agents; their folders are apart from those of others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "a mark of this test"


async def play(*words: str, mark: Path, seconds: float = 180, **chosen: Any) -> EpisodeResult:
    """An episode in a task of its own, as a runner has it; afterwards nothing of the agent is left."""
    command = [sys.executable, AGENT, *words]
    settings = {"command": command, "env": {"METIER_TEST_MARK": str(mark)}, "linger_s": 30, **chosen}
    backend = FakeBackend()
    result = await asyncio.create_task(
        run_episode(
            Task(env_id="test/Echo-v0", seed=3),
            open_policy("agent", settings),
            backend,
            Preparer(backend),
            deadline=Deadline.after(seconds, limit="episode_s", set_by="test"),
        )
    )
    async with asyncio.timeout(60):
        while running(mark) or left_tasks() or left_folders():
            await asyncio.sleep(0.05)
    assert EpisodeResult.model_validate_json(result.model_dump_json()) == result
    return result


def left_tasks() -> list[str]:
    """Beside this one, and the one that a library of the server's keeps for each thread."""
    others = [str(task.get_coro()) for task in asyncio.all_tasks() - {asyncio.current_task()}]
    return [name for name in others if "_shutdown_watcher" not in name]


def left_folders() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob("metier-agent-*"))


def running(mark: Path) -> list[str]:
    """The processes that have this mark in their command or environment."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and str(mark).encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return [command for command in found if command]


def told(result: EpisodeResult) -> list[str]:
    return [part.text for part in result.conversation if isinstance(part, Message)]


@pytest.mark.parametrize("way", [["{config}"], ["{stdio_config}"], ["legacy"], []], ids=str)
async def test_an_agent_solves_an_episode_and_its_steps_replay_it(way: list[str], mark: Path) -> None:
    result = await play("solve", *way, mark=mark)
    assert (result.outcome, result.reward, result.passed) == (Outcome.COMPLETED, 1.0, True)
    assert mark.read_text() == "all was as it should be"
    assert [step.tool for step in result.steps] == ["read_file", "read_file", "submit", "submit"]
    assert [len(part.calls) for part in result.conversation if isinstance(part, AssistantTurn)] == [1, 1, 1, 1]
    backend = FakeBackend()
    again = await run_episode(
        Task(env_id="test/Echo-v0", seed=3),
        open_policy("replay", {"steps": result.model_dump(mode="json")["steps"]}),
        backend,
        Preparer(backend),
        deadline=soon(),
    )
    assert (again.steps, again.reward, told(again)) == (result.steps, 1.0, told(result))


async def test_calls_at_once_are_steps_one_after_another_and_each_gets_its_own_answer(mark: Path) -> None:
    result = await play("at_once", mark=mark)
    assert result.outcome is Outcome.COMPLETED
    assert [step.tool for step in result.steps] == ["read_file"] * 4 + ["submit"]


async def test_an_agent_that_never_stops_ends_at_the_step_limit(mark: Path) -> None:
    result = await play("endless", mark=mark)
    steps = registry.get("test/Echo-v0").limits.steps
    assert (result.outcome, result.limit, len(result.steps)) == (Outcome.AGENT_LIMIT, Limit.STEPS, steps)


async def test_an_agent_that_does_nothing_ends_at_the_time_limit(mark: Path) -> None:
    result = await play("wait", mark=mark, seconds=8)
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.TIME, 0.0)


@pytest.mark.parametrize(("what", "code"), [("leave", 0), ("crash", 3)])
async def test_an_agent_that_leaves_has_submitted(what: str, code: int, mark: Path) -> None:
    """Also one that crashed: after its first call that is no way out of being graded."""
    result = await play(what, mark=mark)
    assert (result.outcome, result.reward) == (Outcome.COMPLETED, 0.0)
    last = [part for part in result.conversation if isinstance(part, AssistantTurn)][-1]
    assert last.notes == (f"the agent ended (exit code {code}) without a submission",)


async def test_an_agent_that_stays_is_ended_with_its_children(mark: Path) -> None:
    result = await play("stay", mark=mark, linger_s=0.5)
    assert result.outcome is Outcome.COMPLETED


async def test_odd_calls_are_answered(mark: Path) -> None:
    result = await play("odd", mark=mark)
    assert result.outcome is Outcome.COMPLETED
    assert [step.tool for step in result.steps] == ["no such tool", "read_file", "read_file", "submit", "submit"]
    assert "There is no tool 'no such tool'" in told(result)[1]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([sys.executable, AGENT, "fail"], "ended with 7 before its first call: 'cannot reach my vendor: ☃'"),
        (["/no/such/agent"], "is it installed here?"),
        (["sh", "-c", "kill -9 $$"], "ended with -9"),
        (["sh", "-c", "exit 0", "x" * 200_000], "{brief_file}"),
    ],
)
async def test_an_agent_that_cannot_work_is_a_failure_of_ours(command: list[str], words: str, mark: Path) -> None:
    result = await play(mark=mark, command=command)
    assert (result.outcome, result.reward) == (Outcome.POLICY_FAILURE, None)
    assert words in result.failure


async def test_a_cancelled_episode_ends_its_agent(mark: Path) -> None:
    playing = asyncio.create_task(play("wait", mark=mark))
    while not running(mark):
        await asyncio.sleep(0.05)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    await asyncio.gather(playing, return_exceptions=True)
    async with asyncio.timeout(60):
        while running(mark):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_an_agent_goes_with_the_process_that_played(end: str, mark: Path, tmp_path: Path) -> None:
    """It still waits for the answer to its first call, and nobody closes the policy."""
    script = tmp_path / "play.py"
    script.write_text(
        "import asyncio, os, sys, tempfile\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "from metier.envs.core import Deadline\n"
        "from metier.harness.policy import Message, Role, open_policy\n"
        "from metier.harness.tools import tool_specs\n"
        f"env = {{'METIER_TEST_MARK': {str(mark)!r}}}\n"
        f"settings = {{'command': [sys.executable, {AGENT!r}, 'endless'], 'env': env}}\n"
        "brief = [Message(role=Role.USER, text='go')]\n"
        "deadline = Deadline.after(120, limit='x', set_by='y')\n"
        "async def play():\n"
        "    policy = open_policy('agent', settings)\n"
        "    turn = await policy.act(brief, tool_specs(['read_file']), deadline=deadline)\n"
        "    print(turn.calls[0].tool, flush=True)\n"
        f"    {end or 'return'}\n"
        "asyncio.run(play())\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", str(script)], capture_output=True, text=True, timeout=180)
    assert (done.stdout, done.stderr) == ("read_file\n", "")
    until = time.monotonic() + 60
    while running(mark) or left_folders():
        assert time.monotonic() < until, running(mark)
        time.sleep(0.05)


@pytest.mark.parametrize("after_s", [0, 0.001, 0.01, 0.03, 0.1, 0.3])
async def test_an_agent_that_is_cancelled_while_it_starts_is_ended_too(after_s: float, mark: Path) -> None:
    settings: Any = {"command": ["sleep", "600"], "env": {"METIER_TEST_MARK": str(mark)}}
    brief = [Message(role=Role.USER, text="go")]
    acting = asyncio.create_task(open_policy("agent", settings).act(brief, tool_specs([]), deadline=soon()))
    await asyncio.sleep(after_s)
    acting.cancel()
    await asyncio.gather(acting, return_exceptions=True)
    async with asyncio.timeout(60):
        while running(mark) or left_tasks() or left_folders():
            await asyncio.sleep(0.05)


async def test_pictures_are_shown_to_the_agent() -> None:
    from mcp import Client

    door = Door(tool_specs(["view"]))
    await door.open()
    try:
        async with Client(door.url) as client:
            calling = asyncio.create_task(client.call_tool("view", {"path": "x.png"}))
            asked = await door.asked.get()
            assert (asked.call.tool, asked.call.arguments) == ("view", {"path": "x.png"})
            asked.tell("a picture", [PIXEL])
            asked.tell("once only")
            shown: Any = (await calling).content
        assert [part.type for part in shown] == ["text", "image"]
        assert (shown[1].mime_type, len(shown[1].data) > 50) == ("image/png", True)
    finally:
        await door.close()


async def test_nobody_comes_in_without_the_address() -> None:
    import httpx

    door = Door(tool_specs([]))
    await door.open()
    try:
        async with httpx.AsyncClient(trust_env=False) as client:
            base = door.url.rpartition("/")[0].rpartition("/")[0]
            for path in ("/mcp", "/", "/x/mcp"):
                assert (await client.post(base + path, json={})).status_code == 404
            foreign = {"host": "evil.example", "accept": "application/json, text/event-stream"}
            assert (await client.post(door.url, json={}, headers=foreign)).status_code == 421
    finally:
        await door.close()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ({}, "command"),
        ({"command": []}, "command"),
        ({"command": ["x", "{brif}"]}, "brif"),
        ({"command": ["x", "{"]}, "command"),
        ({"command": ["x"], "linger_s": -1}, "linger_s"),
        ({"command": ["x"], "shell": True}, "shell"),
        ({"command": ["x"], "env": {"SOME_API_KEY": "x"}}, "SOME_API_KEY looks like a secret"),
    ],
)
def test_wrong_settings_are_refused(chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_policy("agent", chosen)
