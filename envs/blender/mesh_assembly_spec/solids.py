"""Exact solids of the spec: a base body less cuts that lie inside it and apart from each other. Millimetres, Z up.

Every body is one of two shapes along an axis `a`: a polygon pushed from `low` to `high` (`Prism`), or a cylinder or
cone frustum (`Round`). Plane coordinates (u, v) are along the axes (a + 1) % 3 and (a + 2) % 3, so (u, v, a) is
right-handed. Because cuts are disjoint, volumes and section areas are those of the base less those of the cuts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

Point2 = tuple[float, float]
Point3 = tuple[float, float, float]
Bounds = tuple[Point3, Point3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prism:
    """A polygon, counter-clockwise in (u, v), pushed along `axis`."""

    axis: int
    points: tuple[Point2, ...]
    low: float
    high: float

    def bounds(self) -> Bounds:
        us, vs = [u for u, _ in self.points], [v for _, v in self.points]
        return _box_of(self.axis, (min(us), min(vs), self.low), (max(us), max(vs), self.high))

    def volume(self) -> float:
        return self._area() * (self.high - self.low)

    def section(self, axis: int, at: float) -> float:
        """The area cut by the plane where the coordinate of `axis` is `at`."""
        if axis == self.axis:
            return self._area() if self.low < at < self.high else 0.0
        return self._chord((axis - self.axis) % 3 - 1, at) * (self.high - self.low)

    def distance(self, point: Point3) -> float:
        """Below 0 inside; its size is at most the true distance to the surface."""
        u, v, w = _local(self.axis, point)
        inside, nearest = False, math.inf
        for (u1, v1), (u2, v2) in self._edges():
            if (v1 > v) != (v2 > v) and u < u1 + (v - v1) * (u2 - u1) / (v2 - v1):
                inside = not inside
            length2 = (u2 - u1) ** 2 + (v2 - v1) ** 2
            along = min(1.0, max(0.0, ((u - u1) * (u2 - u1) + (v - v1) * (v2 - v1)) / length2))
            nearest = min(nearest, math.hypot(u - u1 - along * (u2 - u1), v - v1 - along * (v2 - v1)))
        return max(-nearest if inside else nearest, self.low - w, w - self.high)

    def stretched(self, below: float, above: float) -> Prism:
        return replace(self, low=self.low - below, high=self.high + above)

    def _edges(self) -> list[tuple[Point2, Point2]]:
        return list(zip(self.points, (*self.points[1:], self.points[0]), strict=True))

    def _area(self) -> float:
        return sum(u1 * v2 - u2 * v1 for (u1, v1), (u2, v2) in self._edges()) / 2

    def _chord(self, plane_axis: int, at: float) -> float:
        """The length of the line (u or v) = `at` inside the polygon."""
        other = 1 - plane_axis
        hits = sorted(
            p[other] + (at - p[plane_axis]) * (q[other] - p[other]) / (q[plane_axis] - p[plane_axis])
            for p, q in self._edges()
            if (p[plane_axis] > at) != (q[plane_axis] > at)
        )
        return sum(hits[1::2]) - sum(hits[::2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A cylinder or cone frustum along `axis`; the radius goes evenly from `radius_low` to `radius_high`."""

    axis: int
    centre: Point2
    radius_low: float
    radius_high: float
    low: float
    high: float

    def bounds(self) -> Bounds:
        u, v = self.centre
        r = max(self.radius_low, self.radius_high)
        return _box_of(self.axis, (u - r, v - r, self.low), (u + r, v + r, self.high))

    def volume(self) -> float:
        r1, r2 = self.radius_low, self.radius_high
        return math.pi * (self.high - self.low) * (r1 * r1 + r1 * r2 + r2 * r2) / 3

    def section(self, axis: int, at: float) -> float:
        """The area cut by the plane where the coordinate of `axis` is `at`."""
        if axis == self.axis:
            return math.pi * self.radius(at) ** 2 if self.low < at < self.high else 0.0
        off = at - self.centre[(axis - self.axis) % 3 - 1]
        steps = 400 if self.radius_low != self.radius_high else 1
        width = (self.high - self.low) / steps
        heights = (self.low + (step + 0.5) * width for step in range(steps))
        return sum(2 * math.sqrt(max(self.radius(height) ** 2 - off * off, 0.0)) * width for height in heights)

    def distance(self, point: Point3) -> float:
        """Below 0 inside; its size is at most the true distance to the surface."""
        u, v, w = _local(self.axis, point)
        slope = (self.radius_high - self.radius_low) / (self.high - self.low)
        side = math.hypot(u - self.centre[0], v - self.centre[1]) - self.radius(w)
        return max(side / math.hypot(1.0, slope), self.low - w, w - self.high)

    def stretched(self, below: float, above: float) -> Round:
        low, high = self.low - below, self.high + above
        return replace(self, low=low, high=high, radius_low=self.radius(low), radius_high=self.radius(high))

    def radius(self, w: float) -> float:
        return self.radius_low + (self.radius_high - self.radius_low) * (w - self.low) / (self.high - self.low)


