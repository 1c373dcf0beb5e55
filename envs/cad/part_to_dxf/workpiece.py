"""Draws a milled part: a base with one or two uprights, and features that each keep to a cell of their own.

Sizes are multiples of 0.5 mm. X runs along the width, Y from the front to the rear, Z up, the lower front left corner
of the bounding box is the origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from ...core import Json, Rng
from ...parts.prismatic import Block, Bore, Element, Part, Wedge

_HOLES_MM = (4.5, 5.5, 6.5, 8.0, 9.0)
_TITLES = ("bearing bracket", "clamp base", "stop block", "guide carrier", "motor foot", "sensor mount")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hole:
    """A round hole; what a dimension and centre lines are for."""

    axis: int
    centre: tuple[float, float]
    radius: float
    head: float
    """Radius of its counterbore, 0 without one."""
    span: tuple[float, float]

    @property
    def widest(self) -> float:
        """For its centre lines."""
        return max(self.radius, self.head)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workpiece:
    """A part, as elements and as the holes in it."""

    title: str
    size: tuple[float, float, float]
    blocks: tuple[Block, ...]
    cuts: tuple[Block | Wedge | Bore, ...]
    holes: tuple[Hole, ...]

    def part(self) -> Part:
        """The exact part."""
        added: list[Element] = list(self.blocks)
        return Part(added=added, cut=self.cuts)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON; `from_json` reads it back."""
        cuts: list[Json] = [[type(cut).__name__, cast("Json", asdict(cut))] for cut in self.cuts]
        return {
            "title": self.title,
            "size": list(self.size),
            "blocks": [cast("Json", asdict(block)) for block in self.blocks],
            "cuts": cuts,
            "holes": [cast("Json", asdict(hole)) for hole in self.holes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Workpiece:
        """The part that `to_json` wrote."""
        kinds = {"Block": Block, "Wedge": Wedge, "Bore": Bore}
        return cls(
            title=data["title"],
            size=tuple(data["size"]),
            blocks=tuple(Block(**_tuples(row)) for row in data["blocks"]),
            cuts=tuple(kinds[kind](**_tuples(row)) for kind, row in data["cuts"]),
            holes=tuple(Hole(**_tuples(row)) for row in data["holes"]),
        )


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@dataclass(slots=True)
class _Draft:
    blocks: list[Block] = field(default_factory=list[Block])
    cuts: list[Block | Wedge | Bore] = field(default_factory=list[Block | Wedge | Bore])
    holes: list[Hole] = field(default_factory=list[Hole])

    def bore(self, axis: int, centre: tuple[float, float], radius: float, span: tuple[float, float]) -> None:
        self.cuts.append(Bore(axis=axis, centre=centre, radii=(radius, radius), span=span))

    def hole(
        self, axis: int, centre: tuple[float, float], radius: float, span: tuple[float, float], head: float = 0.0
    ) -> None:
        """A hole from span[0] to span[1]; a counterbore of half the depth opens at span[1]."""
        deep = round((span[1] - span[0]) / 2.0 * 2.0) / 2.0 if head else 0.0
        self.bore(axis, centre, radius, (span[0], span[1] - deep))
        if head:
            self.bore(axis, centre, head, (span[1] - deep, span[1]))
        self.holes.append(Hole(axis=axis, centre=centre, radius=radius, head=head, span=span))


def draw(rng: Rng, level: int) -> Workpiece:
    """The part of this stream and level."""
    profile = rng.choice((("L", "step"), ("L", "step"), ("L", "T"), ("L", "T", "U"), ("T", "U"))[level])
    columns = rng.integer(3, 4)
    cell = rng.integer(36, 44) / 2.0
    width = columns * cell
    base, wall = rng.integer(20, 28) / 2.0, rng.integer(16, 24) / 2.0
    free = rng.integer(44, 56) / 2.0
    height = base + rng.integer(44, 60) / 2.0
    front_wall = wall if profile == "U" else 0.0
    back = rng.integer(28, 36) / 2.0 if profile == "T" else 0.0
    depth = front_wall + free + wall + back
    draft = _Draft()
    if profile == "step":
        draft.blocks.append(Block(low=(0.0, 0.0, 0.0), high=(width, depth, height)))
        draft.cuts.append(Block(low=(0.0, 0.0, base), high=(width, free, height)))
    else:
        draft.blocks.append(Block(low=(0.0, 0.0, 0.0), high=(width, depth, base)))
        rise = front_wall + free
        draft.blocks.append(Block(low=(0.0, rise, base), high=(width, rise + wall, height)))
    front_height = base + rng.integer(16, 24) / 2.0
    if profile == "U":
        draft.blocks.append(Block(low=(0.0, 0.0, base), high=(width, front_wall, front_height)))
    zone = (front_wall, front_wall + free)
    _base_features(draft, rng.child("base"), level, columns, cell, base, zone)
    if level >= 1:
        faces = (zone[1], zone[1] + wall)
        low = max(base, front_height) if profile == "U" else base
        _wall_features(draft, rng.child("wall"), level, columns, cell, (low, height), faces)
    if level >= 3:
        _chamfers(draft, rng.child("chamfers"), width, height, (zone[1], zone[1] + wall), base, profile)
    return Workpiece(
        title=rng.choice(_TITLES),
        size=(width, depth, height),
        blocks=tuple(draft.blocks),
        cuts=tuple(draft.cuts),
        holes=tuple(draft.holes),
    )


def _base_features(
    draft: _Draft, rng: Rng, level: int, columns: int, cell: float, base: float, zone: tuple[float, float]
) -> None:
    """One feature in each column of the base."""
    kinds = {
        0: ["hole", "hole"],
        1: ["hole", "hole", "hole"],
        2: ["counterbore", "slot", "hole"],
        3: ["counterbore", "slot", "groove"],
        4: ["counterbore", "slot", "groove", "pocket"],
    }[level]
    radius = rng.choice(_HOLES_MM) / 2.0
    middle = (zone[0] + zone[1]) / 2.0
    for column, kind in zip(rng.shuffled(range(columns)), kinds, strict=False):
        x, y = (column + 0.5) * cell + rng.integer(-2, 2) / 2.0, middle + rng.integer(-6, 6) / 2.0
        if kind == "hole":
            draft.hole(2, (x, y), radius, (0.0, base))
        elif kind == "counterbore":
            draft.hole(2, (x, y), radius, (0.0, base), head=radius + 2.5)
        elif kind == "slot":
            half, end = rng.choice((3.0, 3.5, 4.0)), rng.integer(6, 9) / 2.0
            draft.cuts.append(Block(low=(x - half, y - end, 0.0), high=(x + half, y + end, base)))
            for side in (y - end, y + end):
                draft.bore(2, (x, side), half, (0.0, base))
        elif kind == "groove":
            half, deep = rng.integer(6, 10) / 2.0, rng.integer(4, 8) / 2.0
            draft.cuts.append(Block(low=(x - half, 0.0, 0.0), high=(x + half, _depth(draft), deep)))
        else:
            half, deep = rng.integer(8, 11) / 2.0, rng.integer(6, 10) / 2.0
            draft.cuts.append(Block(low=(x - half, y - 5.0, base - deep), high=(x + half, y + 5.0, base)))


def _depth(draft: _Draft) -> float:
    return max(block.high[1] for block in draft.blocks)


def _wall_features(
    draft: _Draft,
    rng: Rng,
    level: int,
    columns: int,
    cell: float,
    rise: tuple[float, float],
    faces: tuple[float, float],
) -> None:
    """Holes along Y in the upright; from level 3 one of them is blind, from the front."""
    radius = rng.choice(_HOLES_MM) / 2.0
    z = round(rise[0] + rise[1]) / 2.0
    chosen = sorted(rng.sample(range(columns), 1 if level < 3 else 2))
    for index, column in enumerate(chosen):
        x = (column + 0.5) * cell + rng.integer(-4, 4) / 2.0
        end = faces[0] + rng.integer(8, 11) / 2.0 if level >= 3 and index else faces[1]
        draft.hole(1, (x, z), radius, (faces[0], end))


def _chamfers(
    draft: _Draft, rng: Rng, width: float, height: float, wall: tuple[float, float], base: float, profile: str
) -> None:
    """At the upper edges of the upright, along X, and at the front corners of the base, upright."""
    leg = rng.integer(4, 6) / 2.0
    for y, sign in ((wall[0], 1), (wall[1], -1))[: rng.integer(1, 2)]:
        draft.cuts.append(Wedge(axis=0, corner=(y, height), signs=(sign, -1), legs=(leg, leg), span=(0.0, width)))
    if profile != "U":
        leg = rng.integer(6, 10) / 2.0
        for x, sign in ((0.0, 1), (width, -1)):
            draft.cuts.append(Wedge(axis=2, corner=(x, 0.0), signs=(sign, 1), legs=(leg, leg), span=(0.0, base)))
