"""The local executor: work items as asyncio tasks on the caller's event loop.

Episodes wait for sandboxes and engines, so one loop carries hundreds of them. A task that computes for long must leave
the loop by itself (a thread, a process, the verifier sandbox): nothing here moves it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from types import TracebackType
from typing import Self

from metier.envs.core import Deadline

from . import worker
from .attempt import Attempt, resolve, run_attempt
from .contract import Needs, WorkItem, WorkResult
from .dispatch import Dispatcher
from .mapping import bounded_map


def machine_capacity(
    cpus: float | None = None, gpus: float = 0.0, memory_mb: int | None = None, slots: Mapping[str, int] | None = None
) -> Needs:
    """What there is to lend: this machine's cores and memory unless told otherwise."""
    if memory_mb is None:
        memory_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    cores = float(len(os.sched_getaffinity(0))) if cpus is None else cpus
    return Needs(cpus=cores, gpus=gpus, memory_mb=memory_mb, slots=dict(slots or {}))


class LocalExecutor:
    """See `Executor`. Items share this machine's cores and memory, and the named `slots`."""

    def __init__(
        self,
        *,
        cpus: float | None = None,
        gpus: float = 0.0,
        memory_mb: int | None = None,
        slots: Mapping[str, int] | None = None,
    ) -> None:
        self._dispatcher = Dispatcher(machine_capacity(cpus, gpus, memory_mb, slots), self._attempt)
        self._closed = False
        worker.enter()

    async def run(self, item: WorkItem) -> WorkResult:
        """See `Executor.run`."""
        resolve(item.task)
        return await self._dispatcher.run(item)

    def map(self, items: AsyncIterable[WorkItem], *, in_flight: int) -> AsyncIterator[WorkResult]:
        """See `Executor.map`."""
        return bounded_map(self.run, items, in_flight=in_flight)

    async def _attempt(self, item: WorkItem, deadline: Deadline) -> Attempt:
        return await run_attempt(resolve(item.task), item.payload, deadline, name=f"work item {item.key}")

    async def close(self) -> None:
        """Cancels what runs, then closes the resources of this process; idempotent."""
        if self._closed:
            return
        self._closed = True
        await self._dispatcher.close()
        await worker.leave()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
