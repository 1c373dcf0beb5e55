"""An engine reached from other processes: a server beside the engine, and a client of the same `Engine` protocol.

One connection carries any number of requests at once. A frame is four bytes of length and a JSON object. From the
client: `{"call": n, "do": "generate" | "update_weights" | "cancel" | "hello", …}`; from the server, once for each call
but `cancel`: `{"call": n, "value": …}` or `{"call": n, "error": …, "message": …}`. The first frame of a connection is
`hello` with the token that the address carries; a connection without it is closed. A deadline crosses as the seconds
left. A client that cancels, or vanishes, aborts its requests in the engine.

An address reads `unix:/path/to/socket#token` or `tcp:127.0.0.1:port#token`: a secret among processes of one user.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import itertools
import json
import os
import secrets
import shutil
import struct
import tempfile
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from metier.envs.core import ConfigError, Deadline, MetierError, PolicyError
from metier.harness.policy.contract import Stop
from metier.scheduler.tether import Tether

from .engine import Engine, Generation, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor

Frame = dict[str, Any]

_LENGTH = struct.Struct(">I")
_LONGEST_FRAME = 256 * 2**20
_HELLO_S = 10.0
_ANSWER_S = 5.0
"""The server's own PolicyError about a deadline may arrive this much after it."""
_UPDATE_S = 600.0


class EngineServer:
    """Serves `engine` on the event loop that enters it; closing aborts what runs and leaves the engine open."""

    def __init__(self, engine: Engine, *, tcp: bool = False) -> None:
        """`tcp`: a loopback port instead of a Unix socket, for workers that do not share the file system."""
        self._engine = engine
        self._tcp = tcp
        self._token = secrets.token_urlsafe(24)
        self._folder: str | None = None
        self._tether: Tether | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._address: str | None = None

    @property
    def address(self) -> str:
        """What an `EngineClient` is given; known while the server runs."""
        if self._address is None:
            raise ConfigError("the engine server does not run: enter it before asking for its address")
        return self._address

    async def start(self) -> None:
        """Listen; idempotent."""
        if self._server is not None:
            return
        if self._tcp:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            port = self._server.sockets[0].getsockname()[1]
            self._address = f"tcp:127.0.0.1:{port}#{self._token}"
        else:
            path = f"{self._make_folder()}/socket"
            try:
                self._server = await asyncio.start_unix_server(self._accept, path)
            except BaseException:
                self._remove_folder()
                raise
            self._address = f"unix:{path}#{self._token}"

    async def close(self) -> None:
        """Stop listening, abort what runs; idempotent."""
        server, self._server, self._address = self._server, None, None
        if server is None:
            return
        server.close()
        connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        self._remove_folder()

    def _make_folder(self) -> str:
        """A folder for the socket that other users cannot enter, and that goes with this process however it ends."""
        folder = self._folder = f"{tempfile.gettempdir()}/metier-engine-{secrets.token_hex(8)}"
        self._tether = Tether('rm -rf "$1"', folder)
        os.mkdir(folder, 0o700)
        return folder

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._tether is not None:
            self._tether.cut()
        self._folder = self._tether = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, ValueError, LookupError, TypeError, asyncio.IncompleteReadError):
            pass  # the client vanished or spoke rubbish: its requests were aborted, and nobody is left to tell
        except asyncio.CancelledError:
            pass  # the server closes
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = await asyncio.wait_for(_read(reader), _HELLO_S)
        if not hmac.compare_digest(str(hello.get("token", "")).encode(), self._token.encode()):
            _write(writer, {"call": hello.get("call"), "error": "ConfigError", "message": "wrong token"})
            await writer.drain()
            return
        _write(writer, {"call": hello["call"], "value": None})
        calls: dict[int, asyncio.Task[None]] = {}
        try:
            while True:
                frame = await _read(reader)
                number = int(frame["call"])
                if frame["do"] == "cancel":
                    if number in calls:
                        calls[number].cancel()
                    continue
                calls[number] = asyncio.create_task(self._answer(frame, writer))
                calls[number].add_done_callback(lambda _, number=number: calls.pop(number, None))
        finally:
            running = list(calls.values())
            for call in running:
                call.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _answer(self, frame: Frame, writer: asyncio.StreamWriter) -> None:
        try:
            answer: Frame = {"value": await self._do(frame)}
        except MetierError as error:
            answer = {"error": type(error).__name__, "message": str(error)}
        except Exception as error:  # the boundary: whatever broke in the engine is a policy failure to the episode
            answer = {"error": "PolicyError", "message": f"the engine failed: {type(error).__name__}: {error}"}
        _write(writer, {"call": frame["call"], **answer})
        with contextlib.suppress(ConnectionError):
            await writer.drain()

    async def _do(self, frame: Frame) -> Any:
        if frame["do"] == "generate":
            deadline = Deadline.after(frame["left_s"], limit=frame["limit"], set_by=frame["set_by"])
            generation = await self._engine.generate(_request_from(frame["request"]), deadline=deadline)
            return {
                **_fields(generation),
                "output_ids": list(generation.output_ids),
                "logprobs": list(generation.logprobs),
            }
        if frame["do"] == "update_weights":
            return await self._engine.update_weights(Path(frame["path"]), int(frame["version"]))
        raise ConfigError(f"the engine server knows no {frame['do']!r}")


