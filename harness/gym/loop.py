"""The one event loop thread that the synchronous Gymnasium surface of this process calls into.

Sandboxes are I/O, so all environments of a process share one loop and one backend of each name. The backend is closed
when the process ends in order; when it is killed, the sandboxes end by their own tether.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import signal
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from ..backends import Backends

T = TypeVar("T")
_log = logging.getLogger(__name__)
_CLOSE_S = 20.0
backends = Backends()
"""Of this loop; only coroutines run by `call` may use it."""
_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="metier-gym", daemon=True).start()
            atexit.register(_stop)
        return _loop


def call(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop and wait for it; an interrupt (Ctrl-C) cancels it, at whatever moment it comes.

    `asyncio.run_coroutine_threadsafe` would have a gap: what it has begun, but not yet returned, nobody can cancel.
    """
    loop = _running()
    answer: Future[T] = Future()
    begun: list[asyncio.Task[T]] = []

    def begin() -> None:
        begun.append(loop.create_task(coroutine))
        begun[0].add_done_callback(lambda task: _hand_over(task, answer))

    def cancel() -> None:
        if begun:
            begun[0].cancel()
        else:
            coroutine.close()

    try:
        loop.call_soon_threadsafe(begin)
        return answer.result()
    except BaseException:
        loop.call_soon_threadsafe(cancel)
        raise


def _hand_over(task: asyncio.Task[T], answer: Future[T]) -> None:
    if task.cancelled():
        answer.cancel()
    elif (error := task.exception()) is not None:
        answer.set_exception(error)
    else:
        answer.set_result(task.result())


def _stop() -> None:
    global _loop
    with _lock:
        loop, _loop = _loop, None
    if loop is None or not loop.is_running():
        return
    closing = asyncio.run_coroutine_threadsafe(backends.close(), loop)
    try:
        with _patient():
            closing.result(timeout=_CLOSE_S)
    except (KeyboardInterrupt, TimeoutError):
        _log.warning("not all sandboxes were closed in order; they end by themselves with this process")
    finally:
        loop.call_soon_threadsafe(loop.stop)


@contextmanager
def _patient() -> Iterator[None]:
    """One Ctrl-C more does not cut the cleanup short; the next one does."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) in (
        None,
        signal.SIG_IGN,
        signal.SIG_DFL,
    ):
        yield
        return

    def first(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
