"""Admission: how many sandboxes this host carries, all clients that share a cache folder together.

A sandbox counts for a quarter of its limits (`OVERCOMMIT`; docs/decisions/0007 has the measurements), and at least for
what an idle one takes. A claim is an empty file that says everything in its name, so that it is there whole or not at
all: whoever wants one more writes its claim first and counts then, so that two clients can never both take the last
place. Claims of clients that are dead, and those past the end of any sandbox's life, are removed by whoever counts;
those of other machines that share the folder, and of an earlier boot, do not count.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

from metier.envs.core import ConfigError, SandboxSpec
from metier.images import making_room

from .owner import Owner, up_s
from .protocol import life_of

OVERCOMMIT = 4
"""Limits of all sandboxes together, by what the host has."""
IDLE_MB = 9
"""What a sandbox takes in which nothing runs: the steward and the engine's part of it."""
_GRACE_S = 60.0
_FORGOTTEN_S = 7 * 86_400.0
"""A claim of another boot is so old that nobody can still hold it."""


class Claim(NamedTuple):
    """One sandbox's share of the host, and until when it can last at the most."""

    owner: Owner
    sandbox: str
    memory_mb: int
    pids: int
    until: int
    """Seconds since boot."""

    def label(self) -> str:
        """As a file's name."""
        return f"{self.owner.label()}.{self.sandbox}.{self.memory_mb}.{self.pids}.{self.until}"

    @classmethod
    def parse(cls, label: str) -> Self | None:
        """The claim in a file's name; None if it is none."""
        parts = label.split(".")
        holder = Owner.parse(parts[0])
        if holder is None or len(parts) != 5 or not all(part.isdigit() for part in parts[2:]):
            return None
        return cls(holder, parts[1], *map(int, parts[2:]))


class HostBudget:
    """The host's memory and processes, lent to sandboxes in shares."""

    def __init__(self, folder: Path, *, memory_mb: int | None = None, pids: int | None = None) -> None:
        """`memory_mb` and `pids` are the host's own unless told otherwise; `folder` is where all clients look."""
        self._folder = folder
        self._memory_mb = memory_mb if memory_mb is not None else _host_memory_mb()
        self._pids = pids if pids is not None else _host_pids()
        self._owner = Owner.current()

    def check(self, spec: SandboxSpec) -> None:
        """Refuses what not even the empty host could carry. Raises ConfigError."""
        memory_mb, pids = shares(spec)
        if memory_mb > self._memory_mb or pids > self._pids:
            raise ConfigError(
                f"image {spec.image}: a sandbox of {spec.memory_mb} MiB and {spec.pids} processes is more than "
                f"{OVERCOMMIT} times what this host has ({self._memory_mb} MiB, {self._pids} processes); ask for less"
            )

    def take(self, sandbox: str, spec: SandboxSpec, *, whatever: bool = False) -> bool:
        """Claims a share for `sandbox`, if there is one left, or `whatever` is there.

        Raises:
            SandboxUnavailable: claims cannot be written.
        """
        memory_mb, pids = shares(spec)
        claim = Claim(self._owner, sandbox, memory_mb, pids, int(up_s() + life_of(spec) + _GRACE_S))
        with making_room(self._folder, "a sandbox's claim on this host"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self._folder / claim.label()).touch(mode=0o600)
        if whatever:
            return True
        held = list(self.claims())
        fits = sum(each.memory_mb for each in held) <= self._memory_mb and sum(each.pids for each in held) <= self._pids
        if not fits:
            (self._folder / claim.label()).unlink(missing_ok=True)
        return fits

    def give(self, sandbox: str) -> None:
        """Gives the share of `sandbox` back; it need not have one. Never fails: the dead hold nothing."""
        with contextlib.suppress(OSError):
            for path in self._folder.glob(f"{self._owner.label()}.{sandbox}.*"):
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Removes the claims of the dead."""
        for _ in self.claims():
            pass

    def claims(self) -> Iterator[Claim]:
        """What is claimed of this host now; removes what is claimed no more."""
        known: dict[Owner, tuple[bool, bool]] = {}
        now = up_s()
        for label in os.listdir(self._folder) if self._folder.is_dir() else ():
            claim = Claim.parse(label)
            if claim is None:
                continue
            if claim.owner not in known:
                known[claim.owner] = claim.owner.dead(), claim.owner.of_this_boot()
            dead, here = known[claim.owner]
            if dead or (claim.until < now if here else self._age_s(label) > _FORGOTTEN_S):
                (self._folder / label).unlink(missing_ok=True)
            elif here:
                yield claim

    def _age_s(self, label: str) -> float:
        with contextlib.suppress(FileNotFoundError):
            return time.time() - (self._folder / label).stat().st_mtime
        return 0.0

    def words(self) -> str:
        """How much of the host is taken, for a message."""
        held = list(self.claims())
        return (
            f"{len(held)} sandboxes hold {sum(each.memory_mb for each in held)} of {self._memory_mb} MiB and "
            f"{sum(each.pids for each in held)} of {self._pids} processes, each counted as a quarter of its limits"
        )


def shares(spec: SandboxSpec) -> tuple[int, int]:
    """The MiB and the processes that a sandbox counts for.

    Example:
        >>> shares(SandboxSpec(image="terminal-python", memory_mb=512, pids=256))
        (128, 64)
    """
    return max(IDLE_MB, spec.memory_mb // OVERCOMMIT), max(1, spec.pids // OVERCOMMIT)


def _host_memory_mb() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20


def _host_pids() -> int:
    kernel = Path("/proc/sys/kernel")
    return min(int((kernel / name).read_text()) for name in ("pid_max", "threads-max"))
