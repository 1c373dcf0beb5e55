"""What a submission says of itself, and what the board shows: the bytes of `about.json` and `leaderboard.json`.

A row's figures are those of `metier.harness.evaluate` and of nobody else: `overall` and `domains` are its summaries,
made by the server from the uploaded rows. The figures in an uploaded report are not read.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum, auto
from typing import Annotated, Literal

import pydantic

from metier.envs.core import Json, Outcome
from metier.envs.suite import Seeds

from ..evaluate.plan import Digest, PlannedPolicy
from ..evaluate.selection import Split
from ..evaluate.summary import Summary

SCHEMA_VERSION = 1
ID_PATTERN = r"^[0-9a-f]{32}$"
SubmissionId = Annotated[str, pydantic.Field(pattern=ID_PATTERN)]
_LINE = r"^[^\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]+$"
"""No control character, and none that turns the direction of what follows."""


def _line(most: int, words: str) -> pydantic.fields.FieldInfo:
    return pydantic.Field(min_length=1, max_length=most, pattern=_LINE, description=words)


class About(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a submitter says of a submission; without any of it a row cannot be compared.

    Example:
        >>> About(name="Small", agent="one shell", model="smollm2-135m", commit="0a1b2c3", command="metier eval …",
        ...       contact="me@example.org", suite="terminal-v0").split.value
        'held-out'
    """

    name: Annotated[str, _line(80, "How the row is called.")]
    agent: Annotated[str, _line(80, "The program around the model.")]
    model: Annotated[str, _line(120, "The model, with its version.")]
    commit: Annotated[
        str, pydantic.Field(pattern=r"^[0-9a-f]{7,64}\+?$", description="Of the agent's code; + for changes.")
    ]
    command: Annotated[str, _line(2000, "Which made the results.")]
    contact: Annotated[str, _line(200, "How to reach the submitter; never published.")]
    suite: Annotated[str, pydantic.Field(max_length=80, description="As `metier suites` lists it.")]
    split: Annotated[Split, pydantic.Field(description="Of the suite's seeds.")] = Split.HELD_OUT
    cost_usd: Annotated[
        Decimal | None,
        pydantic.Field(ge=0, le=10**9, allow_inf_nan=False, description="In all, where no turn had a price."),
    ] = None


class State(StrEnum):
    """How far a submission is."""

    QUEUED = auto()
    """Taken in; its replays are not done."""
    VERIFIED = auto()
    """No trial that was replayed had a better record than its replays."""
    REFUTED = auto()
    """A trial's record is better than all of its replays; the row is never ranked."""
    UNVERIFIED = auto()
    """Replays could not be had, by failures of this server; the row is not ranked."""


class End(pydantic.BaseModel, frozen=True, extra="forbid"):
    """How a trial ended."""

    outcome: Outcome
    reward: float | None
    passed: bool | None


