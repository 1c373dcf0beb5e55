"""An instance's program: a theme, drawn names, and faults planted in it that keep out of each other's way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from string import Template

from ...core import GenerationError, Rng
from .editor import EDITOR
from .fault import Change, Fault, Names, Theme
from .registry import REGISTRY

THEMES = {theme.name: theme for theme in (REGISTRY, EDITOR)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level's knobs."""

    faults: int
    clues: frozenset[int]
    """How hard the faults may be to find; the hardest of these occurs."""
    place: bool = False
    """Whether the report names the function."""
    kind: bool = False
    """Whether it names the kind of fault."""
    script: bool = False
    """Whether it comes with input that shows the fault."""
    symptom: bool = False
    """Whether it tells what a user noticed."""


LEVELS = (
    Level(faults=1, clues=frozenset({0}), place=True, kind=True, script=True),
    Level(faults=1, clues=frozenset({0, 1}), kind=True, script=True),
    Level(faults=2, clues=frozenset({1, 2}), script=True),
    Level(faults=3, clues=frozenset({0, 1, 2}), symptom=True),
    Level(faults=4, clues=frozenset({0, 1, 2})),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The right files under src/, and the faults that are planted."""

    theme: Theme
    names: Names
    right: Mapping[str, str]
    faults: tuple[Fault, ...]

    @property
    def faulty(self) -> dict[str, str]:
        """The files with every fault."""
        return planted(self.right, self.faults, self.names)


def build(level: Level, rng: Rng) -> Project:
    """Draw a program and its faults.

    Raises:
        GenerationError: the theme has too few faults of that kind.
    """
    theme = rng.choice(list(THEMES.values()))
    names = theme.names(rng.child("names"))
    right = sources(theme, names)
    chosen: list[Fault] = []
    candidates = rng.child("faults").shuffled([fault for fault in theme.faults if fault.clues in level.clues])
    hardest = max(level.clues)
    candidates.sort(key=lambda fault: fault.clues != hardest or level.faults == 1)
    for fault in [*candidates[:1], *sorted(candidates[1:], key=lambda fault: -fault.clues if level.faults > 3 else 0)]:
        if len(chosen) < level.faults and all(_apart(fault, other) for other in chosen):
            chosen.append(fault)
    if len(chosen) < level.faults:
        raise GenerationError(f"{theme.name} has {len(chosen)} of {level.faults} faults that keep apart")
    return Project(theme=theme, names=names, right=right, faults=tuple(chosen))


def _apart(one: Fault, other: Fault) -> bool:
    return one.function != other.function and one.lines is not other.lines


def sources(theme: Theme, names: Names) -> dict[str, str]:
    """The right files under src/."""
    return {path: Template(_asset(asset)).substitute(names) for path, asset in theme.assets.items()}


def planted(right: Mapping[str, str], faults: Sequence[Fault], names: Names) -> dict[str, str]:
    """The files with these faults."""
    changed = dict(right)
    for fault in faults:
        changed = apply(changed, fault.changes, names)
    return changed


def apply(texts: Mapping[str, str], changes: Sequence[Change], names: Names) -> dict[str, str]:
    """The files with these changes.

    Raises:
        GenerationError: a text to change does not occur exactly once.
    """
    changed = dict(texts)
    for path, right, wrong in changes:
        old, new = (Template(text).substitute(names) for text in (right, wrong))
        if changed[path].count(old) != 1:
            raise GenerationError(f"{path}: {old!r} occurs {changed[path].count(old)} times")
        changed[path] = changed[path].replace(old, new)
    return changed


@lru_cache(maxsize=32)
def _asset(path: str) -> str:
    return files(__package__ or "").joinpath("assets", path).read_text()
