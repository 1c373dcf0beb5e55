"""Supervised fine-tuning on rows whose actions are to be imitated: the warm start before GRPO."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

from pydantic import BaseModel, Field
from torch import Tensor

from metier.envs.core import ConfigError

from .learner import Learner, Scored
from .logs import RunLog
from .trajectory import Row


class SftSettings(BaseModel, extra="forbid", frozen=True):
    """The recipe's values."""

    lr: float = Field(default=1e-4, gt=0)
    batch: int = Field(default=8, gt=0)
    """Rows of one update."""
    epochs: int = Field(default=1, gt=0)
    warmup: int = Field(default=4, ge=0)
    """Updates of linear rise; then linear fall to `final_share` of lr."""
    final_share: float = Field(default=0.1, ge=0, le=1)
    seed: int = 0


def sft(
    learner: Learner,
    rows: Sequence[Row],
    settings: SftSettings,
    log: RunLog | None = None,
    on_update: Callable[[int, Mapping[str, float]], None] | None = None,
) -> list[dict[str, float]]:
    """Imitates every row once an epoch; returns each update's metrics.

    Raises:
        ConfigError: No row has an action.
        TrainingError: A gradient was not finite.
    """
    useful = [row for row in rows if row.num_actions]
    if not useful:
        raise ConfigError("no row has an action to imitate: were the conversations made by an oracle?")
    shuffler = random.Random(settings.seed)
    batches: list[list[Row]] = []
    for _ in range(settings.epochs):
        order = shuffler.sample(useful, len(useful))
        batches += [order[at : at + settings.batch] for at in range(0, len(order), settings.batch)]
    history: list[dict[str, float]] = []
    for update, batch in enumerate(batches):
        metrics = sft_step(learner, batch, learning_rate(settings, update, len(batches)))
        history.append(metrics)
        if log is not None:
            log.write("sft", update, metrics)
        if on_update is not None:
            on_update(update, metrics)
    return history


def sft_step(learner: Learner, batch: Sequence[Row], lr: float) -> dict[str, float]:
    """One update: the mean of -log p over the batch's actions."""
    began = time.monotonic()
    num_actions = sum(row.num_actions for row in batch)

    def loss(scored: Scored) -> Tensor:
        return -(scored.logprobs_BA * scored.mask_BA).sum() / num_actions

    updated = learner.update(batch, loss, lr=lr)
    seconds = time.monotonic() - began
    tokens = sum(len(row.ids) for row in batch)
    return {
        "loss": updated.loss,
        "lr": lr,
        "grad_norm": updated.grad_norm,
        "tokens": tokens,
        "actions": num_actions,
        "computed_tokens": updated.computed_tokens,
        "tokens_per_s": tokens / seconds,
        "seconds/train": seconds,
    }


def learning_rate(settings: SftSettings, update: int, num_updates: int) -> float:
    """Linear warm-up, then linear to `final_share` at the last update."""
    if update < settings.warmup:
        return settings.lr * (update + 1) / settings.warmup
    progress = (update - settings.warmup) / max(1, num_updates - 1 - settings.warmup)
    return settings.lr * (1 - (1 - settings.final_share) * progress)
