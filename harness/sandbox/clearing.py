"""Sandboxes on their way out: removed in the background, and waited for only as long as something of that gets done.

An engine that hangs would else keep every command from ending. What it does not remove is no leak: a sandbox ends with
its connection, which is closed first, and whatever is left then is the reaper's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

from metier.envs.core import SandboxError

_log = logging.getLogger(__name__)

STALL_S = 5.0
"""Nothing was done for so long: it is not waited for any more."""
_CANCEL_S = 1.0


class Clearing:
    """The removals of one backend. Belongs to its event loop."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._going: dict[asyncio.Task[None], str] = {}
        self._moved_at = 0.0

    def spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Do it in the background; `name` is of the sandbox. What it raises is logged."""

        async def run() -> None:
            try:
                await work
            except SandboxError as error:
                _log.warning("clearing up a sandbox of the %s backend: %s", self._backend, error)
            except Exception:
                _log.exception("clearing up a sandbox of the %s backend failed", self._backend)

        if not self._going:
            self._moved_at = time.monotonic()
        task = asyncio.create_task(run())
        self._going[task] = name
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._going[task]
        self._moved_at = time.monotonic()

    @property
    def _left_s(self) -> float:
        return max(0.0, self._moved_at + STALL_S - time.monotonic())

    async def settled(self, task: asyncio.Task[None]) -> None:
        """Wait for the end of this one, which is among them, or until nothing gets done."""
        while not task.done() and self._left_s:
            await asyncio.wait(list(self._going), timeout=self._left_s, return_when=asyncio.FIRST_COMPLETED)

    async def finish(self) -> None:
        """Wait for all of them; those that nothing gets done about are given up, and told."""
        while self._going:
            if not self._left_s:
                await self._give_up()
                return
            await asyncio.wait(list(self._going), timeout=self._left_s, return_when=asyncio.FIRST_COMPLETED)

    async def _give_up(self) -> None:
        names, tasks = sorted(set(self._going.values())), list(self._going)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CANCEL_S)
        _log.warning(
            "nothing was removed by the %s backend for %g s, so this is still there: %s; each ends by itself once this "
            "process has left it, and the reaper will take what is left then",
            *(self._backend, STALL_S, ", ".join(names)),
        )