@contextlib.contextmanager
def serving(engine: Engine, *, tcp: bool = False) -> Iterator[str]:
    """Serve `engine` from a thread with its own event loop, and give the address.

    For an owner whose own loop is busy, with training steps for example. The engine's `generate` is then called on the
    serving thread's loop.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="engine server", daemon=True)
    thread.start()
    server = EngineServer(engine, tcp=tcp)

    def call(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        call(server.start())
        yield server.address
    finally:
        call(server.close())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Connection:
    """One connection and the calls that wait on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self.lost: str | None = None
        self._reading = asyncio.create_task(self._read_answers(reader))

    async def call(self, frame: Frame, *, within_s: float) -> Any:
        """The value that the server answers.

        Raises:
            ConnectionError: the connection was lost meanwhile.
            TimeoutError: no answer in time; the call was cancelled on the server.
            MetierError: what the server answered.
        """
        if self.lost is not None:
            raise ConnectionResetError(self.lost)
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            _write(self._writer, {"call": number, **frame})
            async with asyncio.timeout(within_s):
                return await answer
        except (asyncio.CancelledError, TimeoutError):
            if self.lost is None:
                _write(self._writer, {"call": number, "do": "cancel"})
            raise
        finally:
            del self._waiting[number]

    async def _read_answers(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                frame = await _read(reader)
                answer = self._waiting.get(frame["call"])
                if answer is None or answer.done():
                    continue
                if "error" in frame:
                    answer.set_exception(_error_from(frame))
                else:
                    answer.set_result(frame["value"])
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError) as error:
            self.lost = str(error) or type(error).__name__
        finally:
            self.lost = self.lost or "closed"
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(ConnectionResetError(self.lost))
            self._writer.close()

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


