"""A selector loop with timers, and the channel to the host. Single-threaded, so that forking is always safe."""

from __future__ import annotations

import heapq
import itertools
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator

from .frames import Decoder, Frame

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
PIPE_BYTES = 256 * 1024
FLUSH_S = 0.05
"""How long sending may go on before it is time to listen again."""


class Timer:
    """A call to be made once; `cancel` forgets it."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Loop:
    """Calls back on readable and writable descriptors and at moments of `time.monotonic()`."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()

    def watch(self, fd: int, event: int, call: Callable[[int], None]) -> None:
        """Calls `call(fd)` whenever `fd` is ready; one event a descriptor."""
        self._selector.register(fd, event, call)

    def unwatch(self, fd: int) -> None:
        """Forgets `fd`; not watched is fine."""
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def after(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Calls `call()` once, `seconds` from now."""
        timer = Timer(call)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def turn(self) -> None:
        """Waits for the next event or timer, and serves what is due."""
        wait: float | None = None
        while self._timers and self._timers[0][2].call is None:
            heapq.heappop(self._timers)
        if self._timers:
            wait = max(0.0, self._timers[0][0] - time.monotonic())
        for key, _ in self._selector.select(wait):
            # an earlier callback of this turn may have closed this descriptor
            if self._selector.get_map().get(key.fd) == key:
                key.data(key.fd)
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            call = heapq.heappop(self._timers)[2].call
            if call is not None:
                call()


class Channel:
    """Frames from and to the host. Producers are pulled only as fast as the host reads, so nothing piles up here."""

    def __init__(self, loop: Loop, source: int, sink: int, on_frame: Callable[[Frame], None]) -> None:
        self._loop = loop
        self._sink = sink
        self._decoder = Decoder()
        self._on_frame = on_frame
        self._queue: deque[memoryview] = deque()
        self._producers: deque[Iterator[bytes]] = deque()
        self._waiting = False
        os.set_blocking(source, False)
        os.set_blocking(sink, False)
        loop.watch(source, READ, self._readable)

    def send(self, frame: bytes) -> None:
        """Queues one frame, and writes at once what the pipe takes."""
        self._queue.append(memoryview(frame))
        if not self._waiting:
            self._flush(self._sink)

    def stream(self, producer: Iterator[bytes]) -> None:
        """Sends the frames of `producer`, in order, when the host has room for them.

        It may be long in the making: an empty frame is none, and lets other things be done first.
        """
        self._producers.append(producer)
        if not self._waiting:
            self._flush(self._sink)

    def _readable(self, fd: int) -> None:
        try:
            data = os.read(fd, 4 * PIPE_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise SystemExit(0)
        for frame in self._decoder.feed(data):
            self._on_frame(frame)

    def _next(self) -> bool:
        while not self._queue and self._producers:
            frame = next(self._producers[0], None)
            if frame is None:
                self._producers.popleft()
            else:
                self._queue.append(memoryview(frame))
        return bool(self._queue)

    def _flush(self, _fd: int) -> None:
        until = time.monotonic() + FLUSH_S
        try:
            while self._next():
                view = self._queue[0]
                written = os.write(self._sink, view) if view else 0
                if written == len(view):
                    self._queue.popleft()
                else:
                    self._queue[0] = view[written:]
                if time.monotonic() > until:
                    self._later()
                    return
        except BlockingIOError:
            self._later()
            return
        except BrokenPipeError:
            raise SystemExit(0) from None
        if self._waiting:
            self._waiting = False
            self._loop.unwatch(self._sink)

    def _later(self) -> None:
        """Goes on when the pipe has room and what else is waiting had its turn."""
        if not self._waiting:
            self._waiting = True
            self._loop.watch(self._sink, WRITE, self._flush)


class Feed:
    """Writes bytes into a pipe as its reader takes them; gives up silently when the reader is gone."""

    def __init__(self, loop: Loop, fd: int) -> None:
        self._loop = loop
        self._fd = fd
        self._left = memoryview(b"")
        self._watched = False
        os.set_blocking(fd, False)

    def write(self, data: bytes) -> None:
        """Queues `data` behind what is left."""
        self._left = memoryview(bytes(self._left) + data)
        self._ready(self._fd)

    def _ready(self, fd: int) -> None:
        try:
            while len(self._left):
                self._left = self._left[os.write(fd, self._left) :]
        except BlockingIOError:
            if not self._watched:
                self._watched = True
                self._loop.watch(fd, WRITE, self._ready)
            return
        except OSError:
            self._left = memoryview(b"")
        self._unwatch()

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.unwatch(self._fd)

    def close(self) -> None:
        """Closes the pipe; what is unwritten is lost."""
        self._unwatch()
        os.close(self._fd)
