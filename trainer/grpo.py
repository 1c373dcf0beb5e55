"""Group-relative policy optimisation on collected episodes (arXiv:2402.03300, with clip-higher and dual clip).

One step: collect groups of episodes, turn rewards into advantages within each group, drop the groups that say nothing
(one member, or equal rewards), update on the rest, put the new weights into the engine. How episodes are run is the
caller's: `collect` is any async function from work items to trajectories.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import TypeVar

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from metier.envs.core import ConfigError, Outcome

from . import losses
from .advantages import GroupBaseline, group_advantages
from .learner import Learner, Scored, TrainingError
from .logs import RunLog
from .losses import Aggregation, Correction
from .rollout.engine import Engine
from .trajectory import Row, Trajectory

Item = TypeVar("Item")
Collect = Callable[[Sequence[Item]], Awaitable[Sequence[Trajectory]]]
OnStep = Callable[[int, Mapping[str, float]], Awaitable[None]]


class PolicyLoss(StrEnum):
    """The per-token loss; see `losses`."""

    PPO = auto()
    GSPO = auto()
    CISPO = auto()


class GrpoSettings(BaseModel, extra="forbid", frozen=True):
    """The recipe's values."""

    steps: int = Field(default=15, gt=0)
    lr: float = Field(default=4e-5, gt=0)
    """Of an update all of whose groups say something; in proportion less where some do not."""
    warmup: int = Field(default=3, ge=0)
    """Steps of linear rise of lr."""
    final_lr_share: float = Field(default=1.0, gt=0, le=1)
    """Of lr, at the last step; linear from the end of the warm-up, so that the last noisy batches move little."""
    updates: int = Field(default=2, gt=0)
    """Optimiser updates of one step, on disjoint groups."""
    loss: PolicyLoss = PolicyLoss.PPO
    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float | None = 3.0
    baseline: GroupBaseline = GroupBaseline.GRPO
    unfinished_reward: float | None = Field(default=None, ge=0, le=1)
    """What training pays for an episode that ran into a limit, in place of the verifier's reward; None keeps that.

    Where the artefact alone is graded, stopping in time earns nothing, and a policy forgets to submit: the hard form
    of DAPO's overlong punishment (arXiv:2503.14476).
    """
    aggregation: Aggregation = Aggregation.TOKEN_MEAN
    length: int | None = None
    """The constant of the dr_grpo aggregation."""
    correction: Correction = Correction.NONE
    """Other than none costs one more forward pass, for the trainer's own old logprobs."""
    temperature: float = Field(default=1.0, gt=0)
    """Of the rollouts: the trainer divides its logits by it."""
    empty_batches: int = Field(default=3, ge=0)
    """How many batches in a row may hold no group with a signal before the run ends with an error."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    row: Row
    advantage: float
    group: str


@dataclass(slots=True)
class _Tally:
    """Sums over the tokens of a step's updates."""

    tokens: float = 0.0
    clipped: float = 0.0
    entropy: float = 0.0
    first_tokens: float = 0.0
    mismatch_k3: float = 0.0
    mismatch_abs: float = 0.0
    norms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    """The learning rate that each update was made with."""
    computed: int = 0


async def run_grpo(
    learner: Learner,
    engine: Engine,
    batches: Iterator[Sequence[Item]],
    collect: Collect[Item],
    settings: GrpoSettings,
    log: RunLog | None = None,
    on_step: OnStep | None = None,
    *,
    first_step: int = 0,
) -> None:
    """The loop; after each step the engine holds the learner's weights, with `learner.step` as their version.

    Raises:
        TrainingError: Too many batches without a signal, `batches` ran out, or a gradient was not finite.
    """
    with _thread() as thread:
        await engine.update_weights(learner.weights(), learner.step)
        for step in range(first_step, settings.steps):
            began = time.monotonic()
            trajectories, empty = await _collect_signal(batches, collect, settings, step)
            generated = time.monotonic()
            loop = asyncio.get_running_loop()
            metrics = await loop.run_in_executor(thread, grpo_step, learner, trajectories, settings, step)
            trained = time.monotonic()
            await engine.update_weights(learner.weights(), learner.step)
            metrics |= {
                "empty_batches": empty,
                "seconds/generate": generated - began,
                "seconds/train": trained - generated,
                "seconds/update": time.monotonic() - trained,
            }
            if log is not None:
                log.write("grpo", step, metrics)
            if on_step is not None:
                await on_step(step, metrics)


@contextmanager
def _thread() -> Iterator[ThreadPoolExecutor]:
    """For updates. Whoever is cancelled does not wait for the one under way, which ends by itself and is nobody's."""
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metier-learner")
    try:
        yield thread
    finally:
        thread.shutdown(wait=False)


