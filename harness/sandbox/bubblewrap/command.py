"""What is asked of bubblewrap for one sandbox: its command line, and what the launcher does around it.

Two shapes. *Root's*: the sandbox has a user namespace with 65,536 uids of its own; its root is the range's first, keeps
three capabilities, and owns nothing outside; the agent is the range's uid 1000. *A user's*: one uid for both.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from metier.envs.core import SandboxSpec

from ..protocol import AGENT_UID, STEWARD_HOME, STEWARD_PATH, steward_argv
from .cgroups import Group

CHANNEL_FD, INFO_FD, MAP_FD, FILTER_FD = 0, 3, 4, 5
"""The descriptors that the launcher gives to bubblewrap; the channel is standard input and output."""
STAGE = "{stage}"
"""In an argument: the folder in which the launcher lays out sources that the range's uids could not reach."""
_INODES_PER_MB = 256
_FIRST_UID = 0x8000_0000
_RANGE = 0x1_0000
_NOFILE = 1024
_CLEAN = f'exec setpriv --ambient-caps=-all --inh-caps=-all -- "$@" {MAP_FD}<&-'
"""bubblewrap leaves to what it starts the descriptor it waited on, and its capabilities as ambient ones, which the
agent's programs would inherit from the steward."""
_STEWARD_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_KILL")


class Places(NamedTuple):
    """Folders of the host that a sandbox sees, read-only."""

    rootfs: Path
    steward: Path


def request(
    name: str, spec: SandboxSpec, places: Places, environment: Mapping[str, str], groups: list[Group], *, as_root: bool
) -> dict[str, Any]:
    """The launcher's request that starts sandbox `name`."""
    base = _FIRST_UID + secrets.randbelow(0x7000) * _RANGE if as_root else None
    shape = _as_root(name, spec, places) if as_root else _as_user(spec, places)
    argv = ["bwrap", *_namespaces(as_root), *shape, *_system(spec, groups)]
    argv += [word for key, value in environment.items() for word in ("--setenv", key, value)]
    argv += ["--chdir", "/", "--", "/bin/sh", "-c", _CLEAN, "sh"]
    argv += steward_argv(spec, agent=AGENT_UID if as_root else None)
    return {
        "op": "start",
        "id": name,
        "argv": argv,
        "uid_base": base,
        "uid_count": _RANGE,
        "stage": {f"{places.rootfs.name}": str(places.rootfs), "steward": str(places.steward)} if as_root else {},
        "tmpfs": _staged_tmpfs(name, spec, base) if base is not None else {},
        "groups": [[str(group.path), group.settings] for group in groups],
        "nofile": _NOFILE,
        "nproc": None if groups else spec.pids,
    }


def _namespaces(as_root: bool) -> list[str]:
    argv = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--unshare-uts",
        "--hostname",
        "sandbox",
    ]
    argv += ["--as-pid-1", "--die-with-parent", "--new-session", "--info-fd", str(INFO_FD)]
    if not as_root:
        return [*argv, "--uid", str(AGENT_UID), "--gid", str(AGENT_UID), "--disable-userns", "--cap-drop", "ALL"]
    argv += ["--userns-block-fd", str(MAP_FD), "--uid", "0", "--gid", "0", "--cap-drop", "ALL"]
    return [*argv, *(word for each in _STEWARD_CAPABILITIES for word in ("--cap-add", each))]


def _as_root(name: str, spec: SandboxSpec, places: Places) -> list[str]:
    argv = ["--ro-bind", f"{STAGE}/{places.rootfs.name}", "/", *_run(f"{STAGE}/steward")]
    for number, tree in enumerate(spec.writable_mb):
        argv += ["--bind", f"{STAGE}/{name}.{number}", tree]
    return argv


def _as_user(spec: SandboxSpec, places: Places) -> list[str]:
    argv = ["--ro-bind", str(places.rootfs), "/", *_run(str(places.steward))]
    for tree, size_mb in spec.writable_mb.items():
        argv += ["--size", str(size_mb << 20), "--perms", "1777" if tree == "/tmp" else "0755", "--tmpfs", tree]
    return argv


def _run(steward: str) -> list[str]:
    """/run: the steward's code, and its home that the agent cannot read."""
    argv = ["--size", str(1 << 20), "--perms", "0755", "--tmpfs", "/run", "--ro-bind", steward, STEWARD_PATH]
    argv += ["--size", str(16 << 20), "--perms", "0700", "--tmpfs", STEWARD_HOME]
    return [*argv, "--remount-ro", "/run"]


def _system(spec: SandboxSpec, groups: list[Group]) -> list[str]:
    """/proc, a /dev that is read-only but for a sized /dev/shm, and a /sys that shows only the own control groups."""
    shared = str(min(64, max(1, spec.memory_mb // 8)) << 20)
    argv = ["--proc", "/proc", "--dev", "/dev", "--size", shared, "--perms", "1777", "--tmpfs", "/dev/shm"]
    argv += ["--mqueue", "/dev/mqueue", "--remount-ro", "/dev", "--size", str(1 << 20), "--perms", "0755"]
    argv += ["--tmpfs", "/sys", "--perms", "0755", "--dir", "/sys/fs", "--perms", "0755", "--dir", "/sys/fs/cgroup"]
    argv += [word for group in groups for word in ("--ro-bind", str(group.path), group.inside)]
    return [*argv, "--remount-ro", "/sys"]


def _staged_tmpfs(name: str, spec: SandboxSpec, base: int) -> dict[str, str]:
    """Mount options of the writable trees: the agent's own, which only a mount from outside the namespace can say."""
    options = {}
    for number, (tree, size_mb) in enumerate(spec.writable_mb.items()):
        owner = base if tree == "/tmp" else base + AGENT_UID
        mode = "1777" if tree == "/tmp" else "0755"
        options[f"{name}.{number}"] = (
            f"size={size_mb}m,nr_inodes={size_mb * _INODES_PER_MB},mode={mode},uid={owner},gid={owner}"
        )
    return options
