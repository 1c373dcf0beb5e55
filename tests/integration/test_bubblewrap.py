"""What only the bubblewrap backend has: launcher and control groups, and no ending of the client that leaves any."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from metier.envs.core import Capability, ConfigError, Limit, SandboxLost, SandboxSpec, SandboxUnavailable
from metier.harness.sandbox.bubblewrap import BubblewrapBackend, cgroups
from metier.harness.sandbox.owner import Owner
from metier.images import docker_tag, rootfs
from metier.images.store import cache_dir
from process_table import ancestors, saying
from waiting import soon

IMAGE = "terminal-python"
ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="control groups and uid ranges are root's")
CLIENT = textwrap.dedent(
    """
    import asyncio, sys
    from metier.envs.core import Deadline, SandboxSpec
    from metier.harness.sandbox.bubblewrap import BubblewrapBackend

    async def main():
        spec = SandboxSpec(image=sys.argv[1], memory_mb=256, pids=int(sys.argv[2]), writable_mb={"/workspace": 64})
        async with BubblewrapBackend() as backend:
            print("open", flush=True)
            soon = Deadline.after(60, limit="test_s", set_by="test")
            boxes = await asyncio.gather(*(backend.acquire(spec, deadline=soon) for _ in range(4)))
            for box in boxes:
                asyncio.ensure_future(box.exec("setsid sleep 600", timeout_s=600))
            await asyncio.sleep(0.3)
            print("up", flush=True)
            await asyncio.sleep(600)

    asyncio.run(main())
    """
)


GROUPS_S = 4.0


def _spec(**changes: object) -> SandboxSpec:
    fields: dict[str, object] = {"image": IMAGE, "memory_mb": 256, "pids": 64, "writable_mb": {"/workspace": 64}}
    return SandboxSpec(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module", autouse=True)
def image() -> Path:
    """The root file system that all sandboxes here have."""
    return rootfs(IMAGE)


@pytest_asyncio.fixture()
async def backend() -> AsyncIterator[BubblewrapBackend]:
    async with BubblewrapBackend() as opened:
        yield opened


def _processes(mark: int) -> list[int]:
    """Whatever has the steward's settings with this unusual process limit in its command line."""
    return saying(f'"pids":{mark}')


def _groups(pid: int) -> list[Path]:
    return [folder for folder in cgroups._clients() if folder.name.startswith(f"{pid}:")]


async def _wait_empty(mark: int, pid: int, within_s: float) -> float:
    """How long it took until no process was left; the kernel may give up its control groups later."""
    started = time.monotonic()
    while left := _processes(mark):
        assert time.monotonic() - started < within_s, f"still there: {left}"
        await asyncio.sleep(0.02)
    gone_s = time.monotonic() - started
    while groups := _groups(pid):
        assert time.monotonic() - started < within_s + GROUPS_S, f"still there: {groups}"
        await asyncio.sleep(0.02)
    return gone_s


@pytest.mark.parametrize("wait_for", ["up", "open"])
async def test_a_killed_client_leaves_nothing(wait_for: str) -> None:
    """Also in the middle of creation: twelve kills at 5 to 300 ms after the first request."""
    for number in range(2 if wait_for == "up" else 12):
        mark = 1000 + secrets.randbelow(3000)
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CLIENT, IMAGE, str(mark), stdout=asyncio.subprocess.PIPE
        )
        assert client.stdout is not None
        async with asyncio.timeout(60):
            while (await client.stdout.readline()).decode().strip() != wait_for:
                assert client.returncode is None
        if wait_for == "open":
            await asyncio.sleep(0.005 + number * 0.027)
        else:
            assert len(_processes(mark)) >= 8  # four monitors and four stewards
        client.send_signal(signal.SIGKILL)
        await client.wait()
        await _wait_empty(mark, client.pid, within_s=2.0)


async def test_closing_the_backend_removes_its_control_groups(backend: BubblewrapBackend) -> None:
    box = await backend.acquire(_spec(), deadline=soon())
    assert bool(_groups(os.getpid())) == (backend._hierarchy is not None)
    await backend.close()
    assert not _groups(os.getpid())
    with pytest.raises(SandboxLost):
        await box.exec("true", timeout_s=5)


