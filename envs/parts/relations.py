"""Relations between placed things, as a brief states them and a verifier measures them: left of, on, facing, between.

A relation answers with its *slack*: how far it is from failing, in its own unit; it holds from 0 up. A generator wants
comfortable slack, a verifier none, so that both use the same rule. Lengths are metres, Z is up, a thing's front is
a horizontal direction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Point = tuple[float, float, float]
Flat = tuple[float, float]

ON_M = 0.005
PICTURE_SHARE = 0.02
DEPTH_M = 0.15
FACING_DEGREES = 15.0
WALL_M = 0.06
BETWEEN_M = 0.30
VISIBLE_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Eye:
    """A camera without roll: where it is, where it looks, and its horizontal angle of view."""

    place: Point
    target: Point
    degrees: float

    def axes(self) -> tuple[Point, Point, Point]:
        """Right, up and ahead."""
        ahead = _unit(tuple(b - a for a, b in zip(self.place, self.target, strict=True)))
        right = _unit((ahead[1], -ahead[0], 0.0))
        up = (
            right[1] * ahead[2] - right[2] * ahead[1],
            right[2] * ahead[0] - right[0] * ahead[2],
            right[0] * ahead[1] - right[1] * ahead[0],
        )
        return right, up, ahead

    def picture(self, point: Point) -> tuple[float, float, float]:
        """(x, y, depth): x from 0 at the left edge to 1 at the right, y likewise upwards in a square picture."""
        offset = tuple(b - a for a, b in zip(self.place, point, strict=True))
        right, up, ahead = (sum(a * b for a, b in zip(axis, offset, strict=True)) for axis in self.axes())
        reach = 2 * math.tan(math.radians(self.degrees) / 2) * max(ahead, 1e-6)
        return 0.5 + right / reach, 0.5 + up / reach, ahead


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One thing where it stands."""

    name: str
    points: Sequence[Point]
    """Its corners in world space."""
    front: Flat
    standing_on: frozenset[str] = frozenset()
    """What carries it: names of things, or "floor"."""
    visible: float = 1.0
    """The share of its corners that no other thing hides from the camera."""

    def low(self) -> Point:
        return (min(p[0] for p in self.points), min(p[1] for p in self.points), min(p[2] for p in self.points))

    def high(self) -> Point:
        return (max(p[0] for p in self.points), max(p[1] for p in self.points), max(p[2] for p in self.points))

    def middle(self) -> Point:
        """Of its bounding box."""
        (a, b, c), (d, e, f) = self.low(), self.high()
        return ((a + d) / 2, (b + e) / 2, (c + f) / 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A floor at Z = 0 between walls; coordinates of the inner sides."""

    x: Flat
    y: Flat
    height: float

    def gap(self, wall: str, thing: Placed) -> float:
        """From a thing to the back wall (high Y) or the left wall (low X)."""
        return self.y[1] - thing.high()[1] if wall == "back" else thing.low()[0] - self.x[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """One demand; which fields count depends on `kind`.

    Example:
        >>> Relation(kind="gap_min", a="sofa", b="table", value=0.6).names
        ('sofa', 'table')
    """

    kind: str
    a: str
    b: str = ""
    c: str = ""
    value: float = 0.0
    wall: str = ""
    negated: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The things it speaks of."""
        return tuple(name for name in (self.a, self.b, self.c) if name and name != "floor")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How a relation came out."""

    slack: float
    evidence: str

    @property
    def holds(self) -> bool:
        return self.slack >= 0


def judge(relation: Relation, things: Mapping[str, Placed], room: Room, eye: Eye) -> Judged:
    """Measure a relation; every thing it names must be there.

    Raises:
        ValueError: no such relation.
    """
    found = _measured(relation, things, room, eye)
    return Judged(slack=-found.slack - 1e-9, evidence=found.evidence) if relation.negated else found


def _measured(relation: Relation, things: Mapping[str, Placed], room: Room, eye: Eye) -> Judged:
    a, b, c = (things.get(name) for name in (relation.a, relation.b, relation.c))
    assert a is not None
    match relation.kind:
        case "on":
            held = relation.b in a.standing_on
            where = ", ".join(sorted(a.standing_on)) or "nothing"
            return Judged(slack=1.0 if held else -1.0, evidence=f"{a.name} stands on {where}")
        case "carries_nothing":
            above = [thing.name for thing in things.values() if a.name in thing.standing_on]
            slack = -1.0 if above else 1.0
            return Judged(slack=slack, evidence=f"on {a.name} stands {', '.join(sorted(above)) or 'nothing'}")
        case "left_of":
            assert b is not None
            share = eye.picture(b.middle())[0] - eye.picture(a.middle())[0]
            return Judged(
                slack=share - PICTURE_SHARE, evidence=f"{a.name} is {share:.1%} of the picture left of {b.name}"
            )
        case "nearer":
            assert b is not None
            depth = eye.picture(b.middle())[2] - eye.picture(a.middle())[2]
            return Judged(slack=depth - DEPTH_M, evidence=f"{a.name} is {depth:.2f} m nearer than {b.name}")
        case "facing":
            assert b is not None
            turn = _turn(a.front, _towards(a, b))
            return Judged(slack=FACING_DEGREES - turn, evidence=f"{a.name} looks {turn:.0f} degrees past {b.name}")
        case "against":
            gap = room.gap(relation.wall, a)
            turn = _turn(a.front, (0.0, -1.0) if relation.wall == "back" else (1.0, 0.0))
            slack = min(WALL_M - gap, (FACING_DEGREES - turn) / 100)
            evidence = f"{a.name} is {gap:.3f} m from the {relation.wall} wall, turned {turn:.0f} degrees"
            return Judged(slack=slack, evidence=evidence)
        case "between":
            assert b is not None and c is not None
            share, off = _along(a.middle(), b.middle(), c.middle())
            slack = min(BETWEEN_M - off, share - 0.15, 0.85 - share)
            return Judged(slack=slack, evidence=f"{a.name} is at {share:.0%} of the line, {off:.2f} m off it")
        case "gap_min" | "gap_max":
            assert b is not None
            gap = footprint_gap(a, b)
            slack = gap - relation.value if relation.kind == "gap_min" else relation.value - gap
            return Judged(slack=slack, evidence=f"{gap:.3f} m between {a.name} and {b.name}")
        case "visible":
            return Judged(slack=a.visible - VISIBLE_SHARE, evidence=f"{a.visible:.0%} of {a.name} can be seen")
        case _:
            raise ValueError(f"{relation.kind} is no relation")


def footprint_gap(a: Placed, b: Placed) -> float:
    """The horizontal distance between the convex outlines of two things; 0 where they overlap."""
    return outline_gap(outline(a.points), outline(b.points))


def outline(points: Sequence[Point]) -> list[Flat]:
    """The convex hull seen from above, counter-clockwise (Andrew's monotone chain)."""
    flat = sorted({(round(p[0], 6), round(p[1], 6)) for p in points})
    if len(flat) < 3:
        return flat
    half: list[list[Flat]] = []
    for order in (flat, flat[::-1]):
        chain: list[Flat] = []
        for point in order:
            while len(chain) > 1 and _side(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        half.append(chain[:-1])
    return half[0] + half[1]


def outline_gap(one: Sequence[Flat], other: Sequence[Flat]) -> float:
    """Between two convex outlines; 0 where they overlap."""
    if any(_within(point, other) for point in one) or any(_within(point, one) for point in other):
        return 0.0
    edges = [list(zip(shape, [*shape[1:], shape[0]], strict=True)) for shape in (one, other)]
    if any(_cross(p, q) for p in edges[0] for q in edges[1]):
        return 0.0
    ways = [(point, edge) for point in one for edge in edges[1]] + [
        (point, edge) for point in other for edge in edges[0]
    ]
    return min(_to_edge(point, edge) for point, edge in ways)


def _side(a: Flat, b: Flat, c: Flat) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _within(point: Flat, shape: Sequence[Flat]) -> bool:
    return len(shape) > 2 and all(_side(a, b, point) >= 0 for a, b in zip(shape, [*shape[1:], shape[0]], strict=True))


def _cross(one: tuple[Flat, Flat], other: tuple[Flat, Flat]) -> bool:
    (a, b), (c, d) = one, other
    return _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0


def _to_edge(point: Flat, edge: tuple[Flat, Flat]) -> float:
    share, off = _along((*point, 0.0), (*edge[0], 0.0), (*edge[1], 0.0))
    if 0 <= share <= 1:
        return off
    return min(math.dist(point, edge[0]), math.dist(point, edge[1]))


def _along(point: Point, start: Point, end: Point) -> tuple[float, float]:
    """Where a point is along a horizontal line (0 at start, 1 at end), and how far off it."""
    dx, dy, px, py = end[0] - start[0], end[1] - start[1], point[0] - start[0], point[1] - start[1]
    squared = dx * dx + dy * dy or 1e-12
    return (px * dx + py * dy) / squared, abs(px * dy - py * dx) / math.sqrt(squared)


def _towards(a: Placed, b: Placed) -> Flat:
    (x0, y0, _), (x1, y1, _) = a.middle(), b.middle()
    return (x1 - x0, y1 - y0)


def _turn(one: Flat, other: Flat) -> float:
    """The angle between two horizontal directions, in degrees."""
    across, along = one[0] * other[1] - one[1] * other[0], one[0] * other[0] + one[1] * other[1]
    return abs(math.degrees(math.atan2(across, along)))


def _unit(vector: Sequence[float]) -> Point:
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return (vector[0] / length, vector[1] / length, vector[2] / length)
