"""Step latency of a sandbox against `docker exec`, all in one run on one machine.

    python benchmarks/sandbox_step.py [--image terminal-python] [--steps 200] [--json]

Ours: the resident steward (persistent shell, persistent Python, plain exec). Peers: `docker exec` by the SDK and by the
command line, into the very same container. Also what a sandbox costs to have: cold and warm acquire, reset, fork.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from metier.envs.core import Deadline, Sandbox, SandboxSpec
from metier.harness.sandbox.docker import DockerBackend

WARM_UP = 5
PEER_STEPS = 50


class Row(NamedTuple):
    """One way, and what it took."""

    way: str
    times_ms: list[float]

    def percentile(self, share: float) -> float:
        """The time below which `share` of the steps lie."""
        ordered = sorted(self.times_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def measured(way: str, step: Callable[[], Awaitable[object]], steps: int) -> Row:
    """Times `step`, one after the other, after a few unmeasured ones."""
    for _ in range(WARM_UP):
        await step()
    times = []
    for _ in range(steps):
        began = time.perf_counter()
        await step()
        times.append((time.perf_counter() - began) * 1e3)
    return Row(way, times)


async def our_steps(sandbox: Sandbox, steps: int) -> list[Row]:
    """The three ways of a step through the steward."""

    async def shell() -> None:
        assert (await sandbox.exec("true", timeout_s=10, session="shell")).ok

    async def listing() -> None:
        assert (await sandbox.exec("ls -l /etc", timeout_s=10, session="shell")).ok

    async def python() -> None:
        assert (await sandbox.exec("1 + 1", timeout_s=60, session="python")).ok

    async def plain() -> None:
        assert (await sandbox.exec(["true"], timeout_s=10)).ok

    async def bash() -> None:
        assert (await sandbox.exec("true", timeout_s=10)).ok

    return [
        await measured("metier: shell session, true", shell, steps),
        await measured("metier: shell session, ls -l /etc", listing, steps),
        await measured("metier: Python session, 1 + 1", python, steps),
        await measured("metier: exec true", plain, steps),
        await measured("metier: exec bash -c true", bash, steps),
    ]


async def peer_steps(name: str, steps: int) -> list[Row]:
    """`docker exec` into the same container; without the SDK or the command line those rows are left out."""
    rows = []
    try:
        import docker
    except ImportError:
        docker = None
    if docker is not None:
        api = docker.APIClient()

        async def sdk() -> None:
            created = api.exec_create(name, ["true"])
            api.exec_start(created["Id"])
            assert api.exec_inspect(created["Id"])["ExitCode"] == 0

        rows.append(await measured("docker exec true, SDK", sdk, steps))
        api.close()
    if shutil.which("docker"):

        async def cli() -> None:
            process = await asyncio.create_subprocess_exec("docker", "exec", name, "true")
            assert await process.wait() == 0

        rows.append(await measured("docker exec true, CLI", cli, steps))
    return rows


async def lifecycle(backend: DockerBackend, spec: SandboxSpec, steps: int) -> list[Row]:
    """What it costs to have a sandbox, to give it back, and to fork one of 200 files."""
    cold, warm, reset, fork = [], [], [], []

    def now() -> float:
        return time.perf_counter() * 1e3

    def deadline() -> Deadline:
        return Deadline.after(60, limit="benchmark", set_by="sandbox_step")

    for _ in range(max(3, steps // 20)):
        began = now()
        sandbox = await backend.acquire(spec, deadline=deadline())
        cold.append(now() - began)
        await sandbox.close(reuse=False)
    async with await backend.acquire(spec, deadline=deadline()) as origin:
        await origin.exec("for i in $(seq 200); do echo $i > f$i; done", timeout_s=30)
        snapshot = await origin.snapshot()
    for _ in range(steps):
        began = now()
        sandbox = await backend.acquire(spec, deadline=deadline())
        warm.append(now() - began)
        await sandbox.exec("touch a b c", timeout_s=10)
        began = now()
        await sandbox.close()
        reset.append(now() - began)
    for _ in range(max(3, steps // 10)):
        began = now()
        sandbox = await backend.acquire(spec, deadline=deadline(), snapshot=snapshot)
        fork.append(now() - began)
        await sandbox.close()
    return [
        Row("acquire, cold", cold),
        Row("acquire, warm", warm),
        Row("close: reset in place, 3 files", reset),
        Row("acquire a fork of 200 files, warm", fork),
    ]


async def run(image: str, steps: int) -> list[Row]:
    """All rows."""
    spec = SandboxSpec(image=image)
    async with DockerBackend() as backend:
        deadline = Deadline.after(60, limit="benchmark", set_by="sandbox_step")
        async with await backend.acquire(spec, deadline=deadline) as sandbox:
            rows = await our_steps(sandbox, steps)
            rows += await peer_steps(sandbox.id, min(PEER_STEPS, steps))
            await sandbox.close(reuse=False)
        return rows + await lifecycle(backend, spec, min(50, steps))


def main() -> None:
    """Prints a table, or JSON."""
    parser = argparse.ArgumentParser(description="Sandbox step latency against docker exec.")
    parser.add_argument("--image", default="terminal-python")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = asyncio.run(run(options.image, options.steps))
    load = os.getloadavg()[0]
    if options.json:
        found = [
            {"way": row.way, "p50_ms": row.percentile(0.5), "p95_ms": row.percentile(0.95), "steps": len(row.times_ms)}
            for row in rows
        ]
        print(json.dumps({"cores": os.cpu_count(), "load": load, "rows": found}, indent=1))
        return
    table = Table(title=f"Sandbox step latency, {os.cpu_count()} cores, load {load:.1f}")
    table.add_column("way")
    for name in ("p50 ms", "p95 ms", "steps"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(row.way, f"{row.percentile(0.5):.2f}", f"{row.percentile(0.95):.2f}", str(len(row.times_ms)))
    Console().print(table)


if __name__ == "__main__":
    main()
