"""Frames between host and steward: u32 length, u8 kind, u32 stream, payload. Control is JSON, data is raw bytes.

The one definition for both ends. A stream is one request and its answer:

    host → steward   REQUEST {"op": …, "data": n} then DATA frames holding n bytes (stdin, the source for a session,
                     a file, a tar); CANCEL gives the request up
    steward → host   DATA (output or file) and ERRDATA (standard error), then REPLY, which ends the stream
    both             HELLO once from the steward; PING from the host is answered by PONG with the sandbox's facts

A tunnel (`tunnels`) carries connections that programs inside make to a port, each a stream that the steward numbers:

    steward → host   OPEN {"tunnel": n}: somebody connected
    both             BYTES of that connection, within the credit that the other end gave; CREDIT gives it back; SHUT is
                     the end of one direction, and of all once both have said it; DROP is the end at once

What a steward sends is not trusted: the decoder refuses unknown kinds and frames over `MAX_PAYLOAD`. A control frame
over it is never made: whoever would send it gets the error instead of losing the connection.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

VERSION = 3
MAX_PAYLOAD = 1 << 20
CHUNK = 256 * 1024

HELLO, REQUEST, DATA, ERRDATA, REPLY, CANCEL, PING, PONG, OPEN, BYTES, CREDIT, SHUT, DROP = range(1, 14)

WINDOW = 64 * 1024
"""What a connection may have under way in each direction: more than this is never kept for it at either end."""
FRAME_COST = 1024
"""What a frame of BYTES takes of the credit beside its bytes, so that many tiny ones are not kept for free either."""
MOST_CONNECTIONS = 32
"""Of one tunnel at a time; further ones wait, unaccepted, until there is room."""

_HEADER = struct.Struct("!IBI")
_CREDIT = struct.Struct("!I")


class FrameError(ValueError):
    """The bytes are not frames of this protocol."""


class Frame(NamedTuple):
    """One frame as received."""

    kind: int
    stream: int
    payload: bytes

    def json(self) -> Any:
        """The payload of a control frame; FrameError if it is no JSON object."""
        try:
            value = json.loads(self.payload)
        except ValueError as error:
            raise FrameError(f"control frame is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise FrameError("control frame is not a JSON object")
        return value


def encode(kind: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    return _HEADER.pack(len(payload), kind, stream) + payload


def control(kind: int, stream: int, **fields: Any) -> bytes:
    """A control frame of these JSON fields. Raises FrameError if they are longer than a frame may be."""
    payload = json.dumps(fields, separators=(",", ":")).encode()
    if len(payload) > MAX_PAYLOAD:
        raise FrameError(f"a control frame of {len(payload)} bytes, more than {MAX_PAYLOAD}")
    return encode(kind, stream, payload)


def credit(stream: int, cost: int) -> bytes:
    """A frame that gives so much credit back."""
    return encode(CREDIT, stream, _CREDIT.pack(cost))


def credit_of(frame: Frame) -> int:
    """What a frame of CREDIT gives back. Raises FrameError."""
    if len(frame.payload) != _CREDIT.size:
        raise FrameError(f"credit of {len(frame.payload)} bytes")
    return _CREDIT.unpack(frame.payload)[0]


def chunks(kind: int, stream: int, data: bytes) -> Iterator[bytes]:
    """Data frames of at most `CHUNK` bytes each; none for no data."""
    view = memoryview(data)
    for start in range(0, len(view), CHUNK):
        yield encode(kind, stream, bytes(view[start : start + CHUNK]))


class Decoder:
    """Bytes in, whole frames out; keeps at most one unfinished frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames completed by `data`. Raises FrameError on the first that is none."""
        buffer = self._buffer
        buffer += data
        frames = []
        start = 0
        while len(buffer) - start >= _HEADER.size:
            length, kind, stream = _HEADER.unpack_from(buffer, start)
            if length > MAX_PAYLOAD or not HELLO <= kind <= DROP:
                raise FrameError(f"no frame: kind {kind}, length {length}")
            end = start + _HEADER.size + length
            if len(buffer) < end:
                break
            frames.append(Frame(kind, stream, bytes(buffer[start + _HEADER.size : end])))
            start = end
        del buffer[:start]
        return frames
