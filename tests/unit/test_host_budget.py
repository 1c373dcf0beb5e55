"""One host and all its clients: sandboxes wait for room, are refused in words, and the dead hold nothing."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import ConfigError, SandboxSpec, SandboxUnavailable
from metier.harness.sandbox import pool
from metier.harness.sandbox.budget import Claim, HostBudget, shares
from metier.harness.sandbox.docker import DockerBackend
from metier.harness.sandbox.owner import Owner, up_s
from metier.harness.testing import SPEC
from stub_engine import StubEngine
from waiting import patience, soon

VERIFIER = dataclasses.replace(SPEC, verifier=True)
ROOM_FOR = """
import sys
from pathlib import Path
from metier.envs.core import SandboxSpec
from metier.harness.sandbox.budget import HostBudget
budget = HostBudget(Path(sys.argv[1]), memory_mb=10_000, pids=int(sys.argv[2]) * 16)
spec = SandboxSpec(image="x", memory_mb=64, pids=64)
sys.stdin.readline()
print(sum(budget.take(f"box-{number}", spec) for number in range(20)), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "claims"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


# the ledger


def test_a_sandbox_counts_for_a_quarter_of_its_limits_and_for_what_an_idle_one_takes() -> None:
    assert shares(SandboxSpec(image="x", memory_mb=1024, pids=256)) == (256, 64)
    assert shares(SandboxSpec(image="x", memory_mb=16, pids=2)) == (9, 1)


def test_memory_and_processes_are_lent_until_there_are_none(folder: Path) -> None:
    for budget in (HostBudget(folder, memory_mb=128, pids=1000), HostBudget(folder, memory_mb=1000, pids=32)):
        assert [budget.take(f"box-{number}", SPEC) for number in range(3)] == [True, True, False]
        assert len(files(folder)) == 2
        budget.give("box-0")
        assert budget.take("box-3", SPEC)
        for number in (1, 3, 4):
            budget.give(f"box-{number}")
        assert files(folder) == []


def test_what_not_even_the_empty_host_could_carry_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(ConfigError, match="256 MiB and 64 processes is more than 4 times what this host has"):
        HostBudget(folder, memory_mb=63, pids=1000).check(SPEC)
    with pytest.raises(ConfigError, match="ask for less"):
        HostBudget(folder, memory_mb=1000, pids=15).check(SPEC)
    HostBudget(folder, memory_mb=64, pids=16).check(SPEC)


def test_claims_of_the_dead_the_late_and_other_machines_do_not_count(folder: Path) -> None:
    budget = HostBudget(folder, memory_mb=64, pids=16)
    me, now = Owner.current(), int(up_s())
    later = now + 60
    folder.mkdir()
    gone = [Claim(me._replace(started=1), "dead", 64, 16, later), Claim(me, "late", 64, 16, now - 1)]
    elsewhere, before = (Claim(me._replace(boot="another"), name, 64, 16, now) for name in ("elsewhere", "before"))
    for claim in [*gone, elsewhere, before]:
        assert Claim.parse(claim.label()) == claim
        (folder / claim.label()).touch()
    os.utime(folder / before.label(), (1, 1))
    (folder / "no claim").touch()
    assert budget.take("box", SPEC)
    assert set(files(folder)) - {"no claim", elsewhere.label()} == {
        label for label in files(folder) if ".box." in label
    }
    unseen = Claim(me._replace(pid_namespace="1", started=1), "unseen", 1, 1, later)
    (folder / unseen.label()).touch()
    assert not budget.take("other", SPEC)  # nobody can tell from here whether it is dead


def test_clients_that_ask_at_once_never_get_more_than_there_is_and_kills_give_it_back(folder: Path) -> None:
    command = [sys.executable, "-c", ROOM_FOR, str(folder), "30"]
    clients = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    try:
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        taken = [int(client.stdout.readline()) for client in clients if client.stdout is not None]
        assert sum(taken) == len(files(folder)) <= 30
        assert sum(taken) >= 20  # whoever came first had all it asked for
    finally:
        for client in clients:
            client.kill()
            client.communicate()
    HostBudget(folder).sweep()
    assert files(folder) == []


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "claims").write_text("in the way")
    with pytest.raises(SandboxUnavailable, match="claim on this host cannot be written"):
        HostBudget(tmp_path / "claims").take("box", SPEC)