async def _collect_signal(
    batches: Iterator[Sequence[Item]], collect: Collect[Item], settings: GrpoSettings, step: int
) -> tuple[Sequence[Trajectory], int]:
    """The next batch in which some group says something, and how many were passed over."""
    why: list[str] = []
    for empty in range(settings.empty_batches + 1):
        items = next(batches, None)
        if items is None:
            raise TrainingError(f"the batches ran out at step {step} of {settings.steps}: supply more work items")
        trajectories = await collect(items)
        if _samples(trajectories, settings)[0]:
            return trajectories, empty
        graded = [one.reward for one in trajectories if one.reward is not None]
        why.append(f"{len(graded)} of {len(trajectories)} graded, mean reward {sum(graded) / max(1, len(graded)):.2f}")
    raise TrainingError(
        f"step {step}: no group had members that differ in reward, in {len(why)} batches ({'; '.join(why)}). "
        "Choose tasks that the model passes sometimes, warm it up more, or look at why episodes fail"
    )


def grpo_step(
    learner: Learner, trajectories: Sequence[Trajectory], settings: GrpoSettings, step: int
) -> dict[str, float]:
    """The updates on one batch of episodes; returns the step's metrics.

    `lr` among them is the mean of those that the updates were made with: the schedule's, less for silent groups, and 0
    where there was no update.
    """
    samples, num_groups = _samples(trajectories, settings)
    kept = sorted({sample.group for sample in samples})
    random.Random(f"{settings.seed}/{step}").shuffle(kept)
    scheduled = scheduled_lr(settings, step)
    tally = _Tally()
    old = _old_logprobs(learner, samples, settings)
    for update in range(min(settings.updates, len(kept))):
        chosen = set(kept[update :: settings.updates])
        part = [index for index, sample in enumerate(samples) if sample.group in chosen]
        # Adam forgets how large a gradient was, so a lone group that speaks would move the weights as far as all would.
        share = min(1.0, len(chosen) * settings.updates / num_groups)
        rows, before = [samples[i] for i in part], [old[i] for i in part]
        _update(learner, rows, before, settings, scheduled * share, tally, first=update == 0)
    graded = [one for one in trajectories if one.reward is not None]
    count = max(1, len(graded))
    return {
        "reward": sum(one.reward or 0.0 for one in graded) / count,
        "pass_rate": sum(one.passed for one in graded) / count,
        "episodes": len(trajectories),
        "failed": len(trajectories) - len(graded),
        "unfinished": sum(one.outcome is Outcome.AGENT_LIMIT for one in graded),
        "groups": num_groups,
        "kept_groups": len(kept),
        "lr": sum(tally.rates) / max(1, len(tally.rates)),
        "grad_norm": max(tally.norms, default=0.0),
        "clipped_share": tally.clipped / max(1.0, tally.tokens),
        "entropy": tally.entropy / max(1.0, tally.tokens),
        "mismatch_k3": tally.mismatch_k3 / max(1.0, tally.first_tokens),
        "mismatch_abs": tally.mismatch_abs / max(1.0, tally.first_tokens),
        "tokens": sum(len(sample.row.ids) for sample in samples),
        "actions": tally.tokens,
        "computed_tokens": tally.computed,
        "sampled_tokens": sum(row.num_actions for one in trajectories for row in one.rows),
    }


def scheduled_lr(settings: GrpoSettings, step: int) -> float:
    """The learning rate of a step (from 0): linear up over the warm-up, then linear down to `final_lr_share`."""
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    done = (step + 1 - settings.warmup) / max(1, settings.steps - settings.warmup)
    return settings.lr * (1 - min(1.0, done) * (1 - settings.final_lr_share))


def _samples(trajectories: Sequence[Trajectory], settings: GrpoSettings) -> tuple[list[_Sample], int]:
    """The rows of the groups that say something, with their advantages; and how many groups there were.

    Raises:
        ConfigError: A row to train carries no behaviour logprobs.
    """
    names = {name: label for label, name in enumerate(dict.fromkeys(one.group for one in trajectories))}
    groups_N = torch.tensor([names[one.group] for one in trajectories], dtype=torch.long)
    rewards_N = torch.tensor([_paid(one, settings) for one in trajectories], dtype=torch.float64)
    present_N = torch.tensor([one.trainable for one in trajectories], dtype=torch.bool)
    advantages_N = group_advantages(rewards_N, groups_N, present_N, settings.baseline)
    speaking = set(groups_N[advantages_N != 0].tolist())
    samples: list[_Sample] = []
    for one, advantage in zip(trajectories, advantages_N.tolist(), strict=True):
        if not one.trainable or names[one.group] not in speaking:
            continue
        for row in one.rows:
            if row.num_actions and row.logprobs is None:
                raise ConfigError("an episode carries no token traces: only engine-backed policies can be trained on")
            if row.num_actions:
                samples.append(_Sample(row=row, advantage=advantage, group=one.group))
    return samples, len(names)


