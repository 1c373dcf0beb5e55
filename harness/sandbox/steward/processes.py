"""Starting processes, finding all that belong to one of them, and ending them.

A process belongs to an owner by the cookie in its environment, else by its session, else by its parent. One that hid
all three (cleared its environment, left its session, lost its parent) has no owner: those that began after a command
did die with it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from .rights import COOKIE, acting_as, exchanged_for

NOT_FOUND = 127
NOT_STARTED = 126
_TICKS = os.sysconf("SC_CLK_TCK")


class Process(NamedTuple):
    """What /proc says of one process."""

    pid: int
    parent: int
    session: int
    started: int
    zombie: bool


class NotStarted(Exception):
    """No process came of it: the status and the words that a shell would use."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Spawner:
    """Starts programs, each in a session of its own with exactly the descriptors it is given.

    The child runs no Python: it is a vfork where the interpreter has one (3.10 on), which takes a tenth of a fork's
    time. So the steward itself puts on the agent's ids before, keeping root as its saved id only, and exec drops that.
    """

    RESERVED = range(3, 10)
    """Descriptors that a child may be given by number; kept taken here, so that none of ours gets such a number."""

    def __init__(self, pids: int, nice: int) -> None:
        self._pids = pids
        self._nice = nice
        # relative, for an engine may itself run behind others, and nobody here may go ahead of that
        self._behind = min(19, os.getpriority(os.PRIO_PROCESS, 0) + nice)
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._null = fcntl.fcntl(null, fcntl.F_DUPFD_CLOEXEC, self.RESERVED.stop)
        os.close(null)
        for number in self.RESERVED:
            os.dup2(self._null, number, inheritable=False)
        self._oom = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)

    def start(
        self, argv: Sequence[str], *, uid: int | None, cwd: str, environ: Mapping[str, str], fds: Mapping[int, int]
    ) -> int:
        """The pid of the new process. `fds`: its descriptor → ours; 0, 1 and 2 among them. Raises NotStarted."""
        extra = {there: here for there, here in fds.items() if there > 2}
        try:
            for there, here in extra.items():
                os.dup2(here, there)
            with self._first_to_die(uid), exchanged_for(uid):
                started = subprocess.Popen(
                    list(argv),
                    stdin=fds[0],
                    stdout=fds[1],
                    stderr=fds[2],
                    cwd=cwd,
                    env=dict(environ),
                    close_fds=False,
                    start_new_session=True,
                )
                if uid and self._nice:
                    os.setpriority(os.PRIO_PROCESS, started.pid, self._behind)
        except (OSError, ValueError) as error:
            raise self._refusal(argv, cwd, error) from None
        finally:
            for there in extra:
                os.dup2(self._null, there, inheritable=False)
        # the steward reaps by itself; Popen must never wait for this pid
        started.returncode = 0
        return started.pid

    @contextlib.contextmanager
    def _first_to_die(self, uid: int | None) -> Iterator[None]:
        """What starts inside is the kernel's first choice when memory runs out, before anything of the steward's."""
        if uid:
            os.pwrite(self._oom, b"500", 0)
        try:
            yield
        finally:
            if uid:
                os.pwrite(self._oom, b"0", 0)

    def _refusal(self, argv: Sequence[str], cwd: str, error: Exception) -> NotStarted:
        filename = getattr(error, "filename", None)
        if filename is None and getattr(error, "errno", None) in (errno.EAGAIN, errno.ENOMEM):
            text = f"the process limit of this sandbox ({self._pids}) is reached, or its memory; end some first"
            return NotStarted(NOT_STARTED, text)
        missing = isinstance(error, FileNotFoundError) and filename != cwd
        return NotStarted(NOT_FOUND if missing else NOT_STARTED, f"cannot start {argv[0]}: {error}")


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

    def strike(self, cookie: str, since_ticks: int, number: int) -> set[int]:
        """Signals all that `belonging` finds, while nothing can fork; returns whom."""
        with frozen(self._agent):
            found = self.belonging(cookie, since_ticks)
            send(found, number)
        return found

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


@contextlib.contextmanager
def frozen(agent: int | None) -> Iterator[None]:
    """All of the agent's processes stand still inside, so that none forks while it is looked for.

    A bomb would win every race with a search, and leave the steward hardly any processor time to search at all.
    """
    signal_all(agent, signal.SIGSTOP)
    try:
        yield
    finally:
        signal_all(agent, signal.SIGCONT)


def signal_all(agent: int | None, number: int) -> None:
    """One atomic signal to everything the agent runs; as pid 1 the steward itself is never meant."""
    with exchanged_for(agent):
        try:
            os.kill(-1, number)
        except (ProcessLookupError, PermissionError):
            pass


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
        signal_all(agent, signal.SIGKILL)
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
