"""Run episodes: a policy and a task make a result, whatever happens.

`run_episode` is the loop; `work` is the same as a scheduler's task, with one sandbox backend for each process.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from metier.envs.core import (
    ClusterError,
    ConfigError,
    Deadline,
    Json,
    Limit,
    MetierError,
    Outcome,
    PolicyError,
    SandboxBackend,
    ToolCall,
)

from .backends import Backends
from .episode import Episode, Step
from .policy import (
    AssistantTurn,
    Departure,
    Inside,
    Message,
    Policy,
    Role,
    Stay,
    Stop,
    open_policy,
    settings_for,
)
from .prepare import Preparer, Task
from .result import Detail, EpisodeResult, recorded_call, recorded_turn
from .telemetry import names, signals
from .telemetry.identity import in_trace, trace_id
from .tools import SPECS, SUBMIT
from .tools.truncate import valid_text
from .unexpected import contained

HARNESS_TOOLS = frozenset({*SPECS, SUBMIT.name})
"""What an agent inside the sandbox does by itself."""
Watch = Callable[[Episode, ToolCall, Step], None]
"""Called after each step, for those who want to see an episode as it goes."""


class _Transcript:
    """What has been said and done so far, kept also when the episode fails."""

    def __init__(self) -> None:
        self.conversation: list[Message | AssistantTurn] = []
        self.steps: list[ToolCall] = []
        self.dropped: tuple[ToolCall, ...] = ()
        self.timings_s: dict[str, float] = {"policy": 0.0}
        self.turns_s: list[float] = []
        self.details: list[Detail] = []
        self.replayable = True

    def result(self, task: Task, **how: Any) -> EpisodeResult:
        return EpisodeResult(
            env_id=task.env_id,
            seed=task.seed,
            level=task.level,
            sample=task.sample,
            conversation=tuple(self.conversation),
            steps=tuple(self.steps),
            dropped=self.dropped,
            timings_s=self.timings_s,
            turns_s=tuple(self.turns_s),
            details=tuple(self.details),
            replayable=self.replayable,
            **how,
        )

    def left(self, task: Task) -> Json:
        """As JSON, for `failed` to say how it ended."""
        return self.result(task, outcome=Outcome.CANCELLED).model_dump(mode="json")


async def run_episode(
    task: Task,
    policy: Policy,
    backend: SandboxBackend,
    preparer: Preparer,
    *,
    deadline: Deadline,
    watch: Watch | None = None,
) -> EpisodeResult:
    """One episode to its end; a failure becomes the outcome of the result, with what was said until then.

    Raises:
        ConfigError: the task is wrong (unknown id, level, option, missing capability).
    """
    said = _Transcript()
    try:
        return await _play(task, policy, backend, preparer, deadline, watch, said)
    except ConfigError:
        raise
    except MetierError as error:
        outcome = error.outcome or Outcome.CLUSTER_FAILURE
        return said.result(task, outcome=outcome, failure=valid_text(f"{type(error).__name__}: {error}"))


async def _play(
    task: Task,
    policy: Policy,
    backend: SandboxBackend,
    preparer: Preparer,
    deadline: Deadline,
    watch: Watch | None,
    said: _Transcript,
) -> EpisodeResult:
    """As `run_episode`, but raises what fails; seen by whoever listens."""
    outcome = Outcome.CANCELLED
    began = time.monotonic()
    with in_trace(), signals.span(f"{names.EPISODE} {task.env_id}", _identity(task, policy, backend)) as span:
        try:
            result = await _played(task, policy, backend, preparer, deadline, watch, said)
            outcome = result.outcome
            for name, value in (
                (names.LIMIT, result.limit),
                (names.REWARD, result.reward),
                (names.PASSED, result.passed),
            ):
                span.set(name, value)
            return result
        except MetierError as error:
            outcome = error.outcome or Outcome.CLUSTER_FAILURE
            raise
        finally:
            span.set(names.OUTCOME, outcome)
            signals.add(names.EPISODES, env=task.env_id, outcome=outcome)
            signals.observe(names.EPISODE_SECONDS, time.monotonic() - began, env=task.env_id)


def _identity(task: Task, policy: Policy, backend: SandboxBackend) -> dict[str, object]:
    return {
        names.OPERATION: names.EPISODE,
        names.AGENT: _name_of(policy),
        names.CONVERSATION: trace_id(),
        names.ENV: task.env_id,
        names.SEED: task.seed,
        names.LEVEL: task.level,
        names.SAMPLE: task.sample,
        names.BACKEND: backend.name,
    }


def _name_of(policy: Policy) -> str:
    """Of its kind, such as openai for an OpenAIPolicy."""
    return type(policy).__name__.removesuffix("Policy").lower()


async def _played(
    task: Task,
    policy: Policy,
    backend: SandboxBackend,
    preparer: Preparer,
    deadline: Deadline,
    watch: Watch | None,
    said: _Transcript,
) -> EpisodeResult:
    began = time.monotonic()
    with contained(task.env_id):
        episode = await Episode.start(task, backend, preparer, deadline=deadline)
    async with episode:
        try:
            if isinstance(policy, Inside):
                last = await _hand_over(episode, policy, said, watch)
            else:
                last = await _converse(episode, policy, said, watch)
        finally:
            said.timings_s |= {"reset": episode.reset_s, "tool": episode.tool_s, "verify": episode.verify_s}
            said.timings_s["total"] = time.monotonic() - began
    assert last.outcome is not None and last.verdict is not None
    return said.result(
        task,
        outcome=last.outcome,
        limit=last.limit,
        reward=last.verdict.reward,
        passed=last.verdict.passed,
        checks=last.verdict.checks,
    )


async def _hand_over(episode: Episode, policy: Inside, said: _Transcript, watch: Watch | None) -> Step:
    """An agent that acts by itself: the harness sees what it says to its model, and what it leaves."""
    said.replayable = False
    said.conversation.append(Message(role=Role.USER, text=episode.brief))
    limits = episode.prepared.entry.limits
    stay = Stay(
        sandbox=episode.sandbox,
        brief=episode.brief,
        tools=tuple(spec for spec in episode.specs if spec.name not in HARNESS_TOOLS),
        max_turns=limits.steps,
        agent_s=limits.agent_s,
        deadline=episode.deadline,
        say=said.conversation.append,
    )

    async def acting() -> Departure:
        with signals.span(names.STAY), contained(f"{episode.task.env_id}: the policy", PolicyError):
            departure = await policy.stay(stay)
        said.timings_s["policy"] += departure.waited_s
        return departure

    with contained(episode.task.env_id):
        step = await episode.hand_over(acting())
    if watch is not None:
        watch(episode, ToolCall(tool="submit"), step)
    return step


def _turn_span(policy: Policy, index: int) -> AbstractContextManager[signals.Span]:
    model = getattr(getattr(policy, "settings", None), "model", None)
    attributes = {names.OPERATION: names.TURN_SPAN, names.MODEL: model, names.TURN: index}
    return signals.span(f"{names.TURN_SPAN} {model or _name_of(policy)}", attributes)


def _tell_turn(span: signals.Span, turn: AssistantTurn) -> None:
    span.set(names.FINISH, (str(turn.stop),))
    span.set(names.NUM_CALLS, len(turn.calls))
    counted = (
        (names.INPUT_TOKENS, "input", turn.usage.prompt_tokens),
        (names.OUTPUT_TOKENS, "output", turn.usage.output_tokens),
    )
    for name, direction, count in counted:
        if count:
            span.set(name, count)
            signals.add(names.TOKENS, count, direction=direction)


async def _converse(episode: Episode, policy: Policy, said: _Transcript, watch: Watch | None) -> Step:
    said.conversation.append(Message(role=Role.USER, text=episode.brief))
    while True:
        began = time.monotonic()
        with (
            _turn_span(policy, len(said.turns_s)) as span,
            contained(f"{episode.task.env_id}: the policy", PolicyError),
        ):
            turn = await policy.act(tuple(said.conversation), episode.specs, deadline=episode.deadline)
            _tell_turn(span, turn)
        took_s = time.monotonic() - began
        signals.observe(names.TURN_SECONDS, took_s, policy=_name_of(policy))
        said.timings_s["policy"] += took_s
        said.turns_s.append(took_s)
        said.conversation.append(recorded_turn(turn))
        if turn.stop is Stop.CONTEXT or episode.deadline.expired:
            said.dropped = tuple(map(recorded_call, turn.calls))
            with contained(episode.task.env_id):
                return await episode.end(Limit.TOKENS if turn.stop is Stop.CONTEXT else Limit.TIME)
        # a turn without a call is one step, so that `limits.steps` bounds every episode
        calls = turn.calls or (ToolCall(tool=""),)
        for index, call in enumerate(calls):
            before_s = episode.tool_s
            with contained(episode.task.env_id):
                step = await episode.step(call)
            said.details.append(Detail.of(step.result, episode.tool_s - before_s))
            done = recorded_call(call)
            said.steps.append(done)
            said.conversation.append(
                Message(role=Role.TOOL, text=step.result.text, images=step.result.images, call_id=done.id)
            )
            if watch is not None:
                watch(episode, call, step)
            if step.ended:
                said.dropped = tuple(map(recorded_call, calls[index + 1 :]))
                return step


_backends = Backends()
"""Of this process's work; closed when the last executor leaves (`metier.scheduler.worker`)."""


