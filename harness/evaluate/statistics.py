"""Rates with their intervals and their denominators; an invalid episode is counted as invalid, never as a failure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..result import EpisodeResult


class Interval(NamedTuple):
    """A closed interval of [0, 1]."""

    low: float
    high: float


def wilson(successes: int, trials: int, z: float = 1.959964) -> Interval:
    """Wilson's score interval of a binomial rate (Wilson, 1927), 95% by default.

    With p = successes/trials: (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n). No trials know nothing: [0, 1].

    Raises:
        ValueError: successes outside 0..trials.

    Example:
        >>> low, high = wilson(29, 100)
        >>> round(low, 3), round(high, 3)
        (0.21, 0.385)
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if trials == 0:
        return Interval(0.0, 1.0)
    rate = successes / trials
    centre = rate + z * z / (2 * trials)
    margin = z * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return Interval(max(0.0, (centre - margin) / scale), min(1.0, (centre + margin) / scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A pass rate: passed of valid, beside how many were asked for."""

    passed: int
    valid: int
    requested: int

    @property
    def rate(self) -> float:
        """passed / valid; NaN where nothing is valid."""
        return self.passed / self.valid if self.valid else math.nan

    @property
    def interval(self) -> Interval:
        """Wilson's 95% interval."""
        return wilson(self.passed, self.valid)

    def __str__(self) -> str:
        low, high = self.interval
        invalid = self.requested - self.valid
        note = f", {invalid} invalid" if invalid else ""
        return f"{100 * self.rate:.0f}% [{100 * low:.0f}, {100 * high:.0f}] (n={self.valid}{note})"


def pass_rate(results: Iterable[EpisodeResult]) -> Rate:
    """The pass rate of results; those without a reward are outside its denominator and stay visible."""
    collected = list(results)
    valid = [result for result in collected if result.outcome.graded]
    return Rate(passed=sum(bool(result.passed) for result in valid), valid=len(valid), requested=len(collected))
