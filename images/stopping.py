"""How a build is cut short from outside: by a signal handler, while it runs on the main thread.

A build waits in three ways, and each can be cut: for a child process (`Stop.child`), for an answer that comes in pieces
(`Stop.cut_by`), and by looking again and again (`Stop.check`). Everything between runs to its end, so that what was
made is known, and its own cleanup takes it away.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from metier.envs.core import MetierError


class Stopped(MetierError, RuntimeError):
    """The build was cut short by whoever asked for it; what it was making is removed."""

    def __init__(self) -> None:
        super().__init__("the build was stopped; finished images stay, and the same command goes on after them")

    def __reduce__(self) -> tuple[type[Stopped], tuple[()]]:
        return type(self), ()


class Stop:
    """One build's; by default nobody ever asks for it."""

    def __init__(self) -> None:
        self.asked = False
        self._ways: dict[int, Callable[[], object]] = {}
        self._children: dict[int, subprocess.Popen[Any]] = {}

    def now(self) -> None:
        """Cut the build short; safe in a signal handler."""
        self.asked = True
        for end in list(self._ways.values()):
            _tried(end)

    def kill(self) -> None:
        """End at once whatever would outlive this process."""
        for process in list(self._children.values()):
            _end(process)

    def check(self) -> None:
        """Raises Stopped once it was asked for."""
        if self.asked:
            raise Stopped

    @contextmanager
    def cut_by(self, end: Callable[[], object]) -> Iterator[None]:
        """For a block that waits for what `end` ends; called at once where it was asked for before.

        Raises:
            Stopped: it was asked for, whatever the block did then.
        """
        key = id(end)
        self._ways[key] = end
        try:
            if self.asked:
                _tried(end)
            yield
        except Exception as error:
            if self.asked:
                raise Stopped from error
            raise
        finally:
            del self._ways[key]
        self.check()

    @contextmanager
    def child(self, command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
        """A process in a session of its own, which no terminal's Ctrl-C reaches.

        It is waited for at the end, and killed where the block is left by an error. Raises as `cut_by`.
        """
        self.check()
        process = subprocess.Popen(command, start_new_session=True, **options)
        self._children[process.pid] = process
        try:
            with self.cut_by(lambda: _end(process)):
                try:
                    yield process
                except BaseException:
                    _end(process)
                    raise
                finally:
                    process.wait()
                    if process.stdout is not None:
                        process.stdout.close()
        finally:
            del self._children[process.pid]


def _end(process: subprocess.Popen[Any]) -> None:
    """Kill it with all that it started, sessions of their own included; nothing where it was waited for.

    Each is stopped as it is found, so that none has a child that is not. bubblewrap's sandbox would otherwise outlive
    a bubblewrap that is killed while it starts: it asks only then to die with it.
    """
    if process.returncode is not None:
        return  # its number may be somebody else's
    found = {process.pid}
    _send([process.pid], signal.SIGSTOP)
    while more := _children(found) - found:
        _send(more, signal.SIGSTOP)
        found |= more
    _send(found, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _children(parents: Collection[int]) -> set[int]:
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            if int(stat.read_bytes().rpartition(b")")[2].split()[1]) in parents:
                found.add(int(stat.parent.name))
    return found


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _tried(end: Callable[[], object]) -> None:
    with suppress(Exception):  # what it would have ended may have ended by itself
        end()
