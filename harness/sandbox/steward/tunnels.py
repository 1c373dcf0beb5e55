"""Tunnels: a port on the sandbox's own loopback, whose connections are carried to the host as frames.

They lead to the one program that the host put at their other end, and nowhere else. A connection keeps at most a window
of bytes here in each direction: what the host has not yet taken is not read from its socket, and the host sends no more
than was written. So nobody inside can make the steward hold much, whatever it opens, sends or leaves unread, and what
goes wrong with a connection ends that connection alone.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .frames import (
    BYTES,
    CREDIT,
    DROP,
    FRAME_COST,
    MOST_CONNECTIONS,
    OPEN,
    SHUT,
    WINDOW,
    Frame,
    control,
    credit,
    credit_of,
    encode,
)
from .loop import READ, WRITE, Channel, Loop

MOST_TUNNELS = 4
MOST_A_SECOND = 64
"""Connections that are taken, so that one who only connects costs the host no more than others do."""
PAUSE_S = 0.2
"""Until connections are taken again, after there were too many or no descriptor was left for another."""
BACKLOG = 16
_FIRST_ID = 1 << 31
"""Ids of connections are the steward's to give, those below are the host's requests."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_OVER = {"06", "07"}
"""States in /proc/net/tcp of what nobody holds any more and no new listener minds: TIME_WAIT and CLOSE."""


def _guarded(call: Callable[..., None]) -> Callable[..., None]:
    """What fails in a callback ends its connection: an error in pid 1 would be the end of the sandbox."""

    @functools.wraps(call)
    def guarded(self: Any, *arguments: Any) -> None:
        try:
            call(self, *arguments)
        except Exception:
            self.drop()

    return guarded


