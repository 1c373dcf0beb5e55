"""The scripted engine: says what it was told to, one token a step; for tests of what uses an engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from metier.harness.policy.contract import Stop

from .engine import GenerationRequest
from .stepped import Emitted, SteppedEngine, Weights

Script = Callable[[GenerationRequest], Sequence[int]]
"""The ids to say to a request; when they are used up, the first stop id is said (or the last id, again and again)."""
LOGPROB = -0.5
"""Of every scripted token."""


def scripted_engine(
    script: Script | Iterable[Sequence[int]], *, context_tokens: int = 1024, vocabulary: int = 320, step_s: float = 0.0
) -> SteppedEngine:
    """An engine that answers by `script`: a function of the request, or outputs in the order of the requests."""
    return SteppedEngine(lambda: ScriptedCore(_function(script), context_tokens, vocabulary, step_s))


def _function(script: Script | Iterable[Sequence[int]]) -> Script:
    if callable(script):
        return script
    outputs = iter(script)
    return lambda request: next(outputs)


class ScriptedCore:
    """`Core` without a model."""

    def __init__(self, script: Script, context_tokens: int, vocabulary: int, step_s: float) -> None:
        self.context_tokens = context_tokens
        self.vocabulary = vocabulary
        self._script = script
        self._step_s = step_s
        self._running: dict[str, tuple[GenerationRequest, list[int], int]] = {}

    def add(self, key: str, request: GenerationRequest) -> None:
        self._running[key] = (request, list(self._script(request)), 0)

    def abort(self, key: str) -> None:
        self._running.pop(key, None)

    def step(self) -> list[Emitted]:
        time.sleep(self._step_s)
        emitted: list[Emitted] = []
        for key, (request, script, said) in list(self._running.items()):
            fallback = request.stop_ids[0] if request.stop_ids else (script[-1] if script else 0)
            token = script[said] if said < len(script) else fallback
            stop = Stop.END if token in request.stop_ids else None
            if stop is None and said + 1 >= request.max_tokens:
                stop = Stop.LENGTH
            emitted.append(Emitted(key=key, ids=(token,), logprobs=(LOGPROB,), stop=stop))
            if stop is None:
                self._running[key] = (request, script, said + 1)
            else:
                del self._running[key]
        return emitted

    def load(self, weights: Weights, version: int) -> None:
        for _ in weights:
            continue

    def close(self) -> None:
        self._running.clear()
