"""The runner and its grading on scripted sandboxes: steps, limits, failures and what is left of them."""

from __future__ import annotations

import asyncio
import errno
import functools
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from metier.envs import registry
from metier.envs.core import (
    Check,
    ConfigError,
    Deadline,
    Limit,
    Outcome,
    PolicyError,
    SandboxLost,
    ToolCall,
    Verdict,
    VerifierError,
)
from metier.envs.entry import Entry
from metier.harness.episode import Episode, Step
from metier.harness.evaluate import pass_rate
from metier.harness.policy import AssistantTurn, Message, Stop
from metier.harness.policy.scripted import oracle_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult, recorded_turn
from metier.harness.runner import failed, run_episode
from metier.harness.testing import ECHO, FakeBackend, FakeSandbox, ScriptedPolicy
from metier.harness.testing.echo.family import Echo
from metier.scheduler.retries import pause_s

registry.add_registry(ECHO)
ID = "test/Echo-v0"
READ = ToolCall(tool="read_file", arguments={"path": "numbers.txt"})
LOSE = ToolCall(tool="lose")
SUBMIT = ToolCall(tool="submit", arguments={"answer": "1"})


def wait(seconds: float) -> ToolCall:
    return ToolCall(tool="wait", arguments={"seconds": seconds})


class Turns:
    """Says these turns, one after another; an error among them is raised."""

    def __init__(self, *turns: AssistantTurn | Exception) -> None:
        self.turns = list(turns)
        self.before_each: Callable[[], Awaitable[None]] | None = None

    async def act(self, conversation: Sequence[Message | AssistantTurn], tools: Any, *, deadline: Deadline) -> Any:
        if self.before_each is not None:
            await self.before_each()
        turn = self.turns[sum(isinstance(part, AssistantTurn) for part in conversation)]
        if isinstance(turn, Exception):
            raise turn
        return turn


def turn(*calls: ToolCall, **more: Any) -> AssistantTurn:
    return AssistantTurn(text="…", calls=calls, **more)


class Stage:
    """One episode on a fake backend, and what was seen of it."""

    def __init__(self) -> None:
        self.backend = FakeBackend()
        self.seen: list[tuple[Episode, Step]] = []

    async def play(self, policy: Any, seconds: float = 60, **task: Any) -> EpisodeResult:
        deadline = Deadline.after(seconds, limit="episode_s", set_by="test")
        result = await run_episode(
            Task(env_id=ID, seed=3, **task),
            policy,
            self.backend,
            Preparer(self.backend),
            deadline=deadline,
            watch=lambda episode, call, step: self.seen.append((episode, step)),
        )
        assert self.backend.open == {}, "every sandbox was given back"
        assert EpisodeResult.model_validate(result.model_dump(mode="json")) == result
        return result


@pytest.fixture
def stage() -> Stage:
    return Stage()


def said(result: EpisodeResult) -> list[str]:
    """The observations."""
    return [part.text for part in result.conversation if isinstance(part, Message)][1:]


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
    _limit(monkeypatch, agent_s=0.2)
    policy = Turns(turn(wait(0.01)), turn(wait(0.01)), turn(wait(0.3)), turn(SUBMIT))
    policy.before_each = lambda: asyncio.sleep(0.15)
    result = await stage.play(policy)
    assert (result.limit, len(result.steps)) == (Limit.TIME, 3)
    assert said(result)[-1] == "waited 0.3 s\n[the episode ended: time limit]"


