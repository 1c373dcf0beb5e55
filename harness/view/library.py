"""Which runs there are to look at: results folders that somebody named, and those in folders that somebody named.

A run keeps its name for as long as the library lives, so that an address of it stays one. What cannot be read is
listed with its reason, and takes nothing else with it. Folders may be written to meanwhile: a run's `version` says
when there is more to see.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from metier.envs.core import ConfigError

from ..evaluate import manifest
from ..evaluate.compare import Beside, Comparison, beside, compare
from ..evaluate.faults import ResultsError
from ..evaluate.folder import ROWS, Results, load
from ..evaluate.manifest import Manifest
from ..evaluate.report import Report, make_report
from ..evaluate.row import Row
from ..result import EpisodeResult
from .faults import NotThere
from .kept import Kept

_DEEP = 4
"""Levels of folders below a named one in which runs are looked for."""
_MOST_FOLDERS = 5000
_MOST_RUNS = 500
_MOST_TRIALS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A results folder.

    Example:
        >>> Run(name="oracle", path=Path("runs/oracle"), version="5f1c", problem="").problem
        ''
    """

    name: str
    """In addresses."""
    path: Path
    version: str
    """Changes with the folder's manifest and rows."""
    problem: str
    """Why it cannot be read; empty where it can, as far as was looked."""


class Library:
    """Runs by name; safe for many threads."""

    def __init__(self, places: Sequence[Path]) -> None:
        """Raises ConfigError: a place is no folder, or there are places and none holds a run."""
        self._places = [Path(os.path.abspath(place)) for place in places]
        self._names: dict[Path, str] = {}
        self._lock = threading.Lock()
        self._results: Kept[str, Results] = Kept(16)
        self._reports: Kept[str, Report] = Kept(_MOST_RUNS)
        self._manifests: Kept[str, Manifest] = Kept(_MOST_RUNS)
        self._comparisons: Kept[tuple[str, str], tuple[Comparison, list[Beside]]] = Kept(64)
        self._episodes: Kept[tuple[str, str], EpisodeResult] = Kept(4)
        for given, place in zip(places, self._places, strict=True):
            if not place.is_dir():
                raise ConfigError(
                    f"{given} is no folder: name results folders of `metier eval`, or one that holds some"
                )
        if places and not self.runs():
            shown = ", ".join(map(str, places))
            raise ConfigError(f"{shown} holds no results folder of `metier eval` (a folder with {manifest.NAME})")

    def runs(self) -> list[Run]:
        """Those that are there now, in the order of the places, then by path."""
        return [self._run(path, name) for path, name in self._named()]

    def run(self, name: str) -> Run:
        """Raises NotThere: there is none of that name."""
        for path, known in self._named():
            if known == name:
                return self._run(path, name)
        raise NotThere(f"there is no run {name[:100]!r} here")

    def manifest(self, run: Run) -> Manifest:
        """Raises ResultsError: it cannot be read."""
        return self._manifests.get(run.name, run.version, lambda: _manifest(run.path))

    def results(self, run: Run) -> Results:
        """Its rows, without the calls that were run, which are in the episodes. Raises ResultsError."""
        num_trials = self.manifest(run).plan.num_trials
        if num_trials > _MOST_TRIALS:  # their keys alone would take all memory there is
            raise ResultsError(f"{run.path} is of {num_trials} trials, and {_MOST_TRIALS} are the most that is shown")
        return self._results.get(run.name, run.version, lambda: _slim(load(run.path)))

    def report(self, run: Run) -> Report:
        """The one of `metier report`. Raises ResultsError."""
        return self._reports.get(run.name, run.version, lambda: make_report(self.results(run)))

    def row(self, run: Run, episode: str) -> Row:
        """The row of an episode that is named `<key>-<round>`. Raises NotThere, ResultsError."""
        key, _, round_ = episode.rpartition("-")
        row = self.results(run).rows.get(key)
        if row is None or str(row.round) != round_:
            raise NotThere(f"{run.name} has no episode {episode[:100]!r} that counts")
        return row

    def episode(self, run: Run, row: Row) -> EpisodeResult:
        """The whole of it. Raises ResultsError: its file is missing, damaged or another one."""
        name = (run.name, f"{row.key}-{row.round}")
        version = row.file.sha256 if row.file else ""
        return self._episodes.get(name, version, lambda: self.results(run).episode(row))

    def comparison(self, first: Run, second: Run) -> tuple[Comparison, list[Beside]]:
        """The one of `metier compare`, and every instance of it. Raises ConfigError: they share none."""

        def make() -> tuple[Comparison, list[Beside]]:
            ours, theirs = self.results(first), self.results(second)
            return compare(ours, theirs), beside(ours, theirs)

        return self._comparisons.get((first.name, second.name), f"{first.version} {second.version}", make)

    def _run(self, path: Path, name: str) -> Run:
        run = Run(name=name, path=path, version=_version(path), problem="")
        try:
            self.manifest(run)
        except ResultsError as error:
            return Run(name=name, path=path, version=run.version, problem=str(error))
        return run

    def _named(self) -> list[tuple[Path, str]]:
        with self._lock:
            found = [(path, said) for place in self._places for path, said in _found(place)]
            taken = set(self._names.values())
            for path, said in found[:_MOST_RUNS]:
                if path not in self._names:
                    self._names[path] = _free(said, taken)
                    taken.add(self._names[path])
            unique = dict.fromkeys(path for path, _ in found)
            return [(path, self._names[path]) for path in unique if path in self._names]


def _manifest(path: Path) -> Manifest:
    try:
        return manifest.load(path)
    except FileNotFoundError:
        raise ResultsError(f"{path} is no results folder any more: it has no {manifest.NAME}") from None


def _slim(results: Results) -> Results:
    rows = {key: row.model_copy(update={"steps": None, "dropped": ()}) for key, row in results.rows.items()}
    return Results(path=results.path, plan=results.plan, rows=rows, num_other=results.num_other)


def _found(place: Path) -> Iterator[tuple[Path, str]]:
    """Results folders at or below a place, each with a name for it; no link is followed."""
    if _is_run(place):
        yield place, place.name
        return
    left, seen = [(place, "", 0)], 0
    while left:
        folder, said, depth = left.pop(0)
        try:
            inside = sorted((one for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)), key=_by_name)
        except OSError:
            continue
        for one in inside:
            seen += 1
            if seen > _MOST_FOLDERS:
                return
            path, name = Path(one.path), f"{said}{one.name}"
            if _is_run(path):
                yield path, name
            elif depth + 1 < _DEEP:
                left.append((path, f"{name}.", depth + 1))


def _by_name(one: os.DirEntry[str]) -> str:
    return one.name


def _is_run(path: Path) -> bool:
    """Whether it says so; one of another kind has a manifest of its own, and is passed by."""
    if not os.path.lexists(path / manifest.NAME):
        return False
    try:
        manifest.load(path)
    except FileNotFoundError:
        return False
    except ResultsError:
        return os.path.lexists(path / ROWS)
    return True


def _free(said: str, taken: set[str]) -> str:
    """A name that no other run has, and that any address can hold.

    Example:
        >>> _free("a run/äö", {"x"}), _free("x", {"x", "x-2"}), _free("..", set())
        ('a-run', 'x-3', 'run')
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", said)[:80].strip("-.") or "run"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}-{number}"
    return name


def _version(path: Path) -> str:
    said: list[object] = []
    for name in (manifest.NAME, ROWS):
        try:
            stat = os.lstat(path / name)
            said.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            said.append(None)
    return hashlib.sha256(repr(said).encode()).hexdigest()[:16]
