"""GRPO on a tiny model: it learns a preference, ignores failed members, and says so when there is nothing to learn."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import torch

from metier.envs.core import ConfigError, Deadline, Outcome
from metier.trainer import models
from metier.trainer.grpo import GrpoSettings, PolicyLoss, grpo_step, run_grpo
from metier.trainer.learner import Learner, LearnerSettings, Scored, TrainingError, Updated
from metier.trainer.losses import Aggregation, Correction
from metier.trainer.rollout.engine import Generation, GenerationRequest
from metier.trainer.rollout.fake import scripted_engine
from metier.trainer.rollout.stepped import SteppedEngine
from metier.trainer.rollout.transformers_engine import TransformersSettings, transformers_engine
from metier.trainer.trajectory import Row, Trajectory

FP32 = LearnerSettings(dtype="float32")
PROMPT = (1, 50, 60, 70)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny(tmp_path_factory.mktemp("tiny"))


def _weights(learner: Learner) -> torch.Tensor:
    return torch.cat([weight.flatten().clone() for _, weight in learner.weights()])


def _episode(made: Generation, reward: float | None, group: str) -> Trajectory:
    count = len(made.output_ids)
    row = Row(
        ids=(*PROMPT, *made.output_ids),
        actions=(False,) * len(PROMPT) + (True,) * count,
        logprobs=(0.0,) * len(PROMPT) + tuple(made.logprobs),
        versions=(-1,) * len(PROMPT) + tuple(v for v, n in made.versions for _ in range(n)),
    )
    outcome = Outcome.COMPLETED if reward is not None else Outcome.SANDBOX_FAILURE
    return Trajectory(rows=(row,), outcome=outcome, reward=reward, passed=reward == 1, group=group)


async def _sample(engine: SteppedEngine, count: int, *, temperature: float = 1.0) -> list[Generation]:
    deadline = Deadline.after(120, limit="turn_s", set_by="test")
    requests = [
        GenerationRequest(id=f"{n}", prompt_ids=PROMPT, max_tokens=4, temperature=temperature) for n in range(count)
    ]
    return list(await asyncio.gather(*(engine.generate(request, deadline=deadline) for request in requests)))


def _low(made: Generation) -> float:
    """Rewards tokens from the lower half of the vocabulary."""
    return sum(token < 160 for token in made.output_ids) / len(made.output_ids)


@pytest.mark.parametrize(
    "how",
    [
        GrpoSettings(steps=8, lr=3e-3, warmup=1),
        GrpoSettings(
            steps=8,
            lr=3e-3,
            warmup=1,
            loss=PolicyLoss.CISPO,
            aggregation=Aggregation.DR_GRPO,
            length=4,
            correction=Correction.TIS,
            temperature=0.8,
        ),
    ],
    ids=["ppo", "cispo"],
)
async def test_it_learns_a_preference(tiny: Path, how: GrpoSettings) -> None:
    seen: list[Mapping[str, float]] = []
    learner = Learner(tiny, FP32)
    async with transformers_engine(TransformersSettings(model=tiny, dtype="float32")) as engine:

        async def collect(groups: Sequence[str]) -> list[Trajectory]:
            made = await _sample(engine, 8 * len(groups), temperature=how.temperature)
            return [_episode(one, _low(one), groups[index // 8]) for index, one in enumerate(made)]

        async def on_step(step: int, metrics: Mapping[str, float]) -> None:
            seen.append(metrics)

        await run_grpo(learner, engine, iter([("a", "b", "c", "d")] * 20), collect, how, on_step=on_step)
        assert engine.version == learner.step
    assert seen[-1]["reward"] > seen[0]["reward"] + 0.15
    assert max(metrics["mismatch_abs"] for metrics in seen) < 1e-4, "engine and trainer agree at every step's start"
    assert {"seconds/generate", "seconds/train", "seconds/update", "entropy", "clipped_share"} <= set(seen[0])


async def test_gspo_runs_and_moves_the_weights(tiny: Path) -> None:
    learner, trajectories = Learner(tiny, FP32), await _batch(tiny)
    before = _weights(learner)
    grpo_step(learner, trajectories, GrpoSettings(loss=PolicyLoss.GSPO, clip_low=3e-4, clip_high=4e-4), 0)
    assert not torch.equal(before, _weights(learner))


async def _batch(tiny: Path, reward: Callable[[Generation], float] = _low) -> list[Trajectory]:
    async with transformers_engine(TransformersSettings(model=tiny, dtype="float32", seed=3)) as engine:
        made = await _sample(engine, 12)
    return [_episode(one, reward(one), "ab"[index // 6]) for index, one in enumerate(made)]


async def test_a_failed_member_changes_nothing(tiny: Path) -> None:
    """Nine of ten environments may fail in reset: what is left trains as if they had never been asked."""
    trajectories = await _batch(tiny)
    failed = [
        Trajectory(rows=(), outcome=Outcome.SANDBOX_FAILURE, reward=None, group=group)
        for group in "ab"
        for _ in range(5)
    ]
    spoilt = [
        Trajectory(rows=trajectories[0].rows, outcome=Outcome.VERIFIER_FAILURE, reward=None, group="a"),
    ]
    one, other = Learner(tiny, FP32), Learner(tiny, FP32)
    clean = grpo_step(one, trajectories, GrpoSettings(), 0)
    mixed = grpo_step(other, [*failed, *trajectories, *spoilt], GrpoSettings(), 0)
    assert torch.equal(_weights(one), _weights(other))
    assert (mixed["failed"], mixed["episodes"]) == (11, 23)
    assert mixed["reward"] == clean["reward"]


async def test_equal_rewards_say_nothing(tiny: Path) -> None:
    learner = Learner(tiny, FP32)
    before = _weights(learner)
    metrics = grpo_step(learner, await _batch(tiny, lambda _: 1.0), GrpoSettings(), 0)
    assert (metrics["kept_groups"], metrics["groups"]) == (0, 2)
    assert learner.step == 0
    assert torch.equal(before, _weights(learner))


class Noting(Learner):
    """Remembers the rate that the optimiser had in every update."""

    def __init__(self, model: Path) -> None:
        super().__init__(model, FP32)
        self.rates: list[float] = []

    def update(
        self,
        rows: Sequence[Row],
        loss: Callable[[Scored], torch.Tensor],
        *,
        lr: float,
        temperature: float = 1.0,
    ) -> Updated:
        updated = super().update(rows, loss, lr=lr, temperature=temperature)
        self.rates += [group["lr"] for group in self.optimiser.param_groups]
        return updated


@pytest.mark.parametrize(
    ("speaking", "updates", "shares"),
    [("abcd", 2, [1, 1]), ("abc", 2, [1, 1 / 2]), ("a", 2, [1 / 2]), ("a", 1, [1 / 4]), ("", 2, [])],
)
async def test_the_rate_told_is_the_one_that_updates_were_made_with(
    tiny: Path, speaking: str, updates: int, shares: list[float]
) -> None:
    """Half of the warm-up, then in proportion to the groups that say something."""
    async with transformers_engine(TransformersSettings(model=tiny, dtype="float32", seed=3)) as engine:
        made = await _sample(engine, 8)
    groups = "aabbccdd"
    batch = [_episode(one, float(groups[at] in speaking and at % 2), groups[at]) for at, one in enumerate(made)]
    learner = Noting(tiny)
    told = grpo_step(learner, batch, GrpoSettings(lr=8e-5, warmup=2, updates=updates), 0)["lr"]
    assert learner.rates == pytest.approx([4e-5 * share for share in shares])
    assert told == pytest.approx(sum(learner.rates) / max(1, len(learner.rates)))


async def test_what_ran_into_a_limit_is_paid_as_the_settings_say(tiny: Path) -> None:
    """All were graded 1, and half of them never submitted."""
    graded = await _batch(tiny, lambda _: 1.0)
    mixed = [
        dataclasses.replace(one, outcome=Outcome.AGENT_LIMIT) if index % 2 else one for index, one in enumerate(graded)
    ]
    kept = grpo_step(Learner(tiny, FP32), mixed, GrpoSettings(), 0)
    assert (kept["kept_groups"], kept["unfinished"], kept["reward"]) == (0, 6, 1.0)
    unpaid = grpo_step(one := Learner(tiny, FP32), mixed, GrpoSettings(unfinished_reward=0.0), 0)
    assert (unpaid["kept_groups"], unpaid["unfinished"], unpaid["reward"]) == (2, 6, 1.0)
    zeros = [dataclasses.replace(one, reward=0.0) if one.outcome is Outcome.AGENT_LIMIT else one for one in mixed]
    grpo_step(other := Learner(tiny, FP32), zeros, GrpoSettings(), 0)
    assert torch.equal(_weights(one), _weights(other))


@pytest.mark.parametrize("reward", [1.0, 0.0, None])
async def test_nothing_to_learn_ends_with_an_error_after_bounded_tries(tiny: Path, reward: float | None) -> None:
    asked = 0
    async with scripted_engine([]) as engine:

        async def collect(groups: Sequence[str]) -> list[Trajectory]:
            nonlocal asked
            asked += 1
            outcome = Outcome.COMPLETED if reward is not None else Outcome.POLICY_FAILURE
            row = Row(ids=(1, 2), actions=(False, True), logprobs=(0.0, -1.0), versions=(-1, 0))
            return [Trajectory(rows=(row,), outcome=outcome, reward=reward, group=group) for group in groups]

        with pytest.raises(TrainingError, match="no group had members that differ"):
            await run_grpo(Learner(tiny, FP32), engine, iter([("a", "a")] * 99), collect, GrpoSettings(empty_batches=2))
    assert asked == 3


async def test_running_out_of_work_is_said(tiny: Path) -> None:
    async with scripted_engine([]) as engine:

        async def collect(groups: Sequence[str]) -> list[Trajectory]:
            return []

        with pytest.raises(TrainingError, match="ran out at step 0"):
            await run_grpo(Learner(tiny, FP32), engine, iter(()), collect, GrpoSettings())


async def test_episodes_without_traces_cannot_be_trained(tiny: Path) -> None:
    row = Row(ids=(1, 2), actions=(False, True), logprobs=None, versions=(-1, -1))
    pair = [Trajectory(rows=(row,), outcome=Outcome.COMPLETED, reward=reward, group="g") for reward in (0.0, 1.0)]
    with pytest.raises(ConfigError, match="engine-backed"):
        grpo_step(Learner(tiny, FP32), pair, GrpoSettings(), 0)


async def test_without_a_learning_rate_the_engine_does_not_drift(tiny: Path) -> None:
    """lr cannot be 0 in the settings, so updates are pushed unchanged: the mismatch stays what it was."""
    learner = Learner(tiny, FP32)
    async with transformers_engine(TransformersSettings(model=tiny, dtype="float32", seed=5)) as engine:
        for version in range(50):
            await engine.update_weights(learner.weights(), version)
        made = await _sample(engine, 2)
    rows = [_episode(one, 1.0, "g").rows[0] for one in made]
    with torch.no_grad():
        for scored in learner.score(rows):
            for at, index in enumerate(scored.rows):
                expected = torch.tensor(made[index].logprobs)
                torch.testing.assert_close(scored.logprobs_BA[at], expected, atol=1e-5, rtol=0)
