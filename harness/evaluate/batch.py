"""Run a batch of episodes on an executor: every payload gets its result, in order, failures included."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from metier.envs.core import ConfigError
from metier.scheduler.contract import Executor, Needs, WorkItem

from ..result import EpisodeResult
from ..runner import failed

EPISODE_TASK = "metier.harness.runner:work"


async def run_batch(
    executor: Executor,
    payloads: Sequence[Mapping[str, Any]],
    *,
    in_flight: int,
    timeout_s: float,
    on_result: Callable[[EpisodeResult], None] | None = None,
    label: str = "episode",
) -> list[EpisodeResult]:
    """The results of `payloads` (see `metier.harness.runner.work`), in their order.

    Raises:
        ConfigError: a payload's task is wrong (unknown id, level, option).
    """

    async def items() -> AsyncIterator[WorkItem]:
        for index, payload in enumerate(payloads):
            needs = Needs(cpus=0.0, slots={"sandbox": 1})
            yield WorkItem(key=f"{label}/{index}", task=EPISODE_TASK, payload=payload, needs=needs, timeout_s=timeout_s)

    results: dict[int, EpisodeResult] = {}
    async for done in executor.map(items(), in_flight=in_flight):
        index = int(done.key.rpartition("/")[2])
        if done.failure == "ConfigError":
            raise ConfigError(done.message)
        if done.failure is not None:
            result = failed(dict(payloads[index]), done.failure, done.message)
        else:
            result = EpisodeResult.model_validate(done.value)
        results[index] = result
        if on_result is not None:
            on_result(result)
    return [results[index] for index in range(len(payloads))]
