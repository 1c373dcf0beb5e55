"""Resources that live as long as a worker process: a sandbox backend, an engine client, an HTTP session.

A task's module makes such a resource at its first use and registers how it is closed; the executor calls the closers
when it leaves, in every worker process (the local executor's worker is its own process). Closers run newest first, each
within a bound, on the event loop that the tasks ran on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

_LOG = logging.getLogger(__name__)
_CLOSE_S = 20.0

_closers: list[tuple[str, Callable[[], Awaitable[None]]]] = []
_users = 0


def on_close(name: str, close: Callable[[], Awaitable[None]]) -> None:
    """Call `close` once when the executor of this process leaves; `name` is for the log."""
    _closers.append((name, close))


def enter() -> None:
    """An executor of this process opened: its resources stay until as many left."""
    global _users
    _users += 1


async def leave() -> None:
    """An executor of this process left; the last one closes what was registered."""
    global _users
    _users -= 1
    if _users <= 0:
        _users = 0
        await close_resources()


async def close_resources() -> None:
    """Close everything registered, newest first. One that fails or hangs is logged and does not stop the others."""
    while _closers:
        name, close = _closers.pop()
        try:
            await asyncio.wait_for(close(), _CLOSE_S)
        except Exception:
            _LOG.exception("closing %s of this worker failed; what it held may need the reaper", name)
