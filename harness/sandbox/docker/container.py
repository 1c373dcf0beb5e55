"""What the engine is asked to create: one hardened container for one spec."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from metier.envs.core import SandboxSpec

from .. import owner
from ..protocol import AGENT_UID, STEWARD_HOME, STEWARD_PATH, VERSION, life_of, steward_argv

MIB = 1 << 20
NOFILE = 1024
AGENT_NICE = 10
INODES_PER_MIB = 256
STEWARD_CAPABILITIES = ["SETUID", "SETGID", "KILL"]


def creation(name: str, image: str, spec: SandboxSpec, steward: Path, run: str, holder: owner.Owner) -> dict[str, Any]:
    """The body of a create request. The steward is pid 1 over attached stdin, so the container dies with its host."""
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": steward_argv(spec, nice=AGENT_NICE),
        "User": "0:0",
        "WorkingDir": "/",
        "Hostname": "sandbox",
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": False,
        "Labels": {
            owner.OWNER: holder.label(),
            owner.RUN: run,
            owner.LEASE: name,
            owner.DEADLINE: str(int(time.time() + life_of(spec))),
            owner.DEADLINE_UP: str(int(owner.up_s() + life_of(spec))),
            owner.VERSION: str(VERSION),
        },
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "Tmpfs": _tmpfs(spec),
            "Binds": [f"{steward}:{STEWARD_PATH}:ro"],
            "Memory": spec.memory_mb * MIB,
            "MemorySwap": spec.memory_mb * MIB,
            "NanoCpus": int(spec.cpus * 1e9),
            "PidsLimit": spec.pids,
            "ShmSize": min(64, max(1, spec.memory_mb // 8)) * MIB,
            "IpcMode": "private",
            "Ulimits": [
                {"Name": "nofile", "Soft": NOFILE, "Hard": NOFILE},
                {"Name": "core", "Soft": 0, "Hard": 0},
            ],
            "CapDrop": ["ALL"],
            "CapAdd": STEWARD_CAPABILITIES,
            "SecurityOpt": ["no-new-privileges"],
            "LogConfig": {"Type": "none", "Config": {}},
        },
    }


def _tmpfs(spec: SandboxSpec) -> dict[str, str]:
    """The writable trees, the agent's own; /tmp is everybody's, as anywhere, and executable since builds need it."""
    mounts = {}
    for tree, size_mb in spec.writable_mb.items():
        whose = "mode=1777" if tree == "/tmp" else f"uid={AGENT_UID},gid={AGENT_UID},mode=0755"
        mounts[tree] = f"rw,exec,nosuid,nodev,size={size_mb}m,nr_inodes={size_mb * INODES_PER_MIB},{whose}"
    mounts[STEWARD_HOME] = "rw,noexec,nosuid,nodev,size=16m,mode=0700"
    return mounts
