"""Tunnels, the host's end: a port inside a sandbox whose connections are answered by a coroutine of ours.

    async with tunnel(sandbox, 0, handler) as port:      # 127.0.0.1:port inside leads to `handler(connection)`
        await sandbox.exec(["agent", "--endpoint", f"http://127.0.0.1:{port}"], timeout_s=60)

A tunnel is no network: nothing leads from it to anywhere but the handler. It is an optional promise of a sandbox,
beside the contract that families build on, since no family needs it (docs/decisions/0011): one without it refuses.

What comes from inside is not trusted. A connection keeps at most a window of bytes (`protocol.WINDOW`) that its handler
has not read; whoever sends more than its credit ends the sandbox, since only a steward that is none can do so.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, runtime_checkable

from metier.envs.core import ConfigError, Sandbox

from .protocol import (
    BYTES,
    CREDIT,
    DROP,
    FRAME_COST,
    MOST_CONNECTIONS,
    OPEN,
    SHUT,
    WINDOW,
    Frame,
    FrameError,
    credit,
    credit_of,
    encode,
)

_log = logging.getLogger(__name__)

PIECE_BYTES = 16 * 1024
"""Of what a handler sends, in one frame."""
LINGER_S = 5.0
"""How long the other end may take to read what was said last, after its handler has returned."""
_GIVE_BACK = WINDOW // 4
_LAST_PIECES = 64


class Connection(Protocol):
    """One connection of a program inside. Every method raises ConnectionError once it is gone."""

    async def receive(self) -> bytes:
        """What came, at least a byte of it; empty when the other end has said everything."""
        ...

    async def send(self, data: bytes) -> None:
        """Returns when it is on its way, which may be never where the other end does not read."""
        ...


Handler = Callable[[Connection], Awaitable[None]]
"""Answers one connection; when it returns the connection is ended in order, when it raises at once."""


@runtime_checkable
class Tunnelling(Protocol):
    """A sandbox that has tunnels."""

    def tunnel(self, port: int, handler: Handler) -> AbstractAsyncContextManager[int]:
        """As `tunnel`."""
        ...


def tunnel(sandbox: Sandbox, port: int, handler: Handler) -> AbstractAsyncContextManager[int]:
    """Carries connections to 127.0.0.1:`port` inside to `handler` as long as the context lasts; gives the port.

    Args:
        sandbox: It may have up to four at a time.
        port: From 1024 on; 0 takes one that is free.
        handler: Runs in a task of its own for each connection, up to 32 at a time.

    Raises:
        ConfigError: This sandbox has no tunnels, or the number is no such port.
        OSError: The port is taken (errno EADDRINUSE).
        SandboxLost: As every method of a sandbox.
    """
    if not isinstance(sandbox, Tunnelling):
        raise ConfigError(
            f"sandbox {sandbox.id} has no tunnels, so no program inside can reach an endpoint of ours: "
            "choose the backend docker or bubblewrap"
        )
    if port != 0 and not 1024 <= port <= 65535:
        raise ConfigError(f"a tunnel's port is 0, or from 1024 to 65535, and not {port}")
    return sandbox.tunnel(port, handler)


class FrameWriter(Protocol):
    """Where frames for a steward go."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...