class Replayed(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One trial, played again."""

    key: str
    env_id: str
    level: int
    seed: int
    sample: int
    recorded: End
    replayed: End
    """Of the replay that agreed, or of the last."""
    tries: int
    """Replays it took; a trial that agrees late does not always go the same way."""
    agreed: bool
    flattered: bool
    """Whether it disagreed by a record that is better than its replays."""
    secret_fingerprint: str
    """Of the hub secret that the replay was graded with."""
    same_observations: int
    """Tool results whose text was the same; told, and deciding nothing."""
    num_observations: int


class Verification(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What replaying showed so far."""

    to_replay: int
    replayed: int
    agreed: int
    agreed_late: int
    """Of `agreed`, those that took more than one replay."""
    flattered: int
    """Trials whose record is better than their replays; one refutes the submission."""
    whole: bool
    """Whether every valid trial is to be replayed, as where something disagreed."""
    same_observations: int
    num_observations: int
    secret_fingerprints: tuple[str, ...]
    """Of the hub secrets that the replays were graded with."""
    disagreed: tuple[Replayed, ...]
    """At most 100 of them."""


class BoardRow(pydantic.BaseModel, frozen=True, extra="forbid"):
    """One submission on the board."""

    id: SubmissionId
    """Of its content: the same results have the same id. Its data lie in `submissions/<id>/`."""
    submitter: str
    """Whose token it was."""
    received_at: str
    """UTC."""
    state: State
    rank: int | None
    """Within its group, by pass rate; equal rates share a rank. None where it is not ranked."""
    rank_best: int | None
    """1 + the rows whose whole interval lies above this one's: the rank it may have had by luck alone."""
    not_ranked: tuple[str, ...]
    """Why; empty where it is ranked."""
    name: str
    agent: str
    model: str
    commit: str
    command: str
    policy: PlannedPolicy
    harness_commits: tuple[str, ...]
    """Of the checkouts that ran trials, as they were recorded."""
    backend: str
    overall: Summary
    """Its `requested` is the whole split; pass rates with Wilson's interval."""
    domains: tuple[Summary, ...]
    cost_usd: Decimal | None
    """Of everything, failed attempts included; None makes a row incomparable."""
    cost_declared: bool
    """Whether that is what the submitter said, and not what the turns' prices add up to."""
    reruns: int
    """Trials that were run again after an invalid end, as far as the rows tell."""
    secrets_removed: int
    """Texts in the published files that looked like secrets."""
    same_calls_as: tuple[SubmissionId, ...]
    """Earlier submissions with exactly the same calls in every trial."""
    refuted_before: int
    """Submissions of this submitter that were refuted."""
    verification: Verification


class GroupEnvironment(pydantic.BaseModel, frozen=True, extra="forbid"):
    """An environment of a group, as it was evaluated."""

    id: str
    options: dict[str, Json]
    levels: tuple[int, ...]
    seeds: Seeds
    digest: Digest
    image: str
    image_digest: Digest


class Terms(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What rows must share to be ranked against each other: everything that makes a denominator or a reward."""

    suite: str
    split: Split
    environments: tuple[GroupEnvironment, ...]
    samples: int
    """Of each instance."""
    requested: int
    """Trials: the denominator of every ranked row."""
    secret_fingerprint: str
    """Of the hub secret that the recorded rewards come from."""
    metier: str
    """The harness's version."""
    episode_s: float


class Group(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Rows that may be compared, best first; those that are not ranked come last."""

    id: Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{16}$")]
    """The hash of `terms`."""
    terms: Terms
    current: bool
    """Whether the environments are those that this server has today; new submissions only come to such groups."""
    rows: tuple[BoardRow, ...]


class Board(pydantic.BaseModel, frozen=True, extra="forbid"):
    """`leaderboard.json`: groups of a suite beside each other, current ones first. No rank reaches beyond its group."""

    kind: Literal["metier leaderboard"] = "metier leaderboard"
    schema_version: Literal[1] = SCHEMA_VERSION
    groups: tuple[Group, ...]

    def written(self) -> bytes:
        """The file's bytes: the same for the same rows."""
        return written(self)


def written(value: pydantic.BaseModel) -> bytes:
    """The bytes of a published file."""
    return (value.model_dump_json(indent=1) + "\n").encode()


class Limits(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a server takes."""

    upload_bytes: int
    files: int
    uploads_per_hour: int
    """Of one token."""


class Offered(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A board of a server: what a submission to it must consist of."""

    suite: str
    split: Split
    summary: str
    environments: tuple[GroupEnvironment, ...]
    trials: int
    """Of one sample of each instance."""


class ServerInfo(pydantic.BaseModel, frozen=True, extra="forbid"):
    """What a submitter must know before an upload."""

    metier: str
    secret_fingerprint: str
    boards: tuple[Offered, ...]
    limits: Limits


class Receipt(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The answer to an upload."""

    id: SubmissionId
    state: State
    new: bool
    """False where these results were here already."""
    secrets_removed: int
    not_ranked: tuple[str, ...] = ()


class Problem(pydantic.BaseModel, frozen=True, extra="forbid"):
    """The answer to whatever is refused."""

    reason: str
    message: str
