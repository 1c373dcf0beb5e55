"""What a planted fault is, and what a program with such faults is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...core import Rng

Names = Mapping[str, str]


class Change(NamedTuple):
    """A text of one file, unique in it, and what stands there instead; templates over the names."""

    path: str
    right: str
    wrong: str


class Lines(Protocol):
    """Draws command lines that meet a fault."""

    def __call__(self, rng: Rng, names: Names) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault: the change that plants it, and commands that bring it out."""

    name: str
    kind: str
    """As a tool would name it, for a report."""
    function: str
    """Where it lies; a template."""
    symptom: str
    """What a user might notice, without naming the place; a template."""
    changes: tuple[Change, ...]
    lines: Lines
    clues: int = 1
    """How hard it is to find: 0 shows at the place of the fault, 1 elsewhere, 2 only across several commands."""
    other: tuple[Change, ...] = ()
    """Another right way to write what the changes touch, from the right text; empty: none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Theme:
    """One kind of program: its files, names, faults, and the host's model of it."""

    name: str
    what: str
    """A template for the brief."""
    manual: str
    """README.md; a template."""
    assets: Mapping[str, str]
    """File under src/ → file under assets/."""
    names: Callable[[Rng], dict[str, str]]
    faults: tuple[Fault, ...]
    talk: Callable[[Rng, Names, int], list[str]]
    """So many everyday commands, none of which needs more than small, short things."""
    quiet: Callable[[Rng, Names], list[str]]
    """A few commands that meet no fault at all."""
    answer: Callable[[Sequence[str], Names], str]
    """What the right program prints."""
