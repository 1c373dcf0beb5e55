"""Run an export: choose attempts by SQL, read them as they come, write whole files or none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from typing import Any

from metier.envs.core import ConfigError

from ..query import chosen, name_of
from ..reader import Attempt, Name, Records
from . import atif, inspect_log
from .pictures import Pictures
from .tuning import LeftOut, Level, Line, preference, sft


class Format(StrEnum):
    """What an export is for."""

    SFT = auto()
    """JSON Lines to imitate; by default of episodes that passed."""
    PREFERENCE = auto()
    """JSON Lines of pairs on the same instance; by default of graded episodes."""
    ATIF = auto()
    """A folder of Harbor's trajectory documents; by default of all episodes."""
    INSPECT = auto()
    """A folder of Inspect's `.eval` logs; by default of all episodes."""


_WHERE = {Format.SFT: "passed", Format.PREFERENCE: "reward IS NOT NULL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportSettings:
    """How."""

    level: Level = Level.CHAT
    where: str = ""
    """A condition on `episodes`; empty: the format's own."""
    run_ids: tuple[str, ...] = ()
    """Empty: all."""
    min_margin: float = 0.1
    pairs: int = 1


@dataclass(slots=True, kw_only=True)
class Exported:
    """What came of it."""

    num_chosen: int = 0
    num_written: int = 0
    """Lines, documents or logs."""
    paths: list[Path] = field(default_factory=list[Path])
    left_out: LeftOut = field(default_factory=LeftOut)


def export(
    records: Records,
    form: Format,
    out: Path,
    settings: ExportSettings | None = None,
    *,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Exported:
    """Write an export to `out`: a file for the JSON Lines, a folder for the others.

    Raises:
        ConfigError: a wrong condition or run, or `out` is of the wrong kind.
        RecordError: the store is damaged or cannot be reached.
    """
    settings = settings or ExportSettings()
    lines = form in (Format.SFT, Format.PREFERENCE)
    if lines and out.is_dir():
        raise ConfigError(f"{out} is a folder; {form} is one file, such as {out / f'{form}.jsonl'}")
    if not lines and out.is_file():
        raise ConfigError(f"{out} is a file; {form} is a folder")
    run_ids = settings.run_ids or None
    wanted = {name_of(row) for row in chosen(records, settings.where or _WHERE.get(form, "true"), run_ids)}
    exported = Exported(num_chosen=len(wanted))
    attempts = _read(records, wanted, run_ids, progress)
    folder = out.parent if lines else out
    folder.mkdir(parents=True, exist_ok=True)
    pictures = Pictures(folder, records.load)
    if lines:
        tuned = sft if form is Format.SFT else _preferring(settings)
        _write_lines(out, tuned(attempts, settings.level, pictures, exported.left_out), exported)
    elif form is Format.ATIF:
        _write_documents(out, attempts, pictures, exported)
    else:
        _write_logs(out, attempts, records, exported)
    return exported


def _read(
    records: Records, wanted: set[Name], run_ids: Iterable[str] | None, progress: Callable[[int, int], None]
) -> Iterator[Attempt]:
    for done, attempt in enumerate(records.attempts(run_ids, wanted.__contains__), start=1):
        yield attempt
        progress(done, len(wanted))


def _preferring(settings: ExportSettings) -> Callable[..., Iterator[Line]]:
    def pairs(attempts: Iterable[Attempt], level: Level, pictures: Pictures, left_out: LeftOut) -> Iterator[Line]:
        return preference(attempts, level, pictures, left_out, min_margin=settings.min_margin, pairs=settings.pairs)

    return pairs


def _write_lines(out: Path, lines: Iterable[Line], exported: Exported) -> None:
    partial = out.with_name(f"{out.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(_json(line) + "\n")
                exported.num_written += 1
        partial.rename(out)
    finally:
        partial.unlink(missing_ok=True)
    exported.paths.append(out)


def _write_documents(out: Path, attempts: Iterable[Attempt], pictures: Pictures, exported: Exported) -> None:
    for attempt in attempts:
        path = out / f"{_stem(attempt)}.json"
        partial = path.with_suffix(".partial")
        partial.write_text(_json(atif.trajectory(attempt, pictures)) + "\n", encoding="utf-8")
        partial.rename(path)
        exported.num_written += 1
        exported.paths.append(path)


def _stem(attempt: Attempt) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in attempt.episode_id)[:80]
    whole = f"{attempt.run_id}\0{attempt.episode_id}\0{attempt.attempt}"
    return f"{name}-{attempt.attempt}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _write_logs(out: Path, attempts: Iterable[Attempt], records: Records, exported: Exported) -> None:
    """A log at a time would need the attempts in its order; they come run by run, so a run is held at once."""
    groups: dict[inspect_log.Group, list[Attempt]] = {}
    for attempt in attempts:
        if groups and next(iter(groups))[0] != attempt.run_id:
            _write_groups(out, groups, records, exported)
            groups = {}
        groups.setdefault(inspect_log.group_of(attempt), []).append(attempt)
    _write_groups(out, groups, records, exported)


def _write_groups(
    out: Path, groups: dict[inspect_log.Group, list[Attempt]], records: Records, exported: Exported
) -> None:
    for group, members in groups.items():
        path, num_samples = inspect_log.write_log(out, group, members, records.load)
        exported.paths.append(path)
        exported.num_written += 1
        exported.left_out.add("is followed by another attempt", len(members) - num_samples)


def _json(value: Any) -> str:
    return json.dumps(atif.finite(value), ensure_ascii=False)
