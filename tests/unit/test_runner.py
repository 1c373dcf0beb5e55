"""The runner on scripted sandboxes: steps, limits, and what is recorded of them."""

from __future__ import annotations

import asyncio
import functools
import math
from typing import Any

import pytest

from echo_episode import ID, LOSE, READ, SUBMIT, Stage, Turns, limited, said, turn, wait
from metier.envs import registry
from metier.envs.core import Check, ConfigError, Deadline, Limit, Outcome, ToolCall, Verdict
from metier.harness.policy import AssistantTurn, Message, Stop
from metier.harness.policy.scripted import oracle_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult, recorded_turn
from metier.harness.runner import run_episode
from metier.harness.testing import FakeBackend, ScriptedPolicy
from metier.harness.testing.echo.family import Echo


@pytest.fixture
def stage() -> Stage:
    return Stage()


# turns and steps


async def test_each_call_of_a_turn_is_a_step_with_its_own_observation(stage: Stage) -> None:
    first, second = ToolCall(tool="wait", arguments={"seconds": 0}, id="a"), ToolCall(tool="shel", id="b")
    result = await stage.play(Turns(turn(first, second), turn(SUBMIT)))
    assert result.steps == (first, second, SUBMIT)
    assert len(stage.seen) == 3
    told = [part for part in result.conversation if isinstance(part, Message)][1:]
    assert [message.call_id for message in told] == ["a", "b", ""]
    assert told[0].text == "waited 0 s"
    assert "There is no tool 'shel'" in told[1].text
    assert (result.outcome, result.reward, result.passed, result.dropped) == (Outcome.COMPLETED, 0.0, False, ())


async def test_calls_after_the_end_are_dropped_and_told(stage: Stage) -> None:
    result = await stage.play(Turns(turn(READ, SUBMIT, wait(60), LOSE)))
    assert result.steps == (READ, SUBMIT)
    assert result.dropped == (wait(60), LOSE)
    assert result.outcome is Outcome.COMPLETED
    assert len(said(result)) == 2


async def test_a_turn_without_a_call_is_a_step_that_says_how_to_go_on(stage: Stage) -> None:
    result = await stage.play(Turns(turn(), turn(SUBMIT)))
    assert result.steps == (ToolCall(tool=""), SUBMIT)
    tools = "read_file, edit, wait, lose, submit"
    assert said(result)[0] == f"No tool was called. Answer with one tool call; the tools are {tools}."


async def test_silence_ends_at_the_step_limit_and_is_graded(stage: Stage) -> None:
    steps = registry.get(ID).limits.steps
    result = await stage.play(Turns(*[turn()] * (steps + 5)))
    assert len(result.steps) == steps
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.STEPS, 0.0)
    assert said(result)[-1].endswith("[the episode ended: steps limit]")


async def test_the_step_limit_cuts_a_turn_and_drops_its_rest(stage: Stage) -> None:
    steps = registry.get(ID).limits.steps
    result = await stage.play(Turns(turn(*[READ] * (steps + 3))))
    assert (len(result.steps), len(result.dropped)) == (steps, 3)


async def test_an_episode_replays_from_its_recorded_steps(stage: Stage) -> None:
    played = await stage.play(Turns(turn(), turn(READ, wait(0)), turn(*oracle_policy(ID, 3)._calls)))
    again = await Stage().play(ScriptedPolicy(played.steps))
    assert again.steps == played.steps
    assert said(again) == said(played)
    assert (again.reward, again.passed) == (1.0, True)


# limits


async def test_no_room_in_the_context_ends_the_episode_graded_and_drops_the_turn(stage: Stage) -> None:
    write = ToolCall(tool="edit", arguments={"path": "answer", "old": "", "new": str(await _right_answer())})
    result = await stage.play(Turns(turn(write), turn(SUBMIT, stop=Stop.CONTEXT)))
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.TOKENS, 1.0)
    assert (result.steps, result.dropped) == ((write,), (SUBMIT,))


async def _right_answer() -> int:
    last = oracle_policy(ID, 3)._calls[-1]
    return int(str(last.arguments["answer"]))


