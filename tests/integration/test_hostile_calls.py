"""Hostile tool calls against a real sandbox: each is answered, none ends the episode, and the sandbox goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from hypothesis import HealthCheck, given, settings

import metier
from hostile import REGISTRY, Drawn, calls, check_answer
from metier.envs.core import Outcome
from metier.harness.tools import SPECS
from metier.harness.tools.door import TEXT_BYTES

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("registry") / "registry.yaml"
    path.write_text(REGISTRY.format(env_id="test/HostileReal-v0", agent_s=10000))
    metier.register_environments(path)
    made = gymnasium.make("test/HostileReal-v0", backend="docker").unwrapped
    made.reset(seed=1)
    yield made
    made.close()


def ask(env: Any, tool: str, **arguments: Any) -> tuple[Any, ...]:
    return env.step({"tool": tool, "arguments": arguments})


def lives(env: Any) -> bool:
    """Whether the sandbox is the one it was, and answers."""
    return ask(env, "python", code="6 * 7")[0]["text"] == "42\n"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(call=calls(list(SPECS)).map(Drawn))
def test_no_call_raises_out_of_a_step_or_ends_the_sandbox(env: Any, call: Drawn) -> None:
    name = env.episode.sandbox.id
    check_answer(env.step(call.it))
    assert lives(env)
    assert env.episode.sandbox.id == name


@pytest.mark.parametrize("character", ["x", "é", "🙂", "\x01", "\\", "'"])
@pytest.mark.parametrize("tool", ["shell", "python"])
def test_the_longest_source_runs(env: Any, tool: str, character: str) -> None:
    name = next(iter(SPECS[tool].parameters["required"]))  # type: ignore[index,call-overload]
    filler = character * ((TEXT_BYTES - 20) // len(character.encode()))
    said = "echo ran" if tool == "shell" else "print('ran')"
    answer = ask(env, tool, **{name: f"{said} # {filler}"})
    assert answer[0]["text"].rstrip() == "ran"
    check_answer(ask(env, tool, **{name: f"{said} # {filler}{filler}"}))
    assert lives(env)


@pytest.mark.parametrize("tool", ["shell", "python"])
def test_half_a_character_holds_no_later_command_up(env: Any, tool: str) -> None:
    name = "command" if tool == "shell" else "code"
    answer = ask(env, tool, **{name: "echo \ud800"})
    assert "half of a character" in answer[0]["text"]
    assert ask(env, "shell", command="echo on", timeout_s=5)[0]["text"] == "on\n"


CLEARED = "import sys, types; fake = types.ModuleType('view'); sys.modules['view'] = fake; "
PAINTERS = {
    "half a picture": "fake.render = lambda s, out: open(out, 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 99)",
    "no file": "fake.render = lambda s, out: None",
    "a folder": "import os; fake.render = lambda s, out: os.mkdir(out)",
    "a pipe": "import os; fake.render = lambda s, out: os.mkfifo(out)",
    "a loop": "import os; fake.render = lambda s, out: os.symlink(out, out)",
    "too much": "fake.render = lambda s, out: open(out, 'wb').write(b'x' * (5 << 20))",
}


@pytest.mark.parametrize("name", PAINTERS)
def test_a_picture_of_the_agents_making_is_told(env: Any, name: str) -> None:
    ask(env, "python", code=CLEARED + PAINTERS[name])
    answer = ask(env, "view")
    check_answer(answer)
    assert answer[0]["text"].startswith("no picture")
    assert not answer[4]["images"]


def test_the_limit_that_fired_is_named(env: Any) -> None:
    env.reset(seed=2)
    env.episode.tool_s = env.entry.limits.agent_s - 2
    observation, _, _, truncated, info = ask(env, "shell", command="sleep 600", timeout_s=600)
    assert "s (agent_s)]" in observation["text"]
    assert "timeout_s" not in observation["text"]
    assert (truncated, info["limit"], info["outcome"]) == (True, "time", Outcome.AGENT_LIMIT)
    env.reset(seed=2)
    observation, *_ = ask(env, "shell", command="sleep 600", timeout_s=1)
    assert "[stopped after 1 s (timeout_s)]" in observation["text"]


LEFT = {
    "no right to the workspace": "chmod 0 /workspace",
    "no right to list or enter it": "chmod 200 /workspace",
    "no right to the artefact": "echo 1 > answer; chmod 0 answer",
    "a folder as the artefact": "mkdir answer",
    "a link as the artefact": "ln -s /etc/passwd answer",
    "a pipe as the artefact": "mkfifo answer",
}


@pytest.mark.parametrize("name", LEFT)
def test_whatever_is_left_is_graded(env: Any, name: str) -> None:
    env.reset(seed=2)
    ask(env, "shell", command=LEFT[name])
    if "artefact" not in name:
        for tool, arguments in (("read_file", {"path": "numbers.txt"}), ("python", {"code": "open('x')"})):
            check_answer(ask(env, tool, **arguments))
    _, reward, terminated, _, info = ask(env, "submit")
    assert (reward, terminated, info["outcome"]) == (0.0, True, Outcome.COMPLETED)
