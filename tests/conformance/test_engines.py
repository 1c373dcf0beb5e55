"""One suite for every engine: scripted, transformers, vLLM in this process, and any of them behind a socket."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import ConfigError, PolicyError
from metier.harness.policy.contract import Stop
from metier.trainer import models
from metier.trainer.rollout.engine import Engine, Generation, GenerationRequest
from metier.trainer.rollout.fake import scripted_engine
from metier.trainer.rollout.remote import EngineClient, EngineServer
from metier.trainer.rollout.transformers_engine import TransformersSettings, transformers_engine
from metier.trainer.rollout.vllm_engine import VllmSettings, vllm_engine
from waiting import soon

# vLLM's own modules warn on import and start (deprecations in it and in what it imports).
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.asyncio(loop_scope="module")]

CONTEXT = 96
PROMPT = (1, 50, 60, 70)
WITH_MODEL = ("transformers", "vllm")


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=["scripted", "transformers", "vllm", "remote scripted"]
)
async def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    async with AsyncExitStack() as stack:
        kind = str(request.param)
        folder = models.tiny(tmp_path_factory.mktemp("tiny"))
        made: Any
        if "scripted" in kind:
            made = scripted_engine(lambda asked: [7] * 200, context_tokens=CONTEXT, step_s=0.001)
        elif kind == "transformers":
            made = transformers_engine(TransformersSettings(model=folder, dtype="float32", context_tokens=CONTEXT))
        else:
            made = vllm_engine(
                VllmSettings(model=folder, dtype="float32", context_tokens=CONTEXT, max_sequences=16, kv_mb=64)
            )
        await stack.enter_async_context(made)
        if "remote" in kind:
            server = await stack.enter_async_context(EngineServer(made))
            made = await stack.enter_async_context(EngineClient(server.address))
        made_kind[id(made)] = kind
        made_folder[id(made)] = folder
        yield made


made_kind: dict[int, str] = {}
made_folder: dict[int, Path] = {}


def _ask(**fields: Any) -> GenerationRequest:
    return GenerationRequest(**({"id": "r", "prompt_ids": PROMPT, "max_tokens": 8} | fields))


def _whole(made: Generation) -> None:
    assert len(made.output_ids) == len(made.logprobs)
    assert sum(count for _, count in made.versions) == len(made.output_ids)
    assert all(count > 0 for _, count in made.versions)
    assert all(math.isfinite(value) and value <= 0 for value in made.logprobs)
    assert made.prefill_s >= 0
    assert made.decode_s >= 0


async def test_a_generation_is_whole(engine: Engine) -> None:
    made = await engine.generate(_ask(), deadline=soon())
    _whole(made)
    assert (len(made.output_ids), made.stop) == (8, Stop.LENGTH)


async def test_it_ends_with_the_stop_id_and_includes_it(engine: Engine) -> None:
    free = await engine.generate(_ask(temperature=0.0), deadline=soon())
    stop = free.output_ids[2]
    made = await engine.generate(_ask(temperature=0.0, stop_ids=(stop,)), deadline=soon())
    first = list(free.output_ids).index(stop)
    assert tuple(made.output_ids) == tuple(free.output_ids[: first + 1])
    assert made.stop is Stop.END


async def test_greedy_is_repeatable(engine: Engine) -> None:
    first, second = [await engine.generate(_ask(temperature=0.0), deadline=soon()) for _ in range(2)]
    assert first.output_ids == second.output_ids


async def test_many_at_once(engine: Engine) -> None:
    asked = [_ask(id=f"r{n}", max_tokens=n % 5 + 1) for n in range(40)]
    made = await asyncio.gather(*(engine.generate(one, deadline=soon()) for one in asked))
    for one, got in zip(asked, made, strict=True):
        _whole(got)
        assert len(got.output_ids) == one.max_tokens


async def test_equal_request_ids_do_not_mix(engine: Engine) -> None:
    made = await asyncio.gather(*(engine.generate(_ask(max_tokens=n), deadline=soon()) for n in (2, 5, 9)))
    assert [len(one.output_ids) for one in made] == [2, 5, 9]


@pytest.mark.parametrize("length", [CONTEXT, CONTEXT + 1, 10 * CONTEXT])
async def test_a_prompt_without_room_stops_at_once(engine: Engine, length: int) -> None:
    made = await engine.generate(_ask(prompt_ids=(5,) * length), deadline=soon())
    assert (tuple(made.output_ids), made.stop) == ((), Stop.CONTEXT)


async def test_the_context_cuts_what_max_tokens_would_allow(engine: Engine) -> None:
    made = await engine.generate(_ask(prompt_ids=(5,) * (CONTEXT - 3), max_tokens=50), deadline=soon())
    assert (len(made.output_ids), made.stop) == (3, Stop.CONTEXT)


async def test_a_deadline_that_passed_is_named(engine: Engine) -> None:
    with pytest.raises(PolicyError, match="test_s"):
        await engine.generate(_ask(max_tokens=80), deadline=soon(0))
    _whole(await engine.generate(_ask(), deadline=soon()))


async def test_cancelling_leaves_the_others_alone(engine: Engine) -> None:
    doomed = [asyncio.create_task(engine.generate(_ask(max_tokens=80), deadline=soon())) for _ in range(8)]
    kept = asyncio.create_task(engine.generate(_ask(max_tokens=20), deadline=soon()))
    await asyncio.sleep(0.02)
    for task in doomed:
        task.cancel()
    results = await asyncio.gather(*doomed, return_exceptions=True)
    assert all(isinstance(result, (asyncio.CancelledError, Generation)) for result in results)
    assert len((await kept).output_ids) == 20
    began = time.monotonic()
    await engine.generate(_ask(max_tokens=1), deadline=soon())
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompt_ids": ()},
        {"prompt_ids": (1, 10**6)},
        {"prompt_ids": (-1,)},
        {"max_tokens": 0},
        {"temperature": -1.0},
        {"top_p": 0.0},
        {"images": (b"png",)},
    ],
)
async def test_a_malformed_request_harms_nobody(engine: Engine, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        await engine.generate(_ask(**wrong), deadline=soon())
    _whole(await engine.generate(_ask(), deadline=soon()))


async def test_top_p_keeps_the_likeliest(engine: Engine) -> None:
    if made_kind[id(engine)] not in WITH_MODEL:
        return
    greedy = await engine.generate(_ask(temperature=0.0), deadline=soon())
    narrow = await engine.generate(_ask(top_p=1e-6), deadline=soon())
    assert narrow.output_ids == greedy.output_ids
    assert max(map(abs, narrow.logprobs)) < 1e-4, "of the distribution that was sampled from"


async def test_an_update_is_seen_by_later_requests_and_labels_them(engine: Engine, tmp_path: Path) -> None:
    kind = made_kind[id(engine)]
    from safetensors.torch import load_file, save_file

    old = load_file(made_folder[id(engine)] / "model.safetensors")
    new = load_file(models.tiny(tmp_path / "new", seed=1) / "model.safetensors")
    path = tmp_path / "weights.safetensors"
    save_file(new, path)
    before = await engine.generate(_ask(temperature=0.0), deadline=soon())
    await engine.update_weights(path, 5)
    after = await engine.generate(_ask(temperature=0.0), deadline=soon())
    assert after.versions == ((5, 8),)
    assert after.cached_tokens == 0
    if kind in WITH_MODEL:
        assert after.output_ids != before.output_ids
        await engine.update_weights(old.items(), 6)
        back = await engine.generate(_ask(temperature=0.0), deadline=soon())
        assert (back.output_ids, back.versions) == (before.output_ids, ((6, 8),))


async def test_updates_during_generation_tile_the_versions(engine: Engine, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(made_folder[id(engine)] / "model.safetensors")
    path = tmp_path / "weights.safetensors"
    save_file(weights, path)
    tasks = [asyncio.create_task(engine.generate(_ask(max_tokens=85), deadline=soon())) for _ in range(3)]
    pushed = 100
    while not all(task.done() for task in tasks):
        await engine.update_weights(path, pushed)
        pushed += 1
    for made in await asyncio.gather(*tasks):
        _whole(made)
        labels = [version for version, _ in made.versions]
        assert labels == sorted(set(labels))
        assert pushed == 101 or len(labels) > 1


async def test_close_is_idempotent_and_final() -> None:
    engine = scripted_engine(lambda asked: [7] * 1000, step_s=0.01)
    with pytest.raises(ConfigError, match="not started"):
        await engine.generate(_ask(), deadline=soon())
    async with engine:
        running = asyncio.create_task(engine.generate(_ask(max_tokens=900), deadline=soon()))
        await asyncio.sleep(0.05)
    with pytest.raises(PolicyError, match="closed"):
        await running
    await engine.close()
    with pytest.raises(PolicyError, match="closed"):
        await engine.generate(_ask(), deadline=soon())
    with pytest.raises(PolicyError, match="closed"):
        await engine.update_weights([], 1)


async def test_a_core_that_breaks_fails_all_that_wait_and_stays_dead() -> None:
    def break_down(asked: GenerationRequest) -> list[int]:
        if asked.id == "poison":
            raise MemoryError("no more")
        return [7] * 1000

    async with scripted_engine(break_down, step_s=0.01) as engine:
        waiting = [asyncio.create_task(engine.generate(_ask(max_tokens=900), deadline=soon())) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting.append(asyncio.create_task(engine.generate(_ask(id="poison"), deadline=soon())))
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, PolicyError) and "no more" in str(result) for result in results)
        with pytest.raises(PolicyError, match="no more"):
            await engine.generate(_ask(), deadline=soon())
