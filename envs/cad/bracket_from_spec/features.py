"""What a bracket is made of, in the words of its drawing, and the exact part that it means.

Millimetres. X is the width, Y runs from the rear to the front, Z is up. A bracket is plain data: it is the truth of an
instance, and everything else (the prose, the oracle's program, the expected measures) is derived from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum, auto
from typing import Any, cast

from ...core import Json
from ...parts.prismatic import Block, Bore, Cove, Element, Part, Span, Stadium, Vec, Wedge


class Head(StrEnum):
    """How the mouth of a hole is widened."""

    PLAIN = auto()
    """Not at all."""
    COUNTERBORE = auto()
    """A flat-bottomed cylinder."""
    COUNTERSINK = auto()
    """A 90° cone, down to the hole's own diameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plate:
    """A box across the axes; plates touch, they do not overlap."""

    name: str
    low: Vec
    high: Vec


@dataclass(frozen=True, slots=True, kw_only=True)
class Bend:
    """An inner corner between two plates, along the whole width; radius 0 is a sharp one."""

    corner: tuple[float, float]
    """Its Y and Z."""
    signs: tuple[int, int]
    """To which side of the corner, in Y and in Z, the open space lies."""
    radius: float
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Gusset:
    """A triangular web across a bend; its legs lie on the two plates."""

    corner: tuple[float, float]
    signs: tuple[int, int]
    legs: tuple[float, float]
    """Along Y and along Z."""
    span: Span
    """In X."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corner:
    """A plate's corner that is rounded, or cut by a 45° chamfer, through the thickness of the plate."""

    axis: int
    corner: tuple[float, float]
    signs: tuple[int, int]
    """From the corner into the plate."""
    size: float
    """Radius, or the chamfer's leg."""
    chamfer: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A round hole right through one plate; a head lies at `span[1]`, that is on the upper or the front face."""

    axis: int
    centre: tuple[float, float]
    diameter: float
    span: Span
    head: Head = Head.PLAIN
    head_diameter: float = 0.0
    head_depth: float = 0.0
    """Of a counterbore; a countersink's depth follows from its diameter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot with round ends right through one plate."""

    axis: int
    centre: tuple[float, float]
    length: float
    """Over all."""
    width: float
    along_u: bool
    """Whether it is long in the first of the two other axes (X before Y before Z)."""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Bracket:
    """The whole drawing."""

    plates: tuple[Plate, ...]
    bends: tuple[Bend, ...] = ()
    gussets: tuple[Gusset, ...] = ()
    corners: tuple[Corner, ...] = ()
    holes: tuple[Hole, ...] = ()
    slots: tuple[Slot, ...] = ()

    def to_json(self) -> dict[str, Json]:
        """Plain JSON; `from_json` reads it back."""
        return cast("dict[str, Json]", asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> Bracket:
        """The bracket that `to_json` wrote."""
        kinds = {"plates": Plate, "bends": Bend, "gussets": Gusset, "corners": Corner, "holes": Hole, "slots": Slot}
        fields: dict[str, Any] = {}
        for name, kind in kinds.items():
            rows = cast("list[dict[str, Any]]", data[name])
            fields[name] = tuple(kind(**{key: _restored(key, value) for key, value in row.items()}) for row in rows)
        return cls(**fields)

    def part(self) -> Part:
        """The exact part."""
        added: list[Element] = [Block(low=plate.low, high=plate.high) for plate in self.plates]
        added += [
            Wedge(axis=0, corner=web.corner, signs=web.signs, legs=web.legs, span=web.span) for web in self.gussets
        ]
        added += [
            Cove(axis=0, corner=bend.corner, signs=bend.signs, radius=bend.radius, span=span)
            for bend in self.bends
            if bend.radius > 0
            for span in self._between_gussets(bend)
        ]
        return Part(added=tuple(added), cut=tuple(self._cuts()))

    def _between_gussets(self, bend: Bend) -> Iterator[Span]:
        start = bend.span[0]
        for web in sorted(self.gussets, key=lambda web: web.span):
            if web.corner == bend.corner and web.signs == bend.signs:
                yield start, web.span[0]
                start = web.span[1]
        yield start, bend.span[1]

    def _cuts(self) -> Iterator[Element]:
        for corner in self.corners:
            if corner.chamfer:
                legs = (corner.size, corner.size)
                yield Wedge(axis=corner.axis, corner=corner.corner, signs=corner.signs, legs=legs, span=corner.span)
            else:
                yield Cove(
                    axis=corner.axis, corner=corner.corner, signs=corner.signs, radius=corner.size, span=corner.span
                )
        for hole in self.holes:
            yield from _bores(hole)
        for slot in self.slots:
            yield Stadium(
                axis=slot.axis,
                centre=slot.centre,
                length=slot.length,
                width=slot.width,
                along_u=slot.along_u,
                span=slot.span,
            )


def head_depth(hole: Hole) -> float:
    """How deep the head reaches below the face; 0 for a plain hole."""
    if hole.head is Head.COUNTERSINK:
        return (hole.head_diameter - hole.diameter) / 2.0
    return hole.head_depth


def _bores(hole: Hole) -> Iterator[Bore]:
    floor, radius = hole.span[1] - head_depth(hole), hole.diameter / 2.0
    yield Bore(axis=hole.axis, centre=hole.centre, radii=(radius, radius), span=(hole.span[0], floor))
    if hole.head is not Head.PLAIN:
        wide = hole.head_diameter / 2.0
        bottom = radius if hole.head is Head.COUNTERSINK else wide
        yield Bore(axis=hole.axis, centre=hole.centre, radii=(bottom, wide), span=(floor, hole.span[1]))


def _restored(key: str, value: Any) -> Any:
    if key == "head":
        return Head(value)
    return tuple(value) if isinstance(value, list | tuple) else value