class Connection:
    """One accepted socket."""

    def __init__(
        self, loop: Loop, channel: Channel, sock: socket.socket, number: int, on_end: Callable[[int], None]
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._number = number
        self._on_end = on_end
        self._sock = sock
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._writer = sock.dup()  # the loop watches a descriptor for one event only
        self._credit = WINDOW
        self._unsent: deque[memoryview] = deque()
        self._costs: deque[int] = deque()
        self._reading = self._writing = False
        self._heard_end = self._told_end = self._ended = self._over = False

    @_guarded
    def begin(self) -> None:
        """From now on it is read."""
        self._read_on()

    def _read_on(self) -> None:
        """Reads while there is credit for more than a frame's own cost."""
        wanted = not self._heard_end and not self._over and self._credit > FRAME_COST
        if wanted and not self._reading:
            self._loop.watch(self._sock.fileno(), READ, self._readable)
        elif not wanted and self._reading:
            self._loop.unwatch(self._sock.fileno())
        self._reading = wanted

    @_guarded
    def _readable(self, _fd: int) -> None:
        try:
            data = self._sock.recv(self._credit - FRAME_COST)
        except (BlockingIOError, InterruptedError):
            return
        if data:
            self._credit -= len(data) + FRAME_COST
            self._channel.send(encode(BYTES, self._number, data))
        else:
            self._heard_end = True
            self._channel.send(encode(SHUT, self._number))
        self._read_on()
        self._settle()

    @_guarded
    def take(self, frame: Frame) -> None:
        """What the host sends for it."""
        if frame.kind == BYTES:
            self._unsent.append(memoryview(frame.payload))
            self._costs.append(len(frame.payload) + FRAME_COST)
            self._writable(-1)
        elif frame.kind == CREDIT:
            self._credit = min(WINDOW, self._credit + credit_of(frame))
            self._read_on()
        elif frame.kind == SHUT:
            self._told_end = True
            self._writable(-1)
        else:
            self.drop(told=False)

    @_guarded
    def _writable(self, _fd: int) -> None:
        waits = False
        while self._unsent and not waits:
            try:
                written = self._writer.send(self._unsent[0])
            except (BlockingIOError, InterruptedError):
                waits = True
                continue
            if written == len(self._unsent[0]):
                self._unsent.popleft()
                self._channel.send(credit(self._number, self._costs.popleft()))
            else:
                self._unsent[0] = self._unsent[0][written:]
        if waits and not self._writing:
            self._loop.watch(self._writer.fileno(), WRITE, self._writable)
        elif not waits and self._writing:
            self._loop.unwatch(self._writer.fileno())
        self._writing = waits
        if self._told_end and not self._unsent and not self._ended:
            self._ended = True
            self._writer.shutdown(socket.SHUT_WR)
        self._settle()

    def _settle(self) -> None:
        """Over, once both directions are."""
        if self._heard_end and self._ended:
            self._close()

    def drop(self, *, told: bool = True) -> None:
        """Ends it at once, for both ends: nothing of it lingers in the kernel. Never raises."""
        if self._over:
            return
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._close()
        if told:
            self._channel.send(encode(DROP, self._number))

    def _close(self) -> None:
        if self._over:
            return
        self._over = True
        for sock in (self._sock, self._writer):
            with contextlib.suppress(OSError, ValueError):
                self._loop.unwatch(sock.fileno())
            sock.close()
        self._unsent.clear()
        self._on_end(self._number)


class Tunnel:
    """One listening port."""

    def __init__(self, tunnels: Tunnels, number: int, port: int) -> None:
        self._tunnels = tunnels
        self._number = number
        self._mine: set[int] = set()
        self._listening = False
        self._second = 0
        self._taken = 0
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self._listener.setblocking(False)
            # what is left of an earlier tunnel's connections keeps no port from us; a listener of the agent's does
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind(("127.0.0.1", port))
            self._listener.listen(BACKLOG)
            self.port: int = self._listener.getsockname()[1]
            self._listen_on()
        except BaseException:
            self._listener.close()
            raise

    def _listen_on(self) -> None:
        open_ = self._listener.fileno() >= 0
        wanted = open_ and len(self._mine) < MOST_CONNECTIONS and self._taken < MOST_A_SECOND
        if wanted and not self._listening:
            self._tunnels.loop.watch(self._listener.fileno(), READ, self._accept)
        elif not wanted and self._listening:
            self._tunnels.loop.unwatch(self._listener.fileno())
            if open_:
                self._tunnels.loop.after(PAUSE_S, self._again)
        self._listening = wanted

    def _again(self) -> None:
        if int(time.monotonic()) != self._second:
            self._taken = 0
        if self._listener.fileno() < 0 or self._listening:
            return
        self._listen_on()
        if not self._listening:
            self._tunnels.loop.after(PAUSE_S, self._again)

    def _accept(self, _fd: int) -> None:
        if int(time.monotonic()) != self._second:
            self._second, self._taken = int(time.monotonic()), 0
        self._taken += 1
        try:
            sock, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return
        except OSError:  # no descriptor or no memory for it: not now
            self._taken = MOST_A_SECOND
            self._listen_on()
            return
        try:
            number = self._tunnels.add(sock, self._ended)
        except Exception:
            sock.close()
            return
        self._mine.add(number)
        self._tunnels.channel.send(control(OPEN, number, tunnel=self._number))
        self._tunnels.connections[number].begin()  # may end it
        self._listen_on()

    def _ended(self, number: int) -> None:
        self._mine.discard(number)
        self._tunnels.connections.pop(number, None)

    def close(self) -> int:
        """Ends it with its connections; gives how many there were."""
        if self._listening:
            self._tunnels.loop.unwatch(self._listener.fileno())
            self._listening = False
        self._listener.close()
        ended = list(self._mine)
        for number in ended:
            self._tunnels.connections[number].drop()
        return len(ended)


class Tunnels:
    """All of a steward's tunnels."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.channel: Channel
        self.connections: dict[int, Connection] = {}
        self._tunnels: dict[int, Tunnel] = {}
        self._ports: set[int] = set()
        self._numbers = itertools.count(_FIRST_ID)

    def open(self, number: int, port: int) -> int:
        """Listens, and gives the port; 0 asks for any. Raises OSError, ValueError."""
        if number in self._tunnels or not 0 <= port <= 65535:
            raise ValueError(f"tunnel {number} is open, or {port} is no port")
        if len(self._tunnels) >= MOST_TUNNELS:
            raise ValueError(f"a sandbox has at most {MOST_TUNNELS} tunnels at a time")
        tunnel = self._tunnels[number] = Tunnel(self, number, port)
        self._ports.add(tunnel.port)
        return tunnel.port

    def add(self, sock: socket.socket, on_end: Callable[[int], None]) -> int:
        """A connection that was accepted, under a number of its own."""
        number = next(self._numbers)
        self.connections[number] = Connection(self.loop, self.channel, sock, number, on_end)
        return number

    def take(self, frame: Frame) -> None:
        """A frame of a connection's; one that has ended meanwhile needs none."""
        if frame.stream in self.connections:
            self.connections[frame.stream].take(frame)

    def close(self, number: int) -> int:
        """Ends a tunnel, with its connections; one that is not there is fine."""
        tunnel = self._tunnels.pop(number, None)
        return tunnel.close() if tunnel is not None else 0

    def close_all(self) -> None:
        """At the end of a lease."""
        for number in list(self._tunnels):
            self.close(number)

    def left(self) -> list[str]:
        """What is left of this lease's tunnels after `close_all`, which should be nothing; asks the kernel."""
        ports, self._ports = self._ports, set()
        if not ports:
            return []
        return [f"a connection of port {port}" for port in _held() if port in ports]


def _held() -> Iterator[int]:
    """The ports at both ends of every TCP socket in sight that somebody or the kernel still works on."""
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(path) as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except OSError:
            continue
        for row in rows:
            if row[3] not in _OVER:
                yield from (int(end.rpartition(":")[2], 16) for end in row[1:3])
