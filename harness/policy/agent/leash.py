"""Runs an agent's command so that nothing of it outlives its owner: `leash.py FD FOLDER COMMAND…`, without metier.

When the command ends, or the pipe at FD does (closed by its owner, or by the owner's death, however sudden), everything
that the command started is killed, also what went into a session of its own, and FOLDER is removed. The exit code is
the command's.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

_PR_SET_CHILD_SUBREAPER = 36
NOT_STARTED = 127


def main(owner: int, command: list[str]) -> int:
    """Gives the exit code; negative for a signal."""
    # orphans become ours, so that none is missed
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        child = subprocess.Popen(command)
    except (OSError, ValueError) as error:
        print(f"{command[0]} cannot be started: {error}; is it installed here?", file=sys.stderr)
        return NOT_STARTED
    ended = os.pidfd_open(child.pid)
    select.select([owner, ended], [], [])
    code = child.poll()
    _kill_all()
    return -signal.SIGKILL if code is None else code


def _kill_all() -> None:
    while True:
        children = _children()
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = file.read().rpartition(b")")[2].split()[1]
                if int(parent) == os.getpid():
                    found.append(int(name))
    return found


if __name__ == "__main__":
    try:
        code = main(int(sys.argv[1]), sys.argv[3:])
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
    if code < 0:
        with contextlib.suppress(OSError):  # some signals have one effect only
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
