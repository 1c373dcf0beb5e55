"""The Docker engine's API over its Unix socket, as much of it as the hot path needs; works against Podman's as well.

One connection a request: the engine's own work takes longer than a connect, and nothing is shared to be poisoned. Every
request has a timeout, and an engine that keeps failing to answer is left alone for a while (`breaker`). The `docker`
SDK stays for images and administration, where threads do no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from metier.envs.core import SandboxError, SandboxUnavailable

from .breaker import Breaker, Circuit

DEFAULT_SOCKET = "/var/run/docker.sock"
API = "/v1.40"
REQUEST_S = 30.0
PING_S = 2.0
_MAX_BODY_BYTES = 64 << 20
"""Far more than any list or journal that is asked for here."""
_STDERR = 2
_STDERR_BYTES = 4096


class Response(NamedTuple):
    """A whole answer of the engine."""

    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        """What the engine says went wrong."""
        try:
            return str(json.loads(self.body)["message"])
        except (ValueError, KeyError, TypeError):
            return self.body.decode("utf-8", "replace")[:500]


class EngineError(SandboxError):
    """The engine refused a request; `status` is HTTP's."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


def socket_path() -> str:
    """The engine's socket: DOCKER_HOST, else the default one. Raises SandboxUnavailable for other transports."""
    host = os.environ.get("DOCKER_HOST", "")
    if not host:
        return DEFAULT_SOCKET
    if not host.startswith("unix://"):
        raise SandboxUnavailable(
            f"DOCKER_HOST={host}: sandboxes need an engine on this machine; set it to unix:///path/to/docker.sock"
        )
    return host.removeprefix("unix://")


