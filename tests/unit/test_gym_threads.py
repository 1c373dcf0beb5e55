"""Two threads at one environment: one works, the other is told, and no sandbox is forgotten."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import gymnasium
import pytest
from gymnasium.error import ClosedEnvironmentError

from echo_vector import ID, Make, fake, vectors, wait
from metier.envs.core import ConfigError
from metier.harness.testing import FakeBackend

BUSY = "an environment serves one thread at a time"


@pytest.fixture
def make() -> Iterator[Make]:
    with vectors() as make_vec:
        yield make_vec


@pytest.fixture
def env() -> Iterator[Any]:
    made = gymnasium.make(ID, backend="fake", disable_env_checker=True)
    yield made
    made.close()
    assert fake().open == {}


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Sandboxes take a while; set while one is being had."""
    acquire, asked = FakeBackend.acquire, threading.Event()

    async def late(self: FakeBackend, *arguments: Any, **more: Any) -> Any:
        asked.set()
        await asyncio.sleep(0.3)
        return await acquire(self, *arguments, **more)

    monkeypatch.setattr(FakeBackend, "acquire", late)
    return asked


@pytest.fixture
def other() -> Iterator[Callable[..., Future[Any]]]:
    """Calls in another thread."""
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


def until(told: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not told():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_reset_is_refused_and_the_first_goes_on(
    env: Any, slow: threading.Event, other: Callable[..., Future[Any]]
) -> None:
    first = other(env.reset, seed=1)
    assert slow.wait(20)
    with pytest.raises(ConfigError, match=rf"reset\(\) while another thread is in reset\(\).*{BUSY}"):
        env.reset(seed=2)
    assert first.result(20)[1]["seed"] == 1
    assert len(fake().open) == 1
    assert env.reset(seed=3)[1]["seed"] == 3
    assert len(fake().open) == 1


def test_many_resets_at_once_leave_one_sandbox(env: Any, slow: threading.Event) -> None:
    barrier, outcomes = threading.Barrier(8), list[object]()

    def reset() -> None:
        barrier.wait(20)
        try:
            outcomes.append(env.reset(seed=1)[1]["seed"])
        except ConfigError as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=reset) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert outcomes.count(ConfigError) == 7
    assert outcomes.count(1) == 1
    assert len(fake().open) == 1


def test_a_reset_during_a_step_is_refused_and_the_step_ends_well(env: Any, other: Callable[..., Future[Any]]) -> None:
    env.reset(seed=1)
    member = env.unwrapped._member
    step = other(env.step, wait(0.5))
    until(lambda: member._turns._running)
    with pytest.raises(ConfigError, match=rf"reset\(\) while another thread is in step\(\).*{BUSY}"):
        env.reset()
    with pytest.raises(ConfigError, match=rf"step\(\) while another thread is in step\(\).*{BUSY}"):
        env.step(wait(0))
    assert step.result(20)[0]["text"] == "waited 0.5 s"
    assert len(fake().open) == 1


def test_closing_ends_a_reset_that_another_thread_is_in(
    env: Any, slow: threading.Event, other: Callable[..., Future[Any]]
) -> None:
    resetting = other(env.unwrapped.reset, seed=1)
    assert slow.wait(20)
    env.close()
    with pytest.raises(ClosedEnvironmentError, match=r"closed in the middle of reset\(\)"):
        resetting.result(20)
    assert fake().open == {}
    assert env.unwrapped.reset(seed=1)[1]["seed"] == 1  # it can be used again, as after any close


def test_closing_ends_a_step_that_another_thread_is_in(env: Any, other: Callable[..., Future[Any]]) -> None:
    env.reset(seed=1)
    step = other(env.step, wait(60))
    until(lambda: env.unwrapped._member._turns._running)
    env.close()
    with pytest.raises(ClosedEnvironmentError, match=r"closed in the middle of step\(\)"):
        step.result(20)
    assert fake().open == {}


@pytest.fixture
def lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main thread hands work to the loop, which begins it, and only then goes on: as on a busy machine."""
    hand_over = asyncio.BaseEventLoop.call_soon_threadsafe

    def linger(self: asyncio.BaseEventLoop, *arguments: Any, **more: Any) -> Any:
        handle = hand_over(self, *arguments, **more)
        if threading.current_thread() is threading.main_thread():
            time.sleep(0.2)
        return handle

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_soon_threadsafe", linger)


@pytest.mark.parametrize("moment", ["waiting for it", "handing it over"])
def test_a_reset_after_an_interrupted_one_waits_for_its_end(
    env: Any, slow: threading.Event, moment: str, request: pytest.FixtureRequest
) -> None:
    """As in a notebook: Ctrl-C in the middle, then the cell again, at once."""
    if moment == "handing it over":
        request.getfixturevalue("lingering")

    def interrupt() -> None:
        slow.wait(20)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        env.reset(seed=1)
    thread.join()
    assert env.reset(seed=2)[1]["seed"] == 2
    assert len(fake().open) == 1


def test_a_vector_refuses_a_second_thread_and_forgets_no_member(
    make: Make, slow: threading.Event, other: Callable[..., Future[Any]]
) -> None:
    env = make(3)
    first = other(env.reset, seed=1)
    assert slow.wait(20)
    with pytest.raises(ConfigError, match=BUSY):
        env.reset(seed=5, options={"level": 1})
    assert first.result(20)[1]["seed"].tolist() == [1, 2, 3]
    assert first.result(20)[1]["level"].tolist() == [0, 0, 0]
    assert len(fake().open) == 3
    step = other(env.step, [wait(0.5)] * 3)
    until(lambda: env._turns._running)
    with pytest.raises(ConfigError, match=BUSY):
        env.reset()
    assert set(step.result(20)[0]["text"]) == {"waited 0.5 s"}
    assert len(fake().open) == 3


def test_closing_a_vector_ends_a_reset_that_another_thread_is_in(
    make: Make, slow: threading.Event, other: Callable[..., Future[Any]]
) -> None:
    env = make(3)
    resetting = other(env.reset, seed=1)
    assert slow.wait(20)
    env.close()
    with pytest.raises(ClosedEnvironmentError):
        resetting.result(20)
    assert fake().open == {}
