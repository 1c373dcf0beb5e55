"""From a transport to the store: collect a batch, commit it, acknowledge it. Any number of writers may share the work.

A writer that dies between commit and acknowledgement costs a redelivery, which the sink knows. While the store is down
nothing is acknowledged. What cannot be read is tried `MAX_TRIES` times and then kept as a dead letter.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from .errors import MAX_TRIES, StoreUnavailable
from .sink import Committed, Sink
from .transport import Consumer, Delivery

_log = logging.getLogger(__name__)
_FETCHED = 256
"""At once: of the largest events that travel, 64 MiB."""
_MOST_PAUSE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """When a batch is full."""

    max_events: int = 5000
    max_bytes: int = 8 << 20
    flush_s: float = 5.0
    """How long the first event of a batch may wait for others."""
    touch_s: float = 15.0
    """How often the broker is told that a batch is still being worked on."""
    retry_s: float = 2.0
    """Pause before what could not be read is tried again."""


@dataclass(slots=True, kw_only=True)
class Written:
    """What a writer did so far."""

    stored: int = 0
    known: int = 0
    """Delivered again, and left out."""
    buried: int = 0
    refused: int = 0
    """Tries of what could not be read."""
    failures: int = 0
    """Times that store or broker could not be reached."""


class Writer:
    """One writer."""

    def __init__(self, consumer: Consumer, sink: Sink, settings: WriterSettings = WriterSettings()) -> None:
        self._consumer, self._sink, self._settings = consumer, sink, settings
        self.written = Written()

    async def run(self, *, idle_s: float | None = None) -> Written:
        """Until cancelled; or until nothing came for `idle_s`."""
        pause = 0.1
        last = time.monotonic()
        while idle_s is None or time.monotonic() - last < idle_s:
            try:
                async with self._batch() as batch:
                    if batch:
                        await self._settle(batch)
                        last = time.monotonic()
            except StoreUnavailable as error:
                self.written.failures += 1
                _log.warning("%s", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MOST_PAUSE_S)
                last = time.monotonic()
            else:
                pause = 0.1
        return self.written

    @contextlib.asynccontextmanager
    async def _batch(self) -> AsyncIterator[list[Delivery]]:
        """A batch, kept from other writers while it is worked on."""
        batch: list[Delivery] = []
        keeping = asyncio.create_task(self._keep(batch))
        try:
            await self._fill(batch)
            yield batch
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])

    async def _fill(self, batch: list[Delivery]) -> None:
        settings = self._settings
        size, until = 0, time.monotonic() + settings.flush_s
        while (left_s := until - time.monotonic()) > 0:
            try:
                found = await self._consumer.fetch(min(_FETCHED, settings.max_events - len(batch)), left_s)
            except StoreUnavailable:
                if batch:  # stored now, it need not wait for the broker
                    return
                raise
            batch += found
            size += sum(len(delivery.data) for delivery in found)
            if len(batch) >= settings.max_events or size >= settings.max_bytes or not batch:
                return

    async def _keep(self, batch: list[Delivery]) -> None:
        while True:
            await asyncio.sleep(self._settings.touch_s)
            with contextlib.suppress(StoreUnavailable):
                await self._consumer.touch(list(batch))

    async def _settle(self, batch: Sequence[Delivery]) -> None:
        result = await self._committed(batch)
        self.written.stored += len(result.stored)
        self.written.known += len(result.known)
        self.written.refused += len(result.refused)
        finished, again = result.done, list[Delivery]()
        for delivery, why in result.refused:
            if delivery.tries >= MAX_TRIES:
                finished.append(await self._buried(delivery, why))
            else:
                again.append(delivery)
        for delivery, why in result.rivals:
            finished.append(await self._buried(delivery, why))
        if again:
            await self._consumer.again(again, self._settings.retry_s)
        await self._consumer.ack(finished)

    async def _committed(self, batch: Sequence[Delivery]) -> Committed[Delivery]:
        """While the store is down the batch is kept, and kept from others."""
        pause = 0.1
        while True:
            try:
                return await asyncio.to_thread(self._sink.commit, batch)
            except StoreUnavailable as error:
                self.written.failures += 1
                _log.warning("%s", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MOST_PAUSE_S)

    async def _buried(self, delivery: Delivery, why: str) -> Delivery:
        path = await asyncio.to_thread(self._sink.bury, delivery.data, why, delivery.tries)
        _log.error("dead letter %s: %s", path, why)
        self.written.buried += 1
        return delivery


__all__ = ["Writer", "WriterSettings", "Written"]
