"""What runs in a worker process of the Ray executor: many attempts at once, on one event loop.

This module does not import Ray; the executor wraps the class as an actor. Errors leave as plain values, so no exception
class has to exist on both sides.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from metier.envs.core import ConfigError, Deadline, Json

from . import worker
from .attempt import Attempt, resolve, run_attempt

_WATCH_S = 0.25


class RayWorker:
    """Runs attempts, cancels them by their id, and closes the process's resources."""

    def __init__(self, driver_pid: int | None) -> None:
        """`driver_pid`: the driver's, where it runs on this machine; the worker dies as soon as it is gone."""
        self._running: dict[str, asyncio.Task[Attempt]] = {}
        self._cancelled_early: set[str] = set()
        if driver_pid is not None:
            threading.Thread(target=_follow, args=(driver_pid,), daemon=True, name="follow driver").start()

    async def pid(self) -> int:
        """Also the sign that the worker has started."""
        return os.getpid()

    async def run(
        self, attempt_id: str, key: str, task: str, payload: Mapping[str, Json], left_s: float, limit: str, set_by: str
    ) -> Attempt:
        """One attempt; its deadline arrives as the seconds left."""
        if attempt_id in self._cancelled_early:
            self._cancelled_early.discard(attempt_id)
            return _cancelled(key)
        try:
            function = resolve(task)
        except ConfigError as error:
            return Attempt.failed(error)
        deadline = Deadline.after(left_s, limit=limit, set_by=set_by)
        work = asyncio.create_task(run_attempt(function, payload, deadline, name=f"work item {key}"))
        self._running[attempt_id] = work
        try:
            await asyncio.wait({work})
        finally:
            del self._running[attempt_id]
        return _cancelled(key) if work.cancelled() else work.result()

    async def cancel(self, attempt_id: str) -> None:
        """Cancel that attempt; its own call returns once the task has stopped."""
        work = self._running.get(attempt_id)
        if work is None:
            self._cancelled_early.add(attempt_id)
        else:
            work.cancel()

    async def close(self) -> None:
        """Close what the tasks registered with `on_close`."""
        await worker.close_resources()


def _cancelled(key: str) -> Attempt:
    return Attempt(failure="CancelledError", message=f"work item {key} was cancelled")


def _follow(driver_pid: int) -> None:
    born = _start_of(driver_pid)
    while born is not None and _start_of(driver_pid) == born:
        time.sleep(_WATCH_S)
    os._exit(1)  # no clean-up code runs on purpose: pipes close, and what hangs on them follows


def _start_of(pid: int) -> str | None:
    """When that process started, in clock ticks since boot; None if it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