class EngineClient:
    """The `Engine` at `address`; connects at the first call, and once more when the connection was lost.

    A request that was cut off is sent again after reconnecting: the server has aborted its first attempt. One client
    belongs to one event loop; closing it leaves the engine open.
    """

    def __init__(self, address: str) -> None:
        """
        Raises:
            ConfigError: not an address of an engine server.
        """
        self._where, _, self._token = address.partition("#")
        kind, _, place = self._where.partition(":")
        if kind not in ("unix", "tcp") or not place or not self._token:
            raise ConfigError(f"{self._where!r} is no engine address: use EngineServer.address ('unix:/path#token')")
        self._connection: _Connection | None = None
        self._connecting = asyncio.Lock()

    async def generate(self, request: GenerationRequest, *, deadline: Deadline) -> Generation:
        """See `Engine.generate`."""
        frame = {
            "do": "generate",
            "request": _request_frame(request),
            "limit": deadline.limit,
            "set_by": deadline.set_by,
        }
        try:
            value = await self._call(frame, deadline)
        except TimeoutError as late:
            raise PolicyError(f"no answer of the engine at {self._where}: {deadline.error('generate')}") from late
        return _generation_from(value)

    async def update_weights(self, weights: Iterable[tuple[str, Tensor]] | Path, version: int) -> None:
        """See `Engine.update_weights`; by path only.

        Raises:
            ConfigError: tensors, which do not cross processes here.
            PolicyError: the engine is gone.
        """
        if not isinstance(weights, Path):
            raise ConfigError("weights cross processes by path only: save a safetensors file and pass its Path")
        deadline = Deadline.after(_UPDATE_S, limit="update_s", set_by="engine client")
        frame = {"do": "update_weights", "path": str(weights), "version": version}
        try:
            await self._call(frame, deadline)
        except TimeoutError as late:
            raise PolicyError(f"the engine at {self._where}: {deadline.error('update_weights')}") from late

    async def _call(self, frame: Frame, deadline: Deadline) -> Any:
        for attempt in (1, 2):
            left_s = deadline.left_s()
            if left_s == 0:
                raise PolicyError(str(deadline.error(f"a call to the engine at {self._where}")))
            try:
                connection = await self._connected()
                return await connection.call({**frame, "left_s": left_s}, within_s=left_s + _ANSWER_S)
            except TimeoutError:
                raise
            except OSError as error:
                if attempt == 2:
                    raise PolicyError(
                        f"the engine at {self._where} is gone ({error}): see the log of the process that owns it, and "
                        f"start it again"
                    ) from error
        raise AssertionError("unreachable")

    async def _connected(self) -> _Connection:
        async with self._connecting:
            if self._connection is not None and self._connection.lost is None:
                return self._connection
            kind, _, place = self._where.partition(":")
            if kind == "unix":
                opening = asyncio.open_unix_connection(place)
            else:
                host, _, port = place.rpartition(":")
                opening = asyncio.open_connection(host, int(port))
            connection = _Connection(*await asyncio.wait_for(opening, _HELLO_S))
            try:
                await connection.call({"do": "hello", "token": self._token}, within_s=_HELLO_S)
            except BaseException:
                await connection.close()
                raise
            self._connection = connection
            return connection

    async def close(self) -> None:
        """Aborts this client's requests; idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _read(reader: asyncio.StreamReader) -> Frame:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > _LONGEST_FRAME:
        raise ValueError(f"a frame of {length} bytes")
    frame = json.loads(await reader.readexactly(length))
    if not isinstance(frame, dict):
        raise ValueError("a frame that is no object")
    return frame


def _write(writer: asyncio.StreamWriter, frame: Frame) -> None:
    data = json.dumps(frame, separators=(",", ":")).encode()
    writer.write(_LENGTH.pack(len(data)) + data)


def _fields(value: Generation | GenerationRequest) -> Frame:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _request_frame(request: GenerationRequest) -> Frame:
    images = [base64.b64encode(image).decode() for image in request.images]
    ids = {"prompt_ids": list(request.prompt_ids), "stop_ids": list(request.stop_ids)}
    return {**_fields(request), **ids, "images": images}


def _request_from(frame: Mapping[str, Any]) -> GenerationRequest:
    images = tuple(base64.b64decode(image) for image in frame["images"])
    ids = {name: tuple(frame[name]) for name in ("prompt_ids", "stop_ids")}
    return GenerationRequest(**{**frame, **ids, "images": images})


def _generation_from(value: Mapping[str, Any]) -> Generation:
    return Generation(
        **{
            **value,
            "output_ids": tuple(value["output_ids"]),
            "logprobs": tuple(value["logprobs"]),
            "versions": tuple((version, count) for version, count in value["versions"]),
            "stop": Stop(value["stop"]),
        }
    )


def _error_from(frame: Frame) -> MetierError:
    known: dict[str, type[MetierError]] = {"ConfigError": ConfigError}
    return known.get(frame["error"], PolicyError)(frame["message"])
