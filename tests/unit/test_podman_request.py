"""Docker's create request as Podman takes it: nothing is lost on the way, and the filter refuses what it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metier.harness.sandbox.bubblewrap.filter import REFUSED
from metier.harness.sandbox.docker.container import STEWARD_CAPABILITIES, creation
from metier.harness.sandbox.docker.podman import Podman, narrowed
from metier.harness.sandbox.owner import Owner
from metier.harness.testing import SPEC

MIB = 1 << 20


def translated() -> tuple[dict[str, Any], dict[str, Any]]:
    """A request, and what Podman gets."""
    body = creation("metier-1", "metier/x:1", SPEC, Path("/cache/steward"), "run", Owner.current())
    return body, Podman(seccomp=Path("/cache/filter.json")).specification("metier-1", body)


def test_every_field_of_the_request_has_its_counterpart() -> None:
    body, said = translated()
    assert said["name"] == "metier-1"
    assert (said["image"], said["command"], said["labels"]) == (body["Image"], body["Cmd"], body["Labels"])
    assert said["stdin"] and not said["terminal"] and said["remove"] and said["stop_timeout"] == 0
    assert said["read_only_filesystem"] and said["no_new_privileges"]
    assert (said["cap_drop"], said["cap_add"]) == (["ALL"], STEWARD_CAPABILITIES)
    assert said["resource_limits"] == {
        "memory": {"limit": 256 * MIB, "swap": 256 * MIB},
        "cpu": {"period": 100_000, "quota": 100_000},
        "pids": {"limit": 64},
    }
    assert said["seccomp_profile_path"] == "/cache/filter.json"


def test_mounts_keep_owner_and_sizes() -> None:
    mounts = {mount["destination"]: mount for mount in translated()[1]["mounts"]}
    assert mounts["/workspace"]["options"] == [
        *("rw", "exec", "nosuid", "nodev", "size=64m"),
        "mode=0755,nr_inodes=16384,uid=1000,gid=1000",
    ]
    assert mounts["/tmp"]["options"][-1] == "mode=1777,nr_inodes=8192"
    assert mounts["/run/metier-home"]["options"] == ["rw", "noexec", "nosuid", "nodev", "size=16m", "mode=0700"]
    steward = mounts["/run/metier-steward"]
    assert (steward["type"], steward["source"], steward["options"]) == ("bind", "/cache/steward", ["rbind", "ro"])


def test_limits_are_none_that_podman_could_not_set() -> None:
    limits = {limit["type"]: limit for limit in translated()[1]["r_limits"]}
    assert limits["nofile"] == {"type": "nofile", "soft": 1024, "hard": 1024}
    assert 0 < limits["nproc"]["hard"] <= int(Path("/proc/sys/kernel/pid_max").read_text())


def test_the_filter_keeps_what_it_does_not_refuse() -> None:
    rules = [
        {"names": ["clone", "clone3", "mount", "read", "unshare"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["setns"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
    ]
    profile = narrowed({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "syscalls": rules})
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 38)
    first, refused, absent, clone = profile["syscalls"]
    assert first == {"names": ["read"], "action": "SCMP_ACT_ALLOW"}
    assert set(refused["names"]) == {*REFUSED, "umount"}
    assert (refused["errnoRet"], absent["names"], absent["errnoRet"]) == (1, ["clone3"], 38)
    assert clone["args"] == [{"index": 0, "value": 0x7E020080, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}]
