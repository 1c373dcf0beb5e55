"""The contract of records: an append-only stream of typed events for each attempt at an episode.

An attempt is one playing of one episode in one run. Its events are `episode_started`, then turns and the steps that
they led to, then `verdict` where it was graded, then `episode_ended`. The key run/episode/attempt/seq names an event
for ever: whoever meets a key twice keeps one of them. `seq` runs from 0 without gaps, so a reader knows whether all of
an attempt is there. `trace_id` names the playing itself: two playings under one attempt's number are a producer's
mistake, and are told apart by it.

Pictures are never in an event: it holds their hash, and their bytes lie beside it (`blob`). Together an attempt's
events hold all of its `EpisodeResult`, and make it again (`recording.result_of`).

Old events stay readable: a change that an old reader could not take is a new `SCHEMA_VERSION` with a step in
`parcel.UPGRADES` and a file of the old version in the tests. A new optional field is no such change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import pydantic
from pydantic import Field

from metier.envs.core import Check, Json, Limit, Outcome, ToolCall, ToolSpec

from ..policy.contract import AssistantTurn, Role
from ..result import Replayable
from .blob import BlobRef

SCHEMA_VERSION = 1
RUN_ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"
"""What may name a run, since it names folders too."""
MAX_EPISODE_ID = 1024
LOG_PREFIX = "#log/"
"""Of the ids of streams of logs; no environment's id begins so."""


class Kind(StrEnum):
    """What an event tells."""

    EPISODE_STARTED = auto()
    """Which instance, by whom, with which environment and weights."""
    TURN = auto()
    """What the policy said, and the calls it made."""
    STEP = auto()
    """One call that was run, and its observation."""
    VERDICT = auto()
    """Reward and checks; only where the episode was graded."""
    EPISODE_ENDED = auto()
    """The outcome and the time ledger."""
    LOG = auto()
    """A line of a log. Only these may be dropped; they have a stream of their own."""


class Key(NamedTuple):
    """Names an event for ever."""

    run_id: str
    episode_id: str
    attempt: int
    seq: int

    def __str__(self) -> str:
        return f"{self.run_id}/{self.episode_id}/{self.attempt}/{self.seq}"


class Part(pydantic.BaseModel):
    """What events are made of."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Told(Part):
    """A message to the policy that is no observation: the brief, a remark of the harness."""

    role: Role
    text: str
    images: tuple[BlobRef, ...] = ()
    call_id: str = ""


class Provenance(Part):
    """What an episode was made of, for `metier audit`; empty where nobody said."""

    environment_digest: str = ""
    image: str = ""
    image_digest: str = ""
    """Of the image's recipe."""
    backend: str = ""
    hub_fingerprint: str = ""
    """Names the hub secret that graded, without telling it."""
    metier_version: str = ""
    commit: str = ""
    weights: str = ""
    """Of the policy, where its tokens carry no weight version: a checkpoint's or a model's name."""


class StartedBody(Part):
    """`episode_started`."""

    env_id: str
    seed: int
    level: int
    sample: int = 0
    options: Mapping[str, Json] = {}
    policy: str = ""
    """Its registered name."""
    settings: Mapping[str, Json] = {}
    """The policy's, without secrets."""
    tools: tuple[ToolSpec, ...] = ()
    provenance: Provenance = Provenance()


class TurnBody(Part):
    """`turn`."""

    index: int = Field(ge=0)
    """Of this attempt's turns."""
    turn: AssistantTurn
    told: tuple[Told, ...] = ()
    """What the policy was told since its last turn, besides observations."""
    duration_s: float | None = None


class StepBody(Part):
    """`step`."""

    index: int = Field(ge=0)
    """Of this attempt's steps."""
    turn: int = Field(ge=-1)
    """The turn that it belongs to; -1 before the first one."""
    call: ToolCall
    observed: bool = True
    """False where the record has a call without its observation."""
    text: str = ""
    images: tuple[BlobRef, ...] = ()
    told: tuple[Told, ...] = ()
    """Messages between the turn, or the step before, and this observation."""
    ok: bool | None = None
    cut_bytes: int | None = None
    duration_s: float | None = None


class VerdictBody(Part):
    """`verdict`."""

    reward: float
    passed: bool | None
    checks: tuple[Check, ...] = ()


class EndedBody(Part):
    """`episode_ended`."""

    outcome: Outcome
    limit: Limit | None = None
    failure: str = ""
    dropped: tuple[ToolCall, ...] = ()
    """Calls of the last turn after the end."""
    told: tuple[Told, ...] = ()
    """What the policy was told and never answered."""
    timings_s: Mapping[str, float] = {}
    replayable: Replayable = True
    num_turns: int = 0
    num_steps: int = 0


class LogBody(Part):
    """`log`."""

    level: str
    text: str
    episode_id: str = ""
    """What it is about, where that is one episode."""
    num_dropped: int = 0
    """Lines of this stream that were dropped before this one."""


Body: TypeAlias = StartedBody | TurnBody | StepBody | VerdictBody | EndedBody | LogBody

BODIES: dict[Kind, type[Part]] = {
    Kind.EPISODE_STARTED: StartedBody,
    Kind.TURN: TurnBody,
    Kind.STEP: StepBody,
    Kind.VERDICT: VerdictBody,
    Kind.EPISODE_ENDED: EndedBody,
    Kind.LOG: LogBody,
}


class Head(Part):
    """What every event begins with, and all that is left of one whose body is a blob."""

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Kind
    run_id: Annotated[str, Field(pattern=RUN_ID)]
    episode_id: Annotated[str, Field(min_length=1, max_length=MAX_EPISODE_ID)]
    attempt: int = Field(ge=0)
    seq: int = Field(ge=0)
    at_ns: int = Field(ge=0)
    """Nanoseconds since 1970, of the producer's clock."""
    trace_id: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """Of this playing; also the trace's in telemetry."""

    @property
    def key(self) -> Key:
        """run/episode/attempt/seq."""
        return Key(self.run_id, self.episode_id, self.attempt, self.seq)


class Event(Head):
    """One event.

    Example:
        >>> event = Event(kind=Kind.VERDICT, run_id="r1", episode_id="test/Echo-v0#seed=3&level=0&sample=0", attempt=0,
        ...               seq=3, at_ns=0, trace_id="0" * 32, body=VerdictBody(reward=1.0, passed=True))
        >>> str(event.key)
        'r1/test/Echo-v0#seed=3&level=0&sample=0/0/3'
    """

    body: pydantic.SerializeAsAny[Part]

    @pydantic.field_validator("body", mode="wrap")
    @classmethod
    def _of_its_kind(cls, value: Any, _: Any, info: pydantic.ValidationInfo) -> Part:
        wanted = BODIES.get(info.data.get("kind", ""))
        if wanted is None:
            raise ValueError("an event of no known kind")
        return value if isinstance(value, wanted) else wanted.model_validate(value)


class Stub(Head):
    """An event whose body was too large to queue: its JSON is a blob."""

    body_blob: BlobRef


def episode_id(
    env_id: str, seed: int, level: int = 0, sample: int = 0, options: Mapping[str, Json] | None = None
) -> str:
    """Names environment, options, seed, level and sample.

    Example:
        >>> episode_id("test/Echo-v0", 3, options={"unit": "mm"})
        'test/Echo-v0#seed=3&level=0&sample=0&options={"unit":"mm"}'
    """
    name = f"{env_id}#seed={seed}&level={level}&sample={sample}"
    if options:
        name += f"&options={json.dumps(dict(options), sort_keys=True, separators=(',', ':'))}"
    return name
