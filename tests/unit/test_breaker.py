"""The circuit breaker, by itself and in front of an engine that hangs, goes away and comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import SandboxUnavailable
from metier.harness.sandbox.docker import DockerBackend
from metier.harness.sandbox.docker.breaker import Breaker, Circuit
from metier.harness.sandbox.docker.engine import Engine, EngineError
from metier.harness.testing import SPEC
from stub_engine import StubEngine
from waiting import patience, soon


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(failures=3, cool_down_s=10, now=clock)


def test_failures_in_a_row_open_it_and_an_answer_between_them_does_not_count(breaker: Breaker) -> None:
    for _ in range(2):
        breaker.failed("no answer")
    breaker.succeeded()
    for _ in range(2):
        breaker.failed("no answer")
    assert breaker.circuit is Circuit.CLOSED
    breaker.failed("the last one")
    assert (breaker.circuit, breaker.why, breaker.left_s) == (Circuit.OPEN, "the last one", 10)


def test_after_the_cool_down_one_caller_asks_and_its_answer_decides(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        breaker.failed("no answer")
    clock.s += 9.9
    breaker.failed("asked for long ago")
    assert not breaker.try_again()
    clock.s += 0.2  # the late failure has not kept it open for longer
    assert breaker.try_again()
    assert not breaker.try_again()
    breaker.failed("still away")
    assert (breaker.circuit, breaker.left_s) == (Circuit.OPEN, 10)
    clock.s += 10
    assert breaker.try_again()
    breaker.succeeded()
    breaker.failed("one alone")
    assert breaker.circuit is Circuit.CLOSED


def test_a_question_that_nobody_waits_for_leaves_it_to_the_next(breaker: Breaker, clock: Clock) -> None:
    for _ in range(3):
        breaker.failed("no answer")
    clock.s += 10
    assert breaker.try_again()
    breaker.given_up()
    assert breaker.try_again()


@pytest.fixture
async def stub(tmp_path: Path) -> AsyncIterator[Any]:
    async with StubEngine(tmp_path / "engine.sock") as stub:
        yield stub


@pytest.fixture
def engine(stub: Any, clock: Clock) -> Engine:
    engine = Engine(str(stub.path), request_s=0.1)
    engine.breaker = Breaker(failures=3, cool_down_s=10, now=clock)
    return engine


async def failing(engine: Engine) -> None:
    with pytest.raises(SandboxUnavailable):
        await engine.request("GET", "/containers/json")


@pytest.mark.parametrize("how", ["hangs", "hangs up", "resets", "no HTTP"])
async def test_an_engine_that_does_not_answer_is_left_alone_and_tried_again(
    stub: Any, engine: Engine, clock: Clock, how: str
) -> None:
    stub.fail("list", how)
    for _ in range(3):
        await failing(engine)
    began = time.monotonic()
    with pytest.raises(SandboxUnavailable, match=r"left alone for 10 s more.*last: .*engine\.sock"):
        await engine.request("GET", "/containers/json")
    with pytest.raises(SandboxUnavailable, match="left alone"):
        await engine.attach("x")
    assert time.monotonic() - began < 0.05 * patience()
    assert (stub.asked["list"], stub.asked["attach"]) == (3, 0)
    clock.s += 10
    await failing(engine)  # the question was answered, the request itself is not
    assert (stub.asked["ping"], stub.asked["list"], engine.breaker.circuit) == (1, 4, Circuit.CLOSED)


async def test_an_engine_that_is_away_is_asked_once_a_cool_down(stub: Any, engine: Engine, clock: Clock) -> None:
    stub.fail("list", "hangs up", times=3)
    for _ in range(3):
        await failing(engine)
    stub.fail("ping", "hangs up", times=1)
    clock.s += 10
    outcomes = await asyncio.gather(
        *(engine.request("GET", "/containers/json") for _ in range(5)), return_exceptions=True
    )
    assert all(isinstance(outcome, SandboxUnavailable) for outcome in outcomes)
    assert (stub.asked["ping"], stub.asked["list"]) == (1, 3)
    clock.s += 10
    assert (await engine.request("GET", "/containers/json")).status == 200


async def test_a_cut_off_question_does_not_close_the_way_for_ever(stub: Any, engine: Engine, clock: Clock) -> None:
    stub.fail("list", "hangs up", times=3)
    for _ in range(3):
        await failing(engine)
    clock.s += 10
    stub.fail("ping", "hangs", times=1)
    asking = asyncio.create_task(engine.request("GET", "/containers/json"))
    await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await engine.request("GET", "/containers/json")).status == 200


@pytest.mark.parametrize("how", ["500", "409", "rubbish JSON"])
async def test_an_engine_that_refuses_is_there(stub: Any, engine: Engine, how: str) -> None:
    stub.fail("list", how)
    for _ in range(10):
        with pytest.raises(EngineError):
            await engine.checked("GET", "/containers/json")
    assert (stub.asked["list"], engine.breaker.circuit) == (10, Circuit.CLOSED)


async def test_a_callers_impatience_is_no_failure_of_the_engine(stub: Any, engine: Engine) -> None:
    stub.fail("events", "hangs")
    for _ in range(5):
        with pytest.raises(SandboxUnavailable):
            await engine.request("GET", "/events", timeout_s=0.02)
    assert engine.breaker.circuit is Circuit.CLOSED


async def test_sandboxes_are_refused_at_once_and_had_again_afterwards(
    stub: Any, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{stub.path}")
    monkeypatch.setenv("METIER_HOME", str(tmp_path / "home"))
    async with DockerBackend() as backend:
        backend.engine.request_s = 0.1
        backend.engine.breaker = Breaker(failures=3, cool_down_s=10, now=clock)
        for stage in ("create", "delete"):
            stub.fail(stage, "hangs")
        for _ in range(3):
            with pytest.raises(SandboxUnavailable):
                await backend.acquire(SPEC, deadline=soon())
        began, asked = time.monotonic(), stub.asked["create"]
        for _ in range(5):
            with pytest.raises(SandboxUnavailable, match="left alone"):
                await backend.acquire(SPEC, deadline=soon())
        assert time.monotonic() - began < 0.2 * patience()
        assert stub.asked["create"] == asked
        stub.faults.clear()
        clock.s += 10
        async with await backend.acquire(SPEC, deadline=soon()) as sandbox:
            assert sandbox.id in stub.containers
