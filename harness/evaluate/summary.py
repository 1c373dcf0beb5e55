"""What trials amount to: counts with their denominators, estimates with their intervals, what a success cost.

A trial that a failure of ours ended is invalid: it is counted by its class and is in no rate. All sums are exact, so
that the same rows give the same figures on every machine, in whatever order the trials ended.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, NamedTuple

import pydantic

from .bootstrap import Values, clustered_intervals
from .estimators import pass_at_k, pass_hat_k
from .plan import Trial, canonical
from .row import Row
from .spent import Spent
from .statistics import Interval, wilson

_DIGITS = 6
_ALL_K = 16
"""Up to so many samples every k is reported; beyond, powers of two and the number itself."""


class Estimate(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A mean over instances; None where no instance has a value, and no interval below two of them."""

    value: float | None
    low: float | None
    high: float | None
    instances: int
    """How many it is the mean of."""


class OfK(Estimate, frozen=True):
    """An estimate for k samples."""

    k: int


class PerSuccess(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What all valid trials took together, over how many passed."""

    seconds: float
    turns: float
    output_tokens: float
    tokens: float
    """Prompt and output together."""
    cost_usd: Decimal | None


class Summary(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A row of a report's table."""

    group: str
    requested: int
    valid: int
    invalid: dict[str, int]
    """By outcome."""
    missing: int
    """Not run yet. requested = valid + invalid + missing."""
    passed: int
    pass_rate: float | None
    """passed / valid."""
    pass_rate_low: float
    """Wilson's 95% interval, as if all trials were apart; those below are clustered by instance."""
    pass_rate_high: float
    limits: dict[str, int]
    """What ended valid trials before they were submitted."""
    instances: int
    pass_at: tuple[OfK, ...]
    pass_hat: tuple[OfK, ...]
    reward: Estimate
    """With partial credit."""
    per_success: PerSuccess | None
    """None where nothing passed."""
    spent: Spent
    """By valid trials."""
    spent_for_nothing: Spent
    """By invalid trials and failed attempts."""
    not_replayable: Annotated[int, pydantic.Field(ge=0, exclude_if=operator.not_)] = 0
    """Valid trials whose agent acted inside the sandbox by itself; written only where there are some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A trial, and its row if it has one."""

    trial: Trial
    row: Row | None


class Instance(NamedTuple):
    """What the samples of one instance share."""

    env_id: str
    options: str
    level: int
    seed: int


def instance_of(trial: Trial) -> Instance:
    """The instance of a trial."""
    return Instance(trial.env_id, canonical(dict(trial.options)).decode(), trial.level, trial.seed)


class Counted(NamedTuple):
    """The valid samples of an instance."""

    num_valid: int
    num_passed: int
    reward: Fraction
    """Of all of them together."""

    @property
    def mean_pass(self) -> Fraction | None:
        return Fraction(self.num_passed, self.num_valid) if self.num_valid else None

    @property
    def mean_reward(self) -> Fraction | None:
        return self.reward / self.num_valid if self.num_valid else None


def counted(trials: Iterable[Ended]) -> dict[Instance, Counted]:
    """Every instance, also those without a valid sample, in order."""
    found: dict[Instance, Counted] = {}
    for one in trials:
        at = instance_of(one.trial)
        valid, passed, reward = found.get(at, Counted(0, 0, Fraction(0)))
        if one.row is not None and one.row.valid:
            assert one.row.reward is not None
            valid, passed, reward = valid + 1, passed + bool(one.row.passed), reward + Fraction(one.row.reward)
        found[at] = Counted(valid, passed, reward)
    return found


def summarise(group: str, trials: Sequence[Ended], samples: int) -> Summary:
    """The summary of these trials.

    Args:
        group: names the row, and its stream of draws.
        trials: in the plan's order.
        samples: of each instance, as requested.
    """
    rows = [one.row for one in trials if one.row is not None]
    valid = [row for row in rows if row.valid]
    passed = sum(bool(row.passed) for row in valid)
    low, high = wilson(passed, len(valid))
    instances = list(counted(trials).values())
    ks = which_k(samples)
    columns: list[Values] = [[one.mean_reward for one in instances]]
    columns += [[pass_at_k(one.num_valid, one.num_passed, k) for one in instances] for k in ks]
    columns += [[pass_hat_k(one.num_valid, one.num_passed, k) for one in instances] for k in ks]
    intervals = clustered_intervals(columns, stream=group)
    reward, *others = [_estimate(values, interval) for values, interval in zip(columns, intervals, strict=True)]
    spent = Spent.total(row.spent for row in valid)
    return Summary(
        group=group,
        requested=len(trials),
        valid=len(valid),
        invalid=_by_name(str(row.outcome) for row in rows if not row.valid),
        missing=len(trials) - len(rows),
        passed=passed,
        pass_rate=rounded(Fraction(passed, len(valid))) if valid else None,
        pass_rate_low=rounded(low),
        pass_rate_high=rounded(high),
        limits=_by_name(str(row.limit) for row in valid if row.limit is not None),
        instances=len(instances),
        pass_at=tuple(OfK(k=k, **dict(one)) for k, one in zip(ks, others[: len(ks)], strict=True)),
        pass_hat=tuple(OfK(k=k, **dict(one)) for k, one in zip(ks, others[len(ks) :], strict=True)),
        reward=reward,
        per_success=_per_success(valid, spent, passed),
        spent=spent,
        spent_for_nothing=Spent.total(
            part for row in rows for part in (*(one.spent for one in row.history), *(() if row.valid else (row.spent,)))
        ),
        not_replayable=sum(not row.replayable for row in valid),
    )


def which_k(samples: int) -> list[int]:
    """The k that are reported.

    Example:
        >>> which_k(4), which_k(20)
        ([1, 2, 3, 4], [1, 2, 4, 8, 16, 20])
    """
    if samples <= _ALL_K:
        return list(range(1, samples + 1))
    return sorted({1 << power for power in range(samples.bit_length()) if 1 << power <= samples} | {samples})


def rounded(value: Fraction | float) -> float:
    """As it is written into a report."""
    return round(float(value), _DIGITS)


def mean(values: Values) -> Fraction | None:
    """Over those that are there."""
    known = [value for value in values if value is not None]
    return sum(known, Fraction(0)) / len(known) if known else None


def _estimate(values: Values, interval: Interval | None) -> Estimate:
    middle = mean(values)
    return Estimate(
        value=None if middle is None else rounded(middle),
        low=None if interval is None else rounded(interval.low),
        high=None if interval is None else rounded(interval.high),
        instances=sum(value is not None for value in values),
    )


def _per_success(valid: Sequence[Row], spent: Spent, passed: int) -> PerSuccess | None:
    if not passed:
        return None
    return PerSuccess(
        seconds=rounded(math.fsum(row.total_s for row in valid) / passed),
        turns=rounded(Fraction(spent.num_turns, passed)),
        output_tokens=rounded(Fraction(spent.output_tokens, passed)),
        tokens=rounded(Fraction(spent.tokens, passed)),
        cost_usd=None if spent.cost_usd is None else round(spent.cost_usd / passed, _DIGITS),
    )


def _by_name(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
