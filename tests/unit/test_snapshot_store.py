"""A snapshot appears whole or not at all, also where its writer is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from metier.envs.core import ConfigError, SandboxSpec, Snapshot
from metier.harness.sandbox.snapshots import SnapshotStore

SPEC = SandboxSpec(image="terminal-python", writable_mb={"/workspace": 16})


@pytest.fixture(params=["nameless files", "none"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SnapshotStore:
    """On a file system with nameless files, and on one without."""
    if request.param == "none":
        opened = os.open

        def refuse(path: object, flags: int, *rest: int) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError("no nameless files here")
            return opened(path, flags, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(os, "open", refuse)
    return SnapshotStore(tmp_path / "snapshots")


def test_the_bytes_come_back_and_identical_trees_share_a_file(store: SnapshotStore, tmp_path: Path) -> None:
    for _ in range(2):
        with store.writer(SPEC) as writer:
            writer.add(b"first ")
            writer.add(b"second")
            snapshot = writer.finish()
        assert store.read(snapshot) == b"first second"
        assert store.use(snapshot).stat().st_mode & 0o777 == 0o600
    assert len(list((tmp_path / "snapshots").iterdir())) == 1


def test_without_finish_nothing_stays(store: SnapshotStore, tmp_path: Path) -> None:
    with store.writer(SPEC) as writer:
        writer.add(b"half")
    assert list((tmp_path / "snapshots").iterdir()) == []
    with pytest.raises(ConfigError, match="prepare it"):
        store.use(Snapshot(digest="0" * 64, spec=SPEC, size_bytes=4))


def test_a_killed_writer_leaves_nothing(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with SnapshotStore(tmp_path / "snapshots").writer(SPEC) as writer:
            writer.add(b"half" * 1000)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert list((tmp_path / "snapshots").iterdir()) == []
