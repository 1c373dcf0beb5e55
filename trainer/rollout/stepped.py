"""Turns a core that steps on one thread into an async engine.

The core is made, stepped, updated and closed on one thread and by nobody else. Commands reach it between two steps
through a queue, so a weight update never falls into a forward pass, and the version that labels a token is the one
whose weights sampled it. Whatever leaves this module is a whole `Generation` or a `PolicyError`.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeAlias, TypeVar

from metier.envs.core import ConfigError, Deadline, MetierError, PolicyError
from metier.harness.policy.contract import Stop

from .engine import Generation, GenerationRequest

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
Weights: TypeAlias = "Iterable[tuple[str, Tensor]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """What one step added to one request."""

    key: str
    ids: Sequence[int]
    logprobs: Sequence[float]
    stop: Stop | None = None
    """Set on the last."""
    cached_tokens: int = 0


class Core(Protocol):
    """A synchronous generator of tokens; every method is called on the same thread."""

    context_tokens: int
    vocabulary: int

    def add(self, key: str, request: GenerationRequest) -> None:
        """Takes a request whose prompt and `max_tokens` fit the context."""
        ...

    def abort(self, key: str) -> None:
        """Forgets the request."""
        ...

    def step(self) -> list[Emitted]:
        """Advances the requests in flight."""
        ...

    def load(self, weights: Weights, version: int) -> None:
        """Puts new weights in place; nothing cached under older weights serves a later request."""
        ...

    def close(self) -> None: ...


class _Answer(Generic[T]):
    """What a caller on some event loop waits for, and the engine's thread gives."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self._loop.create_future()

    def give(self, value: T) -> None:
        self._settle(lambda: self.future.set_result(value))

    def fail(self, error: Exception) -> None:
        self._settle(lambda: self.future.set_exception(error))

    def _settle(self, how: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(lambda: None if self.future.done() else how())
        except RuntimeError:
            # The caller's loop is closed: nobody waits for this answer any more.
            return


@dataclass(slots=True)
class _Pending:
    """A request in flight, touched by the engine's thread only."""

    answer: _Answer[Generation]
    capped: bool
    """Whether the context, not the request, set `max_tokens`."""
    added_at: float = field(default_factory=time.monotonic)
    first_at: float = 0.0
    cached_tokens: int = 0
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[tuple[int, int]] = field(default_factory=list)

    def take(self, emitted: Emitted, version: int) -> None:
        if not emitted.ids:
            return
        if not self.ids:
            self.first_at, self.cached_tokens = time.monotonic(), emitted.cached_tokens
        self.ids.extend(emitted.ids)
        self.logprobs.extend(emitted.logprobs)
        before = self.versions.pop()[1] if self.versions and self.versions[-1][0] == version else 0
        self.versions.append((version, before + len(emitted.ids)))

    def finish(self, stop: Stop) -> None:
        now = time.monotonic()
        generation = Generation(
            output_ids=tuple(self.ids),
            logprobs=tuple(self.logprobs),
            versions=tuple(self.versions),
            stop=Stop.CONTEXT if stop is Stop.LENGTH and self.capped else stop,
            cached_tokens=self.cached_tokens,
            prefill_s=(self.first_at or now) - self.added_at,
            decode_s=now - (self.first_at or now),
        )
        self.answer.give(generation)


class SteppedEngine:
    """The async face of a `Core`; see `Engine` for the methods' contract.

    Example:
        async with SteppedEngine(lambda: ScriptedCore([[5, 6]])) as engine:
            generation = await engine.generate(request, deadline=deadline)
    """

    def __init__(self, open_core: Callable[[], Core], *, version: int = 0) -> None:
        """`open_core` runs on the engine's thread when the engine is entered."""
        self.version = version
        self.context_tokens = 0
        self.vocabulary = 0
        self._open_core = open_core
        self._commands: queue.SimpleQueue[Callable[[Core], None] | None] = queue.SimpleQueue()
        self._pending: dict[str, _Pending] = {}
        self._answers: set[_Answer[Any]] = set()
        self._thread: threading.Thread | None = None
        self._dead: Exception | None = None
        self._num_requests = 0

    async def __aenter__(self) -> Self:
        if self._thread is not None:
            raise ConfigError("this engine was started before; make a new one")
        ready: _Answer[None] = _Answer()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="metier-engine", daemon=True)
        self._thread.start()
        await ready.future
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Idempotent; requests in flight end with PolicyError."""
        self._commands.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    async def generate(self, request: GenerationRequest, *, deadline: Deadline) -> Generation:
        """See `Engine.generate`.

        Raises:
            ConfigError: The request is malformed.
            PolicyError: The engine died, was closed, or the deadline passed.
        """
        self._check(request)
        room = self.context_tokens - len(request.prompt_ids)
        if room < 1:
            return Generation(
                output_ids=(), logprobs=(), versions=(), stop=Stop.CONTEXT, cached_tokens=0, prefill_s=0.0, decode_s=0.0
            )
        self._num_requests += 1
        key = f"{self._num_requests}:{request.id}"
        pending = _Pending(answer=_Answer(), capped=room < request.max_tokens)
        fitted = replace(request, max_tokens=min(room, request.max_tokens))
        try:
            async with asyncio.timeout(deadline.left_s()):
                return await self._ask(pending.answer, lambda core: self._add(core, key, fitted, pending))
        except TimeoutError as error:
            raise PolicyError(str(deadline.error(f"generating for {request.id}"))) from error
        finally:
            if pending.answer.future.cancelled():
                self._commands.put(lambda core: self._abort(core, key))

    async def update_weights(self, weights: Weights | Path, version: int) -> None:
        """See `Engine.update_weights`.

        Raises:
            PolicyError: The engine is dead, or these weights are not this model's; then it is dead from here on.
        """
        done: _Answer[None] = _Answer()

        def load(core: Core) -> None:
            try:
                core.load(_read(weights) if isinstance(weights, Path) else weights, version)
            except Exception as error:
                raise PolicyError(f"the weight update to version {version} failed: {error!r}; restart it") from error
            self.version = version
            done.give(None)

        await self._ask(done, load)

    async def _ask(self, answer: _Answer[T], command: Callable[[Core], None]) -> T:
        """Gives the engine's thread a command and waits for the answer, which fails if the engine dies."""
        self._answers.add(answer)
        try:
            # After it was added: an engine that dies from here on fails the answer itself.
            self._check_alive()
            self._commands.put(command)
            return await answer.future
        finally:
            self._answers.discard(answer)

    def _check_alive(self) -> None:
        if self._thread is None:
            raise ConfigError("the engine is not started: enter it first (`async with engine:`)")
        if self._dead is not None:
            raise PolicyError(str(self._dead)) from self._dead

    def _check(self, request: GenerationRequest) -> None:
        self._check_alive()
        if request.images:
            raise ConfigError(f"request {request.id}: this engine's model takes no images; leave them out")
        if not request.prompt_ids or request.max_tokens < 1:
            raise ConfigError(f"request {request.id}: needs a prompt and max_tokens of at least 1")
        if not 0 <= min(request.prompt_ids) <= max(request.prompt_ids) < self.vocabulary:
            raise ConfigError(f"request {request.id}: prompt ids must lie in [0, {self.vocabulary})")
        if request.temperature < 0 or not 0 < request.top_p <= 1:
            raise ConfigError(f"request {request.id}: needs a temperature of at least 0 and top_p in (0, 1]")

    def _add(self, core: Core, key: str, request: GenerationRequest, pending: _Pending) -> None:
        if not pending.answer.future.done():
            self._pending[key] = pending
            core.add(key, request)

    def _abort(self, core: Core, key: str) -> None:
        if self._pending.pop(key, None):
            core.abort(key)

    def _run(self, ready: _Answer[None]) -> None:
        """The engine's thread."""
        try:
            core = self._open_core()
        except Exception as error:
            self._dead = error if isinstance(error, MetierError) else PolicyError(f"the engine cannot start: {error!r}")
            ready.fail(self._dead)
            return
        self.context_tokens, self.vocabulary = core.context_tokens, core.vocabulary
        ready.give(None)
        reason: Exception = PolicyError("the engine was closed; start a new one")
        try:
            while self._obey(core):
                for emitted in core.step() if self._pending else ():
                    self._deliver(emitted)
        except Exception as error:
            reason = error if isinstance(error, PolicyError) else PolicyError(f"the engine died: {error!r}; restart it")
        finally:
            self._dead = reason
            for answer in tuple(self._answers):
                answer.fail(reason)
            core.close()

    def _obey(self, core: Core) -> bool:
        """Runs the commands that wait, waiting for one while there is nothing to do; False at the end."""
        block = not self._pending
        while True:
            try:
                command = self._commands.get(block=block)
            except queue.Empty:
                return True
            if command is None:
                return False
            command(core)
            block = False

    def _deliver(self, emitted: Emitted) -> None:
        pending = self._pending.get(emitted.key)
        if pending is None:
            return
        pending.take(emitted, self.version)
        if emitted.stop is not None:
            del self._pending[emitted.key]
            pending.finish(emitted.stop)


def _read(path: Path) -> Weights:
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        for name in file.keys():  # noqa: SIM118 - a safetensors handle is no mapping
            yield name, file.get_tensor(name)
