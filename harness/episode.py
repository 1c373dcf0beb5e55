"""One episode: instance → sandbox → steps → artefacts → verdict.

An episode is driven by whoever holds it (the Gymnasium env, the runner with a policy, certification): `start`, then
`step` until a step says it ended, then `close`. One step is one tool call. A limit ends it graded (`truncated`); an
infrastructure failure raises its typed error and leaves no reward; what the agent caused is graded.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from metier.envs.core import (
    Collected,
    ConfigError,
    Deadline,
    GenerationError,
    Json,
    Limit,
    MetierError,
    Outcome,
    Sandbox,
    SandboxBackend,
    SandboxError,
    SandboxLost,
    ToolCall,
    ToolResult,
    ToolSpec,
    Verdict,
)

from .blame import blamed
from .grading import NO_ROOM, floor, grade
from .policy.contract import Departure
from .prepare import Prepared, Preparer, Task
from .telemetry import names, signals
from .tools import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one call led to; `outcome` is None while the episode goes on."""

    result: ToolResult
    outcome: Outcome | None = None
    limit: Limit | None = None
    verdict: Verdict | None = None

    @property
    def ended(self) -> bool:
        """Whether this was the last step."""
        return self.outcome is not None


class Episode:
    """A running episode; made by `start`, an async context manager."""

    def __init__(
        self, task: Task, prepared: Prepared, sandbox: Sandbox, backend: SandboxBackend, deadline: Deadline
    ) -> None:
        self.task = task
        self.prepared = prepared
        self.sandbox = sandbox
        self.deadline = deadline
        self.num_steps = 0
        self.tool_s = 0.0
        self.verify_s = 0.0
        self.reset_s = 0.0
        self.last: Step | None = None
        self._backend = backend
        self._toolbox = Toolbox(prepared.entry.tools, sandbox, prepared.family.trade_tools(sandbox, prepared.instance))

    @classmethod
    async def start(
        cls, task: Task, backend: SandboxBackend, preparer: Preparer, *, deadline: Deadline | None = None
    ) -> Episode:
        """Prepare and fork.

        Raises:
            ConfigError: unknown id, level or option, or a capability this backend lacks.
            GenerationError, SandboxError: no episode could be had.
        """
        with signals.span(names.PREPARE, {names.ENV: task.env_id}):
            return await cls._started(task, backend, preparer, deadline)

    @classmethod
    async def _started(
        cls, task: Task, backend: SandboxBackend, preparer: Preparer, deadline: Deadline | None
    ) -> Episode:
        began = time.monotonic()
        bound = deadline or Deadline.after(24 * 3600, limit="episode_s", set_by="default")
        prepared = await preparer.prepare(task, deadline=bound)
        missing = frozenset(prepared.entry.requires) - backend.capabilities
        if missing:
            names = ", ".join(sorted(missing))
            raise ConfigError(f"{task.env_id} requires {names}, which the {backend.name} backend cannot promise")
        sandbox = await preparer.fork(prepared, deadline=bound)
        try:
            episode = cls(task, prepared, sandbox, backend, bound)
        except BaseException as error:
            await asyncio.shield(sandbox.close(reuse=False))
            if isinstance(error, MetierError) or not isinstance(error, Exception):
                raise
            said = blamed(prepared.family, error)
            raise GenerationError(f"{task.key}: the environment's own tools broke: {said}") from error
        episode.reset_s = time.monotonic() - began
        return episode

    @property
    def brief(self) -> str:
        """What the agent is asked."""
        return self.prepared.brief

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools it may call."""
        return self._toolbox.specs

    async def step(self, call: ToolCall) -> Step:
        """Run one call, or end the episode and grade it.

        Raises:
            SandboxError, VerifierError: infrastructure failed; there is no reward.
        """
        if self.last is not None and self.last.ended:
            raise ConfigError("the episode has ended; start another")
        self.num_steps += 1
        return await self._survived(self._step(call))

    async def _survived(self, doing: Awaitable[Step]) -> Step:
        """Its step; a sandbox that the agent took down meanwhile ends the episode at the limit it ran into."""
        try:
            self.last = await doing
        except SandboxLost as error:
            if error.agent_caused is None:
                raise
            evidence = f"the agent's processes took the sandbox down: {error.agent_caused}"
            self.last = Step(
                result=ToolResult(text=evidence, ok=False),
                outcome=Outcome.AGENT_LIMIT,
                limit=error.agent_caused,
                verdict=floor("sandbox survives", evidence),
            )
        return self.last

    async def _step(self, call: ToolCall) -> Step:
        if call.tool == "submit" and self._toolbox.problem(call) is None:
            return await self._submit(call.arguments.get("answer"), call.id)
        began = time.monotonic()
        with self._tool_span(call.tool, call.id) as span:
            result = await self._toolbox.call(call, deadline=self._left())
            self._tell_tool(span, call.tool, result)
        self.tool_s += time.monotonic() - began
        if self._left().expired:
            return await self._end(Limit.TIME, result)
        if self.num_steps >= self.prepared.entry.limits.steps:
            return await self._end(Limit.STEPS, result)
        return Step(result=result)

    def _known(self, tool: object) -> str:
        """The tool's name if there is such a one: an agent may call anything, and names of its own are not counted."""
        return next((spec.name for spec in self.specs if spec.name == tool), "unknown")

    def _tool_span(self, tool: object, call_id: object) -> AbstractContextManager[signals.Span]:
        known = self._known(tool)
        attributes = {names.OPERATION: names.TOOL_SPAN, names.TOOL: known, names.TOOL_CALL: call_id or None}
        return signals.span(f"{names.TOOL_SPAN} {known}", attributes)

    def _tell_tool(self, span: signals.Span, tool: object, result: ToolResult) -> None:
        span.set(names.TOOL_OK, result.ok)
        span.set(names.CUT_BYTES, result.cut_bytes)
        signals.add(names.TOOL_CALLS, tool=self._known(tool), ok="true" if result.ok else "false")

    async def hand_over(self, acting: Awaitable[Departure]) -> Step:
        """Whoever acts inside the sandbox by itself does so until its end, which is graded as a submission or a limit.

        Raises as `step`, and what `acting` raises.
        """
        if self.last is not None and self.last.ended:
            raise ConfigError("the episode has ended; start another")
        return await self._survived(self._departed(acting))

    async def _departed(self, acting: Awaitable[Departure]) -> Step:
        departure = await acting
        self.tool_s += departure.acted_s
        return await (self._submit(None) if departure.limit is None else self._end(departure.limit))

    def _left(self) -> Deadline:
        """What is left of the agent's time, or of the episode's where that is less."""
        entry = self.prepared.entry
        return self.deadline.within(entry.limits.agent_s - self.tool_s, "agent_s", entry.id)

    async def _submit(self, answer: Json, call_id: str = "") -> Step:
        result = ToolResult(text="submitted")
        with self._tool_span("submit", call_id) as span:
            if isinstance(answer, str) and answer:
                try:
                    await self.sandbox.write("/workspace/answer", answer.encode("utf-8", "replace"))
                except ConnectionError:
                    raise
                except OSError as error:  # a full disk is the agent's doing: graded without its answer
                    result = ToolResult(text=f"submitted, but the answer could not be kept: {error}", ok=False)
            self._tell_tool(span, "submit", result)
        return await self._graded(Outcome.COMPLETED, None, result)

    async def end(self, limit: Limit) -> Step:
        """End at a limit, graded on what is there. Raises as `step`."""
        return await self._survived(self._end(limit))

    async def _end(self, limit: Limit, result: ToolResult | None = None) -> Step:
        text = f"{result.text}\n[the episode ended: {limit} limit]" if result else f"[the episode ended: {limit} limit]"
        shown = ToolResult(text=text.strip(), images=result.images if result else (), ok=False)
        return await self._graded(Outcome.AGENT_LIMIT, limit, shown)

    async def _graded(self, outcome: Outcome, limit: Limit | None, result: ToolResult) -> Step:
        began = time.monotonic()
        with signals.span(names.VERIFY, {names.ENV: self.task.env_id}) as span:
            verdict = await self._verdict()
            span.set(names.REWARD, verdict.reward)
            span.set(names.PASSED, verdict.passed)
            span.set(names.NUM_CHECKS, len(verdict.checks))
        took_s = time.monotonic() - began
        self.verify_s += took_s
        signals.observe(names.VERIFY_SECONDS, took_s, env=self.task.env_id)
        return Step(result=result, outcome=outcome, limit=limit, verdict=verdict)

    async def _verdict(self) -> Verdict:
        collected = await self._collected()
        if isinstance(collected, Verdict):
            return collected
        # grading has its own limit: an agent that used up the episode's time is still graded
        bound = Deadline.after(self.prepared.entry.limits.verify_s + 30, limit="grading", set_by="episode")
        return await grade(self._backend, self.prepared, collected, seed=self.task.seed, deadline=bound)

    async def _collected(self) -> Collected | Verdict:
        """The artefacts; a verdict where the agent left no room to read them. Raises SandboxError."""
        try:
            return await self.sandbox.collect(self.prepared.instance.artefacts)
        except ConnectionError:
            raise
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) in NO_ROOM:
                return floor("artefacts can be read", f"the agent left no room to read them: {error}")
            raise SandboxError(f"{self.sandbox.id}: the artefacts could not be collected: {error}") from error

    async def close(self) -> None:
        """Give the sandbox back; idempotent, and not stopped by a cancellation."""
        await asyncio.shield(self.sandbox.close())

    async def __aenter__(self) -> Episode:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