async def test_the_runners_deadline_ends_the_episode_graded_and_nothing_of_the_late_turn_is_run(stage: Stage) -> None:
    policy = Turns(turn(READ), turn(READ, wait(0)), turn(SUBMIT))
    policy.before_each = lambda: asyncio.sleep(0.3)
    result = await stage.play(policy, seconds=0.45)
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.TIME, 0.0)
    assert (result.steps, result.dropped) == ((READ,), (READ, wait(0)))
    assert result.timings_s["policy"] >= 0.6


async def test_tool_time_is_counted_and_the_policys_is_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, agent_s=0.2)
    policy = Turns(turn(wait(0.01)), turn(wait(0.01)), turn(wait(0.3)), turn(SUBMIT))
    policy.before_each = lambda: asyncio.sleep(0.15)
    result = await stage.play(policy)
    assert (result.limit, len(result.steps)) == (Limit.TIME, 3)
    assert said(result)[-1] == "waited 0.3 s\n[the episode ended: time limit]"


# what no record can hold

NO_RECORD = {
    "half of a character": {"answer": "a\ud800"},
    "half of a name": {"\udfff": 1},
    "no number": {"answer": math.nan},
    "a number without end": {"answer": 10**5000},
    "no JSON": {"answer": object()},
    "bytes": {"answer": b"1"},
    "too deep": {"answer": functools.reduce(lambda inner, _: [inner], range(500), 1)},
    "no object": "abc",
}


@pytest.mark.parametrize("name", NO_RECORD)
async def test_a_call_that_no_record_can_hold_is_answered_and_recorded(stage: Stage, name: str) -> None:
    arguments: Any = NO_RECORD[name]
    wrong = ToolCall(tool="submit", arguments=arguments, id="\ud83d")
    result = await stage.play(Turns(turn(wrong), turn(SUBMIT, wrong)))
    assert EpisodeResult.model_validate_json(result.model_dump_json()) == result
    assert (result.outcome, result.steps[-1]) == (Outcome.COMPLETED, SUBMIT)
    (told,) = result.steps[0].arguments
    assert told == "(not recorded)"
    assert result.dropped == (result.steps[0],)
    again = await stage.play(Turns(*(turn(call) for call in result.steps)))
    assert (again.outcome, again.reward) == (result.outcome, result.reward)


async def test_text_that_no_record_can_hold_is_replaced(stage: Stage) -> None:
    said = AssistantTurn(text="a\ud800b", notes=("\udc80",), calls=(ToolCall(tool="\ud800"),))
    result = await stage.play(Turns(said, turn(SUBMIT)))
    assert EpisodeResult.model_validate_json(result.model_dump_json()) == result
    first = result.conversation[1]
    assert isinstance(first, AssistantTurn)
    assert first.text == "a\ufffdb"
    kept = turn(SUBMIT)
    assert recorded_turn(kept) is kept


async def test_evidence_that_is_no_text_is_replaced(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def verify(*_: Any) -> Verdict:
        return Verdict.of(Check(name="\udc80", score=1.0, evidence="a file named \udcff"))

    monkeypatch.setattr(Echo, "verify", verify)
    result = await stage.play(Turns(turn(SUBMIT)))
    assert "a file named \ufffd" in result.model_dump_json()


# what callers may not give


@pytest.mark.parametrize("task", [{"level": 9}, {"options": {"units": "m"}}])
async def test_the_callers_mistake_is_raised(stage: Stage, task: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=ID):
        await stage.play(ScriptedPolicy([]), **task)


@pytest.mark.parametrize("seed", [-1, 10**5000, 2**63, 1.5], ids=["below 0", "endless", "too large", "a fraction"])
async def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    backend = FakeBackend()
    deadline = Deadline.after(60, limit="episode_s", set_by="test")
    with pytest.raises(ConfigError, match="a seed is an integer from 0"):
        await run_episode(Task(env_id=ID, seed=seed), Turns(), backend, Preparer(backend), deadline=deadline)
