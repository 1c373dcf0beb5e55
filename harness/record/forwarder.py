"""From the outbox onwards: into the store itself, or over a broker to writers.

Nothing leaves the outbox before it is stored. What went to a broker is looked for in the store's manifests, and sent
again where it is not there in time: so a broker that forgets what it acknowledged loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .errors import MAX_TRIES, RecordError
from .outbox import Held, Outbox
from .sink import Sink
from .transport import Publisher

_log = logging.getLogger(__name__)
_BLOB_BYTES = 16 << 20
_TICK_S = 0.05
_REFUSED_PAUSE_S = 0.5
_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.2, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSettings:
    """When to send, and when again."""

    flush_s: float = 5.0
    """How long the oldest event waits for others before a batch goes into the store. Brokers get theirs at once."""
    max_events: int = 5000
    max_bytes: int = 8 << 20
    """Of a batch."""
    confirm_s: float = 2.0
    """How often the store is looked at for what went to a broker."""
    resend_s: float = 120.0
    """After which an event that is not in the store goes to the broker again."""


class Forwarder:
    """Runs in a thread of its own; all state is the outbox's."""

    def __init__(
        self, outbox: Outbox, sink: Sink, publisher: Publisher | None, settings: ForwardSettings = ForwardSettings()
    ) -> None:
        self._outbox, self._sink, self._publisher, self._settings = outbox, sink, publisher, settings
        self._due_at = self._not_before = 0.0
        self._confirmed_at = 0.0
        self.num_failures = 0
        """Rounds in which store or broker could not be reached."""
        self.num_buried = 0
        self.trouble = ""
        """What is wrong now; empty where nothing is."""

    async def run(self, ending: Callable[[], bool], until: Callable[[], bool]) -> None:
        """Until `until`; once `ending`, without waiting for batches to fill, until the outbox is empty."""
        pause = _FIRST_PAUSE_S
        try:
            while not until() and not (ending() and self._empty()):
                try:
                    await self.round(hurry=ending())
                except RecordError as error:
                    self.num_failures += 1
                    if not self.trouble:
                        _log.warning("records wait in %s: %s", self._outbox.path, error)
                    self.trouble = str(error)
                    await self._rest(pause, until)
                    pause = min(2 * pause, _MOST_PAUSE_S)
                else:
                    self.trouble, pause = "", _FIRST_PAUSE_S
                    await asyncio.sleep(_TICK_S)
        finally:
            if self._publisher is not None:
                await self._publisher.close()

    async def _rest(self, pause: float, until: Callable[[], bool]) -> None:
        over = time.monotonic() + pause
        while time.monotonic() < over and not until():
            await asyncio.sleep(_TICK_S)

    def _empty(self) -> bool:
        return not self._outbox.num_events and not self._outbox.size_bytes

    async def round(self, *, hurry: bool = False) -> None:
        """Send what is due. Raises RecordError."""
        last = self._outbox.last_id
        if self._publisher is None:
            if self._outbox.num_events and (hurry or self._due()):
                await self._blobs()
                await self._commit(last)
        else:
            await self._blobs()
            await self._publish(last)
            if time.monotonic() - self._confirmed_at >= (_TICK_S if hurry else self._settings.confirm_s):
                self._confirmed_at = time.monotonic()
                await self._confirm()

    def _due(self) -> bool:
        if time.monotonic() < self._not_before:
            return False
        if self._outbox.num_events >= self._settings.max_events or self._outbox.size_bytes >= self._settings.max_bytes:
            return True
        now = time.monotonic()
        if now < self._due_at:
            return False
        age = self._outbox.oldest_s()
        self._due_at = now + max(0.0, self._settings.flush_s - age)
        return age >= self._settings.flush_s

    async def _blobs(self) -> None:
        while blobs := self._outbox.blobs(_BLOB_BYTES):
            await asyncio.to_thread(self._sink.put_blobs, blobs)
            self._outbox.remove_blobs(blobs)

    def _unsent(self, after: int, last: int) -> list[Held]:
        bounds = {"max_events": self._settings.max_events, "max_bytes": self._settings.max_bytes}
        return self._outbox.unsent(after=after, up_to=last, **bounds)

    async def _commit(self, last: int) -> None:
        after = 0
        while batch := self._unsent(after, last):
            after = batch[-1].id
            result = await asyncio.to_thread(self._sink.commit, batch)
            self._outbox.remove(result.done)
            for held, why in result.rivals:
                await self._bury(held, why)
            if result.refused:
                self._outbox.refused([held for held, _ in result.refused])
                self._not_before = time.monotonic() + _REFUSED_PAUSE_S
            for held, why in result.refused:
                if held.tries + 1 >= MAX_TRIES:
                    await self._bury(held, why)

    async def _bury(self, held: Held, why: str) -> None:
        path = await asyncio.to_thread(self._sink.bury, held.data, why, held.tries + 1)
        _log.error("dead letter %s: %s", path, why)
        self._outbox.remove([held])
        self.num_buried += 1

    async def _publish(self, last: int) -> None:
        assert self._publisher is not None
        while batch := self._unsent(0, last):
            await self._publisher.publish(batch)
            self._outbox.sent(batch)

    async def _confirm(self) -> None:
        runs = self._outbox.runs()
        for run_id in runs:
            await asyncio.to_thread(self._sink.refresh, run_id)
        after, now = 0, time.time()
        while page := self._outbox.sent_since(after, before=now, max_events=self._settings.max_events):
            after = page[-1].id
            stored = [held for held in page if self._sink.stored(held.key, held.trace_id)]
            self._outbox.remove(stored)
            there = {held.id for held in stored}
            await self._late([held for held in page if held.id not in there and self._is_late(held, now)])

    def _is_late(self, held: Held, now: float) -> bool:
        return held.sent_at is not None and now - held.sent_at > self._settings.resend_s

    async def _late(self, late: Sequence[Held]) -> None:
        """Each is a dead letter by now, or goes again."""
        buried = [held for held in late if await asyncio.to_thread(self._sink.buried, held.data)]
        self.num_buried += len(buried)
        self._outbox.remove(buried)
        gone = {held.id for held in buried}
        self._outbox.resend([held for held in late if held.id not in gone])
