"""Ctrl-C and SIGTERM: a command ends in order, whatever it was doing, and soon.

The first signal cancels the command's work, whose cleanup then runs to its end: a second one does not cut it short. It
has `END_S` for that. After those, or at the third signal, the process ends at once; sandboxes then end by themselves,
since they live no longer than their client.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import typer

T = TypeVar("T")
END_S = 10.0
_PATIENCE = 3
"""Signals, of which the last one ends the process at once."""


def run(work: Coroutine[Any, Any, T], *, last_words: Callable[[], None] | None = None) -> T:
    """`asyncio.run` for a command; `last_words` are said once a signal has ended it and everything is away.

    Raises:
        typer.Exit: a signal ended it; the code is 128 and the signal's number, as shells have it.
    """
    stop = _Stop()

    async def whole() -> T:
        stop.cuts(asyncio.current_task())
        return await work

    with stop.watching():
        try:
            result = asyncio.run(whole())
        except BaseException:
            if not stop.caught:
                raise
        else:
            if not stop.caught:
                return result
        if last_words is not None:
            last_words()
    raise typer.Exit(128 + stop.caught[0])


class _Stop:
    """What to do at a signal."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def cuts(self, task: asyncio.Task[Any] | None) -> None:
        """The work that the first signal cancels; one that came before is not lost."""
        self._task, self._loop = task, asyncio.get_running_loop()
        if self.caught:
            self._cancel()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Signals are caught meanwhile, but for those that whoever started us wants ignored (`nohup`, `&`)."""
        usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        taken = [number for number, handler in usual.items() if signal.getsignal(number) is handler]
        for number in taken:
            signal.signal(number, self._catch)
        try:
            yield
        finally:
            for number in taken:
                # one more, while the interpreter leaves, must not give a traceback
                signal.signal(number, signal.SIG_IGN if self.caught else usual[number])

    def _catch(self, number: int, _frame: FrameType | None) -> None:
        self.caught.append(number)
        if len(self.caught) == 1:
            self._cancel()
            guard = threading.Timer(END_S, _give_up, [number, f"not all had ended after {END_S:g} s"])
            guard.daemon = True
            guard.start()
        elif len(self.caught) < _PATIENCE:
            _say("ending; once more to leave at once")
        else:
            _give_up(number, "left at once")

    def _cancel(self) -> None:
        task, loop = self._task, self._loop
        if task is not None and loop is not None and not loop.is_closed():
            # what is cut short by this complains in vain
            loop.call_soon_threadsafe(loop.set_exception_handler, lambda *_: None)
            loop.call_soon_threadsafe(task.cancel)


def _give_up(number: int, why: str) -> None:
    _say(f"{why}; sandboxes end by themselves")
    os._exit(128 + number)


def _say(text: str) -> None:
    """In one write, since a signal may come in the middle of another."""
    os.write(2, f"\nmetier: {text}\n".encode())
