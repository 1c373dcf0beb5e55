"""From an episode to its events, live or when it is over; and from its events to the episode.

Whoever plays an episode holds an `EpisodeRecording`: it says `follow` whenever the conversation has grown, and `end`
with the result. `end` also tells whatever `follow` was not told, so that a recording without any `follow`, of an
episode that is over, has the same events but for their times.
"""

from __future__ import annotations

import hashlib
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from metier.envs.core import ConfigError, Json, ToolCall, ToolSpec

from ..policy.contract import AssistantTurn, Message, Role
from ..prepare import Task
from ..result import Detail, EpisodeResult
from ..telemetry import identity
from .blob import PNG, Blob, BlobRef
from .event import (
    EndedBody,
    Event,
    Kind,
    Part,
    Provenance,
    StartedBody,
    StepBody,
    Told,
    TurnBody,
    VerdictBody,
    episode_id,
)
from .parcel import Load
from .provenance import without_secrets


class Emitter(Protocol):
    """Where a recording's events go: a `Recorder`, or a list in tests."""

    def emit(self, event: Event, blobs: Sequence[Blob] = ()) -> None:
        """Takes one event and the pictures that it names; never waits. Raises RecordError."""
        ...

    def next_attempt(self, run_id: str, episode: str) -> int:
        """A number under which this episode was not yet recorded in this run."""
        ...


