"""The reference engine: plain transformers, one request at a time in each forward pass; slow, simple, exact.

It samples from the same distribution as vLLM (temperature, then top-p) and serves as the yardstick in tests and where
vLLM is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from metier.envs.core import ConfigError
from metier.harness.policy.contract import Stop

from .engine import GenerationRequest
from .stepped import Emitted, SteppedEngine, Weights

if TYPE_CHECKING:
    from torch import Generator, Tensor


class TransformersSettings(BaseModel, extra="forbid", frozen=True):
    """How to start the engine."""

    model: Path
    """A Hugging Face folder."""
    dtype: str = "auto"
    context_tokens: int = Field(default=2048, gt=1)
    seed: int = 0


def transformers_engine(settings: TransformersSettings, *, version: int = 0) -> SteppedEngine:
    """An engine not yet started: enter it as an async context manager."""
    return SteppedEngine(lambda: TransformersCore(settings), version=version)


@dataclass(slots=True)
class _Running:
    request: GenerationRequest
    cache: Any
    next_ids: list[int]
    """What the next forward pass reads: the prompt, then the last token."""
    random: Generator
    num_output: int = field(default=0)


class TransformersCore:
    """`Core` over a transformers model; each step gives every request one token."""

    def __init__(self, settings: TransformersSettings) -> None:
        """Raises ConfigError where the folder holds no model."""
        import torch
        from transformers import AutoModelForCausalLM

        from ..precision import dtype_named

        if not (settings.model / "config.json").is_file():
            raise ConfigError(f"{settings.model} is no Hugging Face folder: it holds no config.json")
        model: Any = AutoModelForCausalLM.from_pretrained(settings.model, dtype=dtype_named(settings.dtype))
        self._model = model.eval()
        self._random = torch.Generator().manual_seed(settings.seed)
        self._running: dict[str, _Running] = {}
        self.context_tokens = settings.context_tokens
        self.vocabulary = int(model.config.vocab_size)

    def add(self, key: str, request: GenerationRequest) -> None:
        import torch
        from transformers import DynamicCache

        random = self._random if request.seed is None else torch.Generator().manual_seed(request.seed)
        cache = DynamicCache(config=self._model.config)
        self._running[key] = _Running(request, cache, list(request.prompt_ids), random)

    def abort(self, key: str) -> None:
        self._running.pop(key, None)

    def step(self) -> list[Emitted]:
        emitted = [self._advance(key, running) for key, running in self._running.items()]
        for one in emitted:
            if one.stop is not None:
                del self._running[one.key]
        return emitted

    def load(self, weights: Weights, version: int) -> None:
        import torch

        own = dict(self._model.named_parameters())
        with torch.no_grad():
            for name, tensor in weights:
                if name in own:
                    own[name].copy_(tensor)

    def close(self) -> None:
        self._running.clear()

    def _advance(self, key: str, running: _Running) -> Emitted:
        import torch

        request = running.request
        with torch.inference_mode():
            output = self._model(
                input_ids=torch.tensor([running.next_ids]), past_key_values=running.cache, logits_to_keep=1
            )
            logprobs_V = _distribution(output.logits[0, -1].float(), request)
            if request.temperature == 0:
                token = int(logprobs_V.argmax())
            else:
                token = int(torch.multinomial(logprobs_V.exp(), 1, generator=running.random))
        running.num_output += 1
        running.next_ids = [token]
        stop = Stop.END if token in request.stop_ids else None
        if stop is None and running.num_output >= request.max_tokens:
            stop = Stop.LENGTH
        return Emitted(key=key, ids=(token,), logprobs=(float(logprobs_V[token]),), stop=stop)


def _distribution(logits_V: Tensor, request: GenerationRequest) -> Tensor:
    """Logprobs of what is sampled from: temperature, then the smallest set of tokens that holds `top_p`."""
    logprobs_V = (logits_V / (request.temperature or 1.0)).log_softmax(-1)
    if request.top_p >= 1 or request.temperature == 0:
        return logprobs_V
    ordered, order = logprobs_V.sort(descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    logprobs_V[order[before >= request.top_p]] = float("-inf")
    return logprobs_V.log_softmax(-1)
