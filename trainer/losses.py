"""Policy losses, KL estimators, importance corrections and aggregation weights, as pure functions.

The whole loss is one sum: (loss_BT · weights_BT).sum(), with weights fixed before anything is split, so it is the same
for every micro-batch size and packing. Suffixes: B rows, T tokens, L a constant length. Masked positions are inert:
whatever stands there, NaN and infinity included, the loss there is 0 and its gradient is 0.
"""

from __future__ import annotations

from enum import StrEnum, auto

import torch
from torch import Tensor


class Aggregation(StrEnum):
    """How per-token losses become one number."""

    TOKEN_MEAN = auto()
    """Each token counts the same."""
    SEQ_MEAN_TOKEN_MEAN = auto()
    """Each row counts the same, each token in it the same."""
    SEQ_MEAN_TOKEN_SUM = auto()
    """Rows averaged, tokens summed."""
    DR_GRPO = auto()
    """As above, divided by a constant length L; arXiv:2503.20783."""


def aggregation_weights(mask_BT: Tensor, how: Aggregation, *, length: int | None = None) -> Tensor:
    """Weights that sum the per-token losses to the aggregate; rows without a token are no rows.

    Raises:
        ValueError: DR_GRPO without `length`.
    """
    mask_BT = mask_BT.to(torch.get_default_dtype() if not mask_BT.is_floating_point() else mask_BT.dtype)
    tokens_B = mask_BT.sum(-1)
    num_rows = (tokens_B > 0).sum().clamp(min=1)
    if how is Aggregation.TOKEN_MEAN:
        return mask_BT / tokens_B.sum().clamp(min=1)
    if how is Aggregation.SEQ_MEAN_TOKEN_MEAN:
        return mask_BT / tokens_B.clamp(min=1).unsqueeze(-1) / num_rows
    if how is Aggregation.SEQ_MEAN_TOKEN_SUM:
        return mask_BT / num_rows
    if length is None:
        raise ValueError("dr_grpo aggregation needs the constant length")
    return mask_BT / num_rows / length


def _log_ratio(new_BT: Tensor, old_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """new - old, and 0 without a gradient where masked."""
    mask_BT = mask_BT.bool()
    return torch.where(mask_BT, new_BT, 0.0) - torch.where(mask_BT, old_BT, 0.0)


def ppo(
    new_BT: Tensor,
    old_BT: Tensor,
    advantages_B1: Tensor,
    mask_BT: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    dual_clip: float | None = None,
) -> Tensor:
    """-min(r·A, clip(r, 1 - low, 1 + high)·A) with r = exp(new - old) (arXiv:1707.06347, clip-higher arXiv:2503.14476).

    With `dual_clip` c the loss of a negative advantage is at most c·|A| (arXiv:1912.09729).
    """
    ratio_BT = _log_ratio(new_BT, old_BT, mask_BT).exp()
    clipped_BT = ratio_BT.clamp(1 - clip_low, 1 + clip_high)
    loss_BT = -torch.minimum(ratio_BT * advantages_B1, clipped_BT * advantages_B1)
    if dual_clip is not None:
        loss_BT = torch.where(advantages_B1 < 0, torch.minimum(loss_BT, -dual_clip * advantages_B1), loss_BT)
    return torch.where(mask_BT.bool(), loss_BT, 0.0)


def gspo(
    new_BT: Tensor,
    old_BT: Tensor,
    advantages_B1: Tensor,
    mask_BT: Tensor,
    *,
    clip_low: float = 3e-4,
    clip_high: float = 4e-4,
) -> Tensor:
    """PPO's clip on s = exp(mean over the row of (new - old)), the same at each token of the row (arXiv:2507.18071)."""
    tokens_B1 = mask_BT.to(new_BT.dtype).sum(-1, keepdim=True).clamp(min=1)
    ratio_B1 = (_log_ratio(new_BT, old_BT, mask_BT).sum(-1, keepdim=True) / tokens_B1).exp()
    clipped_B1 = ratio_B1.clamp(1 - clip_low, 1 + clip_high)
    loss_B1 = -torch.minimum(ratio_B1 * advantages_B1, clipped_B1 * advantages_B1)
    return torch.where(mask_BT.bool(), loss_B1, 0.0)


def cispo(new_BT: Tensor, old_BT: Tensor, advantages_B1: Tensor, mask_BT: Tensor, *, ratio_max: float = 1.28) -> Tensor:
    """-stop(min(r, max))·A·new: the ratio is a weight, so clipped tokens keep their gradient (arXiv:2506.13585)."""
    weight_BT = _log_ratio(new_BT, old_BT, mask_BT).exp().clamp(max=ratio_max).detach()
    return -weight_BT * advantages_B1 * torch.where(mask_BT.bool(), new_BT, 0.0)


class KlEstimator(StrEnum):
    """Estimators of KL(p ‖ q) from samples of p, with d = log p - log q (joschu.net/blog/kl-approx.html)."""

    K1 = auto()
    """d; unbiased, may be negative."""
    K2 = auto()
    """d² / 2; biased, its gradient is the KL's."""
    K3 = auto()
    """exp(-d) - 1 + d; unbiased, never negative."""


def kl(p_BT: Tensor, q_BT: Tensor, mask_BT: Tensor, estimator: KlEstimator = KlEstimator.K3) -> Tensor:
    """The estimate at each token, 0 where masked."""
    log_ratio_BT = _log_ratio(p_BT, q_BT, mask_BT)
    if estimator is KlEstimator.K1:
        return log_ratio_BT
    if estimator is KlEstimator.K2:
        return log_ratio_BT**2 / 2
    return torch.expm1(-log_ratio_BT) + log_ratio_BT


class Correction(StrEnum):
    """What is done about the engine's probabilities differing from the trainer's for the same weights."""

    NONE = auto()
    """The loss takes the engine's own logprobs as old ones, which is exact importance sampling up to its clip."""
    TIS = auto()
    """Truncated: weight min(trainer / engine, cap)."""
    ICEPOP = auto()
    """Weight trainer / engine inside [low, high], and 0 outside."""


def correction_weights(
    trainer_BT: Tensor,
    engine_BT: Tensor,
    mask_BT: Tensor,
    how: Correction,
    *,
    cap: float = 2.0,
    low: float = 0.5,
    high: float = 5.0,
) -> Tensor:
    """A factor for each token's loss, without gradient; `trainer_BT` are logprobs under the weights that sampled."""
    ratio_BT = _log_ratio(trainer_BT, engine_BT, mask_BT).exp().detach()
    if how is Correction.NONE:
        return torch.ones_like(ratio_BT)
    if how is Correction.TIS:
        return ratio_BT.clamp(max=cap)
    return torch.where((ratio_BT >= low) & (ratio_BT <= high), ratio_BT, 0.0)
