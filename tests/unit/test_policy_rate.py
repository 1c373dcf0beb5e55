"""The client-side rate limit: never more in any minute than allowed, in the order of arrival, and by the deadline."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import Deadline
from metier.harness.policy.rate import MINUTE_S, Gate, PerMinute
from waiting import soon


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@given(
    limit=st.integers(1, 50),
    asked=st.lists(st.tuples(st.integers(1, 60), st.floats(0, 40), st.none() | st.integers(0, 60)), max_size=40),
)
@settings(deadline=None, max_examples=200)
def test_no_minute_has_more_than_the_limit(limit: int, asked: list[tuple[int, float, int | None]]) -> None:
    """Each amount is spent as early as it may be; some are corrected, and only downwards, as an estimate would be."""
    clock = Clock()
    rate = PerMinute(limit, clock)
    spent = []
    for amount, pause, correction in asked:
        clock.now += pause
        clock.now += rate.wait_s(amount)
        assert rate.wait_s(amount) <= 1e-9 * clock.now
        made = rate.spend(amount)
        spent.append(made)
        if correction is not None:
            made.amount = min(amount, correction)
        within = [one for one in spent if one.at > clock.now - MINUTE_S + 1e-6]
        total = sum(one.amount for one in within)
        assert total <= limit or len([one for one in within if one.amount]) == 1, "one that is too big passes alone"


def test_waiting_is_no_longer_than_it_must_be() -> None:
    clock = Clock()
    rate = PerMinute(10, clock)
    rate.spend(4)
    clock.now += 20
    rate.spend(6)
    assert rate.wait_s(4) == pytest.approx(40)
    assert rate.wait_s(5) == pytest.approx(60)
    assert rate.wait_s(99) == pytest.approx(60)
    clock.now += 40
    assert rate.wait_s(4) == 0


def test_a_correction_makes_room() -> None:
    rate = PerMinute(10, Clock())
    estimate = rate.spend(10)
    assert rate.wait_s(5) > 0
    estimate.amount = 5
    assert rate.wait_s(5) == 0


async def test_the_gate_lets_pass_in_order_and_at_its_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, passed = Clock(), []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        clock.now += seconds
        await real_sleep(0)

    monkeypatch.setattr("metier.harness.policy.rate.asyncio.sleep", sleep)
    gate = Gate(2, None, clock)

    async def enter(number: int) -> None:
        await gate.enter(1, soon(10_000))
        passed.append((number, clock.now - 1000))

    await asyncio.gather(*(enter(number) for number in range(6)))
    assert passed == [(0, 0), (1, 0), (2, 60), (3, 60), (4, 120), (5, 120)]


async def test_quiet_holds_everybody() -> None:
    gate = Gate(None, None)
    gate.quiet(0.2)
    gate.quiet(0.05)
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.gather(*(gate.enter(1, soon()) for _ in range(5)))
    assert loop.time() - began >= 0.2


async def test_who_cannot_pass_before_its_deadline_is_told_at_once() -> None:
    gate = Gate(1, 100)
    await gate.enter(100, soon())
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await gate.enter(1, Deadline.after(30, limit="turn_s", set_by="test"))


async def test_who_waits_in_line_leaves_by_its_deadline_and_lets_the_next_pass() -> None:
    gate = Gate(None, None)
    gate.quiet(0.5)
    patient = asyncio.create_task(gate.enter(1, soon()))
    hasty = asyncio.create_task(gate.enter(1, Deadline.after(0.05, limit="turn_s", set_by="test")))
    last = asyncio.create_task(gate.enter(1, soon()))
    with pytest.raises(TimeoutError):
        await hasty
    await asyncio.gather(patient, last)


async def test_a_cancelled_one_does_not_hold_the_line() -> None:
    gate = Gate(None, None)
    gate.quiet(60)
    first = asyncio.create_task(gate.enter(1, soon()))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    gate._quiet_until = 0
    async with asyncio.timeout(5):
        await gate.enter(1, soon())
