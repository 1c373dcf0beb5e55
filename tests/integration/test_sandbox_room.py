"""Room on real backends: a host that is full, sandboxes that nobody asks for, and trees that do not fit."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metier.envs import registry
from metier.envs.core import (
    ConfigError,
    GenerationError,
    Instance,
    Rng,
    SandboxBackend,
    SandboxUnavailable,
)
from metier.harness.prepare import Preparer, Task
from metier.harness.sandbox import open_backend, pool
from metier.harness.sandbox.budget import HostBudget, shares
from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.snapshots import SnapshotStore
from metier.harness.testing import ECHO, SPEC
from metier.harness.testing.echo.family import Echo
from metier.images import cache_dir, docker_tag, recipe
from metier.images.store import rootfs_path
from waiting import patience, soon

registry.add_registry(ECHO)
TASK = Task(env_id="test/Echo-v0", seed=3)
CLIENT = """
import asyncio, sys
from metier.envs.core import Deadline
from metier.harness.sandbox import open_backend
from metier.harness.testing import SPEC

async def main():
    async with open_backend(sys.argv[1]) as backend:
        for _ in range(2):
            await backend.acquire(SPEC, deadline=Deadline.after(60, limit="t", set_by="t"))
        print("up", flush=True)
        await asyncio.sleep(900)

asyncio.run(main())
"""


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
async def name(request: pytest.FixtureRequest) -> str:
    if request.param == "docker":
        if not await answers() or not await Engine(socket_path()).has_image(docker_tag(SPEC.image)):
            pytest.skip(f"takes a Docker engine, and: metier images build {SPEC.image}")
    elif not rootfs_path(recipe(SPEC.image)).is_dir():
        pytest.skip(f"run: metier images build {SPEC.image} --engine bubblewrap")
    return request.param


@pytest.fixture
async def backend(name: str, tmp_path: Path) -> AsyncIterator[SandboxBackend]:
    """One on a host with room for two of `SPEC`, whose snapshots may take 1 MiB."""
    budget = HostBudget(tmp_path / "claims", memory_mb=2 * shares(SPEC)[0], pids=1000)
    snapshots = SnapshotStore(tmp_path / "snapshots", most_mb=1)
    async with open_backend(name, budget=budget, snapshots=snapshots) as opened:
        yield opened


async def test_a_full_host_refuses_in_words_and_an_idle_sandbox_makes_room_by_itself(
    backend: SandboxBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ADMISSION_S", 0.5)
    held = [await backend.acquire(SPEC, deadline=soon()) for _ in range(2)]
    with pytest.raises(SandboxUnavailable, match=r"no room on this host .* 2 sandboxes hold 128 of 128 MiB"):
        await backend.acquire(SPEC, deadline=soon())
    monkeypatch.setattr(backend, "_max_idle_s", 0.5)
    for box in held:
        assert (await box.exec("echo here", timeout_s=10)).stdout == b"here\n"
        await box.close()
    async with asyncio.timeout(30 * patience()):
        while list((tmp_path / "claims").iterdir()):  # given up when it is gone
            await asyncio.sleep(0.05)
    async with await backend.acquire(SPEC, deadline=soon()) as fresh:
        assert fresh.id not in {box.id for box in held}


async def test_a_killed_client_holds_nothing_of_the_host(name: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT, name), stdout=asyncio.subprocess.PIPE
    )
    host = HostBudget(cache_dir() / "claims")
    try:
        assert process.stdout is not None
        async with asyncio.timeout(120):
            assert await process.stdout.readline() == b"up\n"
        assert sum(claim.owner.pid == process.pid for claim in host.claims()) == 2
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    assert not any(claim.owner.pid == process.pid for claim in host.claims())


# trees


def with_files(monkeypatch: pytest.MonkeyPatch, *, mib: int = 0, setup: tuple[str, ...] = ()) -> None:
    """Echo's instances have so large a file, and these lines of set-up."""
    generate = Echo.generate

    def larger(family: Echo, rng: Rng, level: int) -> Instance:
        instance = generate(family, rng, level)
        files = {**instance.files, **({"large": os.urandom(mib << 20)} if mib else {})}
        return dataclasses.replace(instance, files=files, setup=setup)

    monkeypatch.setattr(Echo, "generate", larger)


@pytest.mark.parametrize(("mib", "setup"), [(86, ()), (100, ("true",)), (126, ()), (300, ())])
async def test_files_that_do_not_fit_the_tree_are_the_authors_fault_and_say_what_to_raise(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch, mib: int, setup: tuple[str, ...]
) -> None:
    """And no loss: the steward holds a tree before it is written, in the same memory, of 256 MiB here."""
    with_files(monkeypatch, mib=mib, setup=setup)  # of a workspace of 85 MiB
    preparer = Preparer(backend)
    with pytest.raises(GenerationError, match=r"could not be put into a workspace: .*; raise limits.memory_mb"):
        await preparer.fork(await preparer.prepare(TASK, deadline=soon()), deadline=soon())


async def test_a_tree_that_just_fits_is_kept_and_forked(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_files(monkeypatch, mib=42, setup=("head -c 41M /dev/urandom > more",))
    preparer = Preparer(backend)
    async with await preparer.fork(await preparer.prepare(TASK, deadline=soon()), deadline=soon()) as box:
        assert (await box.exec("du -m --apparent-size large more", timeout_s=20)).stdout == b"42\tlarge\n41\tmore\n"


async def test_a_set_up_that_does_not_fit_is_told_with_its_own_words(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_files(monkeypatch, setup=("head -c 100M /dev/zero > large",))
    with pytest.raises(GenerationError, match=r"setup line 'head .* ended with 1: .*No space left on device"):
        await Preparer(backend).prepare(TASK, deadline=soon())


async def test_a_tree_beyond_half_of_the_memory_is_refused_before_anything_is_made(backend: SandboxBackend) -> None:
    with pytest.raises(ConfigError, match="at most half of memory_mb=256, for they are kept in memory"):
        await backend.acquire(dataclasses.replace(SPEC, writable_mb={"/workspace": 1024}), deadline=soon())


async def test_an_instance_whose_snapshot_made_room_is_forked_all_the_same(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with_files(monkeypatch, mib=1, setup=("date +%N > made",))
    preparer = Preparer(backend)
    first = await preparer.prepare(TASK, deadline=soon())
    assert first.snapshot is not None
    await preparer.prepare(dataclasses.replace(TASK, seed=4), deadline=soon())
    kept = {path.stem for path in (tmp_path / "snapshots").iterdir()}
    assert len(kept) == 1 and first.snapshot.digest not in kept
    async with await preparer.fork(first, deadline=soon()) as box:
        made = await box.read("/workspace/made", max_bytes=99)
    async with await preparer.fork(await preparer.prepare(TASK, deadline=soon()), deadline=soon()) as again:
        assert await again.read("/workspace/made", max_bytes=99) == made  # taken again once, not for each
