"""The three ways in which a sandbox ends by itself, each with the other two taken away.

A client in a process of its own holds one sandbox. Its input ends when the client is killed; the host is silent when
the client is stopped, for then every connection stays open; and its time is over while the client goes on as ever. What
is taken away is set so far off that it cannot be what ended the sandbox, and no reaper runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from metier.harness.sandbox.docker import answers
from metier.harness.testing import SPEC
from metier.images import recipe
from metier.images.store import rootfs_path
from process_table import descendants, saying
from waiting import patience

NEVER_S = 1e6
SILENCE_S = 2.0
LEASE_S = 3.0
LOOKS_EVERY_S = 1.0
"""How often a steward looks at its clocks."""
WITHIN_S = 2.0

CLIENT = """
import asyncio, json, sys
name, mark, stops = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])

from metier.harness.sandbox import client, protocol
client.PING_S = 0.5
protocol.HEARTBEAT_S = stops["silence"]
protocol.life_of = lambda spec: stops["life"]

from metier.envs.core import Deadline, SandboxSpec
from metier.harness.sandbox import docker, open_backend
if name == "docker":
    from metier.harness.sandbox.docker import backend as docker_backend
    async def nothing(*_): await asyncio.sleep(1e6)
    docker_backend.reap_for_ever = nothing

async def main():
    spec = SandboxSpec(image="terminal-python", memory_mb=256, pids=mark, ttl_s=stops["lease"],
                       writable_mb={"/workspace": 64, "/tmp": 32})
    soon = Deadline.after(60, limit="t", set_by="t")
    async with open_backend(name) as backend:
        if stops["leased"]:
            box = await backend.acquire(spec, deadline=soon)
            await box.exec("setsid sh -c 'trap \\"\\" TERM HUP; sleep 900' & true", timeout_s=10)
        else:
            await backend.prewarm(spec, 1, deadline=soon)
        print("up", flush=True)
        await asyncio.sleep(900)

asyncio.run(main())
"""


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
async def backend(request: pytest.FixtureRequest) -> str:
    if request.param == "docker" and not await answers():
        pytest.skip("no Docker engine answers")
    if request.param == "bubblewrap" and not rootfs_path(recipe(SPEC.image)).is_dir():
        pytest.skip(f"run: metier images build {SPEC.image} --engine bubblewrap")
    return request.param


class Held:
    """A client and its sandbox, which an unusual process limit tells from all others."""

    def __init__(self, process: asyncio.subprocess.Process, mark: int) -> None:
        self.process = process
        self.mark = mark

    def sandbox(self) -> list[int]:
        """The steward, and what started it, as long as they run."""
        return saying(f'"pids":{self.mark}')

    def launcher(self) -> list[int]:
        """bubblewrap's launcher and the `unshare` above it."""
        below = descendants(self.process.pid)
        return sorted(pid for pid in saying("launcher.py") if pid in below)

    async def ends(self, within_s: float) -> float:
        """How long until nothing of the sandbox runs; more is allowed on a machine that is behind."""
        began = time.monotonic()
        bound = within_s * patience()
        while left := self.sandbox():
            assert time.monotonic() - began < bound, f"still there: {left}"
            await asyncio.sleep(0.02)
        return time.monotonic() - began


@asynccontextmanager
async def holding(
    backend: str,
    *,
    silence: float = NEVER_S,
    lease: float = NEVER_S,
    life: float = NEVER_S,
    leased: bool = True,
) -> AsyncIterator[Held]:
    """A client with one sandbox, which ends by what is given only."""
    mark = 1000 + secrets.randbelow(3000)
    stops = {"silence": silence, "lease": lease, "life": life, "leased": leased}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, backend, str(mark), json.dumps(stops)), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    held = Held(process, mark)
    try:
        async with asyncio.timeout(60):
            assert await process.stdout.readline() == b"up\n"
        assert held.sandbox()
        yield held
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_ends_with_its_input(backend: str) -> None:
    async with holding(backend) as held:
        launcher = held.launcher()
        assert bool(launcher) == (backend == "bubblewrap")
        for pid in launcher:  # which would kill the sandbox too, and is not to
            os.kill(pid, signal.SIGSTOP)
        try:
            held.process.kill()
            await held.process.wait()
            await held.ends(WITHIN_S)
        finally:
            for pid in launcher:
                os.kill(pid, signal.SIGCONT)


async def test_it_ends_when_its_host_is_silent(backend: str) -> None:
    async with holding(backend, silence=SILENCE_S) as held:
        await asyncio.sleep(2 * SILENCE_S)
        assert held.sandbox()  # a host that is heard keeps it
        held.process.send_signal(signal.SIGSTOP)
        took = await held.ends(SILENCE_S + LOOKS_EVERY_S + WITHIN_S)
        assert took > SILENCE_S / 2
        assert held.process.returncode is None


@pytest.mark.parametrize("clock", ["lease", "life"])
async def test_it_ends_when_its_time_is_over(backend: str, clock: str) -> None:
    limit = {clock: LEASE_S}
    async with holding(backend, leased=clock == "lease", **limit) as held:
        await held.ends(LEASE_S + LOOKS_EVERY_S + WITHIN_S)
        assert held.process.returncode is None
