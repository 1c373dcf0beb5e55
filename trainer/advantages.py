"""Advantages: of a group's members from their rewards, and of a row's actions from a critic's values.

Suffixes: N members of any groups, T tokens of one row. Absent members (failed, or with no action token) count in no
mean and get 0; so do the members of a group with one present member or with equal rewards: they say nothing about
better.
"""

from __future__ import annotations

from enum import StrEnum, auto

import torch
from torch import Tensor

EPSILON = 1e-6


class GroupBaseline(StrEnum):
    """How a reward becomes an advantage within its group of G present members."""

    GRPO = auto()
    """(r - mean) / (std + 1e-6), std with G - 1; arXiv:2402.03300."""
    DR_GRPO = auto()
    """r - mean; arXiv:2503.20783."""
    RLOO = auto()
    """r - mean of the others = (r - mean) · G / (G - 1); arXiv:2402.14740."""


def group_advantages(
    rewards_N: Tensor, groups_N: Tensor, present_N: Tensor, baseline: GroupBaseline = GroupBaseline.GRPO
) -> Tensor:
    """One advantage a member.

    Args:
        rewards_N: Rewards; what stands at an absent member is ignored, NaN included.
        groups_N: Integer labels.
        present_N: Whether the member counts.
        baseline: The estimator.
    """
    advantages_N = torch.zeros_like(rewards_N)
    for group in torch.unique(groups_N):
        members_N = (groups_N == group) & present_N
        rewards_G = rewards_N[members_N]
        if rewards_G.numel() < 2 or bool((rewards_G == rewards_G[0]).all()):
            continue
        centred_G = rewards_G - rewards_G.mean()
        if baseline is GroupBaseline.GRPO:
            centred_G = centred_G / (rewards_G.std(unbiased=True) + EPSILON)
        elif baseline is GroupBaseline.RLOO:
            centred_G = centred_G * rewards_G.numel() / (rewards_G.numel() - 1)
        advantages_N[members_N] = centred_G
    return advantages_N


def gae(
    rewards_T: Tensor, values_T: Tensor, actions_T: Tensor, *, gamma: float, lam: float, bootstrap: float = 0.0
) -> Tensor:
    """Generalised advantage estimation over the actions only (arXiv:1506.02438).

    With actions a_1..a_K: delta_k = r_k + gamma · V_{k+1} - V_k and A_k = delta_k + gamma · lam · A_{k+1}. Tokens
    between two actions are no steps: they discount nothing, and a reward that stands on them belongs, undiscounted, to
    the action before. Rewards before the first action belong to nobody.

    Args:
        rewards_T: Rewards by token.
        values_T: The critic's values; ignored where no action is, NaN included.
        actions_T: The action mask.
        gamma: Discount.
        lam: GAE's lambda.
        bootstrap: V after the last action: 0 for a graded episode, whose reward is final.
    """
    advantages_T = torch.zeros_like(values_T)
    following, next_value, reward = 0.0, bootstrap, 0.0
    for t in range(len(rewards_T) - 1, -1, -1):
        reward += float(rewards_T[t])
        if not bool(actions_T[t]):
            continue
        value = float(values_T[t])
        following = reward + gamma * next_value - value + gamma * lam * following
        advantages_T[t] = following
        next_value, reward = value, 0.0
    return advantages_T
