"""NATS JetStream as transport: one stream that keeps what no writer has acknowledged, one durable consumer that all
writers share.

A message's id is the event's, so the broker drops what is sent twice within its window. Its acknowledgement says that
the broker has it, not that it is on the disk: set `sync_interval: always` where power may fail. Nothing is lost
without it either, as long as senders keep their outboxes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from metier.envs.core import ConfigError

from ..errors import StoreUnavailable
from ..extras import need
from ..outbox import Held
from ..parcel import delivery_id
from .contract import Delivery

_IN_FLIGHT = 256
"""Messages that a sender has under way at once."""
_ANSWER_S = 10.0
_WINDOW_S = 600.0
"""How long the broker knows a message's id."""
ACK_WAIT_S = 60.0
"""After which a silent writer's messages go to another one; writers `touch` theirs."""


class _Connection:
    """One connection, made at first use; after a failure a new one.

    The client's own reconnecting is off: it would hide from whoever sends or fetches that nobody answers.
    """

    def __init__(self, url: str, stream: str) -> None:
        self._nats = need("nats", "records over NATS")
        self._api = need("nats.js.api", "records over NATS")
        self._url, self.stream = url, stream
        self._client: Any = None
        self._jetstream: Any = None

    async def jetstream(self) -> Any:
        if self._client is None or not self._client.is_connected:
            await self.close()
            tries = {"allow_reconnect": False, "max_reconnect_attempts": 1, "reconnect_time_wait": 0.1}
            async with asyncio.timeout(_ANSWER_S):
                self._client = await self._nats.connect(self._url, connect_timeout=3, error_cb=_quiet, **tries)
            self._jetstream = self._client.jetstream(publish_async_max_pending=_IN_FLIGHT)
            await self._make_stream()
        return self._jetstream

    async def say(self, words: Sequence[tuple[str, bytes]]) -> None:
        """Each to its subject, and on its way when this returns."""
        await self.jetstream()
        for subject, word in words:
            await self._client.publish(subject, word)
        await self._client.flush(5)

    async def _make_stream(self) -> None:
        api = self._api
        config = api.StreamConfig(
            name=self.stream,
            subjects=[self.subject],
            retention=api.RetentionPolicy.WORK_QUEUE,
            storage=api.StorageType.FILE,
            discard=api.DiscardPolicy.NEW,
            duplicate_window=_WINDOW_S,
        )
        try:
            await self._jetstream.stream_info(self.stream)
        except need("nats.js.errors", "records over NATS").NotFoundError:
            await self._jetstream.add_stream(config)

    @property
    def subject(self) -> str:
        """Of its own for each stream: two may not share one."""
        return f"metier.records.{self.stream}"

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.close(), 5)

    @contextlib.asynccontextmanager
    async def unavailable(self, doing: str) -> AsyncIterator[None]:
        """The client raises a good many kinds."""
        try:
            yield
        except (StoreUnavailable, ConfigError, asyncio.CancelledError):
            raise
        except Exception as error:
            raise StoreUnavailable(
                f"NATS at {self._url}: {doing}: {type(error).__name__}: {error}; is it up, with JetStream (-js)?"
            ) from error


async def _quiet(_: Exception) -> None:
    """Its errors come back from the calls that meet them."""


class NatsPublisher:
    """The sender's end."""

    def __init__(self, url: str, stream: str) -> None:
        self._connection = _Connection(url, stream)

    async def publish(self, events: Sequence[Held]) -> None:
        try:
            async with self._connection.unavailable("publishing"):
                for at in range(0, len(events), _IN_FLIGHT):
                    await self._publish(events[at : at + _IN_FLIGHT])
        except BaseException:
            # answers that never came would count as under way for ever
            await self._connection.close()
            raise

    async def _publish(self, events: Sequence[Held]) -> None:
        answers: list[asyncio.Future[Any]] = []
        try:
            async with asyncio.timeout(_ANSWER_S):
                jetstream = await self._connection.jetstream()
                for one in events:
                    headers = {"Nats-Msg-Id": delivery_id(one.key, one.trace_id)}
                    answers.append(
                        await jetstream.publish_async(
                            self._connection.subject, one.data, headers=headers, wait_stall=_ANSWER_S
                        )
                    )
                await asyncio.gather(*answers)
        finally:
            for answer in answers:
                if not answer.done():
                    answer.cancel()
                elif not answer.cancelled():
                    answer.exception()

    async def close(self) -> None:
        await self._connection.close()


@dataclass(frozen=True, slots=True)
class NatsDelivery:
    """A message."""

    message: Any

    @property
    def data(self) -> bytes:
        return self.message.data

    @property
    def tries(self) -> int:
        return int(self.message.metadata.num_delivered or 1)


class NatsConsumer:
    """A writer's end."""

    def __init__(self, url: str, stream: str, *, ack_wait_s: float = ACK_WAIT_S, max_pending: int = 20_000) -> None:
        self._connection = _Connection(url, stream)
        self._ack_wait_s, self._max_pending = ack_wait_s, max_pending
        self._subscription: Any = None
        self._subscribed_on: Any = None

    async def _subscribed(self) -> Any:
        jetstream = await self._connection.jetstream()
        if jetstream is not self._subscribed_on:
            api = need("nats.js.api", "records over NATS")
            config = api.ConsumerConfig(
                ack_policy=api.AckPolicy.EXPLICIT,
                ack_wait=self._ack_wait_s,
                max_ack_pending=self._max_pending,
                deliver_policy=api.DeliverPolicy.ALL,
            )
            self._subscription = await jetstream.pull_subscribe(
                self._connection.subject, durable="writers", stream=self._connection.stream, config=config
            )
            self._subscribed_on = jetstream
        return self._subscription

    async def fetch(self, max_events: int, wait_s: float) -> Sequence[Delivery]:
        timeouts = (need("nats.errors", "records over NATS").TimeoutError, TimeoutError)
        async with self._connection.unavailable("fetching"):
            subscription = await self._subscribed()
            try:
                messages = await subscription.fetch(max_events, timeout=wait_s)
            except timeouts:
                return []
        return [NatsDelivery(message) for message in messages]

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        # without waiting for an answer to each: one that goes lost means a redelivery, which the sink knows
        await self._say(deliveries, b"+ACK")

    async def touch(self, deliveries: Sequence[Delivery]) -> None:
        await self._say(deliveries, b"+WPI")

    async def again(self, deliveries: Sequence[Delivery], pause_s: float) -> None:
        await self._say(deliveries, b"-NAK " + json.dumps({"delay": int(pause_s * 1e9)}).encode())

    async def _say(self, deliveries: Sequence[Delivery], word: bytes) -> None:
        """By the messages' subjects, so that those which came over an earlier connection are told too."""
        replies = [one.message.reply for one in deliveries if isinstance(one, NatsDelivery)]
        async with self._connection.unavailable("acknowledging"):
            await self._connection.say([(reply, word) for reply in replies])

    async def close(self) -> None:
        await self._connection.close()
