"""Whose a container is: enough in a label to tell, from any process of this machine, whether its owner still lives."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple, Self

OWNER = "metier.owner"
RUN = "metier.run"
LEASE = "metier.lease"
DEADLINE = "metier.deadline"
"""Seconds since 1970."""
DEADLINE_UP = "metier.deadline.up"
"""The same in seconds since boot, a clock that nobody sets."""
VERSION = "metier.version"


class Owner(NamedTuple):
    """A process, named so that no later process of the same number is taken for it."""

    pid: int
    started: int
    """Clock ticks after boot."""
    boot: str
    pid_namespace: str

    @classmethod
    def current(cls) -> Self:
        """This process."""
        return cls(os.getpid(), _started(os.getpid()) or 0, _boot(), _namespace())

    @classmethod
    def parse(cls, label: str) -> Self | None:
        """The owner in a label; None if it is no owner of ours."""
        parts = label.split(":")
        if len(parts) != 4 or not (parts[0].isdigit() and parts[1].isdigit()):
            return None
        return cls(int(parts[0]), int(parts[1]), parts[2], parts[3])

    def label(self) -> str:
        """The owner as a label."""
        return f"{self.pid}:{self.started}:{self.boot}:{self.pid_namespace}"

    def of_this_boot(self) -> bool:
        """Whether it has the same clock since boot as this process, in whatever container."""
        return self.boot == _boot()

    def dead(self) -> bool:
        """Whether it is known to be dead; an owner that cannot be seen from here is not."""
        if not self.of_this_boot() or self.pid_namespace != _namespace():
            return False
        return _started(self.pid) != self.started


def up_s() -> float:
    """Seconds since boot, sleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _started(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid").strip("pid:[]")
