"""A pool of Ray workers: the least loaded gets the next attempt, and a lost one is replaced."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .ray_worker import RayWorker

_LOG = logging.getLogger(__name__)
_CALLS_AT_ONCE = 10_000
"""Ray queues calls beyond this, cancellations too; the true bounds are the executor's admission and `in_flight`."""
_CLOSE_S = 30.0


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    """One worker process."""

    actor: Any
    """A Ray actor handle of `RayWorker`."""
    load: int = 0


class WorkerPool:
    """`count` workers with the same environment."""

    def __init__(self, count: int, *, env: Mapping[str, str], num_cpus: float, follow: bool) -> None:
        """`follow`: the workers run on the driver's machine and can watch its process."""
        self._env = dict(env)
        self._num_cpus = num_cpus
        self._driver_pid = os.getpid() if follow else None
        self._members = [self._new() for _ in range(count)]

    def _new(self) -> Member:
        import ray

        actor_class: Any = ray.remote(RayWorker)
        options = actor_class.options(
            num_cpus=self._num_cpus,
            max_concurrency=_CALLS_AT_ONCE,
            max_restarts=0,
            runtime_env={"env_vars": self._env},
        )
        return Member(actor=options.remote(self._driver_pid))

    def least_loaded(self) -> Member:
        """The worker for the next attempt."""
        return min(self._members, key=lambda member: member.load)

    def replace(self, lost: Member) -> None:
        """Put a fresh worker in the place of `lost`, which is killed if it still runs; once only."""
        import ray

        if lost not in self._members:
            return
        ray.kill(lost.actor, no_restart=True)
        self._members[self._members.index(lost)] = self._new()

    async def pids(self) -> list[int]:
        """The workers' process ids, once all have started."""
        return list(await asyncio.gather(*(_wait(member.actor.pid.remote()) for member in self._members)))

    async def close(self) -> None:
        """Close the resources in every worker, then end the workers."""
        import ray

        members, self._members = self._members, []
        await asyncio.gather(*(_close(member) for member in members))
        for member in members:
            ray.kill(member.actor, no_restart=True)


async def _close(member: Member) -> None:
    try:
        await asyncio.wait_for(_wait(member.actor.close.remote()), _CLOSE_S)
    except Exception as error:  # a worker that died has nothing left to close, whatever Ray calls that
        _LOG.warning("a worker did not close its resources: %s", error)


async def _wait(reference: Any) -> Any:
    return await asyncio.wrap_future(reference.future())
