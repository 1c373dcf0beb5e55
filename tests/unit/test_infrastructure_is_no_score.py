"""A batch of which most breaks: what broke is no 0 in any mean, and what was not broken counts as if it were alone."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from metier.envs import registry
from metier.envs.core import Deadline, GenerationError, Outcome, SandboxUnavailable, VerifierError
from metier.harness.evaluate import Rate, pass_rate
from metier.harness.policy.scripted import oracle_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.testing import ECHO, FakeBackend
from metier.harness.testing.echo.family import Echo

registry.add_registry(ECHO)
ID = "test/Echo-v0"


class Tired(FakeBackend):
    """One sandbox in ten comes up; verifiers do."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    async def acquire(self, spec: Any, **more: Any) -> Any:
        if not spec.verifier:
            self.asked += 1
            if self.asked % 10:
                raise SandboxUnavailable("the engine did not answer within 30 s")
        return await super().acquire(spec, **more)


async def batch(backend: FakeBackend, count: int) -> list[EpisodeResult]:
    async def one(seed: int) -> EpisodeResult:
        deadline = Deadline.after(60, limit="episode_s", set_by="test")
        task = Task(env_id=ID, seed=seed)
        return await run_episode(task, oracle_policy(ID, seed), backend, Preparer(backend), deadline=deadline)

    return await asyncio.gather(*(one(seed) for seed in range(count)))


async def test_nine_of_ten_that_fail_in_reset_leave_one_right_answer_and_a_rate_of_one() -> None:
    results = await batch(Tired(), 10)
    assert [one.outcome for one in results].count(Outcome.SANDBOX_FAILURE) == 9
    assert [one.reward for one in results if one.outcome is not Outcome.COMPLETED] == [None] * 9
    rate = pass_rate(results)
    assert rate == Rate(passed=1, valid=1, requested=10)
    assert rate.rate == 1.0 and str(rate).endswith("(n=1, 9 invalid)")


@pytest.mark.parametrize(
    ("breaks", "error", "outcome"),
    [
        ("verify", VerifierError("the reference broke"), Outcome.VERIFIER_FAILURE),
        ("verify", ZeroDivisionError("by zero"), Outcome.VERIFIER_FAILURE),
        ("generate", ValueError("no such seed"), Outcome.GENERATION_FAILURE),
        ("generate", GenerationError("too few bugs"), Outcome.GENERATION_FAILURE),
    ],
)
async def test_twelve_of_fifty_that_break_are_seen_and_change_no_mean(
    monkeypatch: pytest.MonkeyPatch, breaks: str, error: Exception, outcome: Outcome
) -> None:
    real = getattr(Echo, breaks)
    calls = 0

    def now_and_then(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > 38:
            raise error
        return real(*given)

    async def later(*given: Any) -> Any:
        return await now_and_then(*given)

    policies = [oracle_policy(ID, seed) for seed in range(50)]  # before anything breaks
    monkeypatch.setattr(Echo, breaks, later if breaks == "verify" else now_and_then)
    backend = FakeBackend()
    results = [
        await run_episode(
            Task(env_id=ID, seed=seed),
            policy,
            backend,
            Preparer(backend),
            deadline=Deadline.after(60, limit="episode_s", set_by="test"),
        )
        for seed, policy in enumerate(policies)
    ]
    assert [one.outcome for one in results].count(outcome) == 12
    rate = pass_rate(results)
    assert rate == Rate(passed=38, valid=38, requested=50)
    assert "n=38, 12 invalid" in str(rate)
    assert backend.open == {}


def test_a_batch_in_which_nothing_is_valid_has_no_rate() -> None:
    lost = EpisodeResult(env_id=ID, seed=0, level=0, sample=0, outcome=Outcome.SANDBOX_FAILURE)
    assert math.isnan(pass_rate([lost] * 5).rate)
    assert pass_rate([lost] * 5).interval == (0.0, 1.0)
