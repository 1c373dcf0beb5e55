"""The steward's own loop: requests in, answers out, children reaped, and three ways to end that need nobody's help.

It ends when its input ends (the host died), when the host has been silent for `heartbeat_s` (the host hangs), and after
`life_s` (everybody forgot it). As pid 1 its end is the end of everything in the sandbox.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import platform
import resource
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import artefacts, files, processes, reset, trees
from .commands import Command
from .frames import (
    CANCEL,
    CHUNK,
    DATA,
    HELLO,
    OPEN,
    PING,
    PONG,
    REPLY,
    REQUEST,
    VERSION,
    Frame,
    chunks,
    control,
    encode,
)
from .loop import READ, Channel, Loop
from .nursery import Zygote
from .outputs import Counter
from .rights import Settings, acting_as
from .rings import HeadTail
from .sessions import Call, Python, Session, Shell
from .tunnels import Tunnels

EXIT_SILENT_HOST = 71
EXIT_LIFE_OVER = 72
CHECK_S = 1.0
MAX_OUTPUT = 10 << 20
GATHER_S = 0.01
"""How long small pieces are gathered into one frame."""
ERROR_CHARACTERS = 1000
"""Of an error's words, which may repeat what was asked."""
_ERRORS = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    FileExistsError,
    OSError,
    MemoryError,
    ValueError,
    KeyError,
    TypeError,
)
"""What an operation may answer with, the special before the general; the host knows each by its name."""


