"""Who acts: the steward's own uid, or the agent's rights taken on for one operation or for ever."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
COOKIE = "METIER_EXEC"


class Settings(NamedTuple):
    """What the host tells the steward at its start; the JSON object in argv, field by field."""

    writable: list[str]
    """The trees a reset wipes and a snapshot takes; the first is the working directory."""
    agent: int | None
    """uid and gid of the agent; None where it has the steward's own."""
    heartbeat_s: float
    """Without a frame from the host for so long, the steward ends."""
    life_s: float
    """The steward ends so long after its start, whatever happens."""
    cpus: int = 1
    pids: int = 0
    nice: int = 0
    """How far the agent's programs stand behind the steward, where both share a processor group of their own."""
    preload: bool = True
    """Whether the image's modules are imported before the hello; a sandbox without Python sessions needs none."""


@contextlib.contextmanager
def acting_as(uid: int | None) -> Iterator[None]:
    """File operations inside have the rights of `uid`; None or 0 changes nothing. Never spans a return to the loop."""
    if not uid or os.geteuid() == uid:
        yield
        return
    os.setegid(uid)
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@contextlib.contextmanager
def exchanged_for(uid: int | None) -> Iterator[None]:
    """Real and effective ids are those of `uid`, root stays the saved id: for `kill`, and for what is started inside.

    A signal sent inside reaches what `uid` may signal and nothing of the steward's. A program started inside has no way
    back, since exec takes the effective id for the saved one. As pid 1 without handlers the steward itself takes no
    harm from what the agent may send it meanwhile.
    """
    if not uid or os.getuid() == uid:
        yield
        return
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


def pipe(uid: int | None) -> tuple[int, int]:
    """A pipe that belongs to `uid`, so that its programs can open /dev/stdout; neither end is inherited."""
    with acting_as(uid):
        return os.pipe()


def home_of(settings: Settings) -> str:
    """The agent's home: apart from the working directory, so that caches and history are not among its artefacts."""
    for tree in settings.writable:
        if tree == "/tmp":
            return "/tmp/home"
    return settings.writable[0]


def own_home() -> str:
    """A folder that only the steward's own uid can write: what root's programs read there is none of the agent's."""
    return "/run/metier-home" if os.path.isdir("/run/metier-home") else "/nonexistent"


def environment(settings: Settings, extra: Mapping[str, str], cookie: str, root: bool = False) -> dict[str, str]:
    """What a program sees: the image's own variables, ours over them, the caller's over both."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("METIER_")}
    inherited.pop("HOSTNAME", None)
    threads = str(max(1, settings.cpus))
    ours = dict.fromkeys(THREAD_VARIABLES, threads)
    name, home = ("root", own_home()) if root else ("agent", home_of(settings))
    ours.update({"HOME": home, "USER": name, "LOGNAME": name, "TERM": "dumb", "TMPDIR": "/tmp"})
    inherited.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    inherited.setdefault("LANG", "C.UTF-8")
    return {**inherited, **ours, **extra, COOKIE: cookie}
