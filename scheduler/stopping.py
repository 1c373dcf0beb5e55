"""Stopping: cancel asyncio work and wait until it has really ended, whatever else is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


async def stop(work: asyncio.Future[Any], within_s: float | None) -> bool:
    """Cancel `work` and wait for its end; False if it did not end in time.

    A cancellation of the caller meanwhile does not cut the wait short; it is raised when the wait is over.
    """
    work.cancel()
    waiting = asyncio.ensure_future(asyncio.wait({work}, timeout=within_s))
    interrupted: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.shield(waiting)
        except asyncio.CancelledError as error:
            interrupted = error
    if work.done() and not work.cancelled():
        work.exception()  # looked at, so that asyncio does not report it as never retrieved
    if interrupted is not None:
        raise interrupted
    return work.done()


async def stop_all(works: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel all of `works` at once and wait for every one of them."""
    await asyncio.gather(*(stop(work, None) for work in list(works)))
