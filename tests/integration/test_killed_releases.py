"""A client killed while it gives its sandboxes back: in the middle of a reset, of a removal, of leaving its backend."""

from __future__ import annotations

import asyncio
import secrets
import sys
import time

import pytest

from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from metier.harness.testing import SPEC
from metier.images import recipe
from metier.images.store import rootfs_path
from process_table import saying
from waiting import patience

WITHIN_S = 2.0
CLIENT = """
import asyncio, sys
from metier.envs.core import Deadline, SandboxSpec
from metier.harness.sandbox import open_backend

MESS = "for i in $(seq 1500); do echo x > f$i; done; setsid sh -c 'trap \\"\\" TERM HUP; sleep 900' & true"

async def main():
    spec = SandboxSpec(image="terminal-python", memory_mb=256, pids=int(sys.argv[2]), writable_mb={"/workspace": 32})
    soon = Deadline.after(90, limit="t", set_by="t")
    async with open_backend(sys.argv[1]) as backend:
        boxes = await asyncio.gather(*(backend.acquire(spec, deadline=soon) for _ in range(5)))
        await asyncio.gather(*(box.exec(MESS, timeout_s=60) for box in boxes))
        print("up", flush=True)
        for number, box in enumerate(boxes[:4]):
            asyncio.ensure_future(box.close(reuse=number % 2 == 0))
            await asyncio.sleep(0.004)
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


@pytest.mark.parametrize("after_s", [0.006, 0.03])
async def test_nothing_runs_any_more_for_a_client_killed_in_the_middle_of_its_releases(
    backend: str, after_s: float
) -> None:
    pids = 1000 + secrets.randbelow(3000)  # an unusual limit, which tells its stewards from all others
    mark = f'"pids":{pids},'
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, backend, str(pids)), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert client.stdout is not None
        async with asyncio.timeout(120):
            assert await client.stdout.readline() == b"up\n"
        assert saying(mark)
        await asyncio.sleep(after_s)
    finally:
        client.kill()
        await client.wait()
    began, bound = time.monotonic(), WITHIN_S * patience()
    while left := saying(mark):
        assert time.monotonic() - began < bound, left
        await asyncio.sleep(0.02)
    async with open_backend(backend):
        pass  # the next client finds everything as it should be
