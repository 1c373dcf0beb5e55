"""What is cut short by an interrupt or a full disk ends in order: launches, openings, certificates, pictures."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from metier.cli.watching import Watcher
from metier.envs.core import Capability, Deadline, RecordError, SandboxSpec, SandboxUnavailable
from metier.envs.registry import get
from metier.harness.backends import Backends
from metier.harness.certify import certificate
from metier.harness.sandbox import registry
from metier.harness.sandbox.pool import Launched, StewardBackend
from metier.harness.sandbox.snapshots import SnapshotStore

SPEC = SandboxSpec(image="none", memory_mb=64, writable_mb={"/workspace": 16})


def soon() -> Deadline:
    """Counted from now: the modules of a whole run are read long before their tests."""
    return Deadline.after(60, limit="test_s", set_by="test")


class NeverUp(StewardBackend):
    """Its sandboxes never come up, and say when they are cut off."""

    name = "never"
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, folder: Path) -> None:
        super().__init__(snapshots=SnapshotStore(folder))
        self.begun = 0
        self.cleared = 0

    async def launch(self, name: str, spec: SandboxSpec, *, deadline: Deadline) -> Launched:
        self.begun += 1
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            self._spawn(self._clear())
            raise
        raise AssertionError

    async def _clear(self) -> None:
        await asyncio.sleep(0.05)
        self.cleared += 1


async def test_closing_a_backend_cuts_off_what_is_being_launched_and_waits_for_it(tmp_path: Path) -> None:
    async with NeverUp(tmp_path) as backend:
        waiting = [asyncio.create_task(backend.acquire(SPEC, deadline=soon())) for _ in range(2)]
        await asyncio.sleep(0.01)
    assert (backend.begun, backend.cleared) == (2, 2)
    for each in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(each, SandboxUnavailable)
        assert "is closed" in str(each)


async def test_a_backend_that_is_still_opening_is_closed_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    events: list[str] = []

    class Slow(NeverUp):
        def __init__(self) -> None:
            super().__init__(tmp_path)

        async def __aenter__(self) -> Slow:
            events.append("opening")
            await asyncio.sleep(1000)
            raise AssertionError

    monkeypatch.setattr(registry.importlib, "import_module", lambda _: SimpleNamespace(BubblewrapBackend=Slow))
    backends = Backends()
    asking = asyncio.create_task(backends.get("bubblewrap"))
    await asyncio.sleep(0.01)
    async with asyncio.timeout(5):
        await backends.close()
        await asyncio.gather(asking, return_exceptions=True)
    assert events == ["opening"] and asking.done() and not backends.is_open("bubblewrap")


def test_a_certificate_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "family_folder", lambda _: tmp_path)
    (tmp_path / certificate.CERTIFICATE).write_text("old")

    def half(path: Path, text: str, **_: Any) -> None:
        path.write_bytes(text[: len(text) // 2].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    whole = certificate.Certificate.model_construct(env_id="x")
    with pytest.raises(RecordError, match="make room"):
        certificate.save(get("finance/CovenantTest-v0"), whole)
    assert [path.name for path in tmp_path.iterdir()] == [certificate.CERTIFICATE]
    assert (tmp_path / certificate.CERTIFICATE).read_text() == "old"


def test_a_picture_that_cannot_be_kept_is_said_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shown = io.StringIO()
    watcher = Watcher(Console(file=shown, width=200), tmp_path / "file" / "pictures")
    step: Any = SimpleNamespace(result=SimpleNamespace(text="", images=(b"png",), ok=True))
    episode: Any = SimpleNamespace(num_steps=3, task=SimpleNamespace(env_id="a/B-v0", seed=1, level=0))
    watcher(episode, SimpleNamespace(tool="view", arguments={}), step)  # type: ignore[arg-type]
    watcher.stopped()
    assert "picture not kept" in shown.getvalue() and "--out" in shown.getvalue()
    assert "stopped after 3 steps, ungraded; no pictures were saved" in shown.getvalue()
