"""Run a batch of episodes on an executor: every payload gets its result, in order, failures included.

How many run at once is the executor's to say: by its sandbox slots, and by its memory, of which each episode is given
what its environment's certificate measured (`occupancy`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from metier.envs.core import ConfigError
from metier.scheduler.contract import Executor, WorkItem

from ..result import EpisodeResult
from ..runner import failed
from .occupancy import episode_needs

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

    One that failed for good keeps what its last attempt said and did, unless that was lost with its worker.

    Raises:
        ConfigError: a payload's task is wrong (unknown id, level, option), or needs more memory than the executor has.
    """
    needs = {env_id: episode_needs(env_id) for env_id in {payload["env_id"] for payload in payloads}}

    async def items() -> AsyncIterator[WorkItem]:
        for index, payload in enumerate(payloads):
            yield WorkItem(
                key=f"{label}/{index}",
                task=EPISODE_TASK,
                payload=payload,
                needs=needs[payload["env_id"]],
                timeout_s=timeout_s,
            )

    results: dict[int, EpisodeResult] = {}
    async for done in executor.map(items(), in_flight=in_flight):
        index = int(done.key.rpartition("/")[2])
        if done.failure == "ConfigError":
            raise ConfigError(done.message)
        if done.failure is not None:
            result = failed(dict(payloads[index]), done.failure, done.message, done.value)
        else:
            result = EpisodeResult.model_validate(done.value)
        results[index] = result
        if on_result is not None:
            on_result(result)
    return [results[index] for index in range(len(payloads))]
