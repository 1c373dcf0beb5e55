"""A bounded map: results as they finish, with back-pressure on the source of items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from enum import Enum, auto

from metier.envs.core import ConfigError

from .contract import WorkItem, WorkResult
from .stopping import stop_all


class _End(Enum):
    OF_ITEMS = auto()


async def bounded_map(
    run: Callable[[WorkItem], Awaitable[WorkResult]], items: AsyncIterable[WorkItem], *, in_flight: int
) -> AsyncIterator[WorkResult]:
    """At most `in_flight` items are taken from `items` and not yet finished; closing this cancels what runs.

    Nothing is taken while the consumer keeps a result to itself: a slow consumer holds the source back.

    Raises:
        ConfigError: `in_flight` below 1, or what `run` refuses.
    """
    if in_flight < 1:
        raise ConfigError(f"in_flight is {in_flight}: give at least 1")
    source = aiter(items)
    taking: asyncio.Task[WorkItem | _End] | None = None
    running: set[asyncio.Task[WorkResult]] = set()
    exhausted = False
    try:
        while True:
            if taking is None and not exhausted and len(running) < in_flight:
                taking = asyncio.create_task(_take(source))
            waiting = running | ({taking} if taking else set())
            if not waiting:
                return
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if taking is not None and taking.done():
                item, taking = taking.result(), None
                if isinstance(item, _End):
                    exhausted = True
                else:
                    running.add(asyncio.create_task(_run(run, item)))
            for finished in [task for task in running if task.done()]:
                running.discard(finished)
                yield finished.result()
    finally:
        await stop_all(running | ({taking} if taking else set()))
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()


async def _take(source: AsyncIterator[WorkItem]) -> WorkItem | _End:
    return await anext(source, _End.OF_ITEMS)


async def _run(run: Callable[[WorkItem], Awaitable[WorkResult]], item: WorkItem) -> WorkResult:
    return await run(item)
