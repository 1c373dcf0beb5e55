"""Admission: which of the waiting items may start, given what is free.

The rule is a pure decision over (waiting, free): higher priority first, then first come. One that does not fit holds
back those behind it that want a resource it lacks, so a large item is never starved by small ones, while items of other
pools pass by.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from metier.envs.core import ConfigError

from .contract import Needs

_TOLERANCE = 1e-9
"""Fractions of a core add up to a whole one in floating point."""


def amounts(needs: Needs) -> dict[str, float]:
    """The needs as resource → amount; what is zero is left out.

    Example:
        >>> amounts(Needs(cpus=0.5, slots={"sandbox": 1}))
        {'cpus': 0.5, 'slot sandbox': 1}
    """
    named: dict[str, float] = {"cpus": needs.cpus, "gpus": needs.gpus, "memory_mb": needs.memory_mb}
    named.update({f"slot {pool}": count for pool, count in needs.slots.items()})
    return {name: amount for name, amount in named.items() if amount != 0}


def admissible(waiting: Iterable[Mapping[str, float]], free: Mapping[str, float]) -> list[int]:
    """Positions of `waiting` (best first) that may start now.

    Example:
        >>> admissible([{"cpus": 2}, {"cpus": 1}, {"slot render": 1}], {"cpus": 1, "slot render": 1})
        [2]
    """
    left = dict(free)
    held_back: set[str] = set()
    starting: list[int] = []
    for position, wanted in enumerate(waiting):
        lacking = {name for name, amount in wanted.items() if amount > left.get(name, 0) + _TOLERANCE}
        if lacking or not held_back.isdisjoint(wanted):
            held_back |= lacking
            continue
        for name, amount in wanted.items():
            left[name] -= amount
        starting.append(position)
    return starting


@dataclass(slots=True, kw_only=True, eq=False)
class _Waiter:
    wanted: Mapping[str, float]
    priority: int
    arrival: int
    granted: asyncio.Future[None]


class Admission:
    """Holds what a machine or cluster has, and lends it to one event loop's tasks."""

    def __init__(self, capacity: Needs) -> None:
        self._capacity = amounts(capacity)
        self._free = dict(self._capacity)
        self._waiting: list[_Waiter] = []
        self._arrivals = itertools.count()

    def check(self, needs: Needs) -> None:
        """Refuse what could never start.

        Raises:
            ConfigError: negative, an unknown pool, or more than there is in all.
        """
        for name, amount in amounts(needs).items():
            if amount < 0:
                raise ConfigError(f"a work item needs {amount:g} {name}: give 0 or more")
            if amount > self._capacity.get(name, 0) + _TOLERANCE:
                had = ", ".join(f"{name} {amount:g}" for name, amount in self._capacity.items()) or "nothing"
                raise ConfigError(
                    f"a work item needs {amount:g} {name} but the executor has {had}: ask for less, or open the "
                    f"executor with more"
                )

    @asynccontextmanager
    async def hold(self, needs: Needs, priority: int) -> AsyncIterator[None]:
        """Wait for `needs`, and give them back on leaving."""
        waiter = _Waiter(
            wanted=amounts(needs),
            priority=priority,
            arrival=next(self._arrivals),
            granted=asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(waiter)
        self._waiting.sort(key=lambda one: (-one.priority, one.arrival))
        try:
            self._grant()
            await waiter.granted
            yield
        finally:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                for name, amount in waiter.wanted.items():
                    self._free[name] += amount
            self._grant()

    def _grant(self) -> None:
        starting = [self._waiting[at] for at in admissible([one.wanted for one in self._waiting], self._free)]
        for waiter in starting:
            self._waiting.remove(waiter)
            for name, amount in waiter.wanted.items():
                self._free[name] -= amount
            if not waiter.granted.done():
                waiter.granted.set_result(None)
