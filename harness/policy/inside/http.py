"""HTTP/1.1 over a connection of a tunnel.

Whoever is at its other end may send anything: each request is answered, refused in words, or ends its connection, and
no more of it is kept than `Room` has.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import h11

from ...sandbox.tunnel import Connection

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 16 << 20
"""Of one request."""
ROOM_BYTES = 64 << 20
"""Of all requests that have not been answered."""
STALLED_S = 120.0
"""How long an answer may wait for the other end to read it."""


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, words: str, code: str = "invalid_request_error") -> None:
        super().__init__(words)
        self.status = status
        self.words = words
        self.code = code

    def answer(self) -> Answer:
        """As the API tells errors."""
        error = {"message": self.words, "type": self.code, "param": None, "code": self.code}
        return Answer.of({"error": error}, self.status)


@dataclass(frozen=True, slots=True)
class Asked:
    """A whole request."""

    method: str
    target: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What is said to it."""

    status: int
    kind: str
    pieces: Sequence[bytes]

    @classmethod
    def of(cls, value: Any, status: int = 200) -> Answer:
        """A JSON value."""
        return cls(status, "application/json", [json.dumps(value).encode()])


class Room:
    """What the bodies of one episode's requests may take of the host's memory, together."""

    def __init__(self, size_bytes: int = ROOM_BYTES) -> None:
        self._left = size_bytes

    def take(self, size_bytes: int) -> None:
        """Raises Refused where there is none."""
        if size_bytes > self._left:
            raise Refused(429, "too much is being asked at once; wait for the answers first", "rate_limit_exceeded")
        self._left -= size_bytes

    def give(self, size_bytes: int) -> None:
        """Back, once it is answered."""
        self._left += size_bytes


class Talk:
    """One connection, from its first request to its end."""

    def __init__(self, connection: Connection, room: Room) -> None:
        self._connection = connection
        self._room = room
        self._taken = 0
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD_BYTES)

    async def serve(self, answer: Callable[[Asked], Awaitable[Answer]], wrong: Callable[[], Awaitable[None]]) -> None:
        """Answers one request after another; `wrong` is called for each that is none.

        Raises:
            ConnectionError: The other end is gone, or does not read.
        """
        while True:
            try:
                try:
                    asked = await self._request()
                    if asked is None:
                        return
                    said = await answer(asked)
                except Refused as refused:
                    await wrong()
                    said = refused.answer()
                except h11.RemoteProtocolError as error:
                    await wrong()
                    said = Refused(400, f"no request of HTTP/1.1: {error}").answer()
                await self._say(said)
            finally:
                self._room.give(self._taken)
                self._taken = 0
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _request(self) -> Asked | None:
        """The next one, whole; None at the end. Raises Refused, RemoteProtocolError, ConnectionError."""
        head: h11.Request | None = None
        body: list[bytes] = []
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._connection.send(self._sent(h11.InformationalResponse(status_code=100, headers=[])))
                self._http.receive_data(await self._connection.receive())
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                size = len(event.data)
                if self._taken + size > MOST_BODY_BYTES:
                    raise Refused(413, f"a request is at most {MOST_BODY_BYTES >> 20} MiB", "request_too_large")
                self._room.take(size)
                self._taken += size
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                return Asked(head.method.decode("ascii"), head.target.decode("ascii", "replace"), b"".join(body))
            else:  # closed, or a switch of protocols that nobody offered
                return None

    async def _say(self, said: Answer) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            raise ConnectionError("what was asked is no HTTP, and cannot be answered")
        try:
            async with asyncio.timeout(STALLED_S):
                headers = [("content-type", said.kind), ("server", "metier")]
                if said.kind == "application/json":
                    headers.append(("content-length", str(sum(map(len, said.pieces)))))
                await self._connection.send(self._sent(h11.Response(status_code=said.status, headers=headers)))
                for piece in said.pieces:
                    await self._connection.send(self._sent(h11.Data(data=piece)))
                await self._connection.send(self._sent(h11.EndOfMessage()))
        except TimeoutError:
            raise ConnectionError(f"an answer was not read in {STALLED_S:g} s") from None

    def _sent(self, event: Any) -> bytes:
        return self._http.send(event) or b""
