"""One operation of an environment at a time: environments are no more thread-safe than Gymnasium's own.

Two threads that reset the same environment would each get a sandbox, of which one would be forgotten. The second is
refused; after an operation that was cut off by its caller (Ctrl-C), the next one waits until it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from gymnasium.error import ClosedEnvironmentError

from metier.envs.core import ConfigError


class _Running(NamedTuple):
    task: asyncio.Task[Any]
    what: str


class Turns:
    """Who is at work in one environment. Belongs to the event loop of its operations."""

    def __init__(self, env_id: str) -> None:
        self._env_id = env_id
        self._running: _Running | None = None
        self._broken_up: set[asyncio.Task[Any]] = set()

    @asynccontextmanager
    async def taken(self, what: str) -> AsyncIterator[None]:
        """For an operation, from its beginning to its end.

        Raises:
            ConfigError: another one is running.
            ClosedEnvironmentError: the environment was closed meanwhile.
        """
        task = asyncio.current_task()
        assert task is not None
        while (other := self._running) is not None:
            if not other.task.cancelling():
                raise ConfigError(
                    f"{self._env_id}: {what}() while another thread is in {other.what}(); an environment serves one "
                    "thread at a time: make one for each, or a vector environment"
                )
            await asyncio.wait([other.task])
        self._running = _Running(task, what)
        try:
            yield
        except asyncio.CancelledError:
            if task in self._broken_up:
                raise ClosedEnvironmentError(
                    f"{self._env_id}: the environment was closed in the middle of {what}()"
                ) from None
            raise
        finally:
            self._running = None
            self._broken_up.discard(task)

    async def break_up(self) -> None:
        """Cut off whatever is running, and wait for its end."""
        while (other := self._running) is not None:
            if not other.task.cancelling():
                self._broken_up.add(other.task)
                other.task.cancel()
            await asyncio.wait([other.task])