class CarriedConnection:
    """A connection whose other end a steward holds."""

    def __init__(self, number: int, writer: FrameWriter) -> None:
        self._number = number
        self._writer = writer
        self._kept: deque[bytes] = deque()
        self._kept_cost = 0
        self._consumed = 0
        self._credit = WINDOW
        self._changed = asyncio.Event()
        self._heard_end = self._told_end = self._gone = False

    @property
    def over(self) -> bool:
        """Whether both ends have said everything, or one has dropped it."""
        return self._gone or (self._heard_end and self._told_end)

    def take(self, frame: Frame) -> None:
        """What the steward says of it. Raises FrameError for what no steward says."""
        if frame.kind == BYTES:
            self._kept_cost += len(frame.payload) + FRAME_COST
            if self._kept_cost + self._consumed > WINDOW or self._heard_end:
                raise FrameError("a connection beyond its credit or its end")
            self._kept.append(frame.payload)
        elif frame.kind == CREDIT:
            self._credit = min(WINDOW, self._credit + credit_of(frame))
        elif frame.kind == SHUT:
            self._heard_end = True
        else:
            self.lose()
        self._changed.set()

    def lose(self) -> None:
        """It is gone; whoever waits is told."""
        self._gone = True
        self._kept.clear()
        self._changed.set()

    async def receive(self) -> bytes:
        while True:
            if self._kept:
                data = self._kept.popleft()
                self._kept_cost -= len(data) + FRAME_COST
                self._consumed += len(data) + FRAME_COST
                if self._consumed >= _GIVE_BACK and not self._heard_end:
                    self._write(credit(self._number, self._consumed))
                    self._consumed = 0
                return data
            self._check()
            if self._heard_end:
                return b""
            await self._news()

    async def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._check()
            if self._told_end:
                raise BrokenPipeError("this connection was ended")
            room = min(PIECE_BYTES, self._credit - FRAME_COST)
            if room <= 0:
                await self._news()
                continue
            piece, view = bytes(view[:room]), view[room:]
            self._credit -= len(piece) + FRAME_COST
            self._write(encode(BYTES, self._number, piece))
            await self._writer.drain()

    async def end(self) -> None:
        """Says that nothing more will be sent, and waits a while until the other end has done so too.

        Closed at once, what was said last could be lost; but nobody is listened to for long.
        """
        if not self._gone and not self._told_end:
            self._told_end = True
            self._write(encode(SHUT, self._number))
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LINGER_S):
                for _ in range(_LAST_PIECES):
                    if not await self.receive():
                        return

    def drop(self) -> None:
        """Ends it at once."""
        if not self.over:
            with contextlib.suppress(ConnectionError):
                self._write(encode(DROP, self._number))
        self.lose()

    async def _news(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _check(self) -> None:
        if self._gone:
            raise ConnectionResetError("the program inside is gone, or its sandbox")

    def _write(self, frame: bytes) -> None:
        try:
            self._writer.write(frame)
        except RuntimeError as error:  # of an event loop that is closing
            raise ConnectionResetError(str(error)) from None


class Carried:
    """The tunnels of one steward, and their connections."""

    def __init__(self, writer: FrameWriter) -> None:
        self._writer = writer
        self._numbers = itertools.count(1)
        self._handlers: dict[int, Handler] = {}
        self._connections: dict[int, CarriedConnection] = {}
        self._serving: dict[int, dict[int, asyncio.Task[None]]] = {}
        """By tunnel and connection."""

    def register(self, handler: Handler) -> int:
        """The number of a tunnel that is about to be opened: connections may come before the word that it is."""
        number = next(self._numbers)
        self._handlers[number] = handler
        self._serving[number] = {}
        return number

    def take(self, frame: Frame) -> None:
        """A frame about a connection; one that is over here needs none. Raises FrameError."""
        if frame.kind == OPEN:
            self._open(frame)
        elif (connection := self._connections.get(frame.stream)) is not None:
            connection.take(frame)
            if frame.kind == DROP:  # whoever asked has left, and nobody waits for the answer
                for tasks in self._serving.values():
                    if (task := tasks.get(frame.stream)) is not None:
                        task.cancel()

    def _open(self, frame: Frame) -> None:
        number = frame.json().get("tunnel")
        serving = self._serving.get(number) if isinstance(number, int) else None
        # those whose handlers are about to end count here, and no longer there
        if not isinstance(number, int) or serving is None or len(serving) >= 2 * MOST_CONNECTIONS:
            self._writer.write(encode(DROP, frame.stream))
            return
        if frame.stream in self._connections:
            raise FrameError("a connection that is open already")
        connection = self._connections[frame.stream] = CarriedConnection(frame.stream, self._writer)
        task = serving[frame.stream] = asyncio.create_task(self._serve(connection, self._handlers[number]))

        def ended(_: asyncio.Task[None]) -> None:
            connection.drop()
            self._connections.pop(frame.stream, None)
            serving.pop(frame.stream, None)

        task.add_done_callback(ended)

    async def _serve(self, connection: CarriedConnection, handler: Handler) -> None:
        try:
            await handler(connection)
        except ConnectionError:
            return
        except Exception:
            _log.exception("a handler of a tunnel failed")
            return
        await connection.end()

    async def unregister(self, number: int) -> None:
        """Ends a tunnel's connections and waits for their handlers."""
        self._handlers.pop(number, None)
        serving = list(self._serving.pop(number, {}).values())
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    def lose(self) -> None:
        """The steward is gone."""
        for connection in self._connections.values():
            connection.lose()


@asynccontextmanager
async def carried(
    tunnels: Carried, call: Callable[[str, dict[str, Any]], Awaitable[Any]], port: int, handler: Handler
) -> AsyncIterator[int]:
    """A tunnel of these; `call` makes a request to their steward, and gives the fields of its answer."""
    number = tunnels.register(handler)
    try:
        yield int((await call("tunnel", {"tunnel": number, "port": port}))["port"])
    finally:
        await asyncio.shield(_end(tunnels, call, number))


async def _end(tunnels: Carried, call: Callable[[str, dict[str, Any]], Awaitable[Any]], number: int) -> None:
    await tunnels.unregister(number)
    with contextlib.suppress(ConnectionError):  # with its steward it is gone anyway
        await call("untunnel", {"tunnel": number})
