"""An engine that hangs keeps nobody from ending: closing gives up what nothing is done about, and says what that is."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metier.harness.sandbox import clearing, pool
from metier.harness.sandbox.clearing import Clearing
from metier.harness.sandbox.docker import DockerBackend
from metier.harness.testing import SPEC
from stub_engine import StubEngine
from waiting import patience, soon

STALL_S = 0.5
ENDS_S = 10.0
"""For a whole command, whatever hangs."""


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setenv("METIER_HOME", str(tmp_path / "home"))
    async with StubEngine(tmp_path / "engine.sock") as stub:
        yield stub


@pytest.fixture
def soon_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "STALL_S", STALL_S)


async def until_alone(engine: Any) -> None:
    """A sandbox ends with its connection, whatever the engine does."""
    async with asyncio.timeout(5 * patience()):
        while engine.attached:
            await asyncio.sleep(0.01)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.usefixtures("soon_stalled")
async def test_closing_gives_up_what_the_engine_does_not_remove_and_says_so(
    engine: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with DockerBackend() as backend:
        await backend.prewarm(SPEC, 2, deadline=soon())
        held = await backend.acquire(SPEC, deadline=soon())
        names = {held.id, *(launched.client.name for launched in backend._warm)}
        engine.fail("delete", "hangs")
        began = time.monotonic()
    assert STALL_S <= time.monotonic() - began < STALL_S + 2 * patience()
    (told,) = warnings(caplog)
    assert set(re.findall(r"metier-[0-9a-f]{12}", told)) == names
    assert "the reaper will take what is left" in told
    await until_alone(engine)


@pytest.mark.usefixtures("soon_stalled")
async def test_a_hang_is_waited_for_once(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Not by each sandbox that is given back, and again at the end."""
    async with DockerBackend() as backend:
        held = [await backend.acquire(SPEC, deadline=soon()) for _ in range(3)]
        engine.fail("delete", "hangs")
        began = time.monotonic()
        for sandbox in held:
            await sandbox.close(reuse=False)
    assert time.monotonic() - began < 2 * STALL_S * patience()
    (told,) = warnings(caplog)
    assert all(sandbox.id in told for sandbox in held)


@pytest.mark.usefixtures("soon_stalled")
async def test_an_engine_that_is_frozen_whole_is_no_different(
    engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pool, "RESET_S", 0.2)
    async with DockerBackend() as backend:
        held = await backend.acquire(SPEC, deadline=soon())
        engine.answers["reset"] = lambda _: None
        for stage in ("delete", "events", "list", "ping"):
            engine.fail(stage, "hangs")
        began = time.monotonic()
        await held.close()
    assert time.monotonic() - began < 0.2 + 2.0 + STALL_S + 2 * patience()  # blame asks for its 2 s
    (told,) = warnings(caplog)
    assert held.id in told


@pytest.mark.usefixtures("soon_stalled")
async def test_a_launch_that_hangs_is_given_up_too(engine: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with DockerBackend() as backend:
        engine.fail("attach", "hangs")
        engine.fail("delete", "hangs")
        asking = asyncio.create_task(backend.acquire(SPEC, deadline=soon()))
        async with asyncio.timeout(5 * patience()):
            while not engine.asked["attach"]:
                await asyncio.sleep(0.01)
        began = time.monotonic()
    assert time.monotonic() - began < STALL_S + 2 * patience()
    (told,) = warnings(caplog)
    assert next(iter(engine.containers)) in told
    await asyncio.gather(asking, return_exceptions=True)


@pytest.mark.usefixtures("soon_stalled")
async def test_an_engine_that_is_slow_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    clearing_up, gone = Clearing("slow"), list[int]()

    async def remove(number: int) -> None:
        await asyncio.sleep(0.2 * number)
        gone.append(number)

    tasks = [clearing_up.spawn(remove(number), f"box {number}") for number in range(1, 8)]
    await clearing_up.settled(tasks[-1])
    assert gone == [1, 2, 3, 4, 5, 6, 7]  # 1.4 s, of which none was without a word for half a second
    await clearing_up.finish()
    assert warnings(caplog) == []


CLIENT = """
import asyncio, sys, typer
from metier.cli.interrupts import run
from metier.harness.sandbox import open_backend
from metier.harness.testing import SPEC
from waiting import soon

async def work():
    async with open_backend("docker") as backend:
        box = await backend.acquire(SPEC, deadline=soon())
        print("up", box.id, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

try:
    run(work())
except typer.Exit as ended:
    sys.exit(ended.exit_code)
"""


@pytest.mark.parametrize("how", ["by itself", "Ctrl-C", "SIGTERM"])
async def test_a_command_ends_within_its_bound(engine: Any, how: str) -> None:
    """With the bounds that are in force."""
    fixtures = str(Path(__file__).parents[1] / "fixtures")
    client = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", CLIENT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": fixtures},
    )
    assert client.stdout is not None and client.stdin is not None and client.stderr is not None
    async with asyncio.timeout(60 * patience()):
        words = (await client.stdout.readline()).split()
    assert words[:1] == [b"up"], (await client.stderr.read()).decode()
    for stage in ("delete", "list", "ping"):
        engine.fail(stage, "hangs")
    began = time.monotonic()
    if how != "by itself":
        client.send_signal(signal.SIGINT if how == "Ctrl-C" else signal.SIGTERM)
        await asyncio.sleep(0.1)
    client.stdin.close()  # a thread that reads it is waited for
    said = (await client.stderr.read()).decode()
    await client.wait()
    took_s = time.monotonic() - began
    assert took_s < ENDS_S * patience()
    assert client.returncode == {"by itself": 0, "Ctrl-C": 130, "SIGTERM": 143}[how], said
    assert words[1].decode() in said and "the reaper will take what is left" in said
    assert ("interrupted" in said) == (how != "by itself")
    assert "Traceback" not in said
    await until_alone(engine)
