"""Advantages: a failed or silent member does nothing to its group, observations discount nothing."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.trainer.advantages import GroupBaseline, gae, group_advantages

ALL = list(GroupBaseline)


@given(
    rewards=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=12),
    data=st.data(),
    baseline=st.sampled_from(ALL),
)
@settings(deadline=None, max_examples=60)
def test_each_group_sums_to_zero_and_keeps_the_order(
    rewards: list[float], data: st.DataObject, baseline: GroupBaseline
) -> None:
    groups = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=len(rewards), max_size=len(rewards))))
    present = torch.tensor(data.draw(st.lists(st.booleans(), min_size=len(rewards), max_size=len(rewards))))
    values = torch.tensor(rewards, dtype=torch.float64)
    advantages = group_advantages(values, groups, present, baseline)
    assert advantages[~present].eq(0).all()
    for group in groups.unique():
        members = (groups == group) & present
        assert advantages[members].sum().item() == pytest.approx(0, abs=1e-9)
        order = values[members].argsort(stable=True)
        assert advantages[members][order].diff().ge(-1e-9).all()


@pytest.mark.parametrize("baseline", ALL)
def test_singletons_and_equal_rewards_say_nothing(baseline: GroupBaseline) -> None:
    rewards = torch.tensor([1.0, 0.3, 0.3, 0.3])
    groups = torch.tensor([0, 1, 1, 1])
    assert group_advantages(rewards, groups, torch.ones(4, dtype=torch.bool), baseline).eq(0).all()


@pytest.mark.parametrize("absent_reward", [100.0, float("nan"), float("inf")])
@pytest.mark.parametrize("baseline", ALL)
def test_an_absent_member_is_in_no_mean(absent_reward: float, baseline: GroupBaseline) -> None:
    present = torch.tensor([False, True, True, True])
    advantages = group_advantages(
        torch.tensor([absent_reward, 1.0, 0.0, 0.0]), torch.zeros(4, dtype=torch.long), present, baseline
    )
    alone = group_advantages(
        torch.tensor([1.0, 0.0, 0.0]), torch.zeros(3, dtype=torch.long), torch.ones(3, dtype=torch.bool), baseline
    )
    assert torch.equal(advantages, torch.cat([torch.zeros(1), alone]))


def test_a_group_left_with_one_present_member_is_a_singleton() -> None:
    present = torch.tensor([False, True])
    assert group_advantages(torch.tensor([100.0, 1.0]), torch.zeros(2, dtype=torch.long), present).eq(0).all()


def _returns(rewards: list[float], actions: list[int], gamma: float) -> list[float]:
    """With V = 0 and lambda = 1 an advantage is the discounted return."""
    zeros = torch.zeros(len(rewards))
    return gae(torch.tensor(rewards), zeros, torch.tensor(actions), gamma=gamma, lam=1.0).tolist()


def test_an_observation_between_two_actions_discounts_nothing() -> None:
    assert _returns([0, 0, 1], [1, 0, 1], 0.5) == [0.5, 0, 1]


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_a_terminal_reward_on_an_observation_reaches_the_last_action_undiscounted(gamma: float) -> None:
    assert _returns([0, 0, 0, 1], [1, 1, 0, 0], gamma) == [gamma, 1, 0, 0]


def test_a_graded_episode_bootstraps_nothing_and_a_cut_one_does() -> None:
    rewards, values, actions = torch.zeros(2), torch.zeros(2), torch.ones(2)
    assert gae(rewards, values, actions, gamma=0.5, lam=1.0).eq(0).all()
    cut = gae(rewards, values, actions, gamma=0.5, lam=1.0, bootstrap=1.0)
    assert cut.tolist() == [0.25, 0.5]


def test_values_of_masked_tokens_are_inert() -> None:
    values = torch.tensor([0.5, float("nan"), 0.2])
    advantages = gae(torch.tensor([0.0, 0.0, 1.0]), values, torch.tensor([1, 0, 1]), gamma=1.0, lam=1.0)
    torch.testing.assert_close(advantages, torch.tensor([0.5, 0.0, 0.8]))