# the pool


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setenv("METIER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(pool, "ADMISSION_S", 0.3)
    monkeypatch.setattr(pool, "ADMISSION_LOOK_S", 0.02)
    async with StubEngine(tmp_path / "engine.sock") as stub:
        yield stub


def room_for(count: int, folder: Path, **options: Any) -> DockerBackend:
    memory_mb, pids = shares(SPEC)
    return DockerBackend(budget=HostBudget(folder, memory_mb=count * memory_mb, pids=count * pids), **options)


async def test_beyond_the_host_is_refused_in_words_and_room_is_given_back(
    engine: Any, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with room_for(2, folder) as backend:
        held = [await backend.acquire(SPEC, deadline=soon()) for _ in range(2)]
        began = time.monotonic()
        with pytest.raises(SandboxUnavailable, match=r"no room on this host .* 2 sandboxes hold 128 of 128 MiB"):
            await backend.acquire(SPEC, deadline=soon())
        assert 0.2 < time.monotonic() - began < 2 * patience()
        assert engine.asked["create"] == 2
        assert [record.getMessage()[:55] for record in caplog.records] == [
            "waiting for room for a sandbox on this host: 2 sandboxes"[:55]
        ]
        await held[0].close(reuse=False)
        async with await backend.acquire(SPEC, deadline=soon()):
            assert len(files(folder)) == 2
        with pytest.raises(ConfigError, match="more than 4 times what this host has"):
            await backend.acquire(dataclasses.replace(SPEC, pids=999), deadline=soon())
    assert files(folder) == []


async def test_whoever_waits_gets_what_another_client_gives_back_first_come_first_served(
    engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ADMISSION_S", 10)
    async with room_for(1, folder) as one, room_for(1, folder) as other:
        held = await one.acquire(SPEC, deadline=soon())
        order: list[int] = []

        async def use(number: int) -> None:
            async with await other.acquire(SPEC, deadline=soon()):
                order.append(number)

        waiting = [asyncio.create_task(use(number)) for number in range(3)]
        await asyncio.sleep(0.1)
        assert engine.asked["create"] == 1
        await held.close(reuse=False)
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2]


async def test_whoever_waits_gets_one_that_is_given_back_and_no_new_one(
    engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "ADMISSION_S", 10)
    async with room_for(2, folder) as backend:
        held = [await backend.acquire(SPEC, deadline=soon()) for _ in range(2)]
        waiting = [asyncio.create_task(backend.acquire(SPEC, deadline=soon())) for _ in range(6)]
        await asyncio.sleep(0.05)
        for task in waiting:
            await held.pop(0).close()
            held.append(await task)
        assert len({box.id for box in held}) == engine.asked["create"] == 2
        # one that dies while it is warm is not the waiting one's loss
        waits = asyncio.create_task(backend.acquire(SPEC, deadline=soon()))
        await asyncio.sleep(0.05)
        engine.answers["lease"] = lambda name: engine.attached[name].close() if name == held[0].id else lease
        lease = {"oom": 0, "refused_forks": 0}
        await held[0].close()
        assert (await waits).id not in {box.id for box in held}


async def test_what_is_warm_gives_way_to_another_kind(engine: Any, folder: Path) -> None:
    async with room_for(2, folder) as backend:
        await backend.prewarm(SPEC, 2, deadline=soon())
        waiting = [launched.client.name for launched in backend._warm]
        async with await backend.acquire(dataclasses.replace(SPEC, ttl_s=60), deadline=soon()) as sandbox:
            assert set(engine.containers) == {waiting[1], sandbox.id}


async def test_a_verifier_never_waits_for_the_agents_that_wait_for_it(engine: Any, folder: Path) -> None:
    async with room_for(1, folder) as backend, await backend.acquire(SPEC, deadline=soon()):
        began = time.monotonic()
        async with await backend.acquire(VERIFIER, deadline=soon()):
            assert time.monotonic() - began < 0.25 * patience(), "it waited"
            assert len(files(folder)) == 2


@pytest.mark.parametrize("how", ["500", "hangs up", "cancelled", "out of time"])
async def test_what_is_not_made_holds_nothing(engine: Any, folder: Path, how: str) -> None:
    engine.fail("create", "hangs" if how in ("cancelled", "out of time") else how, times=1)
    async with room_for(1, folder) as backend:
        backend.engine.request_s = 0.2
        making = asyncio.create_task(backend.acquire(SPEC, deadline=soon(0.1 if how == "out of time" else 20)))
        await asyncio.sleep(0.05)
        if how == "cancelled":
            making.cancel()
        with pytest.raises((SandboxUnavailable, asyncio.CancelledError)):
            await making
        assert files(folder) == []
        async with await backend.acquire(SPEC, deadline=soon()):
            pass


async def test_closing_ends_whoever_waits(engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "ADMISSION_S", 60)
    async with room_for(1, folder) as backend:
        await backend.acquire(SPEC, deadline=soon())
        waiting = asyncio.create_task(backend.acquire(SPEC, deadline=soon()))
        await asyncio.sleep(0.05)
    with pytest.raises(SandboxUnavailable, match="closed"):
        await waiting
    assert files(folder) == []


# idle


async def until_gone(engine: Any, name: str) -> float:
    began = time.monotonic()
    async with asyncio.timeout(5):
        while name in engine.containers:
            await asyncio.sleep(0.005)
    return time.monotonic() - began


async def test_a_sandbox_that_nobody_asks_for_is_removed_after_a_time(engine: Any, folder: Path) -> None:
    async with room_for(4, folder, max_idle_s=0.15) as backend:
        async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
            await asyncio.sleep(0.3)  # a leased one is nobody's to take
            assert sandbox.id in engine.containers
        assert await until_gone(engine, sandbox.id) > 0.1
        assert (backend._warm, files(folder)) == ([], [])


async def test_each_use_begins_the_time_anew_and_leaves_no_timer_behind(engine: Any, folder: Path) -> None:
    loop: Any = asyncio.get_running_loop()
    async with room_for(4, folder, max_idle_s=60) as backend:
        for _ in range(5):
            async with await backend.acquire(SPEC, deadline=soon()):
                assert backend._warm == []
            (waits,) = backend._warm
            timers = [handle for handle in loop._scheduled if not handle.cancelled() and "_evict" in repr(handle)]
            assert timers == [waits.idle]
            assert 59 < timers[0].when() - loop.time() <= 60
        assert engine.asked["create"] == 1


async def test_an_idle_timer_does_not_hold_up_a_close(engine: Any, folder: Path) -> None:
    began = time.monotonic()
    async with room_for(4, folder) as backend:
        await backend.prewarm(SPEC, 2, deadline=soon())
    assert time.monotonic() - began < 5 * patience()
    assert engine.containers == {} and os.listdir(folder) == []
