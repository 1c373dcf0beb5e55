"""The executor contract: run work items under resource needs, deadlines, retries and priorities.

The scheduler knows nothing of environments or models: a task is the name of a function, its payload and its value are
JSON. A task's function is `async def task(payload, *, deadline) -> Json`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self

from metier.envs.core import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a work item occupies while it runs."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory_mb: int = 0
    slots: Mapping[str, int] = field(default_factory=dict[str, int])
    """Pool name → count, for example {"sandbox": 1}."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkItem:
    """One piece of work.

    Example:
        >>> item = WorkItem(key="e/0", task="some.module:task", payload={"seed": 0}, needs=Needs(), timeout_s=60)
        >>> item.priority
        0
    """

    key: str
    """Unique in a run; the result carries it."""
    task: str
    """'module:function', called with the payload and the deadline."""
    payload: Mapping[str, Json]
    needs: Needs
    timeout_s: float
    """Bounds the running time of all attempts together, from the first start; waiting to start is not in it."""
    priority: int = 0
    """Higher goes first among what waits."""
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """One that was followed by another."""

    failure: str
    """The error's class name."""
    message: str
    value: Json
    """What it left behind by `WorkFailed`, else None."""
    run_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkResult:
    """How a work item ended: `failure` is the error's class name, None when done.

    Beside the task's own errors: DeadlineExceeded (by `timeout_s`), ClusterError (its worker was lost) and
    CancelledError (the executor was closed, or the task cancelled itself).
    """

    key: str
    value: Json
    """What the task returned. Where it failed: what its last attempt left behind by `WorkFailed`, else None."""
    failure: str | None
    attempts: int
    timings_s: Mapping[str, float]
    """queue_s and run_s at least."""
    message: str = ""
    """The error's own words."""
    history: tuple[FailedAttempt, ...] = ()
    """The attempts before the last one, in order."""


class WorkFailed(Exception):
    """What a task raises to fail with `cause` and yet leave something behind, such as how far it came.

    The result names the cause, and retries go by it, as if the task had raised it.

    Example:
        >>> WorkFailed(TimeoutError("too late"), {"steps": 3}).left
        {'steps': 3}
    """

    def __init__(self, cause: BaseException, left: Json) -> None:
        super().__init__(cause, left)
        self.cause = cause
        self.left = left


class Executor(Protocol):
    """An async context manager: leaving it cancels what runs and frees every worker."""

    async def run(self, item: WorkItem) -> WorkResult:
        """To its end, retries by failure class included; cancelling cancels the work and waits until it has stopped.

        Raises:
            ConfigError: a task that cannot be found, needs that can never be met, or a closed executor.
        """
        ...

    def map(self, items: AsyncIterable[WorkItem], *, in_flight: int) -> AsyncIterator[WorkResult]:
        """Results as they finish; at most `in_flight` items are taken from `items` and not yet finished.

        Closing the iterator cancels what runs. Raises what `run` raises.
        """
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
