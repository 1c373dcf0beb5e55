"""The engine contract: token ids in; token ids, logprobs and weight versions out.

Text is no part of it: chat templates and parsing belong to the policy. Every engine (vLLM, transformers, the scripted
fake, and the client that reaches any of them from another process) passes the same conformance suite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from metier.envs.core import Deadline
from metier.harness.policy.contract import Stop

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One turn to generate."""

    id: str
    prompt_ids: Sequence[int]
    images: tuple[bytes, ...] = ()
    max_tokens: int
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    stop_ids: Sequence[int] = ()
    """Generation ends with (and includes) the first of these."""
    seed: int | None = None
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What came out; logprobs of the distribution sampled from (of the plain softmax where temperature is 0)."""

    output_ids: Sequence[int]
    logprobs: Sequence[float]
    versions: tuple[tuple[int, int], ...]
    """(weight version, count) spans that tile `output_ids`."""
    stop: Stop
    cached_tokens: int
    prefill_s: float
    decode_s: float


class Engine(Protocol):
    """An async context manager; `generate` may be called by many tasks at once."""

    async def generate(self, request: GenerationRequest, *, deadline: Deadline) -> Generation:
        """Cancelling aborts it in the engine. Raises PolicyError if the engine died or the deadline passed.

        A prompt that leaves no room for a token returns at once, empty, with `Stop.CONTEXT`.
        """
        ...

    async def update_weights(self, weights: Iterable[tuple[str, Tensor]] | Path, version: int) -> None:
        """Requests in flight go on; the prefix cache is reset. A path names a safetensors file."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
