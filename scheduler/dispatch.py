"""Dispatch: the life of a work item from waiting to its result, the same for every executor.

An executor supplies where one attempt runs; this module supplies admission, the deadline, retries by failure class,
cancellation and closing. `timeout_s` bounds the running time of all attempts together, counted from the first
start; waiting for admission is reported as `queue_s` and bounded by the deadlines of what runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from metier.envs.core import ConfigError, Deadline

from .admission import Admission
from .attempt import Attempt
from .contract import FailedAttempt, Needs, WorkItem, WorkResult
from .retries import RETRIES, pause_s
from .stopping import stop, stop_all

RunAttempt = Callable[[WorkItem, Deadline], Awaitable[Attempt]]


class Dispatcher:
    """Runs items by `run_attempt`, never more at once than `capacity` allows."""

    def __init__(self, capacity: Needs, run_attempt: RunAttempt, retries: Mapping[str, int] = RETRIES) -> None:
        self._admission = Admission(capacity)
        self._run_attempt = run_attempt
        self._retries = retries
        self._running: set[asyncio.Task[WorkResult]] = set()
        self._closed = False

    async def run(self, item: WorkItem) -> WorkResult:
        """See `Executor.run`."""
        if self._closed:
            raise ConfigError(f"work item {item.key}: the executor is closed; open another one")
        if not item.timeout_s > 0:
            raise ConfigError(f"work item {item.key}: timeout_s is {item.timeout_s:g}; give it more than 0 seconds")
        self._admission.check(item.needs)
        queued_at = time.monotonic()
        work = asyncio.create_task(self._to_its_end(item), name=f"work {item.key}")
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            await stop(work, None)
            raise
        if work.cancelled():
            return WorkResult(
                key=item.key,
                value=None,
                failure="CancelledError",
                attempts=1,
                timings_s={"queue_s": 0.0, "run_s": time.monotonic() - queued_at},
                message="the executor was closed before this work ended",
            )
        return work.result()

    async def _to_its_end(self, item: WorkItem) -> WorkResult:
        queue_s = run_s = 0.0
        history: list[FailedAttempt] = []
        deadline: Deadline | None = None
        while True:
            waiting_since = time.monotonic()
            async with self._admission.hold(item.needs, item.priority):
                started = time.monotonic()
                queue_s += started - waiting_since
                if deadline is None:
                    deadline = Deadline.after(item.timeout_s, limit="timeout_s", set_by=f"work item {item.key}")
                attempt = await self._run_attempt(item, deadline)
                took_s = time.monotonic() - started
                run_s += took_s
            attempts = len(history) + 1
            pause = None if attempt.failure is None else pause_s(attempt.failure, attempts, self._retries)
            if attempt.failure is None or pause is None or pause >= deadline.left_s():
                return WorkResult(
                    key=item.key,
                    value=attempt.value,
                    failure=attempt.failure,
                    attempts=attempts,
                    timings_s={"queue_s": queue_s, "run_s": run_s},
                    message=attempt.message,
                    history=tuple(history),
                )
            history.append(
                FailedAttempt(failure=attempt.failure, message=attempt.message, value=attempt.value, run_s=took_s)
            )
            await asyncio.sleep(pause)
            queue_s += pause

    async def close(self) -> None:
        """Cancel what runs and wait for it; idempotent."""
        self._closed = True
        await stop_all(self._running)
