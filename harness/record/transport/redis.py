"""Redis Streams as transport: one stream, one consumer group of all writers.

Redis never delivers a pending entry again by itself: a writer first takes back its own (it keeps its name over
restarts) and what others left idle for longer than any commit takes (XAUTOCLAIM). The server needs `appendonly yes`.
An entry is removed once it is acknowledged, so the stream holds what is not stored yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from metier.envs.core import ConfigError

from ..errors import StoreUnavailable
from ..extras import need
from ..outbox import Held
from ..parcel import delivery_id
from .contract import Delivery

GROUP = "writers"
IDLE_S = 60.0
"""After which a silent writer's entries go to another one; writers `touch` theirs."""
_AT_ONCE = 512
_ANSWER_S = 10.0


class _Connection:
    """A client of its own pool, made at first use."""

    def __init__(self, url: str, stream: str) -> None:
        redis = need("redis.asyncio", "records over Redis")
        self._url, self.stream = url, stream
        self.client: Any = redis.Redis.from_url(url, socket_timeout=_ANSWER_S, socket_connect_timeout=3)
        self._grouped = False

    async def make_group(self) -> None:
        """Once a connection: a server that lost its data has no group either."""
        if self._grouped:
            return
        errors = need("redis.exceptions", "records over Redis")
        try:
            await self.client.xgroup_create(self.stream, GROUP, id="0", mkstream=True)
        except errors.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        self._grouped = True

    async def close(self) -> None:
        with contextlib.suppress(Exception):
            await asyncio.wait_for(self.client.aclose(), 5)

    @contextlib.asynccontextmanager
    async def unavailable(self, doing: str) -> AsyncIterator[None]:
        """The client raises a good many kinds."""
        try:
            yield
        except (StoreUnavailable, ConfigError, asyncio.CancelledError):
            raise
        except Exception as error:
            self._grouped = False
            raise StoreUnavailable(
                f"Redis at {_told(self._url)}: {doing}: {type(error).__name__}: {error}; is it up?"
            ) from error


def _told(url: str) -> str:
    """Without its password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


class RedisPublisher:
    """The sender's end."""

    def __init__(self, url: str, stream: str) -> None:
        self._connection = _Connection(url, stream)

    async def publish(self, events: Sequence[Held]) -> None:
        async with self._connection.unavailable("publishing"):
            for at in range(0, len(events), _AT_ONCE):
                async with self._connection.client.pipeline(transaction=False) as pipe:
                    for one in events[at : at + _AT_ONCE]:
                        fields = {"id": delivery_id(one.key, one.trace_id), "event": one.data}
                        pipe.xadd(self._connection.stream, fields)
                    await pipe.execute()

    async def close(self) -> None:
        await self._connection.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisDelivery:
    """An entry of the stream."""

    entry: bytes
    data: bytes
    tries: int


class RedisConsumer:
    """A writer's end; `name` stays the same over restarts."""

    def __init__(self, url: str, stream: str, name: str, *, idle_s: float = IDLE_S) -> None:
        self._connection = _Connection(url, stream)
        self._name, self._idle_ms = name, int(idle_s * 1000)
        self._own_seen = False
        self._claimed_at = 0.0
        self._later: dict[bytes, float] = {}
        """Entries to be taken again, and when."""

    async def fetch(self, max_events: int, wait_s: float) -> Sequence[Delivery]:
        async with self._connection.unavailable("fetching"):
            await self._connection.make_group()
            if not self._own_seen:
                # of before this process: this name's own, whatever their idle time; once there are none, never again
                found = await self._read(max_events, "0", None)
                self._own_seen = not found
                if found:
                    return await self._counted(found)
            if due := [entry for entry, at in self._later.items() if at <= time.monotonic()]:
                return await self._counted(await self._claimed(due[:max_events]))
            if time.monotonic() - self._claimed_at > self._idle_ms / 4000:
                self._claimed_at = time.monotonic()
                _, found, *_ = await self._connection.client.xautoclaim(
                    self._connection.stream, GROUP, self._name, min_idle_time=self._idle_ms, count=max_events
                )
                if found:
                    return await self._counted(found)
            found = await self._read(max_events, ">", max(1, int(min(wait_s, _ANSWER_S / 2) * 1000)))
        return [RedisDelivery(entry=entry, data=fields.get(b"event", b""), tries=1) for entry, fields in found]

    async def _read(self, max_events: int, since: str, block_ms: int | None) -> list[Any]:
        answer = await self._connection.client.xreadgroup(
            GROUP, self._name, {self._connection.stream: since}, count=max_events, block=block_ms
        )
        streams = answer.values() if isinstance(answer, dict) else [found for _, found in answer or []]
        return [(entry, fields or {}) for found in streams for entry, fields in _flat(found)]

    async def _claimed(self, entries: Sequence[bytes]) -> list[Any]:
        for entry in entries:
            self._later.pop(entry, None)
        return await self._connection.client.xclaim(
            self._connection.stream, GROUP, self._name, min_idle_time=0, message_ids=list(entries)
        )

    async def _counted(self, found: Sequence[Any]) -> Sequence[Delivery]:
        """With how often each was delivered."""
        if not found:
            return []
        pending = await self._connection.client.xpending_range(
            self._connection.stream, GROUP, min=found[0][0], max=found[-1][0], count=len(found) + 10_000
        )
        tries = {one["message_id"]: int(one["times_delivered"]) for one in pending}
        return [
            RedisDelivery(entry=entry, data=(fields or {}).get(b"event", b""), tries=tries.get(entry, 1))
            for entry, fields in found
        ]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        entries = _entries(deliveries)
        if not entries:
            return
        client = self._connection.client
        async with self._connection.unavailable("acknowledging"), client.pipeline(transaction=True) as pipe:
            pipe.xack(self._connection.stream, GROUP, *entries)
            pipe.xdel(self._connection.stream, *entries)
            await pipe.execute()
        for entry in entries:
            self._later.pop(entry, None)

    async def touch(self, deliveries: Sequence[Delivery]) -> None:
        entries = _entries(deliveries)
        if entries:
            async with self._connection.unavailable("touching"):
                # JUSTID: idle time begins again, without counting a delivery
                await self._connection.client.xclaim(
                    self._connection.stream, GROUP, self._name, min_idle_time=0, message_ids=entries, justid=True
                )

    async def again(self, deliveries: Sequence[Delivery], pause_s: float) -> None:
        at = time.monotonic() + pause_s
        self._later |= dict.fromkeys(_entries(deliveries), at)

    async def close(self) -> None:
        await self._connection.close()


def _flat(found: Any) -> list[Any]:
    """RESP 2 gives a list of entries, RESP 3 a list of such lists."""
    return [entry for part in found for entry in part] if found and isinstance(found[0], list) else list(found)


def _entries(deliveries: Sequence[Delivery]) -> list[bytes]:
    return [delivery.entry for delivery in deliveries if isinstance(delivery, RedisDelivery)]
