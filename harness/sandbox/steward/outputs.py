"""The output side of something that runs: two pipes, what is kept of each, and the counters beside them."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable
from typing import Any

from .frames import DATA, ERRDATA, REPLY, chunks, control
from .loop import PIPE_BYTES, READ, Channel, Loop
from .rings import HeadTail


class Stream:
    """The reading end of one output pipe. Read without end, so that no writer ever blocks; kept within its ring."""

    def __init__(self, loop: Loop, fd: int, on_end: Callable[[], None]) -> None:
        self._loop = loop
        self._fd: int | None = fd
        self._on_end = on_end
        self.ring = HeadTail(0)
        os.set_blocking(fd, False)
        loop.watch(fd, READ, self._readable)

    @property
    def open(self) -> bool:
        """Whether somebody may still write."""
        return self._fd is not None

    def _readable(self, fd: int) -> None:
        try:
            data = os.read(fd, PIPE_BYTES)
        except BlockingIOError:
            return
        if data:
            self.ring.add(data)
        else:
            self.close()
            self._on_end()

    def drain(self) -> None:
        """Takes what lies in the pipe at this moment, and no more."""
        if self._fd is None:
            return
        waiting = struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0"))[0]
        while waiting > 0:
            data = os.read(self._fd, min(waiting, PIPE_BYTES))
            if not data:
                return
            self.ring.add(data)
            waiting -= len(data)

    def close(self) -> None:
        """Stops reading."""
        if self._fd is not None:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = None


class Counter:
    """A number the kernel keeps in a cgroup file, read without opening it anew; 0 where there is none."""

    def __init__(self, key: bytes, *paths: str) -> None:
        self._key = key
        self._fd = -1
        for path in paths:
            try:
                self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                return
            except OSError:
                continue

    def value(self) -> int:
        """The number now."""
        if self._fd < 0:
            return 0
        try:
            words = os.pread(self._fd, 4096, 0).split()
        except OSError:
            return 0
        if not self._key:
            return int(words[0]) if words and words[0].isdigit() else 0
        return int(words[words.index(self._key) + 1]) if self._key in words else 0


def report(channel: Channel, stream: int, out: bytes, err: bytes, **fields: Any) -> None:
    """The answer to an exec: kept output as data, then how it ended."""
    for frame in chunks(DATA, stream, out):
        channel.send(frame)
    for frame in chunks(ERRDATA, stream, err):
        channel.send(frame)
    channel.send(control(REPLY, stream, **fields))


def ending(status: int) -> dict[str, int | None]:
    """A wait status as exit code or signal, never both."""
    if os.WIFSIGNALED(status):
        return {"exit_code": None, "signal": os.WTERMSIG(status)}
    return {"exit_code": os.WEXITSTATUS(status), "signal": None}
