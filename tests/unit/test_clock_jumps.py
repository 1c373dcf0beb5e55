"""The time of day is set, by an hour or by years: whatever measures or decides goes on as before."""

from __future__ import annotations

import ast
import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import Deadline
from metier.harness.sandbox.docker import DockerBackend, reaper
from metier.harness.sandbox.owner import DEADLINE, DEADLINE_UP, OWNER, Owner, up_s
from metier.harness.sandbox.steward.loop import Loop
from metier.harness.testing import SPEC
from stub_engine import StubEngine
from waiting import soon

ROOMS = Path(__file__).parents[2]
DAY_S = 86_400.0
JUMPS_S = {"a day ahead": DAY_S, "years ahead": 3000 * DAY_S, "years back": -3000 * DAY_S}
_REAL = time.time


@pytest.fixture(params=JUMPS_S)
def jump(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the time of day when it is called."""
    moved_s = JUMPS_S[request.param]
    return lambda: monkeypatch.setattr(time, "time", lambda: _REAL() + moved_s)


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setenv("METIER_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(reaper, "EVERY_S", 0.02)
    async with StubEngine(tmp_path / "engine.sock") as stub:
        yield stub


async def test_a_leased_sandbox_outlives_a_jump_and_the_next_ones_come_as_ever(engine: Any, jump: Any) -> None:
    async with DockerBackend() as backend:
        async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
            jump()
            looked = engine.asked["list"]
            async with asyncio.timeout(10):
                while engine.asked["list"] < looked + 3:  # the reaper has looked at it meanwhile
                    await asyncio.sleep(0.01)
            assert list(engine.containers) == [sandbox.id]
            assert (await sandbox.client.call("facts", timeout_s=5)).fields["pids"] == 1
        async with await backend.acquire(SPEC, deadline=soon()) as again:
            assert again.id == sandbox.id  # it waited meanwhile, and is as young as it was
    assert engine.containers == {}


async def test_what_was_left_is_reaped_after_a_jump_all_the_same(
    engine: Any, jump: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Owner.current()
    monkeypatch.setattr(reaper, "GRACE_S", 0.0)
    far, past = str(int(up_s() + 3600)), "0"
    for name, labels in {
        "dead": {OWNER: me._replace(started=1).label(), DEADLINE_UP: far},
        "past": {OWNER: me.label(), DEADLINE_UP: past, DEADLINE: str(int(_REAL() + 3600))},
        "mine": {OWNER: me.label(), DEADLINE_UP: far, DEADLINE: str(int(_REAL() - 3600))},
    }.items():
        engine.containers[name] = {"Id": name, "Names": [f"/{name}"], "Labels": labels}
    jump()
    async with DockerBackend():
        async with asyncio.timeout(10):
            while set(engine.containers) != {"mine"}:
                await asyncio.sleep(0.01)


async def test_deadlines_and_the_stewards_timers_do_not_move(jump: Any) -> None:
    deadline = Deadline.after(100, limit="test_s", set_by="test")
    loop, rung = Loop(), list[str]()
    loop.after(60, lambda: rung.append("late"))
    loop.after(0.01, lambda: rung.append("soon"))
    jump()
    assert 90 < deadline.left_s() <= 100
    while not rung:
        loop.turn()
    assert rung == ["soon"]


BY_THE_TIME_OF_DAY = {
    "harness/sandbox/docker/container.py": "a deadline for engines of another boot, in a label",
    "harness/sandbox/docker/reaper.py": "the same, read",
    "harness/sandbox/docker/backend.py": "a run's name; the engine's journal is kept by the time of day",
    "harness/sandbox/budget.py": "until when a claim can last, in its name",
    "harness/sandbox/snapshots.py": "which file was used last",
}
"""Everything else of sandboxes, episodes and scheduling measures with clocks that nobody sets."""


def test_nothing_else_reads_the_time_of_day() -> None:
    modules = [*(ROOMS / "harness" / "sandbox").rglob("*.py"), *(ROOMS / "harness").glob("*.py")]
    modules += [*(ROOMS / "scheduler").rglob("*.py"), *(ROOMS / "harness" / "gym").glob("*.py")]
    found = {
        module.relative_to(ROOMS).as_posix()
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and (ast.unparse(node) in ("time.time", "time.time_ns", "datetime.now"))
    }
    assert found <= set(BY_THE_TIME_OF_DAY), found
