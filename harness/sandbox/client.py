"""The host's end of a steward: many calls over one connection, each answered or failed, never left hanging.

A connection that ends, a frame that is none, silence for `HEARTBEAT_S`, or an answer that does not come within its time
fail all open calls at once with one `SandboxLost`, and every later call with the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from metier.envs.core import Limit, SandboxError, SandboxLost

from .protocol import (
    BYTES,
    CANCEL,
    CREDIT,
    DATA,
    DROP,
    ERRDATA,
    HEARTBEAT_S,
    HELLO,
    OPEN,
    PING,
    PING_S,
    PONG,
    REPLY,
    SHUT,
    VERSION,
    Decoder,
    Frame,
    FrameError,
    chunks,
    control,
)
from .requests import request_frame
from .tunnel import Carried

SETTLED_S = 5.0
"""A sandbox that lives so long after one of its limits was reached has survived that."""
_READ_BYTES = 1 << 18
_MAX_ANSWER_BYTES = 1 << 30
_ERRORS: Mapping[str, type[OSError]] = {
    "FileNotFoundError": FileNotFoundError,
    "PermissionError": PermissionError,
    "IsADirectoryError": IsADirectoryError,
    "NotADirectoryError": NotADirectoryError,
    "FileExistsError": FileExistsError,
}


class ByteReader(Protocol):
    """Where a steward's bytes come from: an asyncio.StreamReader, or what unwraps one."""

    async def read(self, n: int, /) -> bytes: ...


