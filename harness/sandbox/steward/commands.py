"""One plain command: started, watched, ended at its time, and reported.

It is over when its first process has ended; output that its children still hold open gets `INHERIT_S` more, and is read
to nowhere after that, so that a background job never dies of a closed pipe.
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from typing import TYPE_CHECKING, Any

from . import processes
from .files import memory_file
from .loop import Timer
from .outputs import Stream, ending, report
from .rights import environment, pipe

if TYPE_CHECKING:
    from .main import Steward

INHERIT_S = 0.2
GRACE_S = 1.0
KILL_EVERY_S = 0.05
LAST_RESORT_S = 0.4
ARGUMENT_BYTES = 100_000


class Command:
    """A running exec of the host's."""

    def __init__(self, steward: Steward, stream: int, request: dict[str, Any], stdin: bytes) -> None:
        self._steward = steward
        self._stream = stream
        self._cookie = secrets.token_hex(8)
        self._since = processes.now_ticks()
        self._began = time.monotonic()
        self._oom_before = steward.oom.value()
        self._status: int | None = None
        self._timed_out = False
        self._done = False
        self._killing_since: float | None = None
        self._timer: Timer | None = None
        self._start(request, stdin)

    def _start(self, request: dict[str, Any], stdin: bytes) -> None:
        steward = self._steward
        argv, script = _argv(request["command"])
        uid = steward.uid_of(request.get("user", "agent"))
        out_read, out_write = pipe(uid)
        err_read, err_write = pipe(uid)
        given = [out_write, err_write]
        fds = {1: out_write, 2: err_write}
        if script is not None:
            fds[9] = memory_file(script)
        fds[0] = memory_file(stdin) if stdin else os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        given += [fd for there, fd in fds.items() if there in (0, 9)]
        limit = int(request.get("output_kib", 64)) * 1024
        self._out, self._err = (Stream(steward.loop, fd, self._check) for fd in (out_read, err_read))
        self._out.ring, self._err.ring = steward.ring(limit), steward.ring(limit)
        try:
            self.pid = steward.spawner.start(
                argv,
                uid=uid,
                cwd=request.get("cwd") or steward.settings.writable[0],
                environ=environment(steward.settings, request.get("env") or {}, self._cookie, root=uid == 0),
                fds=fds,
            )
        except processes.NotStarted as error:
            self._out.close()
            self._err.close()
            self._done = True
            self._answer(b"", f"metier: {error.text}\n".encode(), {"exit_code": error.status, "signal": None})
            return
        finally:
            for fd in given:
                os.close(fd)
        steward.owners.add(self.pid, self._cookie)
        steward.running[self.pid] = self._ended
        steward.commands[self._stream] = self
        self._timer = steward.loop.after(float(request["timeout_s"]), self._time_is_up)

    def _answer(self, out: bytes, err: bytes, end: dict[str, int | None], background: bool = False) -> None:
        report(
            self._steward.channel,
            self._stream,
            out,
            err,
            cut_bytes=self._out.ring.cut_bytes + self._err.ring.cut_bytes,
            duration_s=time.monotonic() - self._began,
            timed_out=self._timed_out,
            oom_killed=self._steward.killed_for_memory(self._oom_before),
            background_open=background,
            **end,
        )

    def _ended(self, status: int) -> None:
        self._status = status
        self._check()
        if not self._done and self._killing_since is None:
            self._timer_to(INHERIT_S, self._finish)

    def _check(self) -> None:
        """Over, once the process ended and nobody holds its output open."""
        if self._status is not None and self._killing_since is None and not (self._out.open or self._err.open):
            self._finish()

    def _timer_to(self, seconds: float, call: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._steward.loop.after(seconds, call)

    def cancel(self) -> None:
        """The host gave it up: end it as at its timeout."""
        if not self._done:
            self._time_is_up()

    def _time_is_up(self) -> None:
        if self._killing_since is not None:
            return
        self._timed_out = True
        self._killing_since = time.monotonic()
        if not self._defused():
            self._steward.owners.strike(self._cookie, self._since, signal.SIGTERM)
        self._timer_to(KILL_EVERY_S, self._kill_on)

    def _defused(self) -> bool:
        """A bomb leaves the steward no processor time for a search: all of the agent's processes die in one call."""
        steward = self._steward
        if not steward.settings.agent or steward.pids.value() * 2 < steward.settings.pids:
            return False
        processes.signal_all(steward.settings.agent, signal.SIGKILL)
        return True

    def _kill_on(self) -> None:
        """Again and again until nothing of it lives: what root runs is not frozen, and may fork meanwhile."""
        steward = self._steward
        self._defused()
        waited = time.monotonic() - (self._killing_since or 0.0)
        left = steward.owners.belonging(self._cookie, self._since)
        if not left and self._status is not None:
            self._finish()
            return
        if waited > GRACE_S + LAST_RESORT_S:
            processes.kill_agent(steward.settings.agent, steward.owners.exempt)
        elif waited > GRACE_S:
            steward.owners.strike(self._cookie, self._since, signal.SIGKILL)
        self._timer_to(KILL_EVERY_S, self._kill_on)

    def _finish(self) -> None:
        if self._done:
            return
        self._done = True
        if self._timer is not None:
            self._timer.cancel()
        steward = self._steward
        steward.owners.discard(self.pid)
        steward.commands.pop(self._stream, None)
        self._out.drain()
        self._err.drain()
        background = self._out.open or self._err.open
        self._answer(self._out.ring.kept(), self._err.ring.kept(), ending(self._status or 0), background)
        self._out.ring, self._err.ring = steward.ring(0), steward.ring(0)


def _argv(command: Any) -> tuple[list[str], bytes | None]:
    """What to start, and a script too long for one argument."""
    if not isinstance(command, str):
        return [str(word) for word in command], None
    if len(command) * 4 <= ARGUMENT_BYTES or len(command.encode("utf-8", "surrogateescape")) <= ARGUMENT_BYTES:
        return ["bash", "-c", command], None
    return ["bash", "/dev/fd/9"], command.encode("utf-8", "surrogateescape")
