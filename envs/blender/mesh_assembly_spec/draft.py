"""A spec in the making: solids, the contacts between them, and the sentences that describe both.

Lengths are millimetres; `length` writes one in a unit of the level. Every sentence that fixes a number is written
beside the solid it belongs to, so that text and truth cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from ...core import Rng
from .solids import Bounds, Solid

AXES = "XYZ"


class Unit(StrEnum):
    """A unit of length a brief may use."""

    MM = "mm"
    CM = "cm"
    M = "m"

    @property
    def millimetres(self) -> int:
        return {Unit.MM: 1, Unit.CM: 10, Unit.M: 1000}[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """`face` (low or high) of the bounding box of `part` along `axis` lies on the opposite face of that of `other`."""

    part: str
    axis: int
    face: str
    other: str


@dataclass(slots=True, kw_only=True)
class Draft:
    """What the assemblies write into."""

    rng: Rng
    units: Sequence[Unit] = (Unit.M,)
    title: str = ""
    sentences: list[str] = field(default_factory=list)
    solids: list[Solid] = field(default_factory=list)
    contacts: list[Contact] = field(default_factory=list)

    def step(self, low: int, high: int, step: int = 1) -> int:
        """A multiple of `step` from `low` to `high`, which are multiples of it too."""
        return self.rng.integer(low // step, high // step) * step

    def add(self, *solids: Solid) -> None:
        self.solids += solids

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def stands_on(self, part: str, other: str) -> None:
        self.touches(part, 2, "low", other)

    def touches(self, part: str, axis: int, face: str, other: str) -> None:
        self.contacts.append(Contact(part=part, axis=axis, face=face, other=other))

    def unit(self) -> Unit:
        return self.rng.choice(self.units)

    def length(self, millimetres: float) -> str:
        """Such as "45 mm" or "4.5 cm", exact."""
        unit = self.unit()
        return f"{decimal(millimetres, unit)} {unit.value}"

    def lengths(self, *millimetres: float) -> str:
        """Such as "400 × 300 × 20 mm"."""
        unit = self.unit()
        return " × ".join(decimal(each, unit) for each in millimetres) + f" {unit.value}"

    def overall(self) -> Bounds:
        """The bounding box of everything so far."""
        boxes = [solid.bounds() for solid in self.solids]
        low = tuple(min(box[0][axis] for box in boxes) for axis in range(3))
        high = tuple(max(box[1][axis] for box in boxes) for axis in range(3))
        return (low[0], low[1], low[2]), (high[0], high[1], high[2])


def decimal(millimetres: float, unit: Unit) -> str:
    """The shortest exact decimal of a length in `unit`.

    Example:
        >>> decimal(12.5, Unit.M)
        '0.0125'
    """
    text = f"{Decimal(str(millimetres)) / unit.millimetres:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
