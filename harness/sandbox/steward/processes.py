"""Starting processes, finding all that belong to one of them, and ending them.

A process belongs to an owner by the cookie in its environment, else by its session, else by its parent. One that hid
all three (cleared its environment, left its session, lost its parent) has no owner: those that began after a command
did die with it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .rights import COOKIE, acting_as, become, signalling_as

NOT_FOUND = 127
NOT_STARTED = 126
_OUT_OF_PROCESSES = (errno.EAGAIN, errno.ENOMEM)
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """What /proc says of one process."""

    pid: int
    parent: int
    session: int
    started: int
    zombie: bool


def spawn(argv: Sequence[str], *, uid: int | None, cwd: str, environ: Mapping[str, str], fds: Mapping[int, int]) -> int:
    """Forks, and starts `argv` in a session of its own with exactly the descriptors `fds` (there → here).

    A start that fails is told like a shell does, on the new process's own standard error. Raises OSError (EAGAIN,
    ENOMEM) when no process can be had.
    """
    pid = os.fork()
    if pid:
        return pid
    status = NOT_STARTED
    try:
        os.setsid()
        place(fds)
        settle()
        become(uid)
        os.chdir(cwd)
        os.execvpe(argv[0], list(argv), dict(environ))
    except FileNotFoundError as error:
        status = NOT_FOUND if error.filename != cwd else NOT_STARTED
        os.write(2, (f"metier: cannot start {argv[0]}: {error}\n").encode())
    except BaseException as error:
        os.write(2, (f"metier: cannot start {argv[0]}: {error}\n").encode())
    os._exit(status)


def refusal(error: OSError, limit: int) -> str:
    """Why no process could be had, for the agent to read."""
    if error.errno in _OUT_OF_PROCESSES:
        return f"the process limit of this sandbox ({limit}) is reached, or its memory; end some first"
    return f"no process could be started: {error.strerror}"


def place(fds: Mapping[int, int]) -> None:
    """Puts each descriptor where the child expects it; all others close at exec."""
    high = {there: fcntl.fcntl(here, fcntl.F_DUPFD_CLOEXEC, 64) for there, here in fds.items()}
    for there, here in high.items():
        os.dup2(here, there)


def settle() -> None:
    """What every child of the steward needs: default signals, no core files, first in line when memory runs out."""
    for number in (signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass  # a kernel that forbids even raising it: the largest process is chosen then, which is not the steward


def now_ticks() -> int:
    """This moment in the unit of `Process.started`."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def listed() -> list[Process]:
    """Every process in sight but this one."""
    found = []
    own = os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == own:
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        found.append(Process(int(name), int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in (b"Z", b"X")))
    return found


def _cookie(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read(1 << 20).split(b"\0")
    except OSError:
        return None
    prefix = COOKIE.encode() + b"="
    for pair in pairs:
        if pair.startswith(prefix):
            return pair[len(prefix) :].decode("ascii", "replace")
    return None


class Owners:
    """Which cookie owns which session id, for all that runs now."""

    def __init__(self, agent: int | None) -> None:
        self._agent = agent
        self._sessions: dict[int, str] = {}
        self.exempt: set[int] = set()
        """Processes of the steward's own (the zygote)."""

    def add(self, pid: int, cookie: str) -> None:
        """`pid` leads a session that belongs to `cookie`."""
        self._sessions[pid] = cookie

    def discard(self, pid: int) -> None:
        """That owner is gone."""
        self._sessions.pop(pid, None)

    def belonging(self, cookie: str, since_ticks: int) -> set[int]:
        """Live processes of `cookie`, and those without any owner that began since."""
        processes = {process.pid: process for process in listed() if process.pid not in self.exempt}
        owner: dict[int, str | None] = {}
        with acting_as(self._agent):
            for pid in processes:
                owner[pid] = _cookie(pid)
        for pid, process in processes.items():
            owner[pid] = owner[pid] or self._sessions.get(process.session) or _cookie(pid)
        for pid in processes:
            step: Process | None = processes[pid]
            while step is not None and owner[step.pid] is None:
                step = processes.get(step.parent)
            if step is not None:
                owner[pid] = owner[step.pid]
        return {
            pid
            for pid, process in processes.items()
            if not process.zombie and (owner[pid] == cookie or (owner[pid] is None and process.started >= since_ticks))
        }


def send(pids: set[int], number: int) -> None:
    """Signals each; one that is already gone is fine."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def kill_agent(agent: int | None, exempt: set[int]) -> None:
    """One atomic kill of everything the agent runs, without a fork; then what else runs here."""
    if agent:
        with signalling_as(agent):
            try:
                os.kill(-1, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
    send({process.pid for process in listed() if process.pid not in exempt and not process.zombie}, signal.SIGKILL)


def reap() -> dict[int, int]:
    """Wait statuses of all children that ended, adopted orphans included."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
