"""How events travel from those who play episodes to those who write to the store.

A transport is a pipe that delivers at least once. It need not be trusted: the sender keeps an event in its outbox until
the store's manifests have it, and sends it again where that takes too long; the sink stores once what comes twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ..outbox import Held


class Publisher(Protocol):
    """The sender's end; an async context manager."""

    async def publish(self, events: Sequence[Held]) -> None:
        """Hand these over; returns once the broker has them all. Raises StoreUnavailable: send them all again."""
        ...

    async def close(self) -> None:
        """Idempotent, bounded."""
        ...


class Delivery(Protocol):
    """An event as a writer gets it."""

    @property
    def data(self) -> bytes:
        """The line."""
        ...

    @property
    def tries(self) -> int:
        """How often it was delivered, this time included."""
        ...


class Consumer(Protocol):
    """A writer's end. What is not acknowledged comes again, to this writer or another one."""

    async def fetch(self, max_events: int, wait_s: float) -> Sequence[Delivery]:
        """Some events; none if there were none in that time. Raises StoreUnavailable."""
        ...

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """These are stored. Raises StoreUnavailable."""
        ...

    async def touch(self, deliveries: Sequence[Delivery]) -> None:
        """These are being worked on: do not deliver them to anybody else yet. Raises StoreUnavailable."""
        ...

    async def again(self, deliveries: Sequence[Delivery], pause_s: float) -> None:
        """Deliver these again, after a pause of about that long. Raises StoreUnavailable."""
        ...

    async def close(self) -> None:
        """Idempotent, bounded; what is not acknowledged comes again to others."""
        ...
