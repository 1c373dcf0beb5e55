"""One attempt at a task: call it, bound it by the deadline, and say how it ended as plain values.

The same code runs on the local executor's loop and inside a Ray worker. The task is handed its deadline and is expected
to end by it; only where it does not is it cancelled from outside, a moment later, and its end awaited within a bound.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, cast

from metier.envs.core import ConfigError, Deadline, Json

from .contract import WorkFailed
from .stopping import stop

GRACE_S = 2.0
"""After its deadline a task has this long to end by itself."""
CANCEL_S = 15.0
"""A cancelled task has this long to clean up."""


class Task(Protocol):
    """What 'module:function' must name."""

    def __call__(self, payload: Mapping[str, Json], *, deadline: Deadline) -> Awaitable[Json]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How one attempt ended; `failure` is the error's class name, None when done. `value` as in `WorkResult`."""

    value: Json = None
    failure: str | None = None
    message: str = ""

    @classmethod
    def failed(cls, error: BaseException) -> Attempt:
        """From the error itself, with what it left."""
        if not isinstance(error, WorkFailed):
            return cls(failure=type(error).__name__, message=str(error) or repr(error))
        attempt = cls.failed(error.cause)
        if wrong := _no_json(error.left):
            return replace(attempt, message=f"{attempt.message}; what it left is not JSON ({wrong}), and was dropped")
        return replace(attempt, value=error.left)


def resolve(task: str) -> Task:
    """The function that 'module:function' names.

    Raises:
        ConfigError: it does not name an async function that can be imported.
    """
    module_name, _, function_name = task.partition(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"task {task!r} cannot be found: name it 'module:function' ({error})") from error
    if not inspect.iscoroutinefunction(function):
        raise ConfigError(f"task {task!r} must be `async def {function_name or 'task'}(payload, *, deadline)`")
    return cast(Task, function)


async def run_attempt(task: Task, payload: Mapping[str, Json], deadline: Deadline, *, name: str) -> Attempt:
    """Call `task` to its end; cancelling this cancels it and waits for it, within `CANCEL_S`."""
    work: asyncio.Future[Json] = asyncio.ensure_future(task(payload, deadline=deadline))
    try:
        done, _ = await asyncio.wait({work}, timeout=deadline.left_s() + GRACE_S)
    except asyncio.CancelledError:
        await stop(work, CANCEL_S)
        raise
    if done:
        return _outcome(work, name)
    message = str(deadline.error(name))
    if not await stop(work, CANCEL_S):
        message += f"; it also ignored its cancellation for {CANCEL_S:g} s and was abandoned"
    stopped = _outcome(work, name) if work.done() else Attempt()
    return Attempt(failure="DeadlineExceeded", message=message, value=stopped.value if stopped.failure else None)


def _outcome(work: asyncio.Future[Json], name: str) -> Attempt:
    if work.cancelled():
        return Attempt(failure="CancelledError", message=f"{name} was cancelled from within")
    error = work.exception()
    if error is not None:
        return Attempt.failed(error)
    value = work.result()
    if wrong := _no_json(value):
        return Attempt.failed(ConfigError(f"{name} returned what is not JSON ({wrong}): return plain values only"))
    return Attempt(value=value)


def _no_json(value: object) -> str:
    """Why it is none; empty where it is."""
    try:
        json.dumps(value)
    except (TypeError, ValueError) as wrong:
        return str(wrong)
    return ""
