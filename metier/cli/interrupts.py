"""Ctrl-C and SIGTERM: a command ends in order, whatever it was doing, and soon.

The first signal cuts the command's work short, whose cleanup then runs to its end: a second one does not disturb it. It
has `END_S` for that, if nothing else is said. After those, or at the third signal, the process ends at once; sandboxes
then end by themselves, since they live no longer than their client.

How work is cut short depends on what it is: a coroutine is cancelled (`run`), work on this thread that can be told so
is told (`run_blocking`), and where a command is outside of both, SystemExit is raised wherever it is (`watched`).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import typer

T = TypeVar("T")
END_S = 10.0
_PATIENCE = 3
"""Signals, of which the last one ends the process at once."""
_USUAL = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
_SHOW_CURSOR = b"\x1b[?25h"


def run(
    work: Coroutine[Any, Any, T],
    *,
    last_words: Callable[[], None] | None = None,
    leave: str = "sandboxes end by themselves",
    end_s: float = END_S,
    threads_hold_nothing: bool = False,
) -> T:
    """`asyncio.run` for a command; `last_words` are said once a signal has ended it and everything is away.

    Args:
        work: what is cancelled.
        last_words: by default, that it was interrupted.
        leave: what becomes of what is not away in time.
        end_s: for the work's own cleanup.
        threads_hold_nothing: threads of the work only compute, for a long time: the process does not wait for them.

    Raises:
        typer.Exit: a signal ended it; the code is 128 and the signal's number, as shells have it.
    """
    stop = _Cancel(leave, end_s, threads_hold_nothing)

    async def whole() -> T:
        if threads_hold_nothing:
            asyncio.get_running_loop().set_default_executor(_Unwaited(stop))
        stop.cuts(asyncio.current_task())
        return await work

    return stop.through(lambda: asyncio.run(whole()), last_words)


def run_blocking(
    work: Callable[[], T],
    *,
    stop: Callable[[], None],
    kill: Callable[[], None],
    last_words: Callable[[], None] | None = None,
    leave: str,
    end_s: float = END_S,
) -> T:
    """`work()` on this thread, for a command.

    Args:
        work: returns or raises soon after `stop` was called, its own cleanup done.
        stop: called by the first signal, on this thread, in the middle of `work`.
        kill: ends at once what would outlive the process; called where it does not end in order.
        last_words: as in `run`.
        leave: as in `run`.
        end_s: as in `run`.

    Raises:
        typer.Exit: as `run`.
    """
    return _Tell(stop, kill, leave, end_s).through(work, last_words)


@contextmanager
def watched() -> Iterator[None]:
    """For a whole command: signals outside of `run` and `run_blocking` end it in order as well, and say so."""
    with _Raise("").watching():
        yield


class _Stop:
    """What to do at a signal; a subclass says how the work is cut short."""

    def __init__(self, leave: str, end_s: float = END_S) -> None:
        self.caught: list[int] = []
        self._leave = leave
        self._end_s = end_s

    @property
    def code(self) -> int:
        """Of the process that the first signal ended."""
        return 128 + self.caught[0]

    def cut(self) -> None:
        """At the first signal, on the main thread between two of its instructions."""
        raise NotImplementedError

    def kill(self) -> None:
        """Before the process ends at once."""

    def ended(self) -> typer.Exit:
        """What to raise once everything is away and all is said."""
        return typer.Exit(self.code)

    def through(self, work: Callable[[], T], last_words: Callable[[], None] | None) -> T:
        """The work's result. Raises typer.Exit where a signal ended it."""
        with self.watching():
            try:
                result = work()
            except BaseException:
                if not self.caught:
                    raise
            else:
                if not self.caught:
                    return result
            if last_words is None:
                _say("interrupted")
            else:
                last_words()
            raise self.ended()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Signals are caught meanwhile, but for those that whoever started us wants ignored (`nohup`, `&`)."""
        before = {number: signal.getsignal(number) for number in _USUAL}
        for number, handler in before.items():
            if handler is _USUAL[number] or isinstance(getattr(handler, "__self__", None), _Stop):
                signal.signal(number, self._catch)
        try:
            yield
        finally:
            for number, handler in before.items():
                if signal.getsignal(number) == self._catch:
                    # one more, while the interpreter leaves, must not give a traceback
                    signal.signal(number, signal.SIG_IGN if self.caught else handler)

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        self.caught.append(number)
        if len(self.caught) == 1:
            guard = threading.Timer(self._end_s, self._give_up, [f"not all had ended after {self._end_s:g} s"])
            guard.daemon = True
            guard.start()
            self.cut()
        elif len(self.caught) < _PATIENCE:
            _say("ending; once more to leave at once")
        else:
            self._give_up("left at once")

    def _give_up(self, why: str) -> None:
        with suppress(Exception):
            self.kill()
        _say("; ".join(filter(None, ["interrupted", why, self._leave])))
        for fd in (1, 2):
            with suppress(OSError):
                if os.isatty(fd):
                    os.write(fd, _SHOW_CURSOR)  # a live display had hidden it
        os._exit(self.code)


class _Cancel(_Stop):
    """Cancels a task."""

    def __init__(self, leave: str, end_s: float, threads_hold_nothing: bool) -> None:
        super().__init__(leave, end_s)
        self._threads_hold_nothing = threads_hold_nothing
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def cuts(self, task: asyncio.Task[Any] | None) -> None:
        """The task that the first signal cancels; one that came before is not lost."""
        self._task, self._loop = task, asyncio.get_running_loop()
        if self.caught:
            self.cut()

    def cut(self) -> None:
        task, loop = self._task, self._loop
        if task is not None and loop is not None and not loop.is_closed():
            # what is cut short by this complains in vain
            loop.call_soon_threadsafe(loop.set_exception_handler, lambda *_: None)
            loop.call_soon_threadsafe(task.cancel)

    def ended(self) -> typer.Exit:
        """Not by way of the interpreter's own end, which waits for threads that compute, or breaks in them."""
        if not self._threads_hold_nothing:
            return super().ended()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(self.code)


class _Tell(_Stop):
    """Tells the work."""

    def __init__(self, stop: Callable[[], None], kill: Callable[[], None], leave: str, end_s: float) -> None:
        super().__init__(leave, end_s)
        self._told = stop
        self._killed = kill

    def cut(self) -> None:
        _say("ending: what was begun is taken away")
        self._told()

    def kill(self) -> None:
        self._killed()


class _Raise(_Stop):
    """Raises SystemExit in the work."""

    def cut(self) -> None:
        _say("interrupted")
        raise SystemExit(self.code)


class _Unwaited(ThreadPoolExecutor):
    """An event loop's threads, which it does not wait for once it was interrupted."""

    def __init__(self, stop: _Stop) -> None:
        super().__init__(thread_name_prefix="metier-command")
        self._stop = stop

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait and not self._stop.caught, cancel_futures=cancel_futures)


def _say(text: str) -> None:
    """In one write, since a signal may come in the middle of another."""
    with suppress(OSError):
        os.write(2, f"\nmetier: {text}\n".encode())