class ByteWriter(Protocol):
    """Where bytes for a steward go: an asyncio.StreamWriter."""

    def write(self, data: bytes, /) -> None: ...
    async def drain(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the steward last said of its sandbox; the evidence of whose fault a loss is."""

    oom: int = 0
    """Processes killed for memory, ever."""
    refused_forks: int = 0
    """Forks refused by the process limit, ever."""
    pids: int = 0
    disk_full: bool = False

    def worse_than(self, other: Facts) -> bool:
        """Whether a limit was reached since `other`."""
        return (
            self.oom > other.oom or self.refused_forks > other.refused_forks or (self.disk_full and not other.disk_full)
        )


@dataclass(slots=True)
class _Call:
    done: asyncio.Future[dict[str, Any]]
    out: list[bytes]
    err: list[bytes]
    sink: Callable[[bytes], object] | None = None
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A reply and the data before it."""

    fields: dict[str, Any]
    out: bytes
    err: bytes


class StewardClient:
    """One connection to one steward. Made by `connect`; `why_lost` may add what the backend knows of a loss."""

    def __init__(self, name: str, reader: ByteReader, writer: ByteWriter) -> None:
        self.name = name
        self.facts = Facts()
        self.settled = Facts()
        """Those that the sandbox has survived: they are no evidence of why it is lost later."""
        self.settled_at = time.monotonic()
        self._worse_at = math.inf
        self.hello: dict[str, Any] = {}
        self.why_lost: Callable[[], Awaitable[Limit | None]] | None = None
        self._reader = reader
        self._writer = writer
        self._calls: dict[int, _Call] = {}
        self._streams = itertools.count(1)
        self._lost: SandboxLost | None = None
        self._greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._heard = time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []
        self._sending = asyncio.Lock()
        self.carried = Carried(writer)
        """What comes through tunnels."""

    @classmethod
    async def connect(cls, name: str, reader: ByteReader, writer: ByteWriter, *, timeout_s: float) -> StewardClient:
        """Waits for the steward's hello. Raises SandboxLost if there is none in time, or of another version."""
        client = cls(name, reader, writer)
        client._tasks = [asyncio.create_task(client._receive()), asyncio.create_task(client._heartbeat())]
        try:
            async with asyncio.timeout(timeout_s):
                await client._greeted
        except TimeoutError:
            error = SandboxLost(
                f"{name}: its steward did not answer within {timeout_s:g} s; is the machine overloaded?"
            )
            await client._fail(error)
            raise error from None
        except BaseException:
            await client.close()
            raise
        return client

    @property
    def lost(self) -> SandboxLost | None:
        """Why there is no steward any more, or None."""
        return self._lost

    @property
    def busy(self) -> bool:
        """Whether somebody still waits for an answer."""
        return bool(self._calls)

    async def call(
        self,
        op: str,
        fields: Mapping[str, Any] | None = None,
        *,
        timeout_s: float,
        body: bytes = b"",
        sink: Callable[[bytes], object] | None = None,
    ) -> Answer:
        """One request and its answer; data goes to `sink` as it comes, if there is one.

        Raises:
            SandboxLost: no answer within `timeout_s`, or the connection is gone.
            RequestRefused: the request cannot be sent (see `requests`); the connection is as it was.
            OSError: what the operation raised inside (FileNotFoundError and its like keep their type).
            ValueError: likewise.
        """
        if self._lost is not None:
            raise self._copy(self._lost)
        stream = next(self._streams)
        request = request_frame(op, stream, fields or {}, len(body))
        call = _Call(asyncio.get_running_loop().create_future(), [], [], sink)
        self._calls[stream] = call
        began = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(stream, request, body)
                reply = await call.done
        except TimeoutError:
            error = SandboxLost(
                f"{self.name}: no answer to {op} within {timeout_s:g} s, so the sandbox was given up; "
                "look at the load of its host"
            )
            await self._fail(error)
            raise error from None
        except asyncio.CancelledError:
            if self._lost is None:
                self._writer.write(control(CANCEL, stream))
            raise
        finally:
            self._calls.pop(stream, None)
        if began > self._worse_at:
            self._settle()
        if "error" in reply:
            raise _error_of(reply["error"])
        return Answer(fields=reply, out=b"".join(call.out), err=b"".join(call.err))

    async def _send(self, stream: int, request: bytes, body: bytes) -> None:
        try:
            if not body:
                self._writer.write(request)
                await self._writer.drain()
                return
            async with self._sending:
                self._writer.write(request)
                for frame in chunks(DATA, stream, body):
                    self._writer.write(frame)
                    await self._writer.drain()
        except (ConnectionError, RuntimeError) as error:
            await self._fail(SandboxLost(f"{self.name}: the sandbox is gone ({error}); acquire another one"))

    async def _receive(self) -> None:
        decoder = Decoder()
        try:
            while data := await self._reader.read(_READ_BYTES):
                self._heard = time.monotonic()
                for frame in decoder.feed(data):
                    self._take(frame)
            error = SandboxLost(
                f"{self.name}: the sandbox ended from outside or by its own limits; acquire another one"
            )
        except (FrameError, KeyError, TypeError, ValueError) as fault:
            error = SandboxLost(f"{self.name}: its steward sent rubbish ({fault}); the sandbox was given up")
        except (OSError, EOFError) as fault:
            error = SandboxLost(f"{self.name}: the connection to the sandbox broke ({fault}); acquire another one")
        await self._fail(error)

    def _take(self, frame: Frame) -> None:
        call = self._calls.get(frame.stream)
        if frame.kind in (DATA, ERRDATA):
            if call is None:
                return
            call.size += len(frame.payload)
            if frame.kind == DATA and call.sink is not None:
                call.sink(frame.payload)
            elif call.size > _MAX_ANSWER_BYTES:
                raise FrameError("an answer without end")
            else:
                (call.out if frame.kind == DATA else call.err).append(frame.payload)
        elif frame.kind == REPLY:
            if call is not None and not call.done.done():
                call.done.set_result(frame.json())
        elif frame.kind == PONG:
            self._learn(_facts_of(frame.json()))
        elif frame.kind in (OPEN, BYTES, CREDIT, SHUT, DROP):
            self.carried.take(frame)
        elif frame.kind == HELLO and not self._greeted.done():
            self._greet(frame.json())
        else:
            raise FrameError(f"unexpected frame kind {frame.kind}")

    def _greet(self, hello: dict[str, Any]) -> None:
        if hello.get("version") != VERSION:
            raise FrameError(f"protocol version {hello.get('version')}, this side speaks {VERSION}")
        self.hello = hello
        self._greeted.set_result(None)

    async def _heartbeat(self) -> None:
        while self._lost is None:
            await asyncio.sleep(PING_S)
            silent_s = time.monotonic() - self._heard
            if silent_s > HEARTBEAT_S:
                await self._fail(
                    SandboxLost(f"{self.name}: silent for {silent_s:.0f} s, so it was given up; was it paused?")
                )
                return
            with contextlib.suppress(ConnectionError, RuntimeError):
                self._writer.write(control(PING, 0))

    async def refresh(self, *, timeout_s: float) -> Facts:
        """The facts now."""
        answer = await self.call("facts", timeout_s=timeout_s)
        self._learn(_facts_of(answer.fields))
        return self.facts

    def _learn(self, facts: Facts) -> None:
        """New facts; without news of a limit for `SETTLED_S`, what was known before is settled."""
        if facts.worse_than(self.facts):
            self._worse_at = time.monotonic()
        elif time.monotonic() - self._worse_at > SETTLED_S:
            self._settle()
        self.facts = facts

    def _settle(self) -> None:
        self.settled, self.settled_at, self._worse_at = self.facts, time.monotonic(), math.inf

    async def _fail(self, error: SandboxLost) -> None:
        """Fails all open calls and all later ones; the first reason stays."""
        if self._lost is not None:
            return
        self._lost = error
        self._writer.close()
        self.carried.lose()
        error.agent_caused = await self._blame()
        if not self._greeted.done():
            self._greeted.set_exception(error)
            self._greeted.exception()
        for call in self._calls.values():
            if not call.done.done():
                call.done.set_exception(self._copy(error))
                call.done.exception()

    async def _blame(self) -> Limit | None:
        if self.why_lost is not None:
            with contextlib.suppress(OSError, TimeoutError, SandboxError):
                return await self.why_lost()
        return None

    def _copy(self, error: SandboxLost) -> SandboxLost:
        """Each raiser gets its own, so that tracebacks do not grow into one another."""
        copy = SandboxLost(*error.args)
        copy.agent_caused = error.agent_caused
        return copy

    async def close(self) -> None:
        """Ends the connection, and with it the steward. Idempotent."""
        if self._lost is None:
            self._lost = SandboxLost(f"{self.name}: the sandbox was closed; acquire another one")
        self._writer.close()
        self.carried.lose()
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for call in self._calls.values():
            if not call.done.done():
                call.done.set_exception(self._copy(self._lost))
                call.done.exception()


def _facts_of(fields: Mapping[str, Any]) -> Facts:
    return Facts(
        oom=int(fields["oom"]),
        refused_forks=int(fields["refused_forks"]),
        pids=int(fields["pids"]),
        disk_full=bool(fields["disk_full"]),
    )


def _error_of(error: Mapping[str, Any]) -> Exception:
    kind, number, text = str(error.get("type")), error.get("errno"), str(error.get("text"))
    if kind in ("ValueError", "KeyError", "TypeError"):
        return ValueError(text)
    if kind == "MemoryError":
        return OSError(errno.ENOMEM, "the sandbox has no memory left for this")
    return _ERRORS.get(kind, OSError)(number if isinstance(number, int) else errno.EIO, text)
