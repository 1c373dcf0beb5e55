"""One trial as a scheduler's task: an episode under the conditions that its key names, or none."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from metier.envs import registry
from metier.envs.core import ConfigError, Deadline, Json
from metier.scheduler.contract import WorkItem
from metier.scheduler.retries import RETRIES

from .. import runner
from ..certify import environment_digest
from ..grading import secret_fingerprint
from ..policy import settings_for
from .acting import Acting
from .occupancy import episode_needs
from .plan import Plan, Trial

TASK = "metier.harness.evaluate.trial:play"
_BEYOND_S = 900.0
"""Of an attempt beside the episode's own time: for an image to be unpacked, the reset, the grading, the pauses."""


async def play(payload: Mapping[str, Any], *, deadline: Deadline) -> Json:
    """Like `metier.harness.runner.work`; the payload also has `episode_s`, `digest` and `secret_fingerprint`.

    Raises:
        ConfigError: as `work`, or this worker has another version of the environment, or another hub's secret.
        WorkFailed: as `work`.
    """
    rest = dict(payload)
    episode_s, digest, fingerprint = (rest.pop(name) for name in ("episode_s", "digest", "secret_fingerprint"))
    if _digest(rest["env_id"]) != digest:
        raise ConfigError(
            f"{rest['env_id']} is not what it was when the evaluation began, or this worker has another version of it: "
            f"start the evaluation again, with the same code everywhere"
        )
    if secret_fingerprint() != fingerprint:
        raise ConfigError("this worker has another hub's secret: set METIER_HUB_SECRET to the same value everywhere")
    bound = deadline.within(episode_s, "episode_s", "the evaluation")
    return await runner.work(rest, deadline=bound)


def item_of(trial: Trial, plan: Plan, acting: Acting, *, trace_id: str = "") -> WorkItem:
    """The work of a trial; `trace_id` is what its spans and log lines have.

    Raises:
        ConfigError: as `settings_for`.
    """
    conditions = plan.conditions
    settings = settings_for(
        acting.name,
        acting.settings,
        env_id=trial.env_id,
        seed=trial.seed,
        level=trial.level,
        options=trial.options,
        sample=trial.sample,
    )
    payload: dict[str, Json] = {
        "env_id": trial.env_id,
        "seed": trial.seed,
        "level": trial.level,
        "options": dict(trial.options),
        "sample": trial.sample,
        "backend": conditions.backend,
        "policy": {"name": acting.name, "settings": settings},
        "episode_s": conditions.episode_s,
        "digest": next(one.digest for one in plan.environments if one.id == trial.env_id),
        "secret_fingerprint": conditions.secret_fingerprint,
        "trace_id": trace_id,
    }
    attempts = 1 + max(RETRIES.values())
    return WorkItem(
        key=trial.key,
        task=TASK,
        payload=payload,
        needs=episode_needs(trial.env_id),
        timeout_s=attempts * (conditions.episode_s + _BEYOND_S),
        group=trial.env_id,
    )


@functools.cache
def _digest(env_id: str) -> str:
    """What this process runs; computed once, since its modules are read once."""
    return environment_digest(registry.get(env_id))
