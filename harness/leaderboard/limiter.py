"""How many requests an address may make, in memory: a bucket that fills with time, by a clock that nobody sets."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

_MOST_KNOWN = 10_000


class Limiter:
    """Buckets by name; the least used are forgotten, so that many addresses cost no memory.

    Example:
        >>> limiter = Limiter(rate_per_s=1, burst=2, clock=lambda: 0.0)
        >>> [limiter.wait_s("a") for _ in range(3)]
        [0.0, 0.0, 1.0]
    """

    def __init__(self, *, rate_per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate_per_s
        self._burst = burst
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, name: str, *, take: int = 1) -> float:
        """0 where it may go on, and is counted; else the seconds until it may. With `take=0` nothing is counted."""
        at = self._clock()
        left, before = self._left.pop(name, (float(self._burst), at))
        left = min(self._burst, left + (at - before) * self._rate)
        allowed = left >= 1
        self._left[name] = (left - take if allowed else left, at)
        if len(self._left) > _MOST_KNOWN:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate
