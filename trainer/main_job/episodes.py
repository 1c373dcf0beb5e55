"""The main job's episodes as scheduler's work: payloads, and batches with progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from metier.harness.evaluate import Rate, pass_rate, run_batch
from metier.harness.result import EpisodeResult
from metier.scheduler.contract import Executor

from .narrator import Narrator
from .plan import MainJob, TaskLine

Payload = Mapping[str, Any]

_RERUNS = 2
"""Of an evaluation's ungraded episodes, beyond the scheduler's own retries."""


class Episodes:
    """Runs the job's episodes on an executor; the model's reach the engine at `address`."""

    def __init__(self, plan: MainJob, executor: Executor, address: str, model: Path, narrator: Narrator) -> None:
        self._plan = plan
        self._executor = executor
        self._engine = {"address": address, "model": str(model), "max_tokens": plan.max_turn_tokens}
        self._narrator = narrator

    def oracle(self, line: TaskLine, seed: int) -> Payload:
        """The oracle's episode of one seed."""
        return self._payload(line, seed, {"name": "oracle"})

    def sampled(self, line: TaskLine, seed: int, sample: int) -> Payload:
        """One of the model's episodes; the samples of a seed are a group."""
        group = f"{line.id}#{seed}.{line.level}"
        settings = self._engine | {"temperature": self._plan.grpo.temperature, "group": group}
        return self._payload(line, seed, {"name": "engine", "settings": settings}) | {"sample": sample}

    def _payload(self, line: TaskLine, seed: int, policy: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "env_id": line.id,
            "level": line.level,
            "seed": seed,
            "backend": self._plan.backend,
            # every sandbox of a step waits, reset, for the next one: making one costs a hundred times a reset
            "backend_options": {"max_warm": self._plan.in_flight, "recycle_verifiers": False},
            "policy": policy,
        }

    async def run(self, what: str, payloads: Sequence[Payload]) -> list[EpisodeResult]:
        """The results in the payloads' order, failures included."""
        passed = failed = 0
        with self._narrator.counting(what, len(payloads)) as advance:

            def on_result(result: EpisodeResult) -> None:
                nonlocal passed, failed
                passed += bool(result.passed)
                failed += not result.outcome.graded
                advance(f"passed {passed}" + (f", failed {failed}" if failed else ""))

            return await run_batch(
                self._executor,
                payloads,
                in_flight=self._plan.in_flight,
                timeout_s=self._plan.episode_s,
                on_result=on_result,
                label=what,
            )

    async def evaluate(self, what: str, episodes: int) -> tuple[dict[str, Rate], list[EpisodeResult]]:
        """Pass rates on the held-out seeds, for each environment, of the policy as GRPO trains it (sampled).

        What a failure of ours left ungraded is run again: a seed that drops out on a busy machine would bias the rate.
        """
        first = self._plan.seeds.held_out
        payloads = [self.sampled(line, seed, 0) for seed in range(first, first + episodes) for line in self._plan.tasks]
        results = await self.run(what, payloads)
        for _ in range(_RERUNS):
            missing = [at for at, result in enumerate(results) if not result.outcome.graded]
            if not missing:
                break
            again = await self.run(f"{what}, ungraded ones again", [payloads[at] for at in missing])
            for at, result in zip(missing, again, strict=True):
                results[at] = result
        return rates(results), results


def rates(results: Iterable[EpisodeResult]) -> dict[str, Rate]:
    """The pass rate of each environment."""
    by_id: dict[str, list[EpisodeResult]] = {}
    for result in results:
        by_id.setdefault(result.env_id, []).append(result)
    return {env_id: pass_rate(group) for env_id, group in by_id.items()}