def _limit(monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    """Other limits for the family, for this test."""
    entry = registry.get(ID)
    other = entry.model_copy(update={"limits": entry.limits.model_copy(update=limits)})

    def get(env_id: str) -> Entry:
        return other

    monkeypatch.setattr("metier.harness.prepare.get", get)


# what fails


async def test_a_lost_sandbox_has_no_reward_and_keeps_what_was_said(stage: Stage) -> None:
    result = await stage.play(Turns(turn(READ), turn(LOSE), turn(SUBMIT)))
    assert (result.outcome, result.reward, result.passed) == (Outcome.SANDBOX_FAILURE, None, None)
    assert result.failure == "SandboxLost: lost on request; start another episode"
    assert result.steps == (READ,)
    assert [type(part).__name__ for part in result.conversation] == ["Message", "AssistantTurn"] * 2
    assert {"reset", "policy", "tool", "verify", "total"} <= result.timings_s.keys()


async def test_a_policy_that_has_no_turn_is_a_policy_failure(stage: Stage) -> None:
    result = await stage.play(Turns(turn(READ), PolicyError("the engine is dead")))
    assert (result.outcome, result.reward) == (Outcome.POLICY_FAILURE, None)
    assert result.failure == "PolicyError: the engine is dead"
    assert result.steps == (READ,)
    assert len(said(result)) == 1


async def test_no_sandbox_at_all_is_a_failure_with_an_empty_transcript() -> None:
    stage = Stage()
    stage.backend = FakeBackend(unavailable="no engine answers")
    result = await stage.play(ScriptedPolicy([]))
    assert (result.outcome, result.reward, result.conversation) == (Outcome.SANDBOX_FAILURE, None, ())
    assert result.failure == "SandboxUnavailable: no engine answers"


@pytest.mark.parametrize("task", [{"level": 9}, {"options": {"units": "m"}}])
async def test_the_callers_mistake_is_raised(stage: Stage, task: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=ID):
        await stage.play(ScriptedPolicy([]), **task)


@pytest.mark.parametrize("stop", [Stop.END, Stop.CONTEXT])
async def test_what_the_agent_takes_down_is_graded_however_the_episode_ends(stage: Stage, stop: Stop) -> None:
    async def out_of_memory() -> None:
        for box in stage.backend.open.values():
            box.lose("killed", Limit.MEMORY)

    policy = Turns(turn(SUBMIT, stop=stop))
    policy.before_each = out_of_memory
    result = await stage.play(policy)
    assert (result.outcome, result.limit, result.reward) == (Outcome.AGENT_LIMIT, Limit.MEMORY, 0.0)


async def test_a_sandbox_lost_at_the_limit_by_nobodys_fault_is_a_failure(stage: Stage) -> None:
    async def gone() -> None:
        for box in stage.backend.open.values():
            box.lose()

    policy = Turns(turn(stop=Stop.CONTEXT))
    policy.before_each = gone
    result = await stage.play(policy)
    assert (result.outcome, result.reward) == (Outcome.SANDBOX_FAILURE, None)


# the verifier


async def _overrun(*_: object) -> Verdict:
    await asyncio.sleep(60)
    raise AssertionError("not cut off")


async def _deaf(*_: object) -> Verdict:
    try:
        await asyncio.sleep(60)
    finally:
        raise KeyError("cleaning up")


def _answers(verdict: Any) -> Callable[..., Awaitable[Any]]:
    async def verify(*_: object) -> Any:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return verify


NOT_A_NUMBER = Verdict(checks=(Check(name="sum", score=1.0, weight=math.inf),), passed=True)
BROKEN: dict[str, tuple[Callable[..., Awaitable[Any]], str]] = {
    "says so": (_answers(VerifierError("the reference run broke")), "^VerifierError: the reference run broke$"),
    "overruns": (_overrun, r"limits.verify_s \(set by test/Echo-v0\) fired after 0\.\d s"),
    "overruns and breaks": (_deaf, "limits.verify_s"),
    "any error": (_answers(ZeroDivisionError("by zero")), "verifier broke: ZeroDivisionError: by zero"),
    "a time limit of its own": (_answers(TimeoutError("the probe's 5 s")), "verifier broke: TimeoutError: the probe's"),
    "the caller's mistake, which it is not": (_answers(ConfigError("timeout_s must be above 0")), "broke: ConfigError"),
    "a file of its own": (_answers(FileNotFoundError(errno.ENOENT, "gone", "/truth")), "broke: FileNotFoundError"),
    "no verdict": (_answers(None), "a verdict needs one check"),
    "an empty verdict": (_answers(Verdict(checks=(), passed=True)), "a verdict needs one check"),
    "a reward that is no number": (_answers(NOT_A_NUMBER), "a verdict needs"),
}


@pytest.mark.parametrize("how", BROKEN)
async def test_a_broken_verifier_gives_no_reward(stage: Stage, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    verify, words = BROKEN[how]
    monkeypatch.setattr(Echo, "verify", verify)
    if "overruns" in how:
        _limit(monkeypatch, verify_s=0.1)
    result = await stage.play(oracle_policy(ID, 3))
    assert (result.outcome, result.reward, result.passed) == (Outcome.VERIFIER_FAILURE, None, None)
    with pytest.raises(VerifierError, match=words):
        raise VerifierError(result.failure)
    assert len(said(result)) == 1  # what was observed before the end stays
    assert str(pass_rate([result])) == "nan% [0, 100] (n=0, 1 invalid)"


def test_a_broken_verifier_is_not_tried_again_and_stays_one_in_the_batch() -> None:
    assert pause_s("VerifierError", 1) is None
    result = failed({"env_id": ID, "seed": 3}, "VerifierError", "broke")
    assert (result.outcome, result.reward, result.failure) == (Outcome.VERIFIER_FAILURE, None, "VerifierError: broke")


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        ("SandboxLost", Outcome.SANDBOX_FAILURE),
        ("PolicyError", Outcome.POLICY_FAILURE),
        ("GenerationError", Outcome.GENERATION_FAILURE),
        ("ClusterError", Outcome.CLUSTER_FAILURE),
        ("DeadlineExceeded", Outcome.CLUSTER_FAILURE),
        ("KeyError", Outcome.CLUSTER_FAILURE),
        ("Outcome", Outcome.CLUSTER_FAILURE),  # a name of the core's, and no error
        ("CancelledError", Outcome.CANCELLED),
    ],
)
def test_a_failure_of_the_scheduler_is_an_outcome_without_a_reward(failure: str, outcome: Outcome) -> None:
    result = failed({"env_id": ID, "seed": 3, "sample": 2}, failure, "why")
    assert (result.outcome, result.reward, result.sample) == (outcome, None, 2)


