"""Snapshots do not fill the disk: the longest unused go, and a fork that misses its own has it taken again."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from metier.envs import registry
from metier.envs.core import (
    ConfigError,
    ExecResult,
    Instance,
    Rng,
    Sandbox,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
)
from metier.harness.prepare import Preparer, Task
from metier.harness.sandbox.fake import FakeBackend, FakeSandbox, result
from metier.harness.sandbox.snapshots import SnapshotGone, SnapshotStore
from metier.harness.testing import ECHO
from metier.harness.testing.echo.family import Echo
from waiting import soon

registry.add_registry(ECHO)
SPEC = SandboxSpec(image="terminal-python", writable_mb={"/workspace": 16})
KIB = 1 << 10


def take(store: SnapshotStore, mark: int, kib: int = 256) -> Snapshot:
    with store.writer(SPEC) as writer:
        writer.add(mark.to_bytes(8, "big") + bytes(kib * KIB - 8))
        taken = writer.finish()
    store.added(taken)
    return taken


def used_at(folder: Path, snapshot: Snapshot, seconds_ago: float) -> None:
    moment = time.time() - seconds_ago
    os.utime(folder / f"{snapshot.digest}.tar", (moment, moment))


def there(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.tar")}


def test_the_longest_unused_make_room(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, most_mb=1)
    taken = [take(store, mark) for mark in range(4)]
    for age, snapshot in zip((40, 30, 20, 10), taken, strict=True):
        used_at(tmp_path, snapshot, age)
    store.use(taken[0])
    fifth = take(store, 5)
    assert there(tmp_path) == {one.digest for one in (taken[0], taken[2], taken[3], fifth)}
    for gone in (store.use, store.read):
        with pytest.raises(SnapshotGone, match="prepare it") as caught:
            gone(taken[1])
        assert isinstance(caught.value, ConfigError)


def test_an_identical_tree_counts_as_used_and_the_newest_stays_however_large(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, most_mb=1)
    old, other = take(store, 1), take(store, 2)
    used_at(tmp_path, old, 99)
    used_at(tmp_path, other, 50)
    assert take(store, 1) == old
    huge = take(store, 3, kib=2048)
    assert there(tmp_path) == {huge.digest}
    take(store, 4)
    assert huge.digest not in there(tmp_path)


def test_a_new_process_bounds_what_earlier_ones_left(tmp_path: Path) -> None:
    generous = SnapshotStore(tmp_path, most_mb=64)
    for mark in range(16):
        used_at(tmp_path, take(generous, mark), 100 - mark)
    assert len(there(tmp_path)) == 16
    take(SnapshotStore(tmp_path, most_mb=1), 99)
    assert len(there(tmp_path)) == 4


def test_the_folder_is_looked_at_once_a_sixteenth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SnapshotStore(tmp_path, most_mb=1)
    looked = 0
    scan = os.scandir

    def counted(*args: object) -> object:
        nonlocal looked
        looked += 1
        return scan(*args)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", counted)
    for mark in range(160):
        take(store, mark, kib=8)
    assert looked == 1 + 159 // 8
    assert sum(path.stat().st_size for path in tmp_path.glob("*.tar")) <= (1 << 20) * 17 // 16


def test_what_a_killed_writer_left_unfinished_goes_and_one_at_work_does_not(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, most_mb=1)
    (tmp_path / "at-work.partial").write_bytes(b"x" * KIB)
    (tmp_path / "killed.partial").write_bytes(b"x" * KIB)
    os.utime(tmp_path / "killed.partial", (1, 1))
    (tmp_path / "another's").write_bytes(b"x" * (4 << 20))
    take(store, 1)
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".tar"} == {"at-work.partial", "another's"}


def test_forks_and_removals_at_once_give_whole_bytes_or_say_so(tmp_path: Path) -> None:
    """Threads stand for processes: they share nothing but the folder. Half of the trees fit."""
    taken: list[Snapshot] = [take(SnapshotStore(tmp_path, most_mb=1), 0, kib=128)]
    outcomes: Counter[str] = Counter()

    def write(first: int) -> None:
        store = SnapshotStore(tmp_path, most_mb=1)
        for mark in range(first, first + 80):
            try:
                taken.append(take(store, mark % 16, kib=128))
            except Exception as error:
                outcomes[repr(error)] += 1

    def fork() -> None:
        store, draw = SnapshotStore(tmp_path, most_mb=1), random.Random(0)
        for _ in range(300):
            chosen = draw.choice(taken)
            try:
                outcomes["whole" if len(store.read(chosen)) == chosen.size_bytes else "cut"] += 1
            except SnapshotGone:
                outcomes["gone"] += 1
            except Exception as error:
                outcomes[repr(error)] += 1

    with ThreadPoolExecutor(5) as threads:
        for first in (0, 5):
            threads.submit(write, first)
        for _ in range(3):
            threads.submit(fork)
    assert set(outcomes) == {"whole", "gone"}, outcomes
    assert sum(outcomes.values()) == 900


# a fork that misses its snapshot


class Counting(FakeBackend):
    """Counts how often a line of set-up was run."""

    def __init__(self) -> None:
        super().__init__(replies={"make it": self._made})
        self.num_setups = 0

    def _made(self, sandbox: FakeSandbox, command: str) -> ExecResult:
        self.num_setups += 1
        return result()


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Counting:
    """Instances of the echo family have a line of set-up, so that each has a snapshot."""
    generate = Echo.generate

    def with_setup(family: Echo, rng: Rng, level: int) -> Instance:
        return dataclasses.replace(generate(family, rng, level), setup=("make it",))

    monkeypatch.setattr(Echo, "generate", with_setup)
    return Counting()


async def forks(preparer: Preparer, task: Task, count: int) -> list[Sandbox]:
    prepared = await preparer.prepare(task, deadline=soon())
    return await asyncio.gather(*(preparer.fork(prepared, deadline=soon()) for _ in range(count)))


async def test_a_snapshot_that_made_room_is_taken_again_once_for_the_whole_group(backend: Counting) -> None:
    preparer, task = Preparer(backend), Task(env_id="test/Echo-v0", seed=3)
    held = await forks(preparer, task, 2)
    assert backend.num_setups == 1
    backend.snapshots.clear()
    held += await forks(preparer, task, 4)
    assert backend.num_setups == 2
    held += await forks(preparer, task, 1)
    assert backend.num_setups == 2
    texts = {await sandbox.read("/workspace/numbers.txt", max_bytes=999) for sandbox in held}
    assert len(texts) == 1
    assert len(backend.open) == 7


async def test_one_that_is_removed_as_often_as_it_is_taken_is_a_typed_error(
    backend: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def forgetful(self: object, *args: object, **options: object) -> Sandbox:
        backend.snapshots.clear()
        return await acquire(self, *args, **options)  # type: ignore[arg-type]

    acquire = FakeBackend.acquire
    monkeypatch.setattr(FakeBackend, "acquire", forgetful)
    preparer = Preparer(backend)
    with pytest.raises(SandboxUnavailable, match="removed as often as it is taken"):
        await forks(preparer, Task(env_id="test/Echo-v0", seed=3), 1)
    assert backend.open == {}
