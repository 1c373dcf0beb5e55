"""Control groups of the sandboxes: memory, processes and processor time of each, on cgroup v1 and v2.

They are described here, and made, joined and removed by the launcher. All of one client lie in a folder that names it,
so that whoever comes later can tell leftovers of the dead.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from metier.envs.core import SandboxSpec

from ..owner import Owner

ROOT = Path("/sys/fs/cgroup")
_PARENT = "metier"
_PERIOD_US = 100_000
_OUTSIDE_PIDS = 1
"""bubblewrap's own monitor counts among the processes, but is not the agent's."""


class Group(NamedTuple):
    """One control group to be made."""

    path: Path
    settings: dict[str, str]
    """File → value, in the order of writing."""
    inside: str
    """Where it is shown inside the sandbox, read-only."""


def version() -> int | None:
    """1 or 2 where this process can make control groups with memory and pids limits, else None."""
    if os.geteuid() != 0:
        return None
    if all(os.access(ROOT / name, os.W_OK) and (ROOT / name / "tasks").exists() for name in ("memory", "pids")):
        return 1
    return 2 if _prepare_v2() else None


def _prepare_v2() -> bool:
    try:
        if not {"memory", "pids", "cpu"} <= set((ROOT / "cgroup.controllers").read_text().split()):
            return False
        (ROOT / _PARENT).mkdir(exist_ok=True)
        for folder in (ROOT, ROOT / _PARENT):
            (folder / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    except OSError:
        return False
    return True


def groups(name: str, spec: SandboxSpec, hierarchy: int, owner: Owner) -> list[Group]:
    """The control groups of sandbox `name`."""
    memory, pids = str(spec.memory_mb << 20), str(spec.pids + _OUTSIDE_PIDS)
    quota = str(int(spec.cpus * _PERIOD_US))
    below = Path(_PARENT, owner.label(), name)
    if hierarchy == 2:
        limits = {"memory.max": memory, "memory.swap.max": "0", "pids.max": pids, "cpu.max": f"{quota} {_PERIOD_US}"}
        return [Group(ROOT / below, limits, str(ROOT))]
    return [
        Group(
            ROOT / "memory" / below,
            {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
            str(ROOT / "memory"),
        ),
        Group(ROOT / "pids" / below, {"pids.max": pids}, str(ROOT / "pids")),
        Group(ROOT / "cpu" / below, {"cpu.cfs_quota_us": quota}, str(ROOT / "cpu")),
    ]


def oom_counter(hierarchy: int, made: list[Group]) -> Path:
    """The file whose line `oom_kill N` counts processes killed for memory."""
    return made[0].path / ("memory.events" if hierarchy == 2 else "memory.oom_control")


def killed_for_memory(text: str) -> int:
    """The count in such a file."""
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), 0)


def reap() -> list[Path]:
    """Remove control groups whose client is dead; returns them. One that cannot be judged from here keeps its own."""
    removed: list[Path] = []
    for folder in _clients():
        owner = Owner.parse(folder.name)
        if owner is not None and owner.dead():
            remove(folder)
            removed.append(folder)
    return removed


def forget(owner: Owner) -> None:
    """Remove the folder of a client that has no sandboxes any more."""
    for folder in _clients():
        if folder.name == owner.label():
            remove(folder)


def _clients() -> Iterator[Path]:
    for parent in (ROOT / _PARENT, *(ROOT / name / _PARENT for name in ("memory", "pids", "cpu"))):
        if parent.is_dir():
            yield from (folder for folder in parent.iterdir() if folder.is_dir())


def remove(folder: Path) -> None:
    """Remove a control group and those in it, as far as no process is in them."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)
