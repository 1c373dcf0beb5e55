"""Solve rates: how often a policy passed an environment at a level, once that is known.

They are attached to the certificate and are no part of what it vouches for: its digest and its worth stay as they are.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pydantic

from metier.envs.core import ConfigError, Outcome


class SolveRate(pydantic.BaseModel, frozen=True, extra="forbid"):
    """Passed of valid episodes; those that our machinery failed are in neither.

    Example:
        >>> SolveRate(policy="smollm2-135m, SFT", level=0, passed=41, valid=80, date="2026-12-01").passed
        41
    """

    policy: str
    """Whatever tells it from others: the model, and how it was trained."""
    level: int
    passed: int = pydantic.Field(ge=0)
    valid: int = pydantic.Field(ge=1)
    date: str = pydantic.Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    """When it was measured."""

    @pydantic.model_validator(mode="after")
    def _passed_are_valid(self) -> SolveRate:
        if self.passed > self.valid:
            raise ValueError(f"{self.passed} passed of {self.valid} valid ones")
        return self


def merged(known: Iterable[SolveRate], new: Iterable[SolveRate]) -> tuple[SolveRate, ...]:
    """Both, in order; of one policy, level and day the new one."""
    by_key = {(rate.level, rate.date, rate.policy): rate for rate in (*known, *new)}
    return tuple(by_key[key] for key in sorted(by_key))


def read_rates(path: Path, *, policy: str = "", date: str = "") -> dict[str, list[SolveRate]]:
    """The solve rates in a main job's `record.json`, or in a file of episode results (JSON lines), by environment.

    Args:
        path: the file.
        policy: whose episodes they are. A record tells by itself: the model and the stage of its training.
        date: when they were run, YYYY-MM-DD; by default, when the file was written.

    Raises:
        ConfigError: no such file, none of the two, no valid episode in it, no date, or nobody says whose they are.
    """
    try:
        if date:
            datetime.date.fromisoformat(date)
    except ValueError:
        raise ConfigError(f"{date!r} is no day; write YYYY-MM-DD") from None
    try:
        text = path.read_text(encoding="utf-8")
        date = date or datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date().isoformat()
        if path.suffix == ".jsonl":
            rates = _of_results(text, policy, date)
        else:
            rates = _of_record(_Record.model_validate_json(text), policy, date)
    except (OSError, UnicodeDecodeError, pydantic.ValidationError) as error:
        raise ConfigError(
            f"{path} holds no solve rates: give a main job's record.json, or episodes/*.jsonl ({error})"
        ) from error
    if not rates:
        raise ConfigError(f"{path} holds no valid episode")
    return rates


class _Part(pydantic.BaseModel):
    """What is read of somebody else's format."""

    model_config = pydantic.ConfigDict(frozen=True, extra="ignore")


class _Task(_Part):
    id: str
    level: int = 0


class _Plan(_Part):
    model: str
    tasks: tuple[_Task, ...]


class _Counted(_Part):
    passed: int
    valid: int


class _Stage(_Part):
    name: str
    rates: Mapping[str, _Counted]


class _Record(_Part):
    plan: _Plan
    stages: tuple[_Stage, ...]


class _Episode(_Part):
    env_id: str
    level: int
    outcome: Outcome
    passed: bool | None = None


def _of_record(record: _Record, policy: str, date: str) -> dict[str, list[SolveRate]]:
    levels: dict[str, int] = {}
    for task in record.plan.tasks:
        if levels.setdefault(task.id, task.level) != task.level:
            raise ConfigError(f"the record counts all levels of {task.id} together; give its episodes/*.jsonl")
    rates: dict[str, list[SolveRate]] = {}
    for stage in record.stages:
        whose = f"{policy or record.plan.model}, {stage.name}"
        for env_id, counted in stage.rates.items():
            if env_id in levels and counted.valid:
                rate = SolveRate(policy=whose, level=levels[env_id], date=date, **counted.model_dump())
                rates.setdefault(env_id, []).append(rate)
    return rates


def _of_results(text: str, policy: str, date: str) -> dict[str, list[SolveRate]]:
    if not policy:
        raise ConfigError("episode results do not say whose they are: give --policy, the model and how it was trained")
    valid: Counter[tuple[str, int]] = Counter()
    passed: Counter[tuple[str, int]] = Counter()
    for episode in _episodes(text.splitlines()):
        if episode.outcome.graded:
            valid[episode.env_id, episode.level] += 1
            passed[episode.env_id, episode.level] += bool(episode.passed)
    rates: dict[str, list[SolveRate]] = {}
    for (env_id, level), count in valid.items():
        rate = SolveRate(policy=policy, level=level, passed=passed[env_id, level], valid=count, date=date)
        rates.setdefault(env_id, []).append(rate)
    return rates


def _episodes(lines: Sequence[str]) -> list[_Episode]:
    return [_Episode.model_validate_json(line) for line in lines if line.strip()]
