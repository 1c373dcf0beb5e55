"""The model that learns: logprobs of actions with shared prefixes, updates on fp32 masters, exact checkpoints.

Suffixes: B rows of a run, A actions of a row (padded), P prefix tokens, T tail tokens.

Rows are right-padded without a mask (causality keeps padding out of every real token), and logits are computed where
the next token is an action and nowhere else; equal rows are computed once. Where the model runs in bf16, gradients are
summed and weights stepped in fp32 masters.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from metier.envs.core import ConfigError, MetierError

from .precision import dtype_named
from .prefixes import Cluster, cluster
from .trajectory import Row


class TrainingError(MetierError, RuntimeError):
    """Training cannot go on: the message says why."""


class LearnerSettings(BaseModel, extra="forbid", frozen=True):
    """How to train; the recipe's values."""

    dtype: str = "auto"
    """Of the forward and backward passes; `auto` is bf16 where the machine computes it natively."""
    beta1: float = 0.9
    beta2: float = 0.95
    weight_decay: float = 0.0
    grad_norm: float = Field(default=1.0, gt=0)
    run_tokens: int = Field(default=4096, gt=0)
    """Most tokens in one forward pass."""
    trainable_layers: int | None = Field(default=None, gt=0)
    """Train only the last so many layers: cheaper, since nothing is propagated below. None trains everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One run's actions under the current weights."""

    rows: tuple[int, ...]
    """Positions in the list of rows that was given."""
    logprobs_BA: Tensor
    entropy_BA: Tensor
    """Without gradient."""
    mask_BA: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated:
    """What an optimiser update did."""

    loss: float
    grad_norm: float
    computed_tokens: int
    """After prefix sharing, padding included."""


