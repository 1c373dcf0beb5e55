"""What a vendor lets one customer send: so many requests and tokens in any minute, shared by all episodes of a process.

A gate is passed in the order of arrival. What a request will use is estimated before it is sent and corrected after it
was answered; while a vendor asks for quiet, nobody passes. A gate belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from metier.envs.core import Deadline

MINUTE_S = 60.0
Clock = Callable[[], float]


@dataclass(slots=True)
class Spent:
    """So much, at that moment."""

    at: float
    amount: int


class PerMinute:
    """At most `limit` in any sixty seconds; one amount above the limit passes alone.

    Example:
        >>> now = 0.0
        >>> requests = PerMinute(2, lambda: now)
        >>> [requests.wait_s(1), requests.spend(1).amount, requests.spend(1).amount, requests.wait_s(1)]
        [0.0, 1, 1, 60.0]
    """

    def __init__(self, limit: int, clock: Clock = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._spent: deque[Spent] = deque()

    def wait_s(self, amount: int) -> float:
        """Seconds until so much may be spent, if nothing else is."""
        now = self._clock()
        while self._spent and self._spent[0].at <= now - MINUTE_S:
            self._spent.popleft()
        total = sum(one.amount for one in self._spent)
        until = now
        for one in self._spent:
            if total + amount <= self.limit:
                break
            total -= one.amount
            until = one.at + MINUTE_S
        return max(0.0, until - now)

    def spend(self, amount: int) -> Spent:
        """Count it now; its amount may be corrected later."""
        made = Spent(self._clock(), amount)
        self._spent.append(made)
        return made


class Gate:
    """Lets requests pass as the limits allow; None is no limit."""

    def __init__(
        self, requests_per_minute: int | None, tokens_per_minute: int | None, clock: Clock = time.monotonic
    ) -> None:
        self._requests = PerMinute(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = PerMinute(tokens_per_minute, clock) if tokens_per_minute else None
        self._clock = clock
        self._quiet_until = 0.0
        self._turn = asyncio.Lock()

    def quiet(self, seconds: float) -> None:
        """Nobody passes for so long."""
        self._quiet_until = max(self._quiet_until, self._clock() + seconds)

    async def enter(self, tokens: int, deadline: Deadline) -> Spent | None:
        """Wait until a request of about so many tokens may be sent; what it gives back is corrected by its answer.

        Raises:
            TimeoutError: Not before the deadline, as far as can be seen.
        """
        async with asyncio.timeout(deadline.left_s()), self._turn:
            while (wait_s := self._wait_s(tokens)) > 0:
                if wait_s > deadline.left_s():
                    raise TimeoutError
                await asyncio.sleep(wait_s)
            if self._requests is not None:
                self._requests.spend(1)
            return None if self._tokens is None else self._tokens.spend(tokens)

    def _wait_s(self, tokens: int) -> float:
        waits = [self._quiet_until - self._clock()]
        if self._requests is not None:
            waits.append(self._requests.wait_s(1))
        if self._tokens is not None:
            waits.append(self._tokens.wait_s(tokens))
        return max(0.0, *waits)