class Steward:
    """All of a steward's state; one instance a process."""

    def __init__(self, settings: Settings, source: int, sink: int) -> None:
        self.settings = settings
        self.spawner = processes.Spawner(settings.pids, settings.nice)  # first, for it takes low descriptors
        self.loop = Loop()
        self.owners = processes.Owners(settings.agent)
        self.running: dict[int, Callable[[int], None]] = {}
        self.commands: dict[int, Command] = {}
        self.oom = Counter(b"oom_kill", "/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")
        self.refused_forks = Counter(b"max", "/sys/fs/cgroup/pids/pids.events", "/sys/fs/cgroup/pids.events")
        self.pids = Counter(b"", "/sys/fs/cgroup/pids/pids.current", "/sys/fs/cgroup/pids.current")
        self._sessions: dict[str, Session] = {"shell": Shell(self), "python": Python(self)}
        self._zygote: Zygote | None = None
        self._preload = os.environ.get("METIER_PRELOAD", "")
        self._greeted = False
        self._bodies: dict[int, tuple] = {}
        self._heard = time.monotonic()
        self._life_over_at = time.monotonic() + settings.life_s
        self._lease_over_at = self._life_over_at
        self._watch_children()
        self._tunnels = Tunnels(self.loop)
        self.channel = Channel(self.loop, source, sink, self._frame)
        self._tunnels.channel = self.channel

    # life

    def run(self) -> None:
        """Serves until one of the three ends. The hello waits for the preload, so that no agent's time pays for it."""
        reset.prepare(self.settings)
        self._check_life()
        if self._preload and self.settings.preload:
            self.zygote()
        else:
            self.greet()
        while True:
            self.loop.turn()

    def greet(self) -> None:
        """Tells the host, once, that everything is ready."""
        if self._greeted:
            return
        self._greeted = True
        self.channel.send(
            control(
                HELLO, 0, version=VERSION, nonce=secrets.token_hex(8), python=platform.python_version(), uid=os.getuid()
            )
        )

    def _check_life(self) -> None:
        now = time.monotonic()
        if now - self._heard > self.settings.heartbeat_s:
            raise SystemExit(EXIT_SILENT_HOST)
        if now > min(self._life_over_at, self._lease_over_at):
            raise SystemExit(EXIT_LIFE_OVER)
        self.loop.after(CHECK_S, self._check_life)

    def _watch_children(self) -> None:
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # pid 1 takes no signal from inside that it does not handle, so it handles none
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.loop.watch(reader, READ, self._children)

    def _children(self, fd: int) -> None:
        os.read(fd, 4096)
        self.reap()

    def reap(self) -> None:
        """Takes the status of every ended child, and tells those who wait for one."""
        for pid, status in processes.reap().items():
            ended = self.running.pop(pid, None)
            if ended is not None:
                ended(status)

    # what commands and sessions ask of it

    def ring(self, limit: int) -> HeadTail:
        """What an output stream is kept in."""
        return HeadTail(min(limit, MAX_OUTPUT))

    def uid_of(self, user: str) -> int | None:
        """The uid of a user's name; None where agent and steward are one."""
        if user not in ("agent", "root"):
            raise ValueError(f"user must be 'agent' or 'root', not {user!r}")
        return self.settings.agent if user == "agent" or self.settings.agent is None else 0

    def zygote(self) -> Zygote:
        """The zygote, started if there is none. Raises NotStarted when no process can be had."""
        if self._zygote is None:
            self._zygote = Zygote(self, self._preload)
        return self._zygote

    def drop_zygote(self) -> None:
        """Ends a zygote that does not answer, with what made it hang."""
        if self._zygote is not None:
            self._zygote.drop()

    def zygote_ended(self, zygote: Zygote) -> None:
        """One that died importing is started anew without those imports."""
        if self._zygote is zygote:
            self._zygote = None
            self._preload = ""
            self._sessions["python"].unborn()
            self.greet()

    # requests

    def _frame(self, frame: Frame) -> None:
        self._heard = time.monotonic()
        if frame.kind == PING:
            self.channel.send(control(PONG, frame.stream, **self.facts()))
        elif frame.kind == REQUEST:
            request = frame.json()
            if request.get("data"):
                # gives its bytes without a copy: two of a large tree, and the tree itself, fill a sandbox's memory
                self._bodies[frame.stream] = (request, io.BytesIO())
            else:
                self._serve(frame.stream, request, b"")
        elif frame.kind == DATA and frame.stream in self._bodies:
            request, body = self._bodies[frame.stream]
            body.write(frame.payload)
            if body.tell() >= request["data"]:
                del self._bodies[frame.stream]
                self._serve(frame.stream, request, body.getvalue())
        elif frame.kind == CANCEL:
            self._bodies.pop(frame.stream, None)
            if frame.stream in self.commands:
                self.commands[frame.stream].cancel()
            for session in self._sessions.values():
                session.give_up(frame.stream)
        elif frame.kind > OPEN:
            self._tunnels.take(frame)

    def facts(self) -> dict[str, Any]:
        """What the host needs to tell whose fault a loss is."""
        full = False
        for tree in self.settings.writable:
            status = os.statvfs(tree)
            full = full or status.f_bavail == 0 or status.f_favail == 0
        return {
            "oom": self.oom.value(),
            "refused_forks": self.refused_forks.value(),
            "pids": self.pids.value(),
            "disk_full": full,
        }

    def killed_for_memory(self, before: int) -> bool:
        """Whether anything was, since the counter stood at `before`; the host hears of it before the answer.

        Should the sandbox be lost next, this is the evidence: not every engine remembers it.
        """
        if self.oom.value() <= before:
            return False
        self.channel.send(control(PONG, 0, **self.facts()))
        return True

    def _serve(self, stream: int, request: dict[str, Any], body: bytes) -> None:
        try:
            getattr(self, "_op_" + str(request.get("op")), self._unknown)(stream, request, body)
        except Exception as error:  # the end of pid 1 would be the end of the sandbox, with nobody to blame
            self._reply(stream, error=_told(error))

    def _reply(self, stream: int, **fields: Any) -> None:
        self.channel.send(control(REPLY, stream, **fields))

    def _unknown(self, _stream: int, request: dict[str, Any], _body: bytes) -> None:
        raise ValueError(f"unknown operation {request.get('op')!r}")

    def _op_exec(self, stream: int, request: dict[str, Any], body: bytes) -> None:
        name = request.get("session")
        if name is None:
            Command(self, stream, request, body)
            return
        if name not in self._sessions:
            raise ValueError(f"unknown session {name!r}")
        limit = int(request.get("output_kib", 64)) * 1024
        source = body.decode("utf-8", "surrogateescape")
        call = Call(stream, source, request.get("cwd"), request.get("env") or {}, request["timeout_s"], limit)
        self._sessions[name].run(call)

    def _op_facts(self, stream: int, _request: dict[str, Any], _body: bytes) -> None:
        self._reply(stream, **self.facts())

    def _op_lease(self, stream: int, request: dict[str, Any], _body: bytes) -> None:
        self._lease_over_at = time.monotonic() + float(request["ttl_s"])
        self._reply(stream, **self.facts())

    def _op_read(self, stream: int, request: dict[str, Any], _body: bytes) -> None:
        limit = int(request["max_bytes"])
        fd, size = files.read(request["path"], limit, self.uid_of(request["user"]), self.settings.writable)
        if size <= CHUNK:
            # small, or of unknown size as in /proc: read at once, so that the limit can still be refused
            data = b"".join(files.parts_of(fd, limit + 1))
            if len(data) > limit:
                raise ValueError(f"{request['path']}: more than max_bytes={limit}")
            for frame in chunks(DATA, stream, data):
                self.channel.send(frame)
            self._reply(stream)
            return
        self.channel.stream(self._with_end(stream, files.parts_of(fd, size)))

    def _with_end(self, stream: int, parts: Iterator[bytes], uid: int | None = None, **fields: Any) -> Iterator[bytes]:
        """Data frames of `parts`, made with the rights of `uid`, and the reply that ends the stream with `fields`.

        Where nothing was ready in a while there is an empty frame, which lets the loop turn.
        """
        try:
            over = False
            while not over:
                with acting_as(uid):
                    data, over = _gathered(parts)
                yield encode(DATA, stream, data) if data else b""
            yield control(REPLY, stream, **fields)
        except Exception as error:  # as in `_serve`
            yield control(REPLY, stream, error=_told(error))

    def _op_write(self, stream: int, request: dict[str, Any], body: bytes) -> None:
        files.write(request["path"], body, int(request["mode"]), self.uid_of(request["user"]), self.settings.writable)
        self._reply(stream)

    def _op_kill(self, stream: int, _request: dict[str, Any], _body: bytes) -> None:
        self._reply(stream, clean=self._kill_all())

    def _kill_all(self) -> bool:
        for session in self._sessions.values():
            session.forget()
        return reset.kill_all(self.settings, self.owners.exempt, self.reap)

    def _op_collect(self, stream: int, request: dict[str, Any], _body: bytes) -> None:
        """Kills the agent's processes, then sends the tar of the artefacts; the reply says what was refused."""
        self._kill_all()
        refused: dict[str, str] = {}
        parts = artefacts.collected(self.settings.writable[0], request["artefacts"], refused)
        self.channel.stream(self._with_end(stream, parts, self.settings.agent, refused=refused))

    def _op_snapshot(self, stream: int, _request: dict[str, Any], _body: bytes) -> None:
        """Kills what runs, then sends the tar of all writable trees, each under its own path."""
        self._kill_all()

        def parts() -> Iterator[bytes]:
            for tree in self.settings.writable:
                root = os.open(tree, files._DIR)
                try:
                    for entry in trees.snapshot_entries(root, tree.strip("/")):
                        yield from trees.packed(entry, True)
                finally:
                    os.close(root)
            yield trees.END

        self.channel.stream(self._with_end(stream, parts(), self.settings.agent))

    def _op_unpack(self, stream: int, request: dict[str, Any], body: bytes) -> None:
        parts = trees.unpacked(request["to"], body, make=True, any_links=False, exact=False)
        self.channel.stream(self._with_end(stream, parts, self.uid_of(request["user"])))

    def _op_restore(self, stream: int, _request: dict[str, Any], body: bytes) -> None:
        """Brings a snapshot back into the writable trees, by `tar` where the image has one, for it is faster."""
        if trees.unpack_by_tar(self, body, lambda error: self._restored(stream, error)):
            return
        parts = trees.unpacked("/", body, make=False, any_links=True, exact=True)
        self.channel.stream(self._with_end(stream, parts, self.settings.agent))

    def _restored(self, stream: int, error: str) -> None:
        if error:
            self._reply(stream, error={"type": "OSError", "errno": errno.EIO, "text": error})
        else:
            self._reply(stream)

    def _op_tunnel(self, stream: int, request: dict[str, Any], _body: bytes) -> None:
        self._reply(stream, port=self._tunnels.open(int(request["tunnel"]), int(request["port"])))

    def _op_untunnel(self, stream: int, request: dict[str, Any], _body: bytes) -> None:
        self._reply(stream, ended=self._tunnels.close(int(request["tunnel"])))

    def _op_reset(self, stream: int, _request: dict[str, Any], _body: bytes) -> None:
        self._tunnels.close_all()
        dead = self._kill_all()
        left = reset.wipe(self.settings) if dead else ["processes that do not die"]
        left += self._tunnels.left()
        if os.environ.get("METIER_PRELOAD", "") != self._preload:
            left.append("a zygote without its modules")
        self._lease_over_at = self._life_over_at
        self._reply(stream, left=left, **self.facts())


