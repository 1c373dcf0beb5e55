"""What each level asks: how much the package promises, how many faults there are, and which."""

from __future__ import annotations

from dataclasses import dataclass

from ...core import GenerationError, Rng
from .faults import FAULTS, Fault
from .project import Project, Shape

_BOTH = ("Debug", "Release")


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level's knobs."""

    shape: Shape
    faults: tuple[str, ...]
    """Names to draw from."""
    count: int
    hint: bool = False
    """Whether the report says what is at fault."""
    symptoms: bool = True
    """Whether it says what was seen, for each fault."""


LEVELS = (
    Level(
        shape=Shape(roles=("base", "detail", "core")),
        faults=(
            "includes kept private",
            "base kept private",
            "headers not installed",
            "name of the target",
            "nothing for the installed headers",
            "helper not exported",
            "definition only in the tree",
        ),
        count=1,
        hint=True,
    ),
    Level(
        shape=Shape(roles=("base", "detail", "core", "io")),
        faults=(
            "nothing for the installed headers",
            "headers in another folder",
            "definition only in the tree",
            "package in an unsearched folder",
            "namespace forgotten",
            "threads not found again",
            "only this minor version",
            "any version is good",
        ),
        count=1,
    ),
    Level(
        shape=Shape(roles=("base", "detail", "core", "io"), shared=True),
        faults=(
            "definition only in the tree",
            "salt handed on",
            "helper without position-independent code",
            "static for ever",
            "only this minor version",
            "threads not found again",
            "any version is good",
            "standard not handed on",
            "headers in another folder",
            "libraries lose one another",
        ),
        count=2,
    ),
    Level(
        shape=Shape(roles=("base", "detail", "core", "io", "text"), shared=True, components=True, consumers=_BOTH),
        faults=(
            "inside handed on",
            "salt handed on",
            "threads not found again",
            "components not checked",
            "component without its ground",
            "all components always",
            "decided at configuring",
            "the other configuration",
            "whole version in the name",
            "libraries lose one another",
            "helper without position-independent code",
        ),
        count=3,
    ),
    Level(
        shape=Shape(
            roles=("base", "detail", "core", "io", "text"),
            shared=True,
            components=True,
            consumers=_BOTH,
            configurations=_BOTH,
            vendored=True,
        ),
        faults=(
            "inside handed on",
            "components not checked",
            "component without its ground",
            "all components always",
            "decided at configuring",
            "whole version in the name",
            "one name for both configurations",
            "top folder taken for granted",
            "alias forgotten",
            "demo in other people's builds",
            "standard not handed on",
        ),
        count=4,
        symptoms=False,
    ),
)


def build(level: Level, rng: Rng) -> tuple[Project, tuple[Fault, ...]]:
    """A project, and faults that keep out of each other's way.

    Raises:
        GenerationError: too few of them do.
    """
    project = Project.draw(rng.child("project"), level.shape)
    known = {fault.name: fault for fault in FAULTS}
    chosen: list[Fault] = []
    for name in rng.child("faults").shuffled(level.faults):
        fault = known[name]
        if len(chosen) < level.count and fault.needs(level.shape) and all(_apart(fault, other) for other in chosen):
            chosen.append(fault)
    if len(chosen) < level.count:
        raise GenerationError(f"{len(chosen)} of {level.count} faults keep apart")
    return project, tuple(chosen)


def _apart(one: Fault, other: Fault) -> bool:
    """No text of one overlaps a text of the other, in the planted changes and in the other right ways."""
    mine, theirs = [*one.changes, *one.other], [*other.changes, *other.other]
    return not any(a.path == b.path and (a.right in b.right or b.right in a.right) for a in mine for b in theirs)
