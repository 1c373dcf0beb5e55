"""Invariants of the losses: masked positions are inert, weights make the sum independent of how rows are split."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from metier.trainer.losses import (
    Aggregation,
    Correction,
    KlEstimator,
    aggregation_weights,
    cispo,
    correction_weights,
    gspo,
    kl,
    ppo,
)

LOSSES: dict[str, Callable[..., Tensor]] = {"ppo": ppo, "gspo": gspo, "cispo": cispo}


def _batch(seed: int, rows: int = 4, tokens: int = 6) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    old = -torch.rand(rows, tokens, generator=source, dtype=torch.float64) * 3
    new = old + torch.randn(rows, tokens, generator=source, dtype=torch.float64) * 0.3
    advantages = torch.randn(rows, 1, generator=source, dtype=torch.float64)
    mask = torch.rand(rows, tokens, generator=source) < 0.6
    mask[:, 1] = True
    return new, old, advantages, mask


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("junk", [float("nan"), float("inf"), float("-inf"), -1e30])
def test_what_stands_at_a_masked_position_is_inert(name: str, junk: float) -> None:
    new, old, advantages, mask = _batch(1)
    weights = aggregation_weights(mask, Aggregation.TOKEN_MEAN)
    results = []
    for dirty_new, dirty_old in ((new, old), (new.masked_fill(~mask, junk), old.masked_fill(~mask, junk))):
        leaf = dirty_new.clone().requires_grad_()
        loss = (LOSSES[name](leaf, dirty_old, advantages, mask) * weights).sum()
        loss.backward()
        assert leaf.grad is not None
        results.append((loss.detach(), leaf.grad))
    assert torch.equal(results[0][0], results[1][0])
    assert torch.equal(results[0][1], results[1][1])
    assert results[1][1][~mask].eq(0).all()


@given(seed=st.integers(0, 10_000), cuts=st.sets(st.integers(1, 3)), how=st.sampled_from(list(Aggregation)))
@settings(deadline=None, max_examples=40)
def test_the_loss_does_not_depend_on_the_split(seed: int, cuts: set[int], how: Aggregation) -> None:
    new, old, advantages, mask = _batch(seed)
    weights = aggregation_weights(mask.double(), how, length=6)
    whole = (ppo(new, old, advantages, mask) * weights).sum()
    bounds = [0, *sorted(cuts), 4]
    parts = sum((ppo(new[a:b], old[a:b], advantages[a:b], mask[a:b]) * weights[a:b]).sum() for a, b in pairwise(bounds))
    torch.testing.assert_close(torch.as_tensor(parts), whole)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_mean_weights_sum_to_one_and_rows_without_actions_are_no_rows(seed: int) -> None:
    mask = _batch(seed)[3].double()
    padded = torch.cat([mask, torch.zeros(2, mask.shape[1])])
    for how in (Aggregation.TOKEN_MEAN, Aggregation.SEQ_MEAN_TOKEN_MEAN):
        weights = aggregation_weights(padded, how)
        assert weights.sum().item() == pytest.approx(1)
        torch.testing.assert_close(weights[:-2], aggregation_weights(mask, how))


def test_no_actions_at_all_give_zero_and_not_nan() -> None:
    mask = torch.zeros(2, 3)
    new = torch.randn(2, 3, requires_grad=True)
    loss = (ppo(new, new.detach(), torch.ones(2, 1), mask) * aggregation_weights(mask, Aggregation.TOKEN_MEAN)).sum()
    loss.backward()
    assert loss.item() == 0
    assert new.grad is not None
    assert new.grad.eq(0).all()


def test_dr_grpo_needs_its_length() -> None:
    with pytest.raises(ValueError, match="length"):
        aggregation_weights(torch.ones(1, 2), Aggregation.DR_GRPO)


def test_dual_clip_bounds_the_loss_of_a_bad_action_that_became_likely() -> None:
    old, new = torch.tensor([[-5.0]]), torch.tensor([[-0.1]], requires_grad=True)
    mask, bad = torch.ones(1, 1), torch.tensor([[-1.0]])
    assert ppo(new, old, bad, mask).item() > 100
    bounded = ppo(new, old, bad, mask, dual_clip=3.0)
    bounded.sum().backward()
    assert bounded.item() == 3
    assert new.grad is not None
    assert new.grad.item() == 0
    good = -bad
    assert torch.equal(ppo(new, old, good, mask, dual_clip=3.0), ppo(new, old, good, mask))


def test_clip_higher_leaves_more_room_upwards() -> None:
    old, mask, good = torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1, 1)
    inside = torch.tensor([[0.24]])
    assert ppo(inside, old, good, mask).item() == pytest.approx(-inside.exp().item())
    assert ppo(inside, old, good, mask, clip_high=0.2).item() == pytest.approx(-1.2)


@given(seed=st.integers(0, 10_000))
@settings(deadline=None, max_examples=40)
def test_k3_is_never_negative_and_equal_models_have_none(seed: int) -> None:
    new, old, _, mask = _batch(seed)
    assert kl(new, old, mask, KlEstimator.K3).ge(0).all()
    for estimator in KlEstimator:
        assert kl(new, new, mask, estimator).eq(0).all()


def test_the_estimators_agree_in_expectation() -> None:
    source = torch.Generator().manual_seed(0)
    p = torch.randn(50, generator=source, dtype=torch.float64).log_softmax(0)
    q = (p + 0.05 * torch.randn(50, generator=source, dtype=torch.float64)).log_softmax(0)
    exact = (p.exp() * (p - q)).sum()
    everywhere = torch.ones(50)
    for estimator, tolerance in ((KlEstimator.K1, 1e-9), (KlEstimator.K2, 0.05), (KlEstimator.K3, 1e-9)):
        estimate = (p.exp() * kl(p, q, everywhere, estimator)).sum()
        torch.testing.assert_close(estimate, exact, rtol=tolerance, atol=1e-12)


def test_corrections() -> None:
    engine = torch.zeros(1, 4)
    trainer = torch.tensor([[0.0, 2.0, -2.0, float("nan")]])
    mask = torch.tensor([[True, True, True, False]])
    assert correction_weights(trainer, engine, mask, Correction.NONE).eq(1).all()
    truncated = correction_weights(trainer, engine, mask, Correction.TIS)
    torch.testing.assert_close(truncated, torch.tensor([[1.0, 2.0, 0.135335, 1.0]]), atol=1e-5, rtol=0)
    popped = correction_weights(trainer, engine, mask, Correction.ICEPOP)
    torch.testing.assert_close(popped, torch.tensor([[1.0, 0.0, 0.0, 1.0]]))
