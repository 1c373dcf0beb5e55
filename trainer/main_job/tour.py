"""The tour: the oracle works once in each trade, every step and picture shown."""

from __future__ import annotations

from collections.abc import Sequence

from metier.envs.core import Deadline
from metier.harness.policy import open_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.result import EpisodeResult
from metier.harness.runner import Watch, run_episode
from metier.harness.sandbox import open_backend

from .narrator import Narrator
from .plan import TaskLine


async def tour(
    lines: Sequence[TaskLine], *, backend: str, episode_s: float, narrator: Narrator, watch: Watch | None
) -> list[EpisodeResult]:
    """One oracle episode of each line; an oracle that fails is said, and does not stop the others."""
    results: list[EpisodeResult] = []
    async with open_backend(backend) as opened:
        preparer = Preparer(opened)
        for line in lines:
            narrator.say(f"\n{line.id}, level {line.level}")
            settings = {"env_id": line.id, "seed": 0, "level": line.level}
            result = await run_episode(
                Task(env_id=line.id, seed=0, level=line.level),
                open_policy("oracle", settings),
                opened,
                preparer,
                deadline=Deadline.after(episode_s, limit="episode_s", set_by="the main job's plan"),
                watch=watch,
            )
            ended = f"reward {result.reward:.2f}" if result.reward is not None else result.failure
            narrator.say(f"→ {result.outcome}, {ended}, {len(result.steps)} steps, {result.timings_s['total']:.1f} s")
            results.append(result)
    return results