async def _verifier_breaks(stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception) -> EpisodeResult:
    async def unpack(box: FakeSandbox, tar: bytes, to: str, **more: Any) -> None:
        if box.spec.verifier:
            raise error

    monkeypatch.setattr(FakeSandbox, "unpack", unpack)
    return await stage.play(ScriptedPolicy([SUBMIT]))


async def test_artefacts_that_do_not_fit_are_the_agents_doing(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = await _verifier_breaks(stage, monkeypatch, OSError(errno.ENOSPC, "no space left"))
    assert (result.outcome, result.reward, result.checks[0].name) == (Outcome.COMPLETED, 0.0, "artefacts fit")


@pytest.mark.parametrize(
    ("limit", "outcome", "reward"),
    [(None, Outcome.SANDBOX_FAILURE, None), (Limit.MEMORY, Outcome.COMPLETED, 0.0)],
)
async def test_a_verifiers_sandbox_that_is_lost_is_a_failure_unless_the_artefact_did_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, limit: Limit | None, outcome: Outcome, reward: float | None
) -> None:
    result = await _verifier_breaks(stage, monkeypatch, SandboxLost("gone", limit))
    assert (result.outcome, result.reward) == (outcome, reward)


@pytest.mark.parametrize(
    ("number", "outcome", "reward"),
    [(errno.ENOMEM, Outcome.COMPLETED, 0.0), (errno.EIO, Outcome.SANDBOX_FAILURE, None)],
)
async def test_artefacts_that_cannot_be_collected_are_the_agents_doing_where_it_left_no_room(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, number: int, outcome: Outcome, reward: float | None
) -> None:
    async def collect(*_: object) -> Any:
        raise OSError(number, "no")

    monkeypatch.setattr(FakeSandbox, "collect", collect)
    result = await stage.play(ScriptedPolicy([SUBMIT]))
    assert (result.outcome, result.reward) == (outcome, reward)


async def test_files_that_do_not_fit_are_the_authors_mistake(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unpack(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(FakeSandbox, "unpack", unpack)
    result = await stage.play(ScriptedPolicy([SUBMIT]))
    assert (result.outcome, result.reward) == (Outcome.GENERATION_FAILURE, None)
    assert "raise limits.memory_mb" in result.failure


# what no record can hold, and what nobody foresaw

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


async def test_a_fault_nobody_foresaw_ends_the_episode_typed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a fault \ud800 of ours")

    with monkeypatch.context() as patch:
        patch.setattr(Episode, "_step", broken)
        result = await stage.play(Turns(turn(READ)))
        assert (result.outcome, result.reward) == (Outcome.CLUSTER_FAILURE, None)
        assert result.failure.startswith("UnexpectedError")
        assert "ZeroDivisionError" in result.failure
    result = await stage.play(Turns(ZeroDivisionError("a fault of the policy's")))
    assert result.outcome is Outcome.POLICY_FAILURE
    assert "ZeroDivisionError" in result.failure
    assert caplog.text.count("Traceback") == 2


@pytest.mark.parametrize("seed", [-1, 10**5000, 2**63, 1.5], ids=["below 0", "endless", "too large", "a fraction"])
async def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    backend = FakeBackend()
    deadline = Deadline.after(60, limit="episode_s", set_by="test")
    with pytest.raises(ConfigError, match="a seed is an integer from 0"):
        await run_episode(Task(env_id=ID, seed=seed), Turns(), backend, Preparer(backend), deadline=deadline)
