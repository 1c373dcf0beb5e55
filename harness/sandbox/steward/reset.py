"""The reset in place: kill, wipe, and proof that nothing is left. Forks nothing, so a fork bomb cannot stop it.

Wiping goes by directory descriptor and lifts every subfolder to the top before emptying it, so that neither depth nor
path length matters. It is done with the agent's rights, then with root's, since neither may remove the other's files.
"""

from __future__ import annotations

import ctypes
import os
import stat
import time

from . import processes
from .files import _DIR
from .rights import Settings, acting_as, home_of

KILL_WAIT_S = 3.0
QUEUES = "/dev/mqueue"
SHARED = "/dev/shm"
_IPC_RMID = 0
_IPC = {"shm": "shmctl", "msg": "msgctl", "sem": "semctl"}


def kill_all(settings: Settings, exempt: set[int], reap: object) -> bool:
    """Ends every process but the steward's own, and waits until they are gone; False if some stay."""
    deadline = time.monotonic() + KILL_WAIT_S
    pause = 0.0005
    while True:
        processes.kill_agent(settings.agent, exempt)
        reap()  # type: ignore[operator]
        if not [process for process in processes.listed() if process.pid not in exempt]:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(0.02, pause * 2)


def wipe(settings: Settings) -> list[str]:
    """Empties every writable place and System V IPC; returns what is left, which should be nothing."""
    places = [*settings.writable, SHARED, QUEUES]
    for uid in (settings.agent, 0, settings.agent):
        if not any(_names(place) for place in places):
            break
        with acting_as(uid):
            for place in places:
                _empty(place)
    for uid in {settings.agent, 0}:
        with acting_as(uid):
            _remove_ipc()
    left = [f"{place}/{name}" for place in places for name in _names(place)[:3]]
    left += [f"ipc {row}" for kind in _IPC for row in _ipc_ids(kind)]
    if not left:
        prepare(settings)
    return left


def prepare(settings: Settings) -> None:
    """The state in which a fresh sandbox is handed out."""
    with acting_as(settings.agent):
        for tree in settings.writable:
            status = os.stat(tree)
            if status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) not in (0o755, 0o1777):
                os.chmod(tree, 0o755)
        os.makedirs(home_of(settings), exist_ok=True)


def _names(place: str) -> list[str]:
    try:
        return os.listdir(place)
    except FileNotFoundError:
        return []
    except PermissionError:
        return ["(unreadable)"]


def _empty(place: str) -> None:
    """Removes what the acting user may remove below `place`."""
    try:
        if os.stat(place).st_uid == os.geteuid() and not os.access(place, os.W_OK | os.X_OK, effective_ids=True):
            os.chmod(place, 0o755)
        top = os.open(place, _DIR)
    except OSError:
        return
    try:
        serial = 0
        progress = True
        while progress:
            progress = False
            for name in os.listdir(top):
                serial += 1
                progress = _remove(top, name, f"{serial}.wiping") or progress
    finally:
        os.close(top)


def _remove(top: int, name: str, lifted: str) -> bool:
    """Removes one entry; a folder's own folders are lifted to the top. Whether anything changed."""
    try:
        status = os.stat(name, dir_fd=top, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=top)
            return True
        if stat.S_IMODE(status.st_mode) & 0o700 != 0o700 and status.st_uid == os.geteuid():
            os.chmod(name, 0o700, dir_fd=top)
        folder = os.open(name, _DIR, dir_fd=top)
    except OSError:
        return False
    changed = False
    try:
        for number, below in enumerate(os.listdir(folder)):
            try:
                inner = os.stat(below, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISDIR(inner.st_mode):
                    os.unlink(below, dir_fd=folder)
                else:
                    if inner.st_uid == os.geteuid():
                        os.chmod(below, 0o700, dir_fd=folder)
                    os.rename(below, f"{lifted}.{number}", src_dir_fd=folder, dst_dir_fd=top)
                changed = True
            except OSError:
                continue
        os.rmdir(name, dir_fd=top)
        return True
    except OSError:
        return changed
    finally:
        os.close(folder)


def _ipc_ids(kind: str) -> list[int]:
    try:
        with open("/proc/sysvipc/" + kind) as file:
            return [int(line.split()[1]) for line in file.readlines()[1:]]
    except OSError:
        return []


def _remove_ipc() -> None:
    libc: ctypes.CDLL | None = None
    for kind, call in _IPC.items():
        for number in _ipc_ids(kind):
            libc = libc or ctypes.CDLL(None)
            if kind == "sem":
                libc.semctl(number, 0, _IPC_RMID, 0)
            else:
                getattr(libc, call)(number, _IPC_RMID, 0)
