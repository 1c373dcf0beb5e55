"""Scripted policies from JSON: a recorded episode is found in its file and played again, call for call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from metier.envs import registry
from metier.envs.core import ConfigError, Limit, Outcome, ToolCall
from metier.harness.policy import AssistantTurn, Message, Policy, open_policy, settings_for
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.testing import ECHO, FakeBackend
from waiting import soon

registry.add_registry(ECHO)
ID = "test/Echo-v0"
READ = {"tool": "read_file", "arguments": {"path": "numbers.txt"}, "id": "r"}
ODD = {"tool": "shell", "arguments": {"(not recorded)": "half of a character"}}


async def play(policy: Policy, seed: int = 3) -> EpisodeResult:
    backend = FakeBackend()
    return await run_episode(Task(env_id=ID, seed=seed), policy, backend, Preparer(backend), deadline=soon())


def told(result: EpisodeResult) -> list[str]:
    return [part.text for part in result.conversation if isinstance(part, Message)]


async def oracles(path: Path, seeds: list[int]) -> list[EpisodeResult]:
    """The oracle's episodes, in a file of one a line."""
    played = [
        await play(open_policy("oracle", settings_for("oracle", {}, env_id=ID, seed=seed)), seed) for seed in seeds
    ]
    path.write_text("".join(result.model_dump_json() + "\n" for result in played))
    return played


async def test_each_episode_of_a_file_is_played_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    played = await oracles(path, [3, 4])
    for seed, result in zip((3, 4), played, strict=True):
        name, chosen = f"replay:{path}", settings_for("replay", {}, env_id=ID, seed=seed)
        again = await play(open_policy(name, chosen), seed)
        assert (again.steps, again.reward, again.outcome) == (result.steps, 1.0, Outcome.COMPLETED)
        assert told(again) == told(result)


async def test_another_instance_is_not_solved_by_it(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    await oracles(path, [3])
    again = await play(open_policy("replay", {"address": str(path), "env_id": ID, "seed": 3}), seed=4)
    assert again.passed is False


async def test_what_was_refused_is_refused_again_and_a_turn_without_a_call_is_one() -> None:
    steps: list[Any] = [ODD, {"tool": ""}, READ, {"tool": "no such tool"}]
    result = await play(open_policy("replay", {"steps": steps}))
    assert [step.tool for step in result.steps] == ["shell", "", "read_file", "no such tool"]
    assert result.steps[0].arguments == ODD["arguments"]
    assert told(result)[2].startswith("No tool was called")
    again = await play(open_policy("replay", {"steps": result.model_dump(mode="json")["steps"]}))
    assert told(again) == told(result)


async def test_a_recording_that_ends_in_the_middle_is_graded_there() -> None:
    result = await play(open_policy("replay", {"steps": [READ]}))
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.TOKENS, 0.0)
    last = [part for part in result.conversation if isinstance(part, AssistantTurn)][-1]
    assert last.notes == ("the recording ends here",)


def row(**more: Any) -> str:
    return json.dumps({"env_id": ID, "seed": 3, "level": 0, "sample": 0, "steps": [READ], **more})


@pytest.mark.parametrize(
    "text",
    [
        row(),
        f"[{row()}]",
        json.dumps({"key": "x", "result": json.loads(row())}),
        row(steps=[]) + "\n" + row(),  # the last attempt counts
        row() + "\n" + row(sample=1)[:30],  # the writer was killed
        '{"settings": {}}\n\n' + row(),
    ],
)
async def test_an_episode_is_found_in_whatever_keeps_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results"
    path.write_text(text)
    policy = open_policy(f"replay:{path}", {"env_id": ID, "seed": 3})
    turn = await policy.act([], [], deadline=soon())
    assert turn.calls == (ToolCall(**READ),)


@pytest.mark.parametrize("inside", ["", "result", "episode"])
def test_an_episode_whose_calls_nobody_saw_is_refused_in_words(tmp_path: Path, inside: str) -> None:
    path = tmp_path / "results.jsonl"
    unseen = json.loads(row(replayable=False, steps=[]))
    path.write_text(json.dumps({inside: unseen} if inside else unseen) + "\n" + row(sample=1, replayable=True))
    with pytest.raises(ConfigError, match="seed 3 level 0 sample 0 cannot be replayed: its agent acted inside"):
        open_policy(f"replay:{path}", {"env_id": ID, "seed": 3})
    open_policy(f"replay:{path}", {"env_id": ID, "seed": 3, "sample": 1})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "address"),
    "both": ({"address": "x", "steps": []}, "not both"),
    "no such file": ({"address": "/no/such/file"}, "cannot be read"),
    "steps of another kind": ({"steps": [{"tol": "x"}]}, "tool"),
    "steps that are none": ({"steps": "ls"}, "no list of tool calls"),
    "a setting of another": ({"steps": [], "calls": []}, "calls"),
}


@pytest.mark.parametrize(("chosen", "words"), WRONG.values(), ids=list(WRONG))
def test_wrong_settings_are_refused(chosen: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        open_policy("replay", chosen)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (row(seed=4), "none of test/Echo-v0 seed 3"),
        ("", "has 0 episodes"),
        ("no json\n" + row(), "line 1 is no JSON"),
        (row(steps=[5]), "no list of tool calls"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_a_file_without_the_episode_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "results"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        open_policy(f"replay:{path}", {"env_id": ID, "seed": 3})


@pytest.mark.parametrize(
    "chosen",
    [{"calls": [{"tol": 1}]}, {"calls": [5]}, {"calls": [{"tool": 1}]}, {"calls": [{"tool": "x", "arguments": 3}]}, {}],
)
def test_a_script_that_is_none_is_refused(chosen: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="scripted"):
        open_policy("scripted", chosen)


def test_a_seed_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed"):
        open_policy("random", {"seed": "five"})
