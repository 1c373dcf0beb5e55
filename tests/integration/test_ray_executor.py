"""What only the Ray executor has: worker processes that die, and a cluster that must leave nothing behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import ConfigError, Outcome
from metier.harness.evaluate import pass_rate, run_batch
from metier.harness.result import EpisodeResult
from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.sandbox.owner import OWNER
from metier.scheduler import Needs, WorkItem
from metier.scheduler.ray_executor import RayExecutor
from process_table import Process, alive, descendants
from waiting import patience

FIXTURES = Path(__file__).parents[1] / "fixtures"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    # Ray drops its process handles where a start on an overloaded machine fails and is tried again
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def folders() -> set[str]:
    return {str(path) for path in Path(tempfile.gettempdir()).glob("metier-ray-*")}


def wait_until_dead(processes: dict[int, Process], within_s: float) -> float:
    started = time.monotonic()
    while alive(processes):
        assert time.monotonic() - started < within_s, f"still alive after {within_s} s: {alive(processes)}"
        time.sleep(0.1)
    return time.monotonic() - started


def item(key: str, task: str, timeout_s: float = 60, **payload: Any) -> WorkItem:
    return WorkItem(key=key, task=f"work_tasks:{task}", payload=payload, needs=Needs(cpus=0), timeout_s=timeout_s)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor() -> AsyncIterator[RayExecutor]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FIXTURES))
        before = folders()
        async with RayExecutor(
            workers=1, pools={"render": 1}, cpus=2, slots={"render": 1, "sandbox": 4}, env={"PYTHONPATH": str(FIXTURES)}
        ) as one:
            started = descendants(os.getpid())
            yield one
        assert alive(started) == []
        for folder in folders() - before:  # kept on purpose: workers were lost, and their logs explain why
            assert (Path(folder) / "session_latest").exists()
            subprocess.run(["rm", "-rf", folder], check=True)


async def test_an_executor_leaves_no_process_and_no_file() -> None:
    """First in this module: later tests share a cluster that stays up in this process."""
    folders_before, before = folders(), descendants(os.getpid())
    one = RayExecutor(workers=1, cpus=1)
    await one.start()
    assert len(descendants(os.getpid())) > len(before) + 5
    await one.close()
    await one.close()
    left = [pid for pid in alive(descendants(os.getpid())) if pid not in before]
    assert left == []
    assert folders() <= folders_before
    with pytest.raises(ConfigError, match="closed"):
        await one.start()


async def test_an_absent_cluster_is_refused() -> None:
    executor = RayExecutor(workers=1, address="127.0.0.1:9")
    with pytest.raises(ConfigError, match="no Ray cluster"):
        await executor.start()
    await executor.close()


async def test_a_killed_worker_is_replaced_and_its_item_tried_again(executor: RayExecutor, tmp_path: Path) -> None:
    before = await executor.worker_pids()
    result = await executor.run(item("k", "die_at_first", mark=str(tmp_path / "tries"), times=1))
    assert result.failure is None
    assert result.attempts == 2
    assert result.value not in before


async def test_a_worker_that_always_dies_is_a_cluster_error(executor: RayExecutor, tmp_path: Path) -> None:
    result = await executor.run(item("k", "die_at_first", timeout_s=120, mark=str(tmp_path / "tries"), times=99))
    assert result.failure == "ClusterError"
    assert result.attempts == 4
    assert "log" in result.message
    assert (await executor.run(item("after", "double", number=4))).value == 8


async def test_a_worker_killed_from_outside_costs_its_items_one_attempt(executor: RayExecutor, tmp_path: Path) -> None:
    marks = [tmp_path / f"nap-{number}" for number in range(3)]
    running = [asyncio.create_task(executor.run(item(str(mark), "nap", mark=str(mark), sleep_s=1.5))) for mark in marks]
    while not all(mark.exists() for mark in marks):
        await asyncio.sleep(0.02)
    os.kill(int(marks[0].read_text().split()[1]), signal.SIGKILL)
    results = await asyncio.gather(*running)
    assert [(result.failure, result.attempts) for result in results] == [(None, 2)] * 3


async def test_items_run_in_the_pool_that_their_slot_names(executor: RayExecutor, tmp_path: Path) -> None:
    both = await executor.worker_pids()
    mark = tmp_path / "nap"
    render = WorkItem(
        key="r",
        task="work_tasks:nap",
        payload={"mark": str(mark), "sleep_s": 0},
        needs=Needs(cpus=0, slots={"render": 1}),
        timeout_s=30,
    )
    plain = await executor.run(item("p", "nap", mark=str(mark), sleep_s=0))
    assert [plain.value, (await executor.run(render)).value] == both


async def test_a_blocked_event_loop_is_found_and_replaced(
    executor: RayExecutor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metier.scheduler.ray_executor.CANCEL_S", 1.0)
    monkeypatch.setattr("metier.scheduler.ray_executor._ANSWER_S", 1.0)
    result = await executor.run(item("k", "block", timeout_s=0.5, sleep_s=300))
    assert result.failure == "DeadlineExceeded"
    assert "event loop" in result.message
    assert (await executor.run(item("after", "double", number=4))).value == 8


needs_docker = pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers")


async def owned(pid: int, *states: str) -> list[str]:
    """The containers of that worker, in these states or in any."""
    filters = json.dumps({"label": [OWNER]})
    listed = await Engine(socket_path()).checked("GET", "/containers/json", query={"all": "1", "filters": filters})
    return [
        each["Names"][0]
        for each in listed
        if each["Labels"][OWNER].startswith(f"{pid}:") and (not states or each["State"] in states)
    ]


@pytest.mark.docker
@needs_docker
async def test_a_killed_worker_takes_its_sandboxes_along_and_its_episodes_are_tried_again(
    executor: RayExecutor, tmp_path: Path
) -> None:
    marks = [tmp_path / f"episode-{number}" for number in range(3)]
    running = [
        asyncio.create_task(
            executor.run(
                WorkItem(
                    key=mark.name,
                    task="sandbox_tasks:echo",
                    payload={"mark": str(mark), "seed": seed},
                    needs=Needs(cpus=0, slots={"sandbox": 1}),
                    timeout_s=180,
                )
            )
        )
        for seed, mark in enumerate(marks)
    ]
    async with asyncio.timeout(90):
        while not all(mark.exists() for mark in marks):
            await asyncio.sleep(0.05)
        (pid,) = {int(mark.read_text()) for mark in marks}
        while len(await owned(pid, "running")) < 3:
            await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    while left := await owned(pid):
        assert time.monotonic() - killed < 2.0 * patience(), left
        await asyncio.sleep(0.05)
    results = await asyncio.gather(*running)
    assert [(result.failure, result.attempts) for result in results] == [(None, 2)] * 3
    played = [EpisodeResult.model_validate(result.value) for result in results]
    assert [(one.seed, one.outcome, one.reward) for one in played] == [(n, Outcome.COMPLETED, 1.0) for n in range(3)]
    assert len({mark.read_text().split()[1] for mark in marks}) == 1
    assert str(pid) not in marks[0].read_text().split()[1:]


@pytest.mark.docker
@needs_docker
async def test_a_worker_killed_with_twenty_leases_leaves_none(executor: RayExecutor, tmp_path: Path) -> None:
    mark = tmp_path / "held"
    work = WorkItem(
        key="hold",
        task="sandbox_tasks:hold",
        payload={"mark": str(mark), "count": 20},
        needs=Needs(cpus=0, slots={"sandbox": 1}),
        timeout_s=240,
    )
    running = asyncio.create_task(executor.run(work))
    async with asyncio.timeout(200):
        while not mark.exists() or not mark.read_text():
            await asyncio.sleep(0.05)
    pid = int(mark.read_text())
    assert len(await owned(pid, "running")) >= 20  # and what its worker keeps warm of episodes before
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    while left := await owned(pid):
        assert time.monotonic() - killed < 2.0 * patience(), left
        await asyncio.sleep(0.05)
    result = await running
    assert (result.failure, result.attempts) == (None, 2)
    assert result.value != pid


@pytest.mark.docker
@needs_docker
async def test_a_batch_of_real_episodes_is_whole_and_in_order(executor: RayExecutor) -> None:
    covenant: dict[str, Any] = {"env_id": "finance/CovenantTest-v0", "seed": 5, "backend": "docker"}
    payloads = [covenant, {**covenant, "policy": {"name": "noop"}}, {**covenant, "backend_options": {"max_warm": 1}}]
    results = await run_batch(executor, payloads, in_flight=3, timeout_s=120)
    assert [(one.outcome, one.reward) for one in results] == [(Outcome.COMPLETED, reward) for reward in (1.0, 0.0, 1.0)]
    assert str(pass_rate(results)) == "67% [21, 94] (n=3)"
    with pytest.raises(ConfigError, match="has levels"):
        await run_batch(executor, [{**covenant, "level": 99}], in_flight=1, timeout_s=60)


async def test_a_killed_driver_leaves_nothing(tmp_path: Path) -> None:
    before = folders()
    mark = tmp_path / "nap"
    driver = subprocess.Popen(
        [sys.executable, str(FIXTURES / "ray_driver.py"), str(mark)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(FIXTURES)},
    )
    with driver:
        assert driver.stdout is not None
        words = driver.stdout.readline().split()
        assert words[0] == b"ready"
        started = descendants(driver.pid)
        workers = {pid: started[pid] for pid in map(int, words[1:])}
        assert len(workers) == 2
        assert len(started) > 6
        driver.kill()
    wait_until_dead(workers, 2)
    wait_until_dead(started, 15)
    assert folders() <= before


async def test_nonsense_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1 worker"):
        RayExecutor(workers=0)


async def test_an_address_is_not_silently_ignored(executor: RayExecutor) -> None:
    other = RayExecutor(workers=1, address="127.0.0.1:9")
    with pytest.raises(ConfigError, match="already"):
        await other.start()
    await other.close()
