"""How an evaluation goes while it goes: what a display shows. It keeps counts only, and decides nothing."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .folder import Results
from .plan import Trial
from .row import Row
from .statistics import Rate

_WINDOW_S = 60.0


@dataclass(slots=True)
class DomainTally:
    """One domain so far."""

    requested: int = 0
    running: int = 0
    passed: int = 0
    valid: int = 0
    invalid: Counter[str] = field(default_factory=Counter[str])
    """By outcome."""

    @property
    def num_ended(self) -> int:
        """Valid or not."""
        return self.valid + self.invalid.total()

    @property
    def rate(self) -> Rate:
        """Of what has ended."""
        return Rate(passed=self.passed, valid=self.valid, requested=self.num_ended)


class _Made(NamedTuple):
    """Output tokens of a trial that ended then."""

    at: float
    tokens: int


class Tally:
    """Implements `Watch`."""

    def __init__(
        self,
        results: Results,
        trials: Iterable[Trial],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`trials` are those that will be run; the others of the plan have a row that counts."""
        self._clock = clock
        self._began = clock()
        self._made: deque[_Made] = deque()
        self.num_ended_here = 0
        self.domains: dict[str, DomainTally] = {}
        waiting = {trial.key for trial in trials}
        self.num_to_run = len(waiting)
        for trial in results.plan.trials():
            domain = self.domains.setdefault(trial.domain, DomainTally())
            domain.requested += 1
            row = results.rows.get(trial.key)
            if row is not None and trial.key not in waiting:
                _count(domain, row)

    def started(self, trial: Trial) -> None:
        """See `Watch`."""
        self.domains[trial.domain].running += 1

    def finished(self, trial: Trial, row: Row) -> None:
        """See `Watch`."""
        domain = self.domains[trial.domain]
        domain.running -= 1
        _count(domain, row)
        self.num_ended_here += 1
        self._made.append(_Made(self._clock(), row.spent_in_all.output_tokens))

    @property
    def whole(self) -> DomainTally:
        """All domains together."""
        made = DomainTally()
        for one in self.domains.values():
            made.requested += one.requested
            made.running += one.running
            made.passed += one.passed
            made.valid += one.valid
            made.invalid += one.invalid
        return made

    @property
    def elapsed_s(self) -> float:
        """Since this process began."""
        return self._clock() - self._began

    @property
    def tokens_per_s(self) -> float:
        """Output tokens of the trials that ended within the last minute."""
        now = self._clock()
        while self._made and self._made[0].at < now - _WINDOW_S:
            self._made.popleft()
        return sum(one.tokens for one in self._made) / max(1.0, min(_WINDOW_S, self.elapsed_s))

    @property
    def left_s(self) -> float | None:
        """Until the last trial ends, at the pace so far; None before any has."""
        if not self.num_ended_here:
            return None
        return (self.num_to_run - self.num_ended_here) * self.elapsed_s / self.num_ended_here


def _count(domain: DomainTally, row: Row) -> None:
    if row.valid:
        domain.valid += 1
        domain.passed += bool(row.passed)
    else:
        domain.invalid[str(row.outcome)] += 1
