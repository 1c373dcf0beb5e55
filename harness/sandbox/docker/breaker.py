"""A circuit breaker for an engine that does not answer: callers are told at once instead of each waiting for it.

Closed: every call goes through, and `FAILURES` in a row without an answer open it. Open: every call is refused at once,
until `COOL_DOWN_S` have passed. Half open: one call asks the engine whether it answers, and those that come meanwhile
wait for that; if it does, it is closed again, else open for as long again. An engine that answers, if only to refuse,
is no failure.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum, auto

FAILURES = 5
COOL_DOWN_S = 10.0


class Circuit(StrEnum):
    """Whether calls go through."""

    CLOSED = auto()
    """They do."""
    OPEN = auto()
    """They are refused."""
    HALF_OPEN = auto()
    """One asks whether they would."""


class Breaker:
    """Counts what goes wrong in a row; `now` is a clock in seconds."""

    def __init__(
        self,
        *,
        failures: int = FAILURES,
        cool_down_s: float = COOL_DOWN_S,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.circuit = Circuit.CLOSED
        self.why = ""
        """The words of the last failure."""
        self._most = failures
        self._cool_down_s = cool_down_s
        self._now = now
        self._failures = 0
        self._opened = 0.0

    @property
    def left_s(self) -> float:
        """Until it may be tried again, where it is open."""
        return max(0.0, self._opened + self._cool_down_s - self._now())

    def try_again(self) -> bool:
        """Whether the caller has to find out if the engine is back; `succeeded`, `failed` or `given_up` follows."""
        if self.circuit is not Circuit.OPEN or self.left_s > 0:
            return False
        self.circuit = Circuit.HALF_OPEN
        return True

    def succeeded(self) -> None:
        """There was an answer."""
        self.circuit = Circuit.CLOSED
        self._failures = 0

    def given_up(self) -> None:
        """Nobody waited for the answer; the next caller may ask."""
        if self.circuit is Circuit.HALF_OPEN:
            self.circuit = Circuit.OPEN

    def failed(self, why: str) -> None:
        """There was none. One that was asked for before the circuit opened does not keep it open for longer."""
        self._failures += 1
        self.why = why
        if self.circuit is Circuit.HALF_OPEN or (self.circuit is Circuit.CLOSED and self._failures >= self._most):
            self.circuit = Circuit.OPEN
            self._opened = self._now()