class Learner:
    """A causal language model with its optimiser.

    Example:
        learner = Learner(models.get("smollm2-135m"))
        updated = learner.update(rows, lambda scored: -(scored.logprobs_BA * scored.mask_BA).mean(), lr=1e-4)
    """

    def __init__(self, model: Path, settings: LearnerSettings | None = None) -> None:
        """`model`: a Hugging Face folder, or a checkpoint that `save` wrote (then also `load` it)."""
        from transformers import AutoModelForCausalLM

        if not (model / "config.json").is_file():
            raise ConfigError(f"{model} is no Hugging Face folder: it holds no config.json")
        self.settings = settings or LearnerSettings()
        self.folder = model
        self.step = 0
        """Optimiser updates done."""
        self.dtype = dtype_named(self.settings.dtype)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loaded: Any = AutoModelForCausalLM.from_pretrained(model, dtype=self.dtype, attn_implementation="sdpa")
        self.model: nn.Module = loaded.to(self.device)
        self.model.eval()
        self._freeze()
        self._live = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self._masters = self._live if self.dtype is torch.float32 else [self._master(live) for live in self._live]
        self.optimiser = torch.optim.AdamW(
            self._masters,
            lr=0.0,
            betas=(self.settings.beta1, self.settings.beta2),
            weight_decay=self.settings.weight_decay,
            fused=True,
        )

    def _freeze(self) -> None:
        if self.settings.trainable_layers is None:
            return
        for parameter in self.model.parameters():
            parameter.requires_grad_(False)
        inner: Any = self.model.model
        for module in (*inner.layers[-self.settings.trainable_layers :], inner.norm):
            module.requires_grad_(True)

    def score(self, rows: Sequence[Row], *, temperature: float = 1.0) -> Iterator[Scored]:
        """Logprobs of every row's actions, run by run; under `torch.no_grad()` nothing is kept for a backward pass."""
        for run in cluster([row.ids for row in rows], max_tokens=self.settings.run_tokens):
            yield self._score(rows, run, temperature)

    def update(
        self,
        rows: Sequence[Row],
        loss: Callable[[Scored], Tensor],
        *,
        lr: float,
        temperature: float = 1.0,
    ) -> Updated:
        """One optimiser step on the sum of `loss` over the runs.

        Raises:
            TrainingError: The gradient is not finite; the weights are left as they were.
        """
        total, tokens = 0.0, 0
        # kept and zeroed: half a gigabyte given back and asked for again costs a tenth of an update in page faults
        self.optimiser.zero_grad(set_to_none=False)
        for run in cluster([row.ids for row in rows], max_tokens=self.settings.run_tokens):
            value = loss(self._score(rows, run, temperature))
            value.backward()
            total += value.item()
            tokens += run.cost
        norm = float(nn.utils.clip_grad_norm_(self._masters, self.settings.grad_norm))
        if not torch.isfinite(torch.tensor(norm)):
            raise TrainingError(
                f"the gradient at update {self.step} is {norm}: lower the learning rate or mend the rows"
            )
        for group in self.optimiser.param_groups:
            group["lr"] = lr
        self.optimiser.step()
        self._publish()
        self.step += 1
        return Updated(loss=total, grad_norm=norm, computed_tokens=tokens)

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Names and tensors as an engine loads them; tied weights once."""
        for name, parameter in self.model.named_parameters():
            yield name, parameter.detach()

    def save(self, folder: Path) -> Path:
        """Writes, whole or not at all, a Hugging Face folder and `trainer.pt` (masters, optimiser, random state)."""
        scratch = folder.parent / f".{folder.name}.{os.getpid()}"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        saver: Any = self.model
        saver.save_pretrained(scratch)
        for extra in self.folder.glob("*token*"):
            shutil.copy(extra, scratch)
        state = {
            "masters": [] if self._masters is self._live else [master.detach() for master in self._masters],
            "optimiser": self.optimiser.state_dict(),
            "random": torch.get_rng_state(),
            "step": self.step,
        }
        torch.save(state, scratch / "trainer.pt")
        shutil.rmtree(folder, ignore_errors=True)
        scratch.rename(folder)
        return folder

    def load(self, folder: Path) -> None:
        """Continues exactly where `save` stood.

        Raises:
            ConfigError: The folder is no checkpoint, or one of another model.
        """
        from safetensors.torch import load_model

        if not (folder / "trainer.pt").is_file():
            raise ConfigError(f"{folder} is no checkpoint: it holds no trainer.pt")
        try:
            load_model(self.model, folder / "model.safetensors", strict=False)
            state = torch.load(folder / "trainer.pt", weights_only=True)
            self.optimiser.load_state_dict(state["optimiser"])
        except (RuntimeError, ValueError, KeyError) as error:
            raise ConfigError(f"{folder} does not fit this model or these settings: {error}") from error
        with torch.no_grad():
            for master, saved in zip(self._masters, state["masters"], strict=False):
                master.copy_(saved)
        torch.set_rng_state(state["random"])
        self.step = state["step"]

    def _score(self, rows: Sequence[Row], run: Cluster, temperature: float) -> Scored:
        members = [rows[index] for index in run.rows]
        distinct = {row.ids: None for row in members}
        slots = {ids: slot for slot, ids in enumerate(distinct)}
        hidden_ND, stride = self._hidden(list(distinct), run.prefix)
        where, targets, mask_BA = _action_places(members, slots, run.prefix, stride)
        unique, inverse = torch.unique(where.to(self.device), return_inverse=True)
        head: Any = self.model.get_output_embeddings()  # pyright: ignore[reportCallIssue]
        logprobs_UV = (head(hidden_ND[unique]).float() / (temperature or 1.0)).log_softmax(-1)
        with torch.no_grad():
            entropy_U = -(logprobs_UV.exp() * logprobs_UV).sum(-1)
        mask_BA = mask_BA.to(self.device)
        flat = logprobs_UV[inverse, targets.to(self.device)]
        empty_BA = torch.zeros(mask_BA.shape, device=self.device)
        return Scored(
            rows=run.rows,
            logprobs_BA=empty_BA.masked_scatter(mask_BA, flat),
            entropy_BA=empty_BA.masked_scatter(mask_BA, entropy_U[inverse]),
            mask_BA=mask_BA,
        )

    def _hidden(self, distinct: Sequence[tuple[int, ...]], prefix: int) -> tuple[Tensor, int]:
        """Last hidden states, flat: first the prefix's, then each tail's, padded to the stride that is returned."""
        inner: Any = self.model.model
        tails = [ids[prefix:] for ids in distinct]
        stride = max(map(len, tails))
        tails_BT = torch.tensor([[*tail, *[0] * (stride - len(tail))] for tail in tails], device=self.device)
        if not prefix:
            return inner(input_ids=tails_BT, use_cache=False).last_hidden_state.flatten(0, 1), stride
        from transformers import DynamicCache

        prefix_1P = torch.tensor([distinct[0][:prefix]], device=self.device)
        cache = DynamicCache(config=self.model.config)  # pyright: ignore[reportArgumentType]
        first = inner(input_ids=prefix_1P, past_key_values=cache, use_cache=True).last_hidden_state
        cache.batch_repeat_interleave(len(distinct))
        rest = inner(input_ids=tails_BT, past_key_values=cache, use_cache=True).last_hidden_state
        return torch.cat([first[0], rest.flatten(0, 1)]), stride

    def _master(self, live: nn.Parameter) -> nn.Parameter:
        """An fp32 copy that takes each gradient of `live` as soon as it is there; its memory serves the next one."""
        master = nn.Parameter(live.detach().float())
        master.grad = torch.zeros_like(master)

        def take(parameter: Tensor) -> None:
            assert master.grad is not None and parameter.grad is not None
            master.grad.add_(parameter.grad)
            parameter.grad = None

        live.register_post_accumulate_grad_hook(take)
        return master

    def _publish(self) -> None:
        if self._masters is self._live:
            return
        with torch.no_grad():
            for master, live in zip(self._masters, self._live, strict=True):
                live.copy_(master)


def _action_places(
    members: Sequence[Row], slots: Mapping[tuple[int, ...], int], prefix: int, stride: int
) -> tuple[Tensor, Tensor, Tensor]:
    """For each action: the place in the flat hidden states that predicts it, its id; and the rows' mask (B, A)."""
    where: list[int] = []
    targets: list[int] = []
    most = max(row.num_actions for row in members)
    for row in members:
        tail = prefix + slots[row.ids] * stride
        for at, (token, action) in enumerate(zip(row.ids, row.actions, strict=True)):
            if action:
                before = at - 1
                where.append(before if before < prefix else tail + before - prefix)
                targets.append(token)
    counts = torch.tensor([row.num_actions for row in members])
    return torch.tensor(where), torch.tensor(targets), torch.arange(most) < counts.unsqueeze(-1)
