"""Values computed by hand for the trainer's formulas, in fp64: one that moves is a change of meaning."""

from __future__ import annotations

import pytest
import torch

from metier.trainer.advantages import GroupBaseline, gae, group_advantages
from metier.trainer.losses import Aggregation, KlEstimator, aggregation_weights, cispo, gspo, kl, ppo

OLD = torch.tensor([[-1, -0.5, -2, -1], [-0.7, -1.2, -0.3, 0]], dtype=torch.float64)
NEW = OLD + torch.tensor([[0.1, -0.4, 0.3, -0.05], [0.5, -0.1, 0, 0]], dtype=torch.float64)
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.float64)
ADVANTAGES = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (Aggregation.TOKEN_MEAN, -0.242194),
        (Aggregation.SEQ_MEAN_TOKEN_MEAN, 0.137550),
        (Aggregation.SEQ_MEAN_TOKEN_SUM, -0.726581),
        (Aggregation.DR_GRPO, -0.181645),
    ],
)
def test_ppo_under_each_aggregation(how: Aggregation, expected: float) -> None:
    loss = (ppo(NEW, OLD, ADVANTAGES, MASK) * aggregation_weights(MASK, how, length=4)).sum()
    assert loss.item() == pytest.approx(expected, abs=1e-6)


def test_ppo_gradient() -> None:
    new = NEW.clone().requires_grad_()
    (ppo(new, OLD, ADVANTAGES, MASK) * aggregation_weights(MASK, Aggregation.TOKEN_MEAN)).sum().backward()
    expected = torch.tensor([[-0.184195, -0.11172, 0, -0.158538], [0.274787, 0.150806, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(new.grad, expected, atol=1e-6, rtol=0)


def test_gspo() -> None:
    loss = (gspo(NEW, OLD, ADVANTAGES, MASK) * aggregation_weights(MASK, Aggregation.SEQ_MEAN_TOKEN_MEAN)).sum()
    assert loss.item() == pytest.approx(0.116912, abs=1e-6)


def test_cispo() -> None:
    loss = (cispo(NEW, OLD, ADVANTAGES, MASK) * aggregation_weights(MASK, Aggregation.TOKEN_MEAN)).sum()
    assert loss.item() == pytest.approx(0.556741, abs=1e-6)


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [(KlEstimator.K1, 0.058333), (KlEstimator.K2, 0.043542), (KlEstimator.K3, 0.041742)],
)
def test_kl_estimators(estimator: KlEstimator, expected: float) -> None:
    assert (kl(NEW, OLD, MASK, estimator).sum() / MASK.sum()).item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [(GroupBaseline.GRPO, 0.86602), (GroupBaseline.RLOO, 0.66667), (GroupBaseline.DR_GRPO, 0.5)],
)
def test_group_baselines(baseline: GroupBaseline, expected: float) -> None:
    rewards = torch.tensor([1, 0, 0, 1, 1, 1, 0, 0], dtype=torch.float64)
    groups = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    advantages = group_advantages(rewards, groups, torch.ones(8, dtype=torch.bool), baseline)
    torch.testing.assert_close(advantages, (2 * rewards - 1) * expected, atol=5e-6, rtol=0)


@pytest.mark.parametrize(("gamma", "expected"), [(0.99, [0.4323, 0.5702, 0.4]), (1.0, [0.451, 0.58, 0.4])])
def test_gae_steps_over_observations(gamma: float, expected: list[float]) -> None:
    rewards = torch.tensor([0, 0, 0, 0, 1], dtype=torch.float64)
    values = torch.tensor([0.5, 0.4, 0.9, 0.9, 0.6], dtype=torch.float64)
    actions = torch.tensor([1, 1, 0, 0, 1])
    advantages = gae(rewards, values, actions, gamma=gamma, lam=0.95)
    torch.testing.assert_close(advantages[actions.bool()], torch.tensor(expected).double(), atol=5e-5, rtol=0)
    assert advantages[~actions.bool()].eq(0).all()
