"""A typed ledger: every figure of a set of documents, once, with what it is about and which others it follows from.

Text never decides a fact: documents are rendered from the ledger, and whatever is asked or planted is a fact of it.
Values are exact fractions in the unit of their kind, so that a total, a margin and its rounding are never in doubt.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum, auto
from fractions import Fraction


class Kind(StrEnum):
    """What a value is, and so its unit."""

    MONEY = auto()
    """Thousands of the currency."""
    PRICE = auto()
    """Units of the currency, as of a share."""
    COUNT = auto()
    """Things, people, square metres."""
    PERCENT = auto()
    """12.4 is 12.4%."""
    MULTIPLE = auto()
    """2.4 is 2.4 times."""
    DATE = auto()
    """The ordinal of a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line of the ledger.

    Example:
        >>> Fact(key="cash.0", kind=Kind.MONEY, value=Fraction(41300), label="Cash", when="31 December 2024").value
        Fraction(41300, 1)
    """

    key: str
    kind: Kind
    value: Fraction
    label: str
    """What it is, in the words of an index."""
    when: str
    """Its period or its date."""


class Ledger:
    """Facts by key, and the relations between them."""

    def __init__(self) -> None:
        self._facts: dict[str, Fact] = {}
        self._relations: list[tuple[str, ...]] = []

    def __getitem__(self, key: str) -> Fraction:
        return self._facts[key].value

    def __iter__(self) -> Iterator[Fact]:
        return iter(self._facts.values())

    def fact(self, key: str) -> Fact:
        """The line itself."""
        return self._facts[key]

    def add(self, key: str, kind: Kind, value: Fraction | int, label: str, when: str) -> None:
        """A fact that follows from no other."""
        if key in self._facts:
            raise ValueError(f"{key} is in the ledger already")
        self._facts[key] = Fact(key=key, kind=kind, value=Fraction(value), label=label, when=when)

    def derive(self, key: str, kind: Kind, value: Fraction | int, label: str, when: str, of: Iterable[str]) -> None:
        """A fact that follows from others, which are there already."""
        self.add(key, kind, value, label, when)
        self.relate(key, *of)

    def relate(self, result: str, *of: str) -> None:
        """`result` follows from the others."""
        assert all(key in self._facts for key in (result, *of)), (result, of)
        self._relations.append((result, *of))

    def tied(self, key: str) -> frozenset[str]:
        """Facts that this one follows from, and facts that follow from it."""
        results = {relation[0] for relation in self._relations if key in relation[1:]}
        return frozenset(results | {one for relation in self._relations if relation[0] == key for one in relation[1:]})

    def entangled(self, key: str) -> frozenset[str]:
        """Facts that stand in one relation with this one, on whichever side."""
        return frozenset(other for relation in self._relations if key in relation for other in relation) - {key}


def ordinal(day: datetime.date) -> Fraction:
    """A day as a value of the ledger."""
    return Fraction(day.toordinal())
