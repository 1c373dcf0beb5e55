"""Many sandboxes asked for at once: a bounded number in the making, one that never comes up, callers that give up."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import SandboxSpec, SandboxUnavailable
from metier.harness.sandbox import pool
from metier.harness.sandbox.docker import DockerBackend
from stub_engine import StubEngine
from waiting import soon

SPEC = SandboxSpec(image="terminal-python", memory_mb=64, pids=16, writable_mb={"/workspace": 16})
"""So small that 64 of them are within what a host lends."""
AT_ONCE = 2 * (os.cpu_count() or 1)
SOON_S = 10.0
"""In time, on a busy machine too."""


class Slow(StubEngine):
    """An engine that takes a moment for each start and counts those in hand; the stewards of `mute` say nothing."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.in_hand: set[str] = set()
        self.most = 0
        self.mute: set[int] = set()

    async def _steward(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.in_hand.add(name)
        self.most = max(self.most, len(self.in_hand))
        try:
            if self.asked["attach"] in self.mute:
                writer.write(b"HTTP/1.1 101 UPGRADED\r\n\r\n")
                await reader.read()  # until whoever waits for a hello hangs up
                self.containers.pop(name, None)
                return
            await asyncio.sleep(0.02)
        finally:
            self.in_hand.discard(name)
        await super()._steward(name, reader, writer)


@pytest.fixture
async def engine(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Any]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setenv("METIER_HOME", str(tmp_path_factory.getbasetemp() / "parallel-starts"))
    async with Slow(tmp_path / "engine.sock") as stub:
        yield stub


async def until_empty(engine: Any) -> None:
    async with asyncio.timeout(SOON_S):
        while engine.containers or engine.attached or engine.in_hand:
            await asyncio.sleep(0.01)


async def test_of_sixty_four_starts_at_once_few_are_in_the_making(engine: Any) -> None:
    """An engine that is asked for all of them together answers none in time."""
    async with DockerBackend() as backend:
        boxes = await asyncio.gather(*(backend.acquire(SPEC, deadline=soon()) for _ in range(64)))
        assert len({box.id for box in boxes}) == len(engine.containers) == 64
        assert 1 < engine.most <= AT_ONCE
    assert engine.containers == {}


async def test_who_waits_for_its_turn_too_long_is_told_by_its_own_limit(engine: Any) -> None:
    async with DockerBackend() as backend:
        began = time.monotonic()
        outcomes = await asyncio.gather(
            *(backend.acquire(SPEC, deadline=soon(0.15)) for _ in range(64)), return_exceptions=True
        )
        assert time.monotonic() - began < SOON_S
        late = [one for one in outcomes if isinstance(one, BaseException)]
        assert late and all(isinstance(one, SandboxUnavailable) and "test_s" in str(one) for one in late), late
        for box in outcomes:
            if not isinstance(box, BaseException):
                await box.close(reuse=False)
        await until_empty(engine)


async def test_one_that_never_comes_up_holds_no_other_up(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metier.harness.sandbox.docker.backend.HELLO_S", 1.5)
    engine.mute = {3}
    async with DockerBackend() as backend:
        asked = [asyncio.create_task(backend.acquire(SPEC, deadline=soon())) for _ in range(8)]
        done, waiting = await asyncio.wait(asked, return_when=asyncio.FIRST_EXCEPTION)
        assert (len(done), waiting) == (8, set()), "others waited for it"
        (error,) = [one.exception() for one in done if one.exception()]
        assert isinstance(error, SandboxUnavailable)
        assert SPEC.image in str(error) and "did not answer within 1.5 s" in str(error)
        async with asyncio.timeout(SOON_S):
            while len(engine.containers) > 7:  # it is removed, not kept
                await asyncio.sleep(0.01)
    assert engine.containers == {}


async def test_an_engine_at_its_limit_is_told_in_its_own_words(engine: Any) -> None:
    """No room for another one, no address left, too many ports: whoever runs the machine has to read which."""
    engine.fail("create", "500", times=1)
    async with DockerBackend() as backend:
        with pytest.raises(SandboxUnavailable, match="the daemon is tired"):
            await backend.acquire(SPEC, deadline=soon())
        async with await backend.acquire(SPEC, deadline=soon()):
            pass


async def test_a_second_interrupt_during_a_close_leaves_no_sandbox(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "RESET_S", 0.3)
    engine.answers["reset"] = lambda _: None  # a reset that is not answered: the close takes its time
    async with DockerBackend() as backend:
        for reuse in (True, False):
            sandbox = await backend.acquire(SPEC, deadline=soon())
            closing = asyncio.create_task(sandbox.close(reuse=reuse))
            again = asyncio.create_task(sandbox.close(reuse=reuse))
            await asyncio.sleep(0.02)
            for task in (closing, again):
                task.cancel()
            await asyncio.gather(closing, again, return_exceptions=True)
            await until_empty(engine)
            assert backend._leased == {}
