"""Tunnels of the scripted sandbox: the real host's end, with both ends of each connection in this process.

The two ends speak the same frames, so a test that dials in has the real flow control, and no program runs.
"""

from __future__ import annotations

import asyncio
import errno
import itertools
from collections.abc import Callable
from typing import Any

from .protocol import OPEN, Decoder, Frame, control
from .tunnel import Carried, CarriedConnection

_FIRST_ID = 1 << 31
_FIRST_PORT = 32768


class _Wire:
    """Frames that are written arrive at once."""

    def __init__(self, take: Callable[[Frame], None]) -> None:
        self._take = take

    def write(self, data: bytes, /) -> None:
        for frame in Decoder().feed(data):
            self._take(frame)

    async def drain(self) -> None:
        await asyncio.sleep(0)


class FakeTunnels:
    """Those of one sandbox."""

    def __init__(self) -> None:
        self.carried = Carried(_Wire(self._inward))
        self._outward = _Wire(self.carried.take)
        self._inside: dict[int, CarriedConnection] = {}
        self._ports: dict[int, int] = {}
        self._numbers = itertools.count(_FIRST_ID)

    def call(self, op: str, fields: dict[str, Any]) -> dict[str, Any]:
        """A request, as a steward answers it."""
        number, port = fields["tunnel"], fields.get("port")
        if op == "untunnel":
            self._ports = {port: other for port, other in self._ports.items() if other != number}
            return {}
        if port in self._ports:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        made = port or next(one for one in itertools.count(_FIRST_PORT) if one not in self._ports)
        self._ports[made] = number
        return {"port": made}

    def dial(self, port: int) -> CarriedConnection:
        """The inside's end of a new connection. Raises ConnectionRefusedError."""
        if port not in self._ports:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        number = next(self._numbers)
        made = self._inside[number] = CarriedConnection(number, self._outward)
        self._outward.write(control(OPEN, number, tunnel=self._ports[port]))
        return made

    def _inward(self, frame: Frame) -> None:
        if frame.stream in self._inside:
            self._inside[frame.stream].take(frame)
            if self._inside[frame.stream].over:
                del self._inside[frame.stream]
