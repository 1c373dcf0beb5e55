"""vLLM beside the trainer: what it cannot serve is refused, and its probabilities are the trainer's to 1e-4 in fp32."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from metier.envs.core import ConfigError, Deadline
from metier.trainer import models
from metier.trainer.learner import Learner, LearnerSettings
from metier.trainer.rollout.engine import Engine, Generation, GenerationRequest
from metier.trainer.rollout.vllm_engine import VllmSettings, vllm_engine
from metier.trainer.trajectory import Row

# vLLM's own modules warn on import and start (deprecations in it and in what it imports).
pytestmark = pytest.mark.filterwarnings("default")

TINY: dict[str, Any] = {"dtype": "float32", "context_tokens": 256, "max_sequences": 16, "kv_mb": 64}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny(tmp_path_factory.mktemp("tiny"))


def _edited(folder: Path, to: Path, **fields: Any) -> Path:
    to.mkdir()
    config = json.loads((folder / "config.json").read_text())
    (to / "config.json").write_text(json.dumps(config | fields))
    return to


async def _generate(engine: Engine, prompts: list[tuple[int, ...]], **fields: Any) -> list[Generation]:
    deadline = Deadline.after(300, limit="turn_s", set_by="test")
    asked = [
        GenerationRequest(**({"id": f"r{n}", "prompt_ids": prompt, "max_tokens": 24} | fields))
        for n, prompt in enumerate(prompts)
    ]
    return list(await asyncio.gather(*(engine.generate(one, deadline=deadline) for one in asked)))


def _worst(learner: Learner, prompts: list[tuple[int, ...]], made: list[Generation], temperature: float) -> float:
    """The largest difference between the engine's and the learner's logprob of a sampled token."""
    rows = [
        Row(
            ids=(*prompt, *one.output_ids),
            actions=(False,) * len(prompt) + (True,) * len(one.output_ids),
            logprobs=None,
            versions=(-1,) * (len(prompt) + len(one.output_ids)),
        )
        for prompt, one in zip(prompts, made, strict=True)
    ]
    worst = 0.0
    with torch.no_grad():
        for scored in learner.score(rows, temperature=temperature):
            for at, index in enumerate(scored.rows):
                ours = scored.logprobs_BA[at][scored.mask_BA[at]]
                worst = max(worst, float((ours - torch.tensor(made[index].logprobs)).abs().max()))
    return worst


@pytest.mark.parametrize("kv_dtype", ["int8_per_token_head", "int4_per_token_head", "nonsense"])
async def test_a_kv_dtype_that_the_cpu_computes_wrongly_is_refused_at_start(tiny: Path, kv_dtype: str) -> None:
    with pytest.raises(ConfigError, match=kv_dtype):
        async with vllm_engine(VllmSettings(model=tiny, kv_dtype=kv_dtype, **TINY)):
            pytest.fail("it started")


@pytest.mark.parametrize(
    ("fields", "settings", "word"),
    [({"head_dim": 16}, {}, "head size 16"), ({}, {"context_tokens": 4096}, "context_tokens 4096")],
)
async def test_what_cannot_be_served_is_refused(
    tiny: Path, tmp_path: Path, fields: dict[str, Any], settings: dict[str, Any], word: str
) -> None:
    folder = _edited(tiny, tmp_path / "edited", **fields)
    with pytest.raises(ConfigError, match=word):
        async with vllm_engine(VllmSettings(model=folder, **(TINY | settings))):
            pytest.fail("it started")


async def test_a_missing_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Hugging Face folder"):
        async with vllm_engine(VllmSettings(model=tmp_path, **TINY)):
            pytest.fail("it started")


async def test_an_updated_engine_equals_a_fresh_one_and_caches_nothing_old(tiny: Path, tmp_path: Path) -> None:
    other = models.tiny(tmp_path / "other", seed=1)
    prompts = [tuple(range(3, 103))] * 2
    async with vllm_engine(VllmSettings(model=tiny, **TINY)) as engine:
        await _generate(engine, prompts)
        (again,) = await _generate(engine, prompts[:1])
        assert again.cached_tokens == 96, "blocks of 32 of the 100 tokens"
        await engine.update_weights(Learner(other, LearnerSettings(dtype="float32")).weights(), 1)
        (updated,) = await _generate(engine, prompts[:1], temperature=0.0)
        assert updated.cached_tokens == 0
        learner = Learner(other, LearnerSettings(dtype="float32"))
        assert _worst(learner, prompts[:1], [updated], 1.0) <= 1e-4, "the tied output head is updated too"
    async with vllm_engine(VllmSettings(model=other, **TINY)) as engine:
        (fresh,) = await _generate(engine, prompts[:1], temperature=0.0)
    assert updated.output_ids == fresh.output_ids
    assert updated.logprobs == pytest.approx(fresh.logprobs, abs=1e-6)


async def test_a_hundred_updates_under_way_leave_no_nan_and_labels_that_tile(tiny: Path) -> None:
    learner = Learner(tiny, LearnerSettings(dtype="float32"))
    async with vllm_engine(VllmSettings(model=tiny, **TINY)) as engine:
        running = asyncio.create_task(_generate(engine, [(1, 50, 60)] * 8, max_tokens=200))
        for version in range(1, 101):
            await engine.update_weights(learner.weights(), version)
        for one in await running:
            assert sum(count for _, count in one.versions) == len(one.output_ids) == 200
            assert torch.tensor(one.logprobs).isfinite().all()
            labels = [version for version, _ in one.versions]
            assert labels == sorted(set(labels))


@pytest.mark.slow
async def test_engine_and_trainer_agree_on_the_real_model() -> None:
    folder = models.get("smollm2-135m")
    learner = Learner(folder, LearnerSettings(dtype="float32"))
    shared = tuple(range(1000, 1060))
    prompts = [(*shared, *range(start, start + 9)) for start in (2000, 3000, 4000, 5000)]
    settings = VllmSettings(model=folder, dtype="float32", context_tokens=256, max_sequences=16, kv_mb=128)
    async with vllm_engine(settings) as engine:
        for temperature in (1.0, 0.7):
            made = await _generate(engine, prompts, temperature=temperature)
            assert _worst(learner, prompts, made, temperature) <= 1e-4
        rows = [
            Row(
                ids=prompts[0],
                actions=(False, *[True] * (len(prompts[0]) - 1)),
                logprobs=None,
                versions=(-1,) * len(prompts[0]),
            )
        ]
        learner.update(rows, lambda scored: -scored.logprobs_BA.mean(), lr=1e-4)
        await engine.update_weights(learner.weights(), learner.step)
        made = await _generate(engine, prompts)
        assert all(one.versions == ((1, 24),) for one in made)
        assert _worst(learner, prompts, made, 1.0) <= 1e-4


async def test_seeded_prompts_beyond_one_batch_do_not_end_the_engine(tiny: Path) -> None:
    """15 × 200 tokens do not fit one batch of 2,048, so a prompt would be cut in two."""
    prompts = [tuple(range(5 + n, 205 + n)) for n in range(15)]
    async with vllm_engine(VllmSettings(model=tiny, **TINY)) as engine:
        first = await _generate(engine, prompts, seed=7, max_tokens=8)
        again = await _generate(engine, prompts, seed=7, max_tokens=8)
    assert [one.output_ids for one in first] == [one.output_ids for one in again]