async def work(payload: dict[str, Any], *, deadline: Deadline) -> Json:
    """A scheduler's task: one episode, its result as JSON.

    The payload: `env_id`, `seed`, and optionally `level`, `options`, `sample`, `backend` with `backend_options`, and
    `policy` with `name` and `settings`, and the `trace_id` of its telemetry.

    Raises:
        ConfigError: as `run_episode`.
        WorkFailed: an infrastructure failure, for the scheduler to retry by its class; it leaves what was said and done
            until then, as a cancellation does.
    """
    from metier.scheduler import WorkFailed, on_close

    name = str(payload.get("backend", "auto"))
    if not _backends.is_open(name):
        _listen()  # to the closing of the backend too
        on_close(f"sandbox backend {name}", _backends.close)
    backend, preparer = await _backends.get(name, payload.get("backend_options"))
    task = Task(
        env_id=payload["env_id"],
        seed=payload["seed"],
        level=payload.get("level", 0),
        options=payload.get("options") or {},
        sample=payload.get("sample", 0),
    )
    chosen: dict[str, Any] = payload.get("policy") or {"name": "oracle"}
    settings = settings_for(
        chosen["name"],
        chosen.get("settings"),
        env_id=task.env_id,
        seed=task.seed,
        level=task.level,
        options=task.options,
        sample=task.sample,
    )
    policy = open_policy(chosen["name"], settings)
    said = _Transcript()
    try:
        with in_trace(str(payload.get("trace_id") or "")):
            result = await _play(task, policy, backend, preparer, deadline, None, said)
    except ConfigError:
        raise
    except (MetierError, asyncio.CancelledError) as error:
        raise WorkFailed(error, said.left(task)) from error
    return result.model_dump(mode="json")


