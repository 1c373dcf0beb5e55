"""The zygote: a Python that imported an image's heavy modules once, and forks a session from there in milliseconds.

Run as a script by the steward, as root with the steward's few capabilities; a fork becomes the agent before it runs
anything of the agent's. Nothing but imports happens in the zygote itself. Modules that do not import are left to the
session, whose own import then shows the error.
"""

from __future__ import annotations

import array
import ast
import ctypes
import importlib
import json
import linecache
import os
import signal
import socket
import struct
import sys
import traceback
import types
from typing import Any, BinaryIO

REQUEST_FD = 3
INTERRUPTED = 130
PR_SET_DUMPABLE = 4
MESSAGE_BYTES = 1 << 17


def serve(agent: int | None) -> None:
    """Forks one session for each message that the steward sends, until it hangs up."""
    link = socket.socket(fileno=REQUEST_FD)
    link.send(b"ready")
    libc = ctypes.CDLL(None, use_errno=True)
    while True:
        room = socket.CMSG_SPACE(4 * array.array("i").itemsize)
        message, ancillary, _, _ = link.recvmsg(MESSAGE_BYTES, room)
        if not message:
            return
        fds = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
        try:
            _fork(link, libc, agent, json.loads(message), list(fds))
        except OSError as error:
            os.write(fds[2], (f"metier: no process for a session: {error.strerror}\n").encode())
        for fd in fds:
            os.close(fd)


def _fork(link: socket.socket, libc: Any, agent: int | None, fields: dict[str, Any], fds: list[int]) -> None:
    """Forks twice, so that the session is a child of pid 1, which reaps it."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    try:
        if os.fork():
            os._exit(0)
        link.close()
        _session(libc, agent, fields, fds)
    except OSError as error:
        os.write(fds[2], (f"metier: no process for a session: {error.strerror}\n").encode())
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _session(libc: Any, agent: int | None, fields: dict[str, Any], fds: list[int]) -> None:
    """Becomes the agent's interpreter, and runs cells until the command pipe ends."""
    os.setsid()
    commands, out, err, control = fds
    null = os.open(os.devnull, os.O_RDONLY)
    for there, here in ((0, null), (1, out), (2, err)):
        os.dup2(here, there)
        os.close(here)
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass  # it only makes the session the first choice when memory runs out
    if agent and os.getuid() != agent:
        os.setgroups([])
        os.setresgid(agent, agent, agent)
        os.setresuid(agent, agent, agent)
        # a change of uid hides /proc/self from the session itself, /dev/stdout included
        libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(fields["env"])
    os.chdir(fields["cwd"])
    os.nice(fields["nice"])
    sys.argv = [""]
    sys.path.insert(0, "")
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    os.write(control, b"ready %d\0" % os.getpid())
    Cells(main, libc, control).run(os.fdopen(commands, "rb"))
    os._exit(0)


class Cells:
    """Runs sources one after the other in one namespace, as an interactive interpreter would."""

    def __init__(self, main: types.ModuleType, libc: Any, control: int) -> None:
        self._main = main
        self._libc = libc
        self._control = control
        self._pid = os.getpid()
        self._count = 0

    def run(self, commands: BinaryIO) -> None:
        """Reads and runs until the pipe ends."""
        while True:
            try:
                head = commands.read(4)
                if len(head) < 4:
                    return
                fields = json.loads(commands.read(struct.unpack("!I", head)[0]))
            except KeyboardInterrupt:
                continue
            status = self._guarded(fields)
            if os.getpid() != self._pid:
                os._exit(0)  # a fork made by the cell: only the session itself answers
            os.write(self._control, f"{fields['token']} {status}\0".encode())

    def _guarded(self, fields: dict[str, Any]) -> int:
        try:
            if fields["cwd"]:
                os.chdir(fields["cwd"])
            os.environ.update(fields["env"])
            status = self._cell(fields["source"])
            self._flush()
        except KeyboardInterrupt:
            status = INTERRUPTED
        except BaseException:
            _complain()
            status = 1
        return status

    def _flush(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "flush"):
                stream.flush()
        # C and C++ libraries (pybullet, blender) print through stdio, which holds it back when it is a pipe
        self._libc.fflush(None)

    def _cell(self, source: str) -> int:
        self._count += 1
        name = f"<cell {self._count}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        try:
            tree = ast.parse(source, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, name, "exec"), self._main.__dict__)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), name, "eval"), self._main.__dict__)
                if value is not None:
                    print(repr(value))
        except SystemExit as error:
            return _exit_status(error)
        except KeyboardInterrupt:
            _complain()
            return INTERRUPTED
        except BaseException:
            _complain()
            return 1
        return 0


def _complain() -> None:
    """The traceback, without the frames that are ours."""
    kind, error, trace = sys.exc_info()
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        traceback.print_exception(kind, error, trace)
    except BaseException:
        os.write(2, b"metier: the traceback could not be printed\n")


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def preload(names: str) -> None:
    """Imports what the image asks for; a module that fails is left to the session."""
    for name in filter(None, (part.strip() for part in names.split(","))):
        try:
            importlib.import_module(name)
        except BaseException as error:
            sys.stderr.write(f"metier: preload of {name} failed: {error!r}\n")


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script, which is none of the session's business
    sys.dont_write_bytecode = True
    preload(sys.argv[2])
    serve(int(sys.argv[1]) or None)
