"""Rates: the interval against published values, and invalid episodes outside the denominator but in sight."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.core import Outcome
from metier.harness.evaluate import Rate, pass_rate, wilson
from metier.harness.result import EpisodeResult


@pytest.mark.parametrize(
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3
    ("passed", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_against_published_values(passed: int, trials: int, low: float, high: float) -> None:
    assert wilson(passed, trials) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 200), st.integers(0, 200))
def test_the_interval_holds_the_rate(first: int, second: int) -> None:
    passed, trials = min(first, second), max(first, second)
    low, high = wilson(passed, trials)
    assert 0 <= low <= high <= 1
    if trials:
        assert low - 1e-12 <= passed / trials <= high + 1e-12


def result(outcome: Outcome, passed: bool | None) -> EpisodeResult:
    reward = None if passed is None else float(passed)
    return EpisodeResult(env_id="test/X-v0", seed=0, level=0, sample=0, outcome=outcome, reward=reward, passed=passed)


def test_invalid_episodes_are_counted_apart() -> None:
    graded = [result(Outcome.COMPLETED, True), result(Outcome.AGENT_LIMIT, False)]
    lost = [result(Outcome.SANDBOX_FAILURE, None)] * 3
    rate = pass_rate(graded + lost)
    assert rate == Rate(passed=1, valid=2, requested=5)
    assert "n=2, 3 invalid" in str(rate)


def test_an_infrastructure_failure_can_have_no_reward() -> None:
    with pytest.raises(ValueError, match="exactly graded outcomes have a reward"):
        result(Outcome.SANDBOX_FAILURE, False)
    with pytest.raises(ValueError, match="exactly graded outcomes have a reward"):
        result(Outcome.COMPLETED, None)