def _listen() -> None:
    """To spans, where this process's environment asks for it and nobody has begun: a worker's part."""
    if not ("METIER_TRACES" in os.environ or any(name.startswith("OTEL_EXPORTER_OTLP") for name in os.environ)):
        return
    from metier.scheduler import on_close

    from .telemetry.tracing import from_environment

    if (end := from_environment()) is not None:

        async def close() -> None:
            await asyncio.to_thread(end)

        on_close("traces", close)


def failed(payload: dict[str, Any], failure: str, message: str, left: Json = None) -> EpisodeResult:
    """The result of an item that never came to a verdict: the scheduler's failure as an episode's outcome.

    `left` is what the work left behind: the transcript of its last attempt, if that came so far.
    """
    import metier.envs.core as core

    kind: Any = getattr(core, failure, ClusterError)
    outcome = getattr(kind, "outcome", None) or Outcome.CLUSTER_FAILURE
    if failure == "CancelledError":
        outcome = Outcome.CANCELLED
    how = {"outcome": outcome, "failure": valid_text(f"{failure}: {message}")}
    if isinstance(left, dict):
        return EpisodeResult.model_validate({**left, **how})
    return EpisodeResult(
        env_id=payload["env_id"],
        seed=payload["seed"],
        level=payload.get("level", 0),
        sample=payload.get("sample", 0),
        **how,
    )