class Engine:
    """Requests to one engine, each of which may take `request_s` unless it is said otherwise."""

    def __init__(self, path: str, *, request_s: float = REQUEST_S) -> None:
        self.path = path
        self.request_s = request_s
        self.breaker = Breaker()
        self._asking = asyncio.Lock()

    async def ping(self, *, timeout_s: float = PING_S) -> bool:
        """Whether an engine answers."""
        try:
            return (await self.request("GET", "/_ping", timeout_s=timeout_s)).status == 200
        except SandboxError:
            return False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float | None = None,
    ) -> Response:
        """One request. Raises SandboxUnavailable if no engine answers in time, or what answers is none."""
        await self._pass()
        if timeout_s is not None:  # the caller's own impatience says little of the engine
            return await self._exchange(method, path, query, body, timeout_s)
        with self._counted():
            return await self._exchange(method, path, query, body, self.request_s)

    async def _pass(self) -> None:
        """Whether the engine may be asked. Raises SandboxUnavailable while its circuit is open."""
        if self.breaker.circuit is Circuit.CLOSED:
            return
        async with self._asking:
            if self.breaker.try_again():
                try:
                    with contextlib.suppress(SandboxUnavailable), self._counted():
                        await self._exchange("GET", "/_ping", None, None, PING_S)
                finally:
                    self.breaker.given_up()
        if self.breaker.circuit is not Circuit.CLOSED:
            raise SandboxUnavailable(
                f"the Docker engine at {self.path} did not answer several times in a row, and is left alone for "
                f"{self.breaker.left_s:.0f} s more; restart it, or choose the bubblewrap backend (last: "
                f"{self.breaker.why})"
            )

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Tells the breaker whether there was an answer; one that refuses is one."""
        try:
            yield
        except EngineError:
            self.breaker.succeeded()
            raise
        except SandboxUnavailable as error:
            self.breaker.failed(str(error))
            raise
        self.breaker.succeeded()

    async def _exchange(
        self, method: str, path: str, query: Mapping[str, str] | None, body: Any, timeout_s: float
    ) -> Response:
        writer: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_unix_connection(self.path)
                writer.write(_head(method, path, query, body, "Connection: close"))
                status, headers = await _status(reader)
                return Response(status, await _body(reader, headers), headers)
        except TimeoutError:
            raise SandboxUnavailable(
                f"the Docker engine at {self.path} did not answer {method} {path} within {timeout_s:g} s; "
                "look at its load, or choose the bubblewrap backend"
            ) from None
        except PermissionError as error:
            raise SandboxUnavailable(
                f"you may not use the Docker engine at {self.path} ({error}); join the group that owns the "
                "socket (usually docker), set DOCKER_HOST to an engine of yours, or choose the bubblewrap backend"
            ) from None
        except (OSError, EOFError, ValueError) as error:
            raise SandboxUnavailable(
                f"no Docker engine answers at {self.path} ({error}); start it, set DOCKER_HOST, "
                "or choose the bubblewrap backend"
            ) from None
        finally:
            if writer is not None:
                writer.close()

    async def checked(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout_s: float | None = None,
    ) -> Any:
        """One request whose answer is JSON, or nothing. Raises EngineError: refused, or no JSON."""
        response = await self.request(method, path, query=query, body=body, timeout_s=timeout_s)
        if response.status >= 400:
            raise EngineError(f"the Docker engine refused {method} {path}: {response.message}", response.status)
        try:
            return json.loads(response.body) if response.body.strip() else None
        except ValueError as error:
            said = f"the Docker engine at {self.path} answered {method} {path} with what is no JSON ({error})"
            raise EngineError(said, response.status) from None

    async def has_image(self, tag: str) -> bool:
        """Whether there is an image of this name. Raises SandboxUnavailable."""
        return (await self.request("GET", f"/images/{tag}/json")).status == 200

    async def attach(self, name: str) -> Attachment:
        """The standard streams of a container, before it starts. Raises EngineError, SandboxUnavailable."""
        await self._pass()
        with self._counted():
            return await self._attach(name)

    async def _attach(self, name: str) -> Attachment:
        query = {"stream": "1", "stdin": "1", "stdout": "1", "stderr": "1"}
        path = f"/containers/{quote(name)}/attach"
        try:
            async with asyncio.timeout(self.request_s):
                reader, writer = await asyncio.open_unix_connection(self.path, limit=1 << 20)
                try:
                    writer.write(_head("POST", path, query, None, "Connection: Upgrade", "Upgrade: tcp"))
                    status, headers = await _status(reader)
                    if status not in (101, 200):
                        message = Response(status, await _body(reader, headers), headers).message
                        raise EngineError(f"the Docker engine refused to attach to {name}: {message}", status)
                except BaseException:
                    writer.close()
                    raise
        except TimeoutError:
            raise SandboxUnavailable(
                f"the Docker engine at {self.path} did not attach to {name} within {self.request_s:g} s"
            ) from None
        except (OSError, EOFError, ValueError) as error:
            raise SandboxUnavailable(f"the Docker engine at {self.path} did not attach to {name}: {error}") from None
        return Attachment(reader, writer)


class Attachment:
    """A hijacked connection: `read` gives standard output only, `stderr` keeps the end of the other stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.stderr = b""
        self._reader = reader
        self._buffer = bytearray()

    async def read(self, n: int, /) -> bytes:
        """What arrived on standard output; nothing at the end."""
        while True:
            data = await self._reader.read(n)
            if not data:
                return b""
            self._buffer += data
            if out := self._unwrap():
                return out

    def _unwrap(self) -> bytes:
        """Standard output of the whole pieces in the buffer; each has a stream number and a length before it.

        Raises:
            ValueError: the engine sends something else.
        """
        buffer = self._buffer
        out: list[bytes] = []
        start = 0
        while len(buffer) - start >= 8:
            if buffer[start] > _STDERR or any(buffer[start + 1 : start + 4]):
                raise ValueError(f"no piece of a stream begins with {bytes(buffer[start : start + 8])!r}")
            end = start + 8 + int.from_bytes(buffer[start + 4 : start + 8], "big")
            if len(buffer) < end:
                break
            piece = bytes(buffer[start + 8 : end])
            if buffer[start] == _STDERR:
                self.stderr = (self.stderr + piece)[-_STDERR_BYTES:]
            else:
                out.append(piece)
            start = end
        del buffer[:start]
        return b"".join(out)


def _head(method: str, path: str, query: Mapping[str, str] | None, body: Any, *headers: str) -> bytes:
    target = API + path + (f"?{urlencode(query)}" if query else "")
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: docker", *headers, f"Content-Length: {len(content)}"]
    if content:
        lines.append("Content-Type: application/json")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def _status(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Raises ValueError for what is no HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError(f"a head without end: {error}") from None
    words = head[0].split()
    if len(words) < 2 or not words[0].startswith("HTTP/"):
        raise ValueError(f"an answer that is no HTTP: {head[0][:80]!r}")
    headers = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(words[1]), headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    """Raises ValueError for a body without end, or cut in pieces that are none."""
    if "content-length" in headers:
        return await reader.readexactly(_bounded(int(headers["content-length"])))
    parts: list[bytes] = []
    total = 0
    chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    while True:
        if chunked:
            size = int((await reader.readline()).split(b";")[0], 16)
            part = await reader.readexactly(_bounded(size))
            await reader.readline()
        else:
            part = await reader.read(1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)
        total = _bounded(total + len(part))


def _bounded(size: int) -> int:
    if not 0 <= size <= _MAX_BODY_BYTES:
        raise ValueError(f"a body of {size} bytes")
    return size
