"""What every executor promises, tried on each of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import ConfigError
from metier.scheduler import EXECUTORS, Executor, Needs, WorkItem, WorkResult, open_executor

FIXTURES = str(Path(__file__).parents[1] / "fixtures")


pytestmark = pytest.mark.asyncio(loop_scope="module")


PARAMS = [pytest.param(name, marks=[pytest.mark.slow] if name == "ray" else []) for name in sorted(EXECUTORS)]


def opened(name: str) -> Executor:
    settings: dict[str, Any] = {"cpus": 4, "slots": {"sandbox": 2, "render": 1}}
    if name == "ray":
        settings |= {"workers": 2, "env": {"PYTHONPATH": FIXTURES}}
    return open_executor(name, **settings)


@pytest.fixture(scope="module", autouse=True)
def tasks_on_the_path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FIXTURES)
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=PARAMS)
async def executor(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    """One for all tests that leave it open: Ray takes seconds to start."""
    async with opened(request.param) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="module", params=PARAMS)
async def closable(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    """For the tests that close it; they come first, since the last executor of a process closes its resources."""
    async with opened(request.param) as one:
        yield one


def item(
    key: str, task: str, *, needs: Needs | None = None, timeout_s: float = 30, priority: int = 0, **payload: Any
) -> WorkItem:
    return WorkItem(
        key=key,
        task=f"work_tasks:{task}",
        payload=payload,
        needs=needs or Needs(cpus=0),
        timeout_s=timeout_s,
        priority=priority,
    )


async def each(items: list[WorkItem]) -> AsyncIterator[WorkItem]:
    for one in items:
        yield one


async def until(condition: Any, within_s: float = 15) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass in time"
        await asyncio.sleep(0.02)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def most_at_once(folder: Path) -> int:
    """The largest number of naps under way at a moment, from the marks they left."""
    changes: list[tuple[float, int]] = []
    for mark in folder.glob("nap-*"):
        for line in lines(mark):
            words = line.split()
            changes.append((float(words[-1]), 1 if words[0] == "started" else -1))
    running = most = 0
    for _, change in sorted(changes):
        running += change
        most = max(most, running)
    return most


async def test_closing_the_executor_ends_what_runs(closable: Executor, tmp_path: Path) -> None:
    mark = tmp_path / "nap"
    running = asyncio.create_task(closable.run(item("k", "nap", mark=str(mark), sleep_s=60)))
    await until(lambda: lines(mark))
    await closable.close()
    result: WorkResult = await running
    assert result.failure == "CancelledError"
    assert lines(mark)[-1].startswith("cancelled")
    with pytest.raises(ConfigError, match="closed"):
        await closable.run(item("k2", "double", number=1))


async def test_closing_the_executor_closes_the_workers_resources(closable: Executor, tmp_path: Path) -> None:
    mark = tmp_path / "resource"
    result = await closable.run(item("k", "keep_resource", mark=str(mark)))
    assert lines(mark) == []
    await closable.close()
    await closable.close()
    assert [line.split()[:2] for line in lines(mark)] == [["closed", str(result.value)]]


async def test_results_are_complete_and_keyed(executor: Executor) -> None:
    items = [item(f"k{number}", "double", number=number) for number in range(30)]
    results = [result async for result in executor.map(each(items), in_flight=7)]
    assert {result.key: result.value for result in results} == {f"k{number}": 2 * number for number in range(30)}
    assert all(result.failure is None and result.attempts == 1 for result in results)
    assert all(result.timings_s["run_s"] >= 0 and result.timings_s["queue_s"] >= 0 for result in results)


async def test_results_come_as_they_finish(executor: Executor, tmp_path: Path) -> None:
    slow = item("slow", "nap", mark=str(tmp_path / "nap-slow"), sleep_s=1.0)
    quick = item("quick", "double", number=1)
    assert [result.key async for result in executor.map(each([slow, quick]), in_flight=2)] == ["quick", "slow"]


async def test_in_flight_is_never_exceeded_and_bounds_what_is_taken(executor: Executor, tmp_path: Path) -> None:
    taken = finished = 0

    async def source() -> AsyncIterator[WorkItem]:
        nonlocal taken
        for number in range(12):
            taken += 1
            assert taken - finished <= 3 + 1, "more items were taken than in_flight allows"
            yield item(f"k{number}", "nap", mark=str(tmp_path / f"nap-{number}"), sleep_s=0.1)

    async for _ in executor.map(source(), in_flight=3):
        finished += 1
    assert finished == 12
    assert most_at_once(tmp_path) == 3


@pytest.mark.parametrize(
    ("needs", "bound"),
    [(Needs(cpus=0, slots={"sandbox": 1}), 2), (Needs(cpus=0, slots={"render": 1}), 1), (Needs(cpus=1.5), 2)],
)
async def test_needs_bound_what_runs_at_once(executor: Executor, tmp_path: Path, needs: Needs, bound: int) -> None:
    items = [
        item(f"k{number}", "nap", needs=needs, mark=str(tmp_path / f"nap-{number}"), sleep_s=0.2) for number in range(6)
    ]
    results = [result async for result in executor.map(each(items), in_flight=6)]
    assert len(results) == 6
    assert most_at_once(tmp_path) == bound
    assert max(result.timings_s["queue_s"] for result in results) > 0.1


async def test_the_higher_priority_goes_first(executor: Executor, tmp_path: Path) -> None:
    order: list[str] = []
    one_slot = Needs(cpus=0, slots={"render": 1})

    async def run(one: WorkItem) -> None:
        order.append((await executor.run(one)).key)

    async with asyncio.TaskGroup() as group:
        mark = tmp_path / "nap-first"
        group.create_task(run(item("first", "nap", needs=one_slot, mark=str(mark), sleep_s=0.3)))
        await until(lambda: lines(mark))
        for key, priority in [("low", 0), ("high", 2), ("middle", 1), ("high too", 2)]:
            group.create_task(run(item(key, "double", needs=one_slot, priority=priority, number=1)))
            await asyncio.sleep(0.01)
    assert order == ["first", "high", "high too", "middle", "low"]


async def test_a_task_is_told_its_deadline(executor: Executor) -> None:
    result = await executor.run(item("k", "left", timeout_s=20))
    assert isinstance(result.value, dict)
    assert 15 < float(str(result.value["left_s"])) <= 20
    assert result.value["limit"] == "timeout_s"


async def test_a_task_past_its_deadline_is_cancelled_and_the_limit_named(executor: Executor, tmp_path: Path) -> None:
    mark = tmp_path / "nap-late"
    result = await executor.run(item("late", "nap", timeout_s=0.3, mark=str(mark), sleep_s=60))
    assert result.failure == "DeadlineExceeded"
    assert "timeout_s" in result.message
    assert "late" in result.message
    assert lines(mark)[-1].startswith("cancelled")
    assert result.timings_s["run_s"] < 10


async def test_a_task_that_ends_at_its_deadline_keeps_its_own_words(executor: Executor) -> None:
    result = await executor.run(item("own", "stubborn", timeout_s=0.3))
    assert result.failure == "DeadlineExceeded"
    assert result.message.startswith("the tool call")


async def test_cancelling_reaches_the_task_and_waits_for_its_end(executor: Executor, tmp_path: Path) -> None:
    mark = tmp_path / "nap"
    running = asyncio.create_task(executor.run(item("k", "nap", mark=str(mark), sleep_s=60)))
    await until(lambda: lines(mark))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert lines(mark)[-1].startswith("cancelled")


async def test_closing_the_map_cancels_what_runs(executor: Executor, tmp_path: Path) -> None:
    items = [item("quick", "double", number=1)] + [
        item(f"k{number}", "nap", mark=str(tmp_path / f"nap-{number}"), sleep_s=60) for number in range(3)
    ]
    results = executor.map(each(items), in_flight=4)
    assert (await anext(results)).key == "quick"
    await until(lambda: len(list(tmp_path.glob("nap-*"))) == 3)
    await results.aclose()  # pyright: ignore[reportAttributeAccessIssue]  # an async generator in fact
    assert all(lines(mark)[-1].startswith("cancelled") for mark in tmp_path.glob("nap-*"))
    assert most_at_once(tmp_path) == 3


@pytest.mark.parametrize("error", ["ConfigError", "SandboxLost", "PolicyError", "KeyError"])
async def test_an_error_keeps_its_name_and_words(executor: Executor, error: str) -> None:
    result = await executor.run(item("k", "fail", error=error, words="see the log of Łódź"))
    assert result.failure == error
    assert "see the log of Łódź" in result.message
    assert result.value is None
    assert result.attempts == {"SandboxLost": 3, "PolicyError": 2}.get(error, 1)


async def test_a_lost_sandbox_is_tried_again(executor: Executor, tmp_path: Path) -> None:
    result = await executor.run(item("k", "fail_at_first", mark=str(tmp_path / "tries"), times=2))
    assert (result.value, result.failure, result.attempts) == ("recovered", None, 3)
    assert [(one.failure, one.message, one.value) for one in result.history] == [("SandboxLost", "gone", None)] * 2
    assert all(one.run_s >= 0 for one in result.history)


async def test_what_a_failed_task_left_behind_is_kept(executor: Executor) -> None:
    result = await executor.run(item("k", "leave", left={"said": ["ä", 1, None]}))
    assert (result.failure, result.message, result.attempts) == ("SandboxLost", "gone", 3)
    assert result.value == {"said": ["ä", 1, None]}
    assert [one.value for one in result.history] == [result.value] * 2
    result = await executor.run(item("k", "leave", left="rubbish"))
    assert (result.failure, result.value) == ("SandboxLost", None)
    assert "not JSON" in result.message


async def test_what_a_task_left_behind_when_its_time_was_up_is_kept(executor: Executor) -> None:
    result = await executor.run(item("k", "leave_when_stopped", timeout_s=0.3))
    assert (result.failure, result.value) == ("DeadlineExceeded", "got this far")


async def test_a_value_that_is_not_json_is_the_tasks_mistake(executor: Executor) -> None:
    result = await executor.run(item("k", "not_json"))
    assert result.failure == "ConfigError"
    assert "JSON" in result.message


@pytest.mark.parametrize("task", ["work_tasks:absent", "no_such_module:task", "work_tasks", "work_tasks:plain", ""])
async def test_an_unknown_task_is_refused(executor: Executor, task: str) -> None:
    with pytest.raises(ConfigError, match="task"):
        await executor.run(WorkItem(key="k", task=task, payload={}, needs=Needs(cpus=0), timeout_s=5))


@pytest.mark.parametrize(
    "needs", [Needs(cpus=5), Needs(cpus=0, slots={"sandbox": 3}), Needs(cpus=0, slots={"moon": 1}), Needs(cpus=-1)]
)
async def test_needs_that_can_never_be_met_are_refused(executor: Executor, needs: Needs) -> None:
    with pytest.raises(ConfigError, match="needs"):
        await executor.run(item("k", "double", needs=needs, number=1))


async def test_nonsense_bounds_are_refused(executor: Executor) -> None:
    with pytest.raises(ConfigError, match="in_flight"):
        await anext(executor.map(each([]), in_flight=0))
    with pytest.raises(ConfigError, match="timeout_s"):
        await executor.run(item("k", "double", timeout_s=0, number=1))


async def test_no_items_give_no_results(executor: Executor) -> None:
    assert [result async for result in executor.map(each([]), in_flight=4)] == []


async def test_an_unknown_executor_or_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'local'"):
        open_executor("locale")
    with pytest.raises(ConfigError, match="sluts"):
        open_executor("local", sluts={})
