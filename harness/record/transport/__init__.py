"""Transports by URL: `nats://host:4222/STREAM`, `redis://host:6379/0?stream=NAME`."""

from __future__ import annotations

import re
import socket
from urllib.parse import parse_qs, urlsplit, urlunsplit

from metier.envs.core import ConfigError

from .contract import Consumer, Delivery, Publisher

DEFAULT_STREAM = {"nats": "METIER", "redis": "metier:records"}


def open_publisher(url: str) -> Publisher:
    """The sender's end of a transport.

    Raises:
        ConfigError: no such kind of transport, or what it needs is not installed.
    """
    kind, server, stream = _parts(url)
    if kind == "nats":
        from .nats import NatsPublisher

        return NatsPublisher(server, stream)
    from .redis import RedisPublisher

    return RedisPublisher(server, stream)


def open_consumer(url: str, *, name: str = "", idle_s: float | None = None) -> Consumer:
    """A writer's end; `name` is its own among the writers, and the same over restarts (default: the machine's).

    `idle_s` is how long a writer may be silent before others get what it was given.

    Raises:
        ConfigError: as `open_publisher`.
    """
    kind, server, stream = _parts(url)
    if kind == "nats":
        from .nats import ACK_WAIT_S, NatsConsumer

        return NatsConsumer(server, stream, ack_wait_s=idle_s or ACK_WAIT_S)
    from .redis import IDLE_S, RedisConsumer

    return RedisConsumer(server, stream, name or socket.gethostname(), idle_s=idle_s or IDLE_S)


def _parts(url: str) -> tuple[str, str, str]:
    """Kind, server and stream."""
    split = urlsplit(url)
    kind = {"nats": "nats", "tls": "nats", "redis": "redis", "rediss": "redis"}.get(split.scheme, "")
    if not kind or not split.netloc:
        raise ConfigError(f"no transport {url!r}; they are nats://host:4222 and redis://host:6379")
    if kind == "nats":
        stream = split.path.strip("/") or DEFAULT_STREAM["nats"]
        server = urlunsplit((split.scheme, split.netloc, "", "", ""))
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", stream):
            raise ConfigError(f"a stream of NATS is named by letters, digits, - and _, not {stream!r}")
    else:
        stream = parse_qs(split.query).get("stream", [DEFAULT_STREAM["redis"]])[0]
        server = urlunsplit((split.scheme, split.netloc, split.path, "", ""))
    return kind, server, stream


__all__ = ["Consumer", "Delivery", "Publisher", "open_consumer", "open_publisher"]
