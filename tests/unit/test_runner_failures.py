"""An episode in which something breaks, on scripted sandboxes: who did it, and so whether there is a reward."""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from echo_episode import ID, LOSE, READ, SUBMIT, Stage, Turns, limited, said, turn
from metier.envs.core import Check, ConfigError, Limit, Outcome, PolicyError, SandboxLost, Verdict, VerifierError
from metier.harness.episode import Episode
from metier.harness.evaluate import pass_rate
from metier.harness.policy import Stop
from metier.harness.policy.scripted import oracle_policy
from metier.harness.result import EpisodeResult
from metier.harness.runner import failed
from metier.harness.testing import FakeBackend, FakeSandbox, ScriptedPolicy
from metier.harness.testing.echo.family import Echo
from metier.scheduler.retries import pause_s


@pytest.fixture
def stage() -> Stage:
    return Stage()


# sandbox, policy, scheduler, and what nobody foresaw


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
        limited(monkeypatch, verify_s=0.1)
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