def _gathered(parts: Iterator[bytes]) -> tuple[bytes, bool]:
    """What comes of `parts` in a moment, at most a frame full, and whether that was all."""
    until = time.monotonic() + GATHER_S
    data = bytearray()
    while len(data) < CHUNK and time.monotonic() < until:
        part = next(parts, None)
        if part is None:
            return bytes(data), True
        data += part
    return bytes(data), False


def _told(error: Exception) -> dict[str, Any]:
    """An error as it is answered."""
    name = next((kind.__name__ for kind in _ERRORS if isinstance(error, kind)), "")
    text = str(getattr(error, "strerror", None) or error)
    if not name:
        text = f"the steward failed at this: {type(error).__name__}: {text}"
    return {"type": name, "errno": getattr(error, "errno", None), "text": text[:ERROR_CHARACTERS]}


def main(argument: str) -> None:
    """Takes the channel away from descriptors 0 and 1, so that nothing can write into it by mistake, and serves."""
    if os.getpid() != 1:
        raise SystemExit("the steward kills everything it sees, so it runs as pid 1 of its own pid namespace only")
    settings = Settings(**json.loads(argument))
    if os.getuid() == 0:
        os.setgroups([])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    source, sink = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 16) for fd in (0, 1))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    Steward(settings, source, sink).run()


if __name__ == "__main__":
    main(sys.argv[1])