Body = Prism | Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Material taken away; it is open to the outside at its low end, its high end, or both (a through-hole)."""

    body: Body
    open_low: bool = True
    open_high: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """One named part.

    Example:
        >>> Solid(name="slab", base=box((0, 0, 5), (20, 10, 10))).volume()
        2000.0
    """

    name: str
    base: Body
    cuts: tuple[Cut, ...] = ()

    @property
    def num_through_holes(self) -> int:
        return sum(cut.open_low and cut.open_high for cut in self.cuts)

    def bounds(self) -> Bounds:
        return self.base.bounds()

    def volume(self) -> float:
        return self.base.volume() - sum(cut.body.volume() for cut in self.cuts)

    def section(self, axis: int, at: float) -> float:
        return self.base.section(axis, at) - sum(cut.body.section(axis, at) for cut in self.cuts)

    def distance(self, point: Point3) -> float:
        """Below 0 in the material; its size is at most the true distance to the surface."""
        return max(self.base.distance(point), *(-cut.body.distance(point) for cut in self.cuts), -math.inf)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, every number rounded to a nanometre."""
        cuts = [{**asdict(cut), "body": _body_to_json(cut.body)} for cut in self.cuts]
        return {"name": self.name, "base": _body_to_json(self.base), "cuts": cuts}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Solid:
        cuts = tuple(Cut(**{**cut, "body": _body_from_json(cut["body"])}) for cut in value["cuts"])
        return cls(name=value["name"], base=_body_from_json(value["base"]), cuts=cuts)


def box(centre: Point3, size: Point3) -> Prism:
    (x, y, z), (dx, dy, dz) = centre, size
    return Prism(axis=2, points=_rectangle(x, y, dx, dy), low=z - dz / 2, high=z + dz / 2)


def cylinder(axis: int, centre: Point3, diameter: float, length: float) -> Round:
    u, v, w = _local(axis, centre)
    radius = diameter / 2
    return Round(
        axis=axis, centre=(u, v), radius_low=radius, radius_high=radius, low=w - length / 2, high=w + length / 2
    )


def chamfered(centre: Point3, size: Point3, chamfer: float) -> Prism:
    """A box whose four edges along Z are cut off at 45 degrees, `chamfer` from the corner along both faces."""
    (x, y, z), (dx, dy, dz) = centre, size
    a, b, c = dx / 2, dy / 2, chamfer
    corners = ((-a + c, -b), (a - c, -b), (a, -b + c), (a, b - c), (a - c, b), (-a + c, b), (-a, b - c), (-a, -b + c))
    return Prism(axis=2, points=tuple((x + u, y + v) for u, v in corners), low=z - dz / 2, high=z + dz / 2)


def hexagon(centre: Point2, across_flats: float, low: float, high: float) -> Prism:
    """A hexagonal prism along Z with two flats facing -Y and +Y."""
    radius = across_flats / math.sqrt(3)
    corners = [(radius * math.cos(k * math.pi / 3), radius * math.sin(k * math.pi / 3)) for k in range(6)]
    return Prism(axis=2, points=tuple((centre[0] + u, centre[1] + v) for u, v in corners), low=low, high=high)


def profile(axis: int, points: tuple[Point2, ...], low: float, high: float) -> Prism:
    """A prism from a polygon given in either direction."""
    prism = Prism(axis=axis, points=points, low=low, high=high)
    return prism if prism.volume() > 0 else replace(prism, points=tuple(reversed(points)))


def _rectangle(u: float, v: float, du: float, dv: float) -> tuple[Point2, ...]:
    a, b = du / 2, dv / 2
    return ((u - a, v - b), (u + a, v - b), (u + a, v + b), (u - a, v + b))


def _local(axis: int, point: Point3) -> Point3:
    return (point[(axis + 1) % 3], point[(axis + 2) % 3], point[axis])


def _box_of(axis: int, low: Point3, high: Point3) -> Bounds:
    """Bounds in (x, y, z) from bounds in (u, v, axis)."""
    back = [(0 - axis - 1) % 3, (1 - axis - 1) % 3, (2 - axis - 1) % 3]
    return (low[back[0]], low[back[1]], low[back[2]]), (high[back[0]], high[back[1]], high[back[2]])


def _body_to_json(body: Body) -> dict[str, Any]:
    fields = {"kind": "prism" if isinstance(body, Prism) else "round", **asdict(body)}
    return {name: _rounded(value) for name, value in fields.items()}


def _body_from_json(value: Mapping[str, Any]) -> Body:
    fields = {name: item for name, item in value.items() if name != "kind"}
    if value["kind"] == "prism":
        return Prism(**{**fields, "points": tuple((u, v) for u, v in fields["points"])})
    return Round(**{**fields, "centre": tuple(fields["centre"])})


def _rounded(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_rounded(item) for item in value]
    return round(value, 6) + 0.0 if isinstance(value, float) else value
