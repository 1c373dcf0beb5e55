"""What an episode occupies comes from its environment's certificate, and bounds how many run at once."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from certified_echo import ID, LIMIT_MB, certificate, weighed_echo
from metier.envs import registry
from metier.envs.core import ConfigError, ToolCall, ToolResult
from metier.harness.certify import save
from metier.harness.evaluate import run_batch
from metier.harness.evaluate.occupancy import episode_needs
from metier.scheduler import WorkItem, WorkResult, open_executor


@pytest.fixture
def weighed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with weighed_echo(tmp_path, monkeypatch) as package:
        yield package


@pytest.mark.parametrize(
    ("envelope", "memory_mb"),
    [
        ({"0": {"agent_memory_mb": 10.0, "verify_memory_mb": 20.0}}, 20 + 40),
        ({"0": {"agent_memory_mb": 9.0}, "4": {"agent_memory_mb": 30.0, "verify_memory_mb": 5.0}}, 60 + 10),
        ({"0": {"agent_memory_mb": 10.0, "prepare_memory_mb": 50.0, "verify_memory_mb": 6.0}}, 100 + 12),
        ({"0": {"agent_memory_mb": 200.0, "verify_memory_mb": 1.0}}, LIMIT_MB + 9),
        ({"0": {"agent_memory_mb": 0.0, "verify_memory_mb": 10.0}}, LIMIT_MB // 4 + 20),
        ({"0": {"generate_s": 1.0}}, LIMIT_MB // 4 * 2),
        ({}, LIMIT_MB // 4 * 2),
    ],
)
def test_memory_is_what_was_measured_with_slack_and_within_the_limits(
    weighed: Path, envelope: dict[str, dict[str, float]], memory_mb: int
) -> None:
    save(registry.get(ID), certificate(envelope=envelope))
    needs = episode_needs(ID)
    assert (needs.memory_mb, needs.cpus, needs.slots) == (memory_mb, 0.0, {"sandbox": 1})


def test_without_a_certificate_a_sandbox_counts_as_on_its_host(weighed: Path) -> None:
    assert episode_needs(ID).memory_mb == LIMIT_MB // 4 * 2
    (weighed / "certificate.json").write_text("no certificate")
    assert episode_needs(ID).memory_mb == LIMIT_MB // 4 * 2
    with pytest.raises(ConfigError, match="test/Wei"):
        episode_needs("test/Weigh-v0")


def test_every_certified_family_needs_less_than_its_limits() -> None:
    for entry in registry.entries():
        if entry.entry_point.startswith("metier.envs."):
            assert 2 * 9 <= episode_needs(entry.id).memory_mb < 2 * entry.limits.memory_mb, entry.id


class Together:
    """How many episodes were between their first call and its end at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def call(self, _: Any, call: ToolCall) -> ToolResult:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.05)
        self.now -= 1
        return ToolResult(text="waited")


@pytest.mark.parametrize(("measured_mb", "at_once"), [(10.0, 6), (40.0, 3), (LIMIT_MB * 0.7, 1)])
async def test_an_executor_runs_as_many_as_its_memory_carries(
    weighed: Path, monkeypatch: pytest.MonkeyPatch, measured_mb: float, at_once: int
) -> None:
    entry = registry.get(ID)
    save(entry, certificate(envelope={"0": {"agent_memory_mb": measured_mb, "verify_memory_mb": measured_mb}}))
    together = Together()
    tools = importlib.import_module("weighed.family").EchoTools
    monkeypatch.setattr(tools, "call", lambda self, call: together.call(self, call))
    calls = [
        {"tool": "wait", "arguments": {"seconds": 0.05}},
        {"tool": "submit", "arguments": {"answer": "1"}},
    ]
    policy = {"name": "scripted", "settings": {"calls": calls}}
    payloads = [{"env_id": ID, "seed": seed, "backend": "fake", "policy": policy} for seed in range(6)]
    async with open_executor("local", memory_mb=2 * LIMIT_MB, slots={"sandbox": 6}) as executor:
        results = await run_batch(executor, payloads, in_flight=6, timeout_s=60)
    assert [result.seed for result in results] == list(range(6))
    assert {result.reward for result in results} == {0.0}
    assert together.most == at_once


async def test_more_than_the_executor_has_is_said_before_anything_runs(weighed: Path) -> None:
    payloads = [{"env_id": ID, "seed": 0, "backend": "fake"}]
    async with open_executor("local", memory_mb=100, slots={"sandbox": 1}) as executor:
        with pytest.raises(ConfigError, match=r"needs 128 memory_mb but the executor has .* memory_mb 100"):
            await run_batch(executor, payloads, in_flight=1, timeout_s=60)


class Seen:
    """An executor that only looks at what it is given."""

    def __init__(self) -> None:
        self.items: list[WorkItem] = []

    async def map(self, items: AsyncIterable[WorkItem], *, in_flight: int) -> AsyncIterator[WorkResult]:
        async for item in items:
            self.items.append(item)
            yield WorkResult(key=item.key, value=None, failure="ClusterError", attempts=1, timings_s={})


async def test_each_episode_of_a_mixed_batch_has_the_needs_of_its_own(weighed: Path) -> None:
    save(registry.get(ID), certificate(envelope={"0": {"agent_memory_mb": 100.0, "verify_memory_mb": 30.0}}))
    seen: Any = Seen()
    payloads = [{"env_id": env_id, "seed": 0} for env_id in (ID, "finance/CovenantTest-v0", ID)]
    await run_batch(seen, payloads, in_flight=3, timeout_s=60)
    covenant = episode_needs("finance/CovenantTest-v0").memory_mb
    assert [item.needs.memory_mb for item in seen.items] == [260, covenant, 260]
