"""The Ray executor: work items as coroutines in worker processes, each a Ray actor that hosts many at once.

Every pool has its own workers. A worker runs tasks on its one event loop, so that the episodes of a worker share one
sandbox backend and one engine client. Admission, deadlines and retries are decided in the driver by the same
`Dispatcher` as the local executor's; the worker bounds each attempt by the same `run_attempt`. A worker that dies turns
its attempts into ClusterError and is replaced; a worker whose event loop is blocked past a deadline is killed and
replaced. Workers follow their driver: when it dies they stop at once, so that nothing they hold outlives it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

from metier.envs.core import ClusterError, ConfigError, Deadline

from .attempt import CANCEL_S, GRACE_S, Attempt, resolve
from .contract import WorkItem, WorkResult
from .dispatch import Dispatcher
from .local_executor import machine_capacity
from .mapping import bounded_map
from .ray_cluster import RayCluster
from .ray_pool import Member, WorkerPool

_START_S = 240.0
_ANSWER_S = 5.0
"""A worker's answer may be this late before its event loop counts as blocked."""
_QUIET_THREADS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Workers wait for sandboxes; numeric libraries that spin on every core would only disturb the engine."""


class RayExecutor:
    """See `Executor`; the workers start on entering the context, or at the first item.

    An item runs in the pool that one of its slots names, else in the default pool.
    """

    def __init__(
        self,
        *,
        workers: int = 1,
        pools: Mapping[str, int] | None = None,
        cpus: float | None = None,
        gpus: float = 0.0,
        memory_mb: int | None = None,
        slots: Mapping[str, int] | None = None,
        env: Mapping[str, str] | None = None,
        worker_cpus: float = 0.0,
        address: str | None = None,
        object_store_mb: int = 80,
    ) -> None:
        """
        Args:
            workers: processes of the default pool.
            pools: further pools, name → processes.
            cpus: what items may hold together, as are `gpus`, `memory_mb` and `slots`.
            env: environment variables of the workers.
            worker_cpus: what Ray reserves for each worker; 0 lets them share the machine with the engine.
            address: an existing cluster's, else one is started here and taken down on closing.
            object_store_mb: results are small, so this is near Ray's own minimum.

        Raises:
            ImportError: Ray is not installed.
        """
        import ray  # noqa: F401  # missing means a clear error here, not at the first item

        self._counts = {"": workers, **(pools or {})}
        if min(self._counts.values()) < 1 or object_store_mb < 75:
            raise ConfigError(
                "a Ray executor needs at least 1 worker in each pool and an object_store_mb of 75 or more"
            )
        capacity = machine_capacity(cpus, gpus, memory_mb, slots)
        self._dispatcher = Dispatcher(capacity, self._attempt)
        self._cluster = RayCluster(address=address, num_cpus=capacity.cpus, object_store_mb=object_store_mb)
        self._follow = address is None
        self._env = {**_QUIET_THREADS, **(env or {})}
        self._worker_cpus = worker_cpus
        self._pools: dict[str, WorkerPool] = {}
        self._starting = asyncio.Lock()
        self._ids = itertools.count()
        self._closed = False

    async def start(self) -> None:
        """Start the cluster and the workers, and wait until they answer; idempotent.

        Raises:
            ConfigError: closed, or no cluster at the address.
            ClusterError: Ray or the workers did not start.
        """
        async with self._starting:
            if self._closed:
                raise ConfigError("the Ray executor is closed; open another one")
            if self._pools:
                return
            await self._cluster.start()
            for name, count in self._counts.items():
                self._pools[name] = WorkerPool(count, env=self._env, num_cpus=self._worker_cpus, follow=self._follow)
            try:
                await asyncio.wait_for(self.worker_pids(), _START_S)
            except TimeoutError as late:
                raise ClusterError(f"the Ray workers did not start within {_START_S:g} s: free the machine") from late

    async def worker_pids(self) -> list[int]:
        """The process ids of all workers."""
        return [pid for pool in self._pools.values() for pid in await pool.pids()]

    async def run(self, item: WorkItem) -> WorkResult:
        """See `Executor.run`."""
        resolve(item.task)
        await self.start()
        return await self._dispatcher.run(item)

    def map(self, items: AsyncIterable[WorkItem], *, in_flight: int) -> AsyncIterator[WorkResult]:
        """See `Executor.map`."""
        return bounded_map(self.run, items, in_flight=in_flight)

    async def _attempt(self, item: WorkItem, deadline: Deadline) -> Attempt:
        pool = self._pools[next((name for name in item.needs.slots if name in self._pools), "")]
        member = pool.least_loaded()
        member.load += 1
        try:
            return await self._attempt_on(member, pool, item, deadline)
        finally:
            member.load -= 1

    async def _attempt_on(self, member: Member, pool: WorkerPool, item: WorkItem, deadline: Deadline) -> Attempt:
        from ray.exceptions import RayError

        attempt_id = f"{item.key}#{next(self._ids)}"
        arguments: tuple[Any, ...] = (attempt_id, item.key, item.task, dict(item.payload))
        try:
            reference = member.actor.run.remote(*arguments, deadline.left_s(), deadline.limit, deadline.set_by)
            answer: asyncio.Future[Attempt] = asyncio.wrap_future(reference.future())
            try:
                done, _ = await asyncio.wait({answer}, timeout=deadline.left_s() + GRACE_S + CANCEL_S + _ANSWER_S)
            except asyncio.CancelledError:
                member.actor.cancel.remote(attempt_id)
                await asyncio.wait({answer}, timeout=CANCEL_S + _ANSWER_S)
                raise
            if done:
                return answer.result()
        except RayError as error:
            self._cluster.keep_logs = True
            pool.replace(member)
            words = str(error).strip().splitlines()
            return Attempt(
                failure="ClusterError",
                message=f"the worker of {item.key} was lost ({words[0] if words else type(error).__name__}); "
                f"its log is under {self._cluster.logs}",
            )
        pool.replace(member)
        return Attempt(
            failure="DeadlineExceeded",
            message=f"{deadline.error(f'work item {item.key}')}; its worker did not answer and was replaced: a task "
            f"must not block the event loop",
        )

    async def close(self) -> None:
        """Cancels what runs, closes each worker's resources, ends the workers and the cluster; idempotent."""
        async with self._starting:
            if self._closed:
                return
            self._closed = True
        await self._dispatcher.close()
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        await self._cluster.stop()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