async def test_a_killed_launcher_loses_its_sandboxes_and_is_replaced(backend: BubblewrapBackend) -> None:
    box = await backend.acquire(_spec(), deadline=soon())
    assert backend._link is not None
    backend._link._process.kill()
    with pytest.raises(SandboxLost):
        await box.exec("sleep 5", timeout_s=10)
    await box.close()
    async with await backend.acquire(_spec(), deadline=soon()) as another:
        assert (await another.exec("echo on", timeout_s=5)).stdout == b"on\n"


@needs_root
async def test_leftover_control_groups_of_the_dead_are_reaped(backend: BubblewrapBackend) -> None:
    if backend._hierarchy != 1:
        pytest.skip("written for cgroup v1")
    dead = Owner.current()._replace(pid=2**22 - 3, started=1)
    folder = cgroups.ROOT / "memory" / "metier" / dead.label() / "metier-x"
    folder.mkdir(parents=True)
    assert folder.parent in cgroups.reap()
    assert not folder.parent.exists()


async def test_what_cannot_be_promised_is_refused(backend: BubblewrapBackend) -> None:
    for wanted in set(Capability) - backend.capabilities:
        with pytest.raises(ConfigError, match=wanted.value):
            await backend.acquire(_spec(requires=frozenset({wanted})), deadline=soon())
    with pytest.raises(ConfigError, match="gpu"):
        await backend.acquire(_spec(gpus=1), deadline=soon())


async def test_an_unknown_image_is_refused(backend: BubblewrapBackend) -> None:
    with pytest.raises(ConfigError, match="no image named 'no-such'"):
        await backend.acquire(_spec(image="no-such"), deadline=soon())


async def test_a_start_that_fails_says_why_and_leaves_nothing(
    backend: BubblewrapBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A root file system without Python."""

    async def broken(_image: str) -> Path:
        return tmp_path

    monkeypatch.setattr("metier.harness.sandbox.bubblewrap.backend._root_of", broken)
    mark = 1000 + secrets.randbelow(3000)
    with pytest.raises(SandboxUnavailable, match="did not start"):
        await backend.acquire(_spec(pids=mark), deadline=soon())
    assert not _processes(mark)


@needs_root
async def test_the_agent_has_a_uid_range_of_its_own_and_no_way_to_the_host(backend: BubblewrapBackend) -> None:
    async with await backend.acquire(_spec(), deadline=soon()) as box:
        probe = "cat /proc/self/uid_map; grep CapEff /proc/self/status; echo 1 > /proc/sys/kernel/panic || echo refused"
        as_root = (await box.exec(probe, timeout_s=5, user="root")).stdout.decode().split()
        assert int(as_root[1]) >= 0x8000_0000
        assert as_root[-3:] == ["CapEff:", "00000000000000e0", "refused"]
        for forbidden in (
            "unshare --user true",
            "unshare --mount true",
            "touch /etc/x",
            "touch /dev/x",
            "mkdir /sys/x",
        ):
            assert not (await box.exec(forbidden, timeout_s=5, user="root")).ok, forbidden


@needs_root
async def test_a_sandbox_killed_for_memory_is_the_agents_fault(backend: BubblewrapBackend) -> None:
    if Capability.MEMORY_LIMIT not in backend.capabilities:
        pytest.skip("no control groups here, and none promised")
    async with await backend.acquire(_spec(), deadline=soon()) as box:
        hog = await box.exec(["python3", "-c", "bytearray(400 << 20)"], timeout_s=20)
        assert hog.oom_killed
        for pid in saying("metier-steward"):
            if os.getpid() in ancestors(pid):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(SandboxLost) as loss:
            await box.exec("true", timeout_s=5)
        assert loss.value.agent_caused is Limit.MEMORY


def test_the_image_is_the_recipes(image: Path) -> None:
    assert image == cache_dir() / "rootfs" / docker_tag(IMAGE).removeprefix("metier/").replace(":", "-")
