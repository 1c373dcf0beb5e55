"""Persistent sessions: a bash and a Python interpreter that keep their state from command to command.

A session has four pipes: commands in, output, errors, and a control pipe that only the driver in it writes. After each
command the driver writes `TOKEN STATUS NUL` there, the token drawn anew for each command; output is never searched for
it. What lies in the output pipes when that word arrives belongs to the command, since pipes keep order.

At its time a command is interrupted; a session that does not answer to that is killed whole, and the next call starts
another. Output written by background jobs between commands is kept for the next one.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import struct
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from . import processes
from .loop import READ, Feed, Timer
from .outputs import Stream, ending, report
from .rights import environment, pipe

if TYPE_CHECKING:
    from .main import Steward

INTERRUPT_S = 0.3
KILL_EVERY_S = 0.02
KEPT_BETWEEN = 64 * 1024
CONTROL_BYTES = 4096
INTERRUPTED = 130


class Call(NamedTuple):
    """A command that waits for its turn in a session."""

    stream: int
    command: str
    cwd: str | None
    env: dict[str, str]
    timeout_s: float
    limit: int


class Waiting(NamedTuple):
    """A call, and what will be written for it."""

    call: Call
    token: str
    text: bytes


class Session:
    """One persistent interpreter. Subclasses say how it starts and how a command is written to it."""

    kind = ""

    def __init__(self, steward: Steward) -> None:
        self._steward = steward
        self._queue: deque[Waiting] = deque()
        self._call: Call | None = None
        self._token = ""
        self._began = 0.0
        self._oom_before = 0
        self._timer: Timer | None = None
        self._timed_out = False
        self._killing = False
        self._note = ""
        self.pid: int | None = None
        self._up = False
        self._end: dict[str, int | None] | None = None

    # what differs

    def _start(self, fds: dict[str, int]) -> None:
        raise NotImplementedError

    def _encode(self, call: Call, token: str) -> bytes:
        raise NotImplementedError

    # one command after the other

    def run(self, call: Call) -> None:
        """Runs the command, after those that came before it. Raises ValueError for one that cannot be written."""
        token = secrets.token_hex(8)
        self._queue.append(Waiting(call, token, self._encode(call, token)))
        self._next()

    def give_up(self, stream: int) -> None:
        """The host no longer waits for this command."""
        if self._call is not None and self._call.stream == stream:
            self._time_is_up()
        self._queue = deque(waiting for waiting in self._queue if waiting.call.stream != stream)

    def _next(self) -> None:
        if self._call is not None or not self._queue or self._killing:
            return
        call, self._token, text = self._queue.popleft()
        self._call = call
        self._began = time.monotonic()
        self._oom_before = self._steward.oom.value()
        self._timed_out = False
        self._note = ""
        if not self._up:
            try:
                self._open()
            except processes.NotStarted as error:
                self._refuse(error)
                return
        for stream in (self._out, self._err):
            between, stream.ring = stream.ring.kept(), self._steward.ring(call.limit)
            stream.ring.add(between)
        self._timer = self._steward.loop.after(call.timeout_s, self._time_is_up)
        self._commands.write(text)

    def _open(self) -> None:
        """Makes the pipes and the process. Raises NotStarted."""
        loop = self._steward.loop
        self._end = None
        self._cookie = secrets.token_hex(8)
        self._since = processes.now_ticks()
        ends = {name: pipe(self._steward.settings.agent) for name in ("commands", "out", "err", "control")}
        theirs = {name: pair[0] if name == "commands" else pair[1] for name, pair in ends.items()}
        try:
            self._start(theirs)
        except processes.NotStarted:
            for name, pair in ends.items():
                os.close(pair[1] if name == "commands" else pair[0])
            raise
        finally:
            for fd in theirs.values():
                os.close(fd)
        self._commands = Feed(loop, ends["commands"][1])
        self._out = Stream(loop, ends["out"][0], lambda: None)
        self._err = Stream(loop, ends["err"][0], lambda: None)
        self._out.ring, self._err.ring = self._steward.ring(KEPT_BETWEEN), self._steward.ring(KEPT_BETWEEN)
        self._control = ends["control"][0]
        os.set_blocking(self._control, False)
        self._words = bytearray()
        loop.watch(self._control, READ, self._word)
        self._up = True

    def _adopt(self, pid: int) -> None:
        self.pid = pid
        self._steward.owners.add(pid, self._cookie)
        self._steward.running[pid] = self._died

    def _word(self, fd: int) -> None:
        try:
            data = os.read(fd, CONTROL_BYTES)
        except BlockingIOError:
            return
        if not data:
            # the driver lost its control pipe: the session can never answer again
            self._steward.loop.unwatch(fd)
            self._kill()
            return
        self._words += data
        *words, rest = bytes(self._words).split(b"\0")
        self._words = bytearray(rest[-CONTROL_BYTES:])
        for word in words:
            token, _, status = word.partition(b" ")
            if token == b"ready" and self.pid is None and status.isdigit():
                self._adopt(int(status))
            elif self._call is not None and token == self._token.encode() and status.isdigit():
                self._answered(int(status))

    def _answered(self, status: int) -> None:
        self._out.drain()
        self._err.drain()
        if self._timed_out:
            self._note = "timed out and was interrupted; the session goes on"
        self._report({"exit_code": status & 0xFF, "signal": None})
        self._next()

    def _report(self, end: dict[str, int | None]) -> None:
        call, self._call = self._call, None
        if self._timer is not None:
            self._timer.cancel()
        if call is None:
            return
        out, err = self._out.ring, self._err.ring
        self._out.ring, self._err.ring = self._steward.ring(KEPT_BETWEEN), self._steward.ring(KEPT_BETWEEN)
        self._answer(call, out.kept(), err.kept(), end, out.cut_bytes + err.cut_bytes)

    def _answer(self, call: Call, out: bytes, err: bytes, end: dict[str, int | None], cut: int) -> None:
        if self._note:
            err += (b"\n" if err and not err.endswith(b"\n") else b"") + (f"metier: {self._note}\n").encode()
        report(
            self._steward.channel,
            call.stream,
            out,
            err,
            cut_bytes=cut,
            duration_s=time.monotonic() - self._began,
            timed_out=self._timed_out,
            oom_killed=self._steward.killed_for_memory(self._oom_before),
            background_open=False,
            **end,
        )

    def _refuse(self, error: processes.NotStarted) -> None:
        call, self._call = self._call, None
        self._note = error.text
        if call is not None:
            self._answer(call, b"", b"", {"exit_code": error.status, "signal": None}, 0)
        self._next()

    # its end

    def _time_is_up(self) -> None:
        self._timed_out = True
        if self.pid is None:
            self._kill()
            return
        try:
            os.killpg(self.pid, signal.SIGINT)
        except (ProcessLookupError, PermissionError):
            pass
        self._timer = self._steward.loop.after(INTERRUPT_S, self._kill)

    def _kill(self) -> None:
        """Kills the session and all it started, until nothing of it is left."""
        if self._up and not self._killing:
            self._killing = True
            self._kill_on()

    def _kill_on(self) -> None:
        if not (self._up and self._killing):
            return
        since = self._since if self._call else processes.now_ticks() + 1
        left = self._steward.owners.strike(self._cookie, since, signal.SIGKILL)
        if left or self.pid in self._steward.running:
            self._steward.loop.after(KILL_EVERY_S, self._kill_on)
            return
        if self.pid is None:
            self._steward.drop_zygote()
        self._ended(self._end or {"exit_code": None, "signal": int(signal.SIGKILL)})

    def _died(self, status: int) -> None:
        self._end = ending(status)
        if not self._killing:
            self._ended(self._end)

    def unborn(self) -> None:
        """The zygote ended: a session still expected from it will not come."""
        if self._up and self.pid is None and not self._killing:
            self._ended({"exit_code": None, "signal": int(signal.SIGKILL)})

    def _ended(self, end: dict[str, int | None]) -> None:
        if not self._up:
            return
        self._up = self._killing = False
        self._out.drain()
        self._err.drain()
        how = f"exit code {end['exit_code']}" if end["signal"] is None else f"signal {end['signal']}"
        self._note = f"the {self.kind} session ended ({how}), its state is lost; the next call starts a new one"
        if self._timed_out:
            self._note = "timed out; " + self._note
        self._report(end)
        if self.pid is not None:
            self._steward.owners.discard(self.pid)
        self.pid = None
        self._commands.close()
        self._out.close()
        self._err.close()
        self._steward.loop.unwatch(self._control)
        os.close(self._control)
        self._next()

    def forget(self) -> None:
        """After a reset killed everything: back to the state before the first command, answering none."""
        self._queue.clear()
        self._call = None
        if self._timer is not None:
            self._timer.cancel()
        if self.pid is not None:
            self._steward.running.pop(self.pid, None)
        self._ended({"exit_code": None, "signal": int(signal.SIGKILL)})


class Shell(Session):
    """A bash that reads its commands as a script from a pipe; each is one `eval`, so that a wrong one ends nothing."""

    kind = "shell"

    def _start(self, fds: dict[str, int]) -> None:
        steward = self._steward
        self._adopt(
            steward.spawner.start(
                ["bash", "--noprofile", "--norc"],
                uid=steward.settings.agent,
                cwd=steward.settings.writable[0],
                environ=environment(steward.settings, {}, self._cookie),
                fds={0: fds["commands"], 1: fds["out"], 2: fds["err"], 9: fds["control"]},
            )
        )

    def _open(self) -> None:
        super()._open()
        self._commands.write(b"trap : INT; shopt -s expand_aliases\n")

    def _encode(self, call: Call, token: str) -> bytes:
        before = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in call.env.items())
        if call.cwd:
            before += f"cd -- {shlex.quote(call.cwd)}\n"
        command = shlex.quote((before + call.command).replace("\0", ""))
        text = f"eval -- {command} </dev/null 9>&-\nbuiltin printf '%s %d\\0' {token} $? >&9\n"
        return text.encode("utf-8", "surrogateescape")


class Python(Session):
    """A fork of the zygote that runs each command as a cell."""

    kind = "python"

    def _start(self, fds: dict[str, int]) -> None:
        steward = self._steward
        fields = {
            "cwd": steward.settings.writable[0],
            "env": environment(steward.settings, {}, self._cookie),
            "nice": steward.settings.nice,
        }
        steward.zygote().fork(fields, [fds[name] for name in ("commands", "out", "err", "control")])

    def _encode(self, call: Call, token: str) -> bytes:
        fields: dict[str, Any] = {"source": call.command, "cwd": call.cwd, "env": call.env, "token": token}
        body = json.dumps(fields).encode()
        return struct.pack("!I", len(body)) + body
