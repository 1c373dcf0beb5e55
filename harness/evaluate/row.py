"""A line of `results.jsonl`: how one trial ended, less what was said, which lies in a file of its own."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic

from metier.envs.core import Check, Limit, Outcome, ToolCall
from metier.scheduler.contract import WorkResult

from ..result import EpisodeResult, Replayable
from ..runner import failed
from ..tools.truncate import valid_text
from .plan import KEY_PATTERN, Digest, Trial
from .spent import Spent

SCHEMA_VERSION = 1
MOST_STEPS_BYTES = 1 << 20
"""Longer ones are in the episode's file only, so that the lines of a folder can be read at once."""
_NO_MORE = 4000
"""Characters of an error's words."""


class FailedTry(pydantic.BaseModel, frozen=True, extra="forbid"):
    """An attempt of a trial that failed and was followed by another."""

    failure: str
    """The error's class."""
    message: str
    run_s: float
    spent: Spent


class EpisodeFile(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Where the whole episode is: `episodes/<key>-<round>.json.gz`."""

    sha256: Digest
    """Of the file's bytes."""
    size_bytes: Annotated[int, pydantic.Field(ge=0)]


class Row(pydantic.BaseModel):
    """How a trial ended. Its fields up to `replayable` are those of `EpisodeResult`."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    schema_version: Literal[1] = SCHEMA_VERSION
    key: Annotated[str, pydantic.Field(pattern=KEY_PATTERN)]
    round: Annotated[int, pydantic.Field(ge=0)] = 0
    """How many earlier rows the trial has: an invalid one may be run again, and the last row counts."""
    env_id: str
    seed: int
    level: int
    sample: int
    outcome: Outcome
    limit: Limit | None
    reward: Annotated[float, pydantic.Field(ge=0, le=1)] | None
    passed: bool | None
    checks: tuple[Check, ...]
    failure: str
    steps: tuple[ToolCall, ...] | None
    """What was run; None where that is too long for a line."""
    dropped: tuple[ToolCall, ...]
    timings_s: dict[str, float]
    """As in the episode, and `queue` and `run` (all attempts) of the scheduler."""
    replayable: Replayable = True
    """As in the episode."""
    spent: Spent
    """Of the attempt that counts."""
    history: tuple[FailedTry, ...]
    """The attempts before it."""
    started_at: str
    """UTC."""
    ended_at: str
    file: EpisodeFile | None
    """None where nothing of it is left."""

    @pydantic.model_validator(mode="after")
    def _graded_has_reward(self) -> Row:
        if not (self.outcome.graded == (self.reward is not None) == (self.passed is not None)):
            raise ValueError(f"outcome {self.outcome}, reward {self.reward}, passed {self.passed}: they disagree")
        return self

    @property
    def valid(self) -> bool:
        """Whether it was graded; else a failure of ours ended it, and it is in no rate."""
        return self.outcome.graded

    @property
    def spent_in_all(self) -> Spent:
        """Failed attempts included."""
        return Spent.total([self.spent, *(one.spent for one in self.history)])

    @property
    def total_s(self) -> float:
        """Wall time of the episode from its reset to its verdict."""
        return self.timings_s.get("total", 0.0)


def ended(payload: Mapping[str, Any], done: WorkResult) -> EpisodeResult:
    """The episode of a trial's work, whichever way it ended."""
    if done.failure is not None:
        return failed(dict(payload), done.failure, done.message[:_NO_MORE], done.value)
    return EpisodeResult.model_validate(done.value)


def row_of(
    trial: Trial, result: EpisodeResult, done: WorkResult, *, started_at: float, ended_at: float, round_: int
) -> Row:
    """The row of a trial, without the file of its episode. Times are seconds since 1970."""
    size = sum(len(str(call.arguments)) for call in result.steps)
    return Row(
        key=trial.key,
        round=round_,
        env_id=result.env_id,
        seed=result.seed,
        level=result.level,
        sample=result.sample,
        outcome=result.outcome,
        limit=result.limit,
        reward=result.reward,
        passed=result.passed,
        checks=result.checks,
        failure=result.failure[:_NO_MORE],
        steps=result.steps if size <= MOST_STEPS_BYTES else None,
        dropped=result.dropped if size <= MOST_STEPS_BYTES else (),
        timings_s={**result.timings_s, "queue": done.timings_s["queue_s"], "run": done.timings_s["run_s"]},
        replayable=result.replayable,
        spent=Spent.of(result),
        history=tuple(
            FailedTry(
                failure=one.failure,
                message=valid_text(one.message[:_NO_MORE]),
                run_s=one.run_s,
                spent=Spent() if one.value is None else Spent.of(EpisodeResult.model_validate(one.value)),
            )
            for one in done.history
        ),
        started_at=_utc(started_at),
        ended_at=_utc(ended_at),
        file=None,
    )


def _utc(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
