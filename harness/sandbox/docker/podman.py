"""What Podman wants said differently. Everything but the create request goes over its Docker API as to Docker itself.

Podman's Docker endpoint for creating cannot make a sandbox: it takes no owner and no inode limit for a tmpfs ("unknown
mount option"), and under a read-only root it mounts writable trees of its own on /run and /var/tmp. Podman's native
endpoint can, so the same request is translated for it here. And its system call filter lets everybody make namespaces
and mount in them, for containers in containers; sandboxes get the same filter without what bubblewrap's refuses.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metier.envs.core import SandboxUnavailable

from ..bubblewrap.filter import NAMESPACE_FLAGS, REFUSED
from .engine import Engine

CREATE = "/libpod/containers/create"
_VERSION_HEADER = "libpod-api-version"
"""What Podman, and nobody else, answers a ping with."""
_CPU_PERIOD_US = 100_000


async def podman_of(engine: Engine, folder: Path) -> Podman | None:
    """What to know of the engine if it is Podman; `folder` keeps the system call filter made from Podman's own.

    Raises:
        SandboxUnavailable: no engine answers, or Podman's filter is not to be had.
    """
    if _VERSION_HEADER not in (await engine.request("GET", "/_ping")).headers:
        return None
    security = (await engine.checked("GET", "/libpod/info"))["host"]["security"]
    path = security.get("seccompProfilePath")
    try:
        profile = json.loads(Path(path or "/usr/share/containers/seccomp.json").read_text())
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"Podman at {engine.path}: its system call filter cannot be read ({error}); install the package that "
            "brings /usr/share/containers/seccomp.json"
        ) from None
    return Podman(seccomp=_kept(narrowed(profile), folder))


@dataclass(frozen=True, slots=True, kw_only=True)
class Podman:
    """The engine is Podman."""

    seccomp: Path
    """The sandboxes' system call filter, a file that the service reads."""

    def specification(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        """Docker's create request as Podman's native one (a `SpecGenerator`)."""
        host = body["HostConfig"]
        return {
            "name": name,
            "image": body["Image"],
            "entrypoint": body["Entrypoint"],
            "command": body["Cmd"],
            "user": body["User"],
            "work_dir": body["WorkingDir"],
            "hostname": body["Hostname"],
            "stdin": body["OpenStdin"],
            "terminal": body["Tty"],
            "labels": body["Labels"],
            "remove": host["AutoRemove"],
            # else a forced removal first asks pid 1 to end, which takes no signal, and waits for ten seconds
            "stop_timeout": 0,
            "netns": {"nsmode": host["NetworkMode"]},
            "ipcns": {"nsmode": host["IpcMode"]},
            "read_only_filesystem": host["ReadonlyRootfs"],
            "mounts": [*map(_tmpfs, host["Tmpfs"].items()), *map(_bind, host["Binds"])],
            "shm_size": host["ShmSize"],
            "resource_limits": {
                "memory": {"limit": host["Memory"], "swap": host["MemorySwap"]},
                "cpu": {"period": _CPU_PERIOD_US, "quota": host["NanoCpus"] * _CPU_PERIOD_US // 10**9},
                "pids": {"limit": host["PidsLimit"]},
            },
            "r_limits": [_nproc(), *map(_ulimit, host["Ulimits"])],
            "cap_drop": host["CapDrop"],
            "cap_add": host["CapAdd"],
            "seccomp_profile_path": str(self.seccomp),
            "no_new_privileges": "no-new-privileges" in host["SecurityOpt"],
            "log_configuration": {"driver": host["LogConfig"]["Type"]},
        }


def narrowed(profile: dict[str, Any]) -> dict[str, Any]:
    """A system call filter that refuses what bubblewrap's does, and the rest as `profile` has it."""
    taken = {*REFUSED, "umount", "clone", "clone3"}
    rules = [{**rule, "names": [name for name in rule["names"] if name not in taken]} for rule in profile["syscalls"]]
    flags = {"index": 0, "value": NAMESPACE_FLAGS, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    ours = [
        {"names": [*sorted(REFUSED), "umount"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [flags]},
    ]
    return {**profile, "syscalls": [rule for rule in rules if rule["names"]] + ours}


def _kept(profile: dict[str, Any], folder: Path) -> Path:
    """The file that holds `profile`, made once."""
    content = json.dumps(profile).encode()
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.json"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(content)
        draft.replace(path)
    return path


def _tmpfs(mount: tuple[str, str]) -> dict[str, Any]:
    """Podman knows few options of a tmpfs by name, but hands on what stands behind `mode=` in one word with it."""
    tree, options = mount
    flags, _, mode = options.rpartition(",mode=")
    known = [flag for flag in flags.split(",") if flag.partition("=")[0] not in ("uid", "gid", "nr_inodes")]
    others = [flag for flag in flags.split(",") if flag not in known]
    return {
        "destination": tree,
        "type": "tmpfs",
        "source": "tmpfs",
        "options": [*known, ",".join([f"mode={mode}", *others])],
    }


def _bind(bind: str) -> dict[str, Any]:
    source, target, access = bind.split(":")
    return {"destination": target, "type": "bind", "source": source, "options": ["rbind", access]}


def _ulimit(limit: dict[str, Any]) -> dict[str, Any]:
    return {"type": limit["Name"], "soft": limit["Soft"], "hard": limit["Hard"]}


def _nproc() -> dict[str, Any]:
    """Left out, Podman 4 takes 2^20, and root without CAP_SYS_RESOURCE may not raise its limit: no container starts.

    The service lowers its own limit to the kernel's highest process number, and has hardly less than this process.
    What bounds a sandbox is `PidsLimit`.
    """
    highest = int(Path("/proc/sys/kernel/pid_max").read_text())
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    limit = highest if hard == resource.RLIM_INFINITY else min(hard, highest)
    return {"type": "nproc", "soft": limit, "hard": limit}
