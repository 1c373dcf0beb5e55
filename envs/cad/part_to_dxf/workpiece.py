"""Draws a milled part: a base with one or two uprights, and features that each keep to a cell of their own.

Sizes are multiples of 0.5 mm (radii of 0.25 mm). X runs along the width, Y from the front to the rear, Z up, the lower
front left corner of the bounding box is the origin. No two cuts meet but those of one feature, so that every edge is
straight or a piece of a circle that lies across an axis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from ...core import Json, Rng
from ...parts.prismatic import Block, Bore, Wedge

_HOLES_MM = (4.5, 5.5, 6.5, 8.0, 9.0)
_MARGIN_MM = 2.0
_TITLES = ("bearing bracket", "clamp base", "stop block", "guide carrier", "motor foot", "sensor mount")

Cut = Block | Bore | Wedge


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
    cuts: tuple[Cut, ...]
    holes: tuple[Hole, ...]

    @property
    def rows(self) -> list[Json]:
        """The part as `prismatic_solid.py` builds it."""
        signed: list[tuple[int, Cut]] = [*((1, block) for block in self.blocks), *((-1, cut) for cut in self.cuts)]
        return [[sign, type(element).__name__, cast("Json", asdict(element))] for sign, element in signed]

    @property
    def slotted(self) -> bool:
        """Whether some round cuts are ends of slots, so that surfaces join tangentially."""
        bores = sum(isinstance(cut, Bore) for cut in self.cuts)
        return bores > sum(2 if hole.head else 1 for hole in self.holes)

    def to_json(self) -> dict[str, Json]:
        """Plain JSON; `from_json` reads it back."""
        return {
            "title": self.title,
            "size": list(self.size),
            "blocks": [cast("Json", asdict(block)) for block in self.blocks],
            "cuts": [[type(cut).__name__, cast("Json", asdict(cut))] for cut in self.cuts],
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """The sizes that features are placed by."""

    profile: str
    columns: int
    cell: float
    width: float
    base: float
    height: float
    floor: tuple[float, float]
    """From where to where, along Y, the base is free."""
    wall: tuple[float, float]
    """Between these the higher upright stands."""
    depth: float
    front_height: float
    """How high the front upright of a U is."""

    def middle(self, column: int) -> float:
        return (column + 0.5) * self.cell


@dataclass(slots=True)
class _Draft:
    cuts: list[Cut] = field(default_factory=list[Cut])
    holes: list[Hole] = field(default_factory=list[Hole])

    def bore(self, axis: int, centre: tuple[float, float], radius: float, span: tuple[float, float]) -> None:
        self.cuts.append(Bore(axis=axis, centre=centre, radii=(radius, radius), span=span))

    def hole(
        self, axis: int, centre: tuple[float, float], radius: float, span: tuple[float, float], head: float = 0.0
    ) -> None:
        """A hole from span[0] to span[1]; a counterbore of about half the depth opens at span[1]."""
        floor = span[1] - _half((span[1] - span[0]) / 2.0) if head else span[1]
        self.bore(axis, centre, radius, (span[0], floor))
        if head:
            self.bore(axis, centre, head, (floor, span[1]))
        self.holes.append(Hole(axis=axis, centre=centre, radius=radius, head=head, span=span))


def _half(value: float) -> float:
    """To a multiple of 0.5."""
    return round(value * 2.0) / 2.0


def draw(rng: Rng, level: int) -> Workpiece:
    """The part of this stream and level."""
    frame, draft = _frame(rng, level), _Draft()
    (y0, y1), width, base = frame.wall, frame.width, frame.base
    if frame.profile == "step":
        blocks = [Block(low=(0.0, 0.0, 0.0), high=(width, frame.depth, frame.height))]
        draft.cuts.append(Block(low=(0.0, 0.0, base), high=(width, y0, frame.height)))
    else:
        blocks = [Block(low=(0.0, 0.0, 0.0), high=(width, frame.depth, base))]
        blocks.append(Block(low=(0.0, y0, base), high=(width, y1, frame.height)))
    if frame.profile == "U":
        blocks.append(Block(low=(0.0, 0.0, base), high=(width, frame.floor[0], frame.front_height)))
    _base_features(draft, rng.child("base"), level, frame)
    if level >= 1:
        _wall_features(draft, rng.child("wall"), level, frame)
    if level >= 3:
        _chamfers(draft, rng.child("chamfers"), frame)
    return Workpiece(
        title=rng.choice(_TITLES),
        size=(width, frame.depth, frame.height),
        blocks=tuple(blocks),
        cuts=tuple(draft.cuts),
        holes=tuple(draft.holes),
    )


def _frame(rng: Rng, level: int) -> _Frame:
    profile = rng.choice((("L", "step"), ("L", "step"), ("L", "T"), ("L", "T", "U"), ("T", "U"))[level])
    columns = rng.integer(3, 4) if level < 4 else 4
    cell = rng.integer(36, 44) / 2.0
    base, wall = rng.integer(20, 28) / 2.0, rng.integer(16, 24) / 2.0
    free = rng.integer(44, 56) / 2.0
    front = wall if profile == "U" else 0.0
    rear = rng.integer(28, 36) / 2.0 if profile == "T" else 0.0
    return _Frame(
        profile=profile,
        columns=columns,
        cell=cell,
        width=columns * cell,
        base=base,
        height=base + rng.integer(52, 64) / 2.0,
        floor=(front, front + free),
        wall=(front + free, front + free + wall),
        depth=front + free + wall + rear,
        front_height=base + rng.integer(12, 20) / 2.0,
    )


def _base_features(draft: _Draft, rng: Rng, level: int, frame: _Frame) -> None:
    """One feature in each column of the base."""
    kinds = {
        0: ["hole", "hole"],
        1: ["hole", "hole", "hole"],
        2: ["counterbore", "slot", "hole"],
        3: ["counterbore", "slot", "groove"],
        4: ["counterbore", "slot", "groove", "pocket"],
    }[level]
    radius, base = rng.choice(_HOLES_MM) / 2.0, frame.base
    for column, kind in zip(rng.shuffled(range(frame.columns)), kinds, strict=False):
        x = _half(frame.middle(column)) + rng.integer(-2, 2) / 2.0
        if kind == "hole":
            draft.hole(2, (x, _place(rng, frame, radius)), radius, (0.0, base))
        elif kind == "counterbore":
            head = radius + 2.5
            draft.hole(2, (x, _place(rng, frame, head)), radius, (0.0, base), head=head)
        elif kind == "slot":
            half, end = rng.choice((3.0, 3.5, 4.0)), rng.integer(6, 9) / 2.0
            y = _place(rng, frame, half + end)
            draft.cuts.append(Block(low=(x - half, y - end, 0.0), high=(x + half, y + end, base)))
            for side in (y - end, y + end):
                draft.bore(2, (x, side), half, (0.0, base))
        elif kind == "groove":
            half, deep = rng.integer(6, 8) / 2.0, rng.integer(4, 8) / 2.0
            draft.cuts.append(Block(low=(x - half, 0.0, 0.0), high=(x + half, frame.depth, deep)))
        else:
            half, deep, y = rng.integer(8, 11) / 2.0, rng.integer(6, 10) / 2.0, _place(rng, frame, 5.0)
            draft.cuts.append(Block(low=(x - half, y - 5.0, base - deep), high=(x + half, y + 5.0, base)))


def _place(rng: Rng, frame: _Frame, reach: float) -> float:
    """Where along Y a feature that reaches so far to both sides may lie on the base."""
    low, high = frame.floor
    most = min(6, int((high - low) - 2.0 * (reach + _MARGIN_MM)))
    return _half((low + high) / 2.0) + rng.integer(-most, most) / 2.0


def _wall_features(draft: _Draft, rng: Rng, level: int, frame: _Frame) -> None:
    """Holes along Y in the upright; from level 3 one of them is blind, from the front."""
    radius = rng.choice(_HOLES_MM) / 2.0
    low = frame.front_height if frame.profile == "U" else frame.base
    z = _half((low + frame.height - _MARGIN_MM) / 2.0)
    face, rear = frame.wall
    for index, column in enumerate(sorted(rng.sample(range(frame.columns), 1 if level < 3 else 2))):
        x = _half(frame.middle(column)) + rng.integer(-4, 4) / 2.0
        end = face + rng.integer(8, 11) / 2.0 if level >= 3 and index else rear
        draft.hole(1, (x, z), radius, (face, end))


def _chamfers(draft: _Draft, rng: Rng, frame: _Frame) -> None:
    """At the upper edges of the upright, along X, and at the front corners of a base without an upright there."""
    leg = rng.integer(4, 6) / 2.0
    span, top = (0.0, frame.width), frame.height
    for y, sign in ((frame.wall[0], 1), (frame.wall[1], -1))[: rng.integer(1, 2)]:
        draft.cuts.append(Wedge(axis=0, corner=(y, top), signs=(sign, -1), legs=(leg, leg), span=span))
    if frame.profile != "U":
        leg = rng.integer(5, 7) / 2.0
        for x, sign in ((0.0, 1), (frame.width, -1)):
            cut = Wedge(axis=2, corner=(x, 0.0), signs=(sign, 1), legs=(leg, leg), span=(0.0, frame.base))
            draft.cuts.append(cut)