def _paid(one: Trajectory, settings: GrpoSettings) -> float:
    if one.outcome is Outcome.AGENT_LIMIT and settings.unfinished_reward is not None:
        return settings.unfinished_reward
    return one.reward or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Old:
    """A row's logprobs before the step, at its actions."""

    engine_A: Tensor
    trainer_A: Tensor | None


def _old_logprobs(learner: Learner, samples: Sequence[_Sample], settings: GrpoSettings) -> list[_Old]:
    trainer: dict[int, Tensor] = {}
    if settings.correction is not Correction.NONE:
        with torch.no_grad():
            for scored in learner.score([sample.row for sample in samples], temperature=settings.temperature):
                for at, index in enumerate(scored.rows):
                    trainer[index] = scored.logprobs_BA[at][scored.mask_BA[at]]
    return [
        _Old(
            engine_A=torch.tensor(
                [p for p, action in zip(sample.row.logprobs or (), sample.row.actions, strict=True) if action]
            ),
            trainer_A=trainer.get(index),
        )
        for index, sample in enumerate(samples)
    ]


def _update(
    learner: Learner,
    samples: Sequence[_Sample],
    old: Sequence[_Old],
    settings: GrpoSettings,
    lr: float,
    tally: _Tally,
    *,
    first: bool,
) -> None:
    """One optimiser step on these rows."""
    device = learner.device
    engine_BA = torch.nn.utils.rnn.pad_sequence([one.engine_A for one in old], batch_first=True).to(device)
    lengths = torch.tensor([len(one.engine_A) for one in old], device=device)
    mask_BA = torch.arange(engine_BA.shape[1], device=device) < lengths.unsqueeze(-1)
    weights_BA = losses.aggregation_weights(mask_BA, settings.aggregation, length=settings.length)
    advantages_B1 = torch.tensor([[sample.advantage] for sample in samples], device=device)
    before_BA = engine_BA
    trainer = [one.trainer_A for one in old if one.trainer_A is not None]
    if trainer:
        before_BA = torch.nn.utils.rnn.pad_sequence(trainer, batch_first=True).to(device)
        weights_BA = weights_BA * losses.correction_weights(before_BA, engine_BA, mask_BA, settings.correction)

    def loss(scored: Scored) -> Tensor:
        rows, width = torch.tensor(scored.rows, device=device), scored.mask_BA.shape[1]
        old_BA, advantages = before_BA[rows, :width], advantages_B1[rows]
        _count(tally, scored, old_BA, engine_BA[rows, :width], advantages, settings, first=first)
        per_token_BA = _policy_loss(scored, old_BA, advantages, settings)
        return (per_token_BA * weights_BA[rows, :width]).sum()

    updated = learner.update([sample.row for sample in samples], loss, lr=lr, temperature=settings.temperature)
    tally.norms.append(updated.grad_norm)
    tally.rates.append(lr)
    tally.computed += updated.computed_tokens


def _policy_loss(scored: Scored, old_BA: Tensor, advantages_B1: Tensor, settings: GrpoSettings) -> Tensor:
    new_BA, mask_BA = scored.logprobs_BA, scored.mask_BA
    if settings.loss is PolicyLoss.CISPO:
        return losses.cispo(new_BA, old_BA, advantages_B1, mask_BA, ratio_max=1 + settings.clip_high)
    clips = {"clip_low": settings.clip_low, "clip_high": settings.clip_high}
    if settings.loss is PolicyLoss.GSPO:
        return losses.gspo(new_BA, old_BA, advantages_B1, mask_BA, **clips)
    return losses.ppo(new_BA, old_BA, advantages_B1, mask_BA, **clips, dual_clip=settings.dual_clip)


@torch.no_grad()
def _count(
    tally: _Tally,
    scored: Scored,
    old_BA: Tensor,
    engine_BA: Tensor,
    advantages_B1: Tensor,
    settings: GrpoSettings,
    *,
    first: bool,
) -> None:
    mask_BA, new_BA = scored.mask_BA, scored.logprobs_BA
    ratio_BA = torch.where(mask_BA, new_BA - old_BA, 0.0).exp()
    outside_BA = torch.where(advantages_B1 > 0, ratio_BA > 1 + settings.clip_high, ratio_BA < 1 - settings.clip_low)
    tally.tokens += float(mask_BA.sum())
    tally.clipped += float((outside_BA & mask_BA).sum())
    tally.entropy += float(scored.entropy_BA.sum())
    if first:
        # Only before the step's first update do the trainer's weights equal the engine's.
        tally.first_tokens += float(mask_BA.sum())
        tally.mismatch_k3 += float(losses.kl(engine_BA, new_BA, mask_BA).sum())
        tally.mismatch_abs += float(torch.where(mask_BA, (new_BA - engine_BA).abs(), 0.0).sum())