_UNKNOWN = Detail()
_IDENTITY = ("env_id", "seed", "level", "sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """Which episode, in which run, played by whom.

    Example:
        >>> Playing(run_id="r1", env_id="test/Echo-v0", seed=3).episode
        'test/Echo-v0#seed=3&level=0&sample=0'
    """

    run_id: str
    env_id: str
    seed: int
    level: int = 0
    sample: int = 0
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    policy: str = ""
    settings: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """The policy's; what is named like a secret is not recorded."""
    tools: tuple[ToolSpec, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    episode_id: str = ""
    """Another name than the derived one."""
    attempt: int | None = None
    """None: the next one that is free, as far as this machine knows."""
    trace_id: str = ""
    """32 hexadecimal digits; where none is given, those of the trace that the recording begins in, else random."""

    @classmethod
    def of(cls, episode: Task | EpisodeResult, run_id: str, **more: Any) -> Playing:
        """Of a task, or of a result, which does not know its options.

        Example:
            >>> from metier.harness.prepare import Task
            >>> Playing.of(Task(env_id="test/Echo-v0", seed=3, level=1), "r1", policy="oracle").level
            1
        """
        if isinstance(episode, Task):
            more = {"options": episode.options, **more}
        named = {name: getattr(episode, name) for name in _IDENTITY}
        return cls(run_id=run_id, **named, **more)

    def check(self, result: EpisodeResult) -> None:
        """Raises ConfigError where the result is another episode's."""
        for name in _IDENTITY:
            if getattr(self, name) != getattr(result, name):
                told = f"{getattr(result, name)!r}, not {getattr(self, name)!r}"
                raise ConfigError(f"the result's {name} is {told}: make its Playing by `Playing.of`")

    @property
    def episode(self) -> str:
        """The episode's id."""
        return self.episode_id or episode_id(self.env_id, self.seed, self.level, self.sample, self.options)


class EpisodeRecording:
    """One attempt's events in the making; its first event is out when it is made."""

    def __init__(self, emitter: Emitter, playing: Playing) -> None:
        self.playing = playing
        self._emitter = emitter
        episode = playing.episode
        self.attempt = emitter.next_attempt(playing.run_id, episode) if playing.attempt is None else playing.attempt
        self.trace_id = playing.trace_id or identity.trace_id() or uuid.uuid4().hex
        self._episode = episode
        self._seq = self._heard = self._num_turns = self._num_steps = 0
        self._told: list[Told] = []
        self._blobs: list[Blob] = []
        self._unsent: deque[tuple[Event, Sequence[Blob]]] = deque()
        self._ended = False
        body = StartedBody(
            env_id=playing.env_id,
            seed=playing.seed,
            level=playing.level,
            sample=playing.sample,
            options=playing.options,
            policy=playing.policy,
            settings=without_secrets(playing.settings),
            tools=playing.tools,
            provenance=playing.provenance,
        )
        self._emit(Kind.EPISODE_STARTED, body)

    def follow(
        self,
        conversation: Sequence[Message | AssistantTurn],
        steps: Sequence[ToolCall],
        *,
        detail: Detail = _UNKNOWN,
        duration_s: float | None = None,
        details: Sequence[Detail] = (),
        turns_s: Sequence[float] = (),
    ) -> None:
        """Tell what the conversation has more than last time.

        `detail` is of the steps among it, and `duration_s` of the turns: call it after each. Or give `details` of all
        steps and `turns_s` of all turns from the first one on.

        Raises:
            RecordError: the events can be neither sent nor spilled.
        """
        for part in conversation[self._heard :]:
            self._heard += 1
            if isinstance(part, AssistantTurn):
                took_s = turns_s[self._num_turns] if self._num_turns < len(turns_s) else duration_s
                body = TurnBody(index=self._num_turns, turn=_priced(part), told=self._said_before(), duration_s=took_s)
                self._num_turns += 1
                self._emit(Kind.TURN, body)
            elif part.role is Role.TOOL and part.call_id == _id_of(steps, self._num_steps):
                known = details[self._num_steps] if self._num_steps < len(details) else detail
                self._step(steps[self._num_steps], part, known)
            else:
                images = self._pictures(part.images)
                self._told.append(Told(role=part.role, text=part.text, images=images, call_id=part.call_id))

    def end(self, result: EpisodeResult) -> None:
        """The episode is over; a second call does nothing.

        Raises:
            ConfigError: it is another episode's result.
            RecordError: the events can be neither sent nor spilled.
        """
        if self._ended:
            return
        self.playing.check(result)
        self._ended = True
        self.follow(result.conversation, result.steps, details=result.details, turns_s=result.turns_s)
        for call in result.steps[self._num_steps :]:
            known = result.details[self._num_steps] if self._num_steps < len(result.details) else _UNKNOWN
            self._step(call, None, known)
        if result.reward is not None:
            verdict = VerdictBody(reward=result.reward, passed=result.passed, checks=result.checks)
            self._emit(Kind.VERDICT, verdict)
        body = EndedBody(
            outcome=result.outcome,
            limit=result.limit,
            failure=result.failure,
            dropped=result.dropped,
            told=self._said_before(),
            timings_s=result.timings_s,
            replayable=result.replayable,
            num_turns=self._num_turns,
            num_steps=self._num_steps,
        )
        self._emit(Kind.EPISODE_ENDED, body)

    def _step(self, call: ToolCall, observation: Message | None, detail: Detail) -> None:
        body = StepBody(
            index=self._num_steps,
            turn=self._num_turns - 1,
            call=call,
            observed=observation is not None,
            text=observation.text if observation else "",
            images=self._pictures(observation.images) if observation else (),
            told=self._said_before(),
            ok=detail.ok,
            cut_bytes=detail.cut_bytes,
            duration_s=detail.duration_s,
        )
        self._num_steps += 1
        self._emit(Kind.STEP, body)

    def _said_before(self) -> tuple[Told, ...]:
        told, self._told = tuple(self._told), []
        return told

    def _pictures(self, images: Iterable[bytes]) -> tuple[BlobRef, ...]:
        blobs = [Blob.of(image, PNG) for image in images]
        self._blobs += blobs
        return tuple(blob.ref for blob in blobs)

    def _emit(self, kind: Kind, body: Part) -> None:
        event = Event(
            kind=kind,
            run_id=self.playing.run_id,
            episode_id=self._episode,
            attempt=self.attempt,
            seq=self._seq,
            at_ns=time.time_ns(),
            trace_id=self.trace_id,
            body=body,
        )
        self._seq += 1
        self._unsent.append((event, self._blobs))
        self._blobs = []
        # one that was refused goes first next time, so that a refusal leaves no hole
        while self._unsent:
            self._emitter.emit(*self._unsent[0])
            self._unsent.popleft()


def _priced(turn: AssistantTurn) -> AssistantTurn:
    """Without a price that is no number: an endpoint may say anything, and such a decimal cannot be read again."""
    cost = turn.usage.cost_usd
    if cost is None or cost.is_finite():
        return turn
    return replace(turn, usage=replace(turn.usage, cost_usd=None))


def _id_of(steps: Sequence[ToolCall], index: int) -> str | None:
    return steps[index].id if index < len(steps) else None


def record(emitter: Emitter, playing: Playing, result: EpisodeResult) -> EpisodeRecording:
    """All events of an episode that is over.

    With an attempt's number it may be done again, as after a crash: the same result has the same trace, and is kept
    once.

    Raises:
        ConfigError: it is another episode's result.
        RecordError: the events can be neither sent nor spilled.
    """
    playing.check(result)
    if playing.attempt is not None and not playing.trace_id:
        seen = f"{playing.run_id}/{playing.episode}/{playing.attempt}\0{result.model_dump_json()}"
        trace_id = hashlib.sha256(seen.encode()).hexdigest()[:32]
        playing = replace(playing, trace_id=trace_id)
    recording = EpisodeRecording(emitter, playing)
    recording.end(result)
    return recording


def result_of(events: Iterable[Event], load: Load) -> EpisodeResult:
    """The episode that a whole attempt's events tell, in their order.

    Raises:
        ValueError: they are not a whole attempt: the first, the last or one between is missing.
        FileNotFoundError, StoreUnavailable: a picture cannot be had.
    """
    ordered = list(events)
    if [event.seq for event in ordered] != list(range(len(ordered))) or not ordered:
        raise ValueError(
            f"events {[event.seq for event in ordered]} are not an attempt from its beginning without gaps"
        )
    started, ended = ordered[0].body, ordered[-1].body
    if not isinstance(started, StartedBody) or not isinstance(ended, EndedBody):
        raise ValueError(f"{ordered[0].key}: an attempt goes from {Kind.EPISODE_STARTED} to {Kind.EPISODE_ENDED}")
    conversation: list[Message | AssistantTurn] = []
    steps: list[ToolCall] = []
    turns_s: list[float | None] = []
    details: list[Detail] = []
    verdict: VerdictBody | None = None
    for body in (event.body for event in ordered):
        if isinstance(body, TurnBody | StepBody | EndedBody):
            conversation += [_message(told, load) for told in body.told]
        if isinstance(body, TurnBody):
            conversation.append(body.turn)
            turns_s.append(body.duration_s)
        elif isinstance(body, StepBody):
            steps.append(body.call)
            details.append(Detail(ok=body.ok, cut_bytes=body.cut_bytes, duration_s=body.duration_s))
            if body.observed:
                told = Told(role=Role.TOOL, text=body.text, images=body.images, call_id=body.call.id)
                conversation.append(_message(told, load))
        elif isinstance(body, VerdictBody):
            verdict = body
    return EpisodeResult(
        env_id=started.env_id,
        seed=started.seed,
        level=started.level,
        sample=started.sample,
        outcome=ended.outcome,
        limit=ended.limit,
        reward=verdict.reward if verdict else None,
        passed=verdict.passed if verdict else None,
        checks=verdict.checks if verdict else (),
        failure=ended.failure,
        conversation=tuple(conversation),
        steps=tuple(steps),
        dropped=ended.dropped,
        timings_s=dict(ended.timings_s),
        turns_s=tuple(one for one in turns_s if one is not None) if None not in turns_s else (),
        details=tuple(details) if all(one.duration_s is not None for one in details) else (),
        replayable=ended.replayable,
    )


def _message(told: Told, load: Load) -> Message:
    images = tuple(load(ref) for ref in told.images)
    return Message(role=told.role, text=told.text, images=images, call_id=told.call_id)
