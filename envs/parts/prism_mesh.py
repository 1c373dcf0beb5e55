"""Stepped bodies as plans: nested outlines, each with the heights between which it is solid; meshed without a crack.

A `Region` is what lies within its ring and outside the rings of the regions inside it. Rings never touch. Caps and
walls share every corner, so the facets of `mesh` close exactly, and volume and membership are exact as well.
Millimetres, Z up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from ..core import Json

Point = tuple[float, float]
Ring = tuple[Point, ...]
Triangle = tuple[Point, Point, Point]
Corner = tuple[float, float, float]
Span = tuple[float, float]


class Facet(NamedTuple):
    """A triangle, counter-clockwise seen from outside, and the face it belongs to."""

    corners: tuple[Corner, Corner, Corner]
    region: str
    cap: bool
    """Whether it is level; else it stands on the ring of `region`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One outline of the plan.

    Example:
        >>> hole = Region(name="hole", ring=((1, 1), (2, 1), (2, 2), (1, 2)), solid=())
        >>> plate = Region(name="plate", ring=((0, 0), (4, 0), (4, 4), (0, 4)), solid=((0, 2),), inside=(hole,))
        >>> volume([plate]), contains([plate], (0.5, 0.5, 1.0)), contains([plate], (1.5, 1.5, 1.0)), len(mesh([plate]))
        (30.0, True, False, 32)
    """

    name: str
    ring: Ring
    """Counter-clockwise."""
    solid: tuple[Span, ...]
    """Rising and apart."""
    inside: tuple[Region, ...] = ()
    kind: str = ""
    """What a maker would call it."""

    def to_json(self) -> dict[str, Json]:
        """Plain JSON; `from_json` reads it back."""
        return {
            "name": self.name,
            "kind": self.kind,
            "ring": [[x, y] for x, y in self.ring],
            "solid": [[low, high] for low, high in self.solid],
            "inside": [region.to_json() for region in self.inside],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Region:
        """The region that `to_json` wrote."""
        return cls(
            name=data["name"],
            kind=data["kind"],
            ring=tuple((x, y) for x, y in data["ring"]),
            solid=tuple((low, high) for low, high in data["solid"]),
            inside=tuple(cls.from_json(cast("Mapping[str, Any]", row)) for row in data["inside"]),
        )


def walk(regions: Sequence[Region], above: Region | None = None) -> Iterator[tuple[Region, Region | None]]:
    """Every region with the one around it."""
    for region in regions:
        yield region, above
        yield from walk(region.inside, region)


def area(ring: Sequence[Point]) -> float:
    """Signed: positive where the ring runs counter-clockwise."""
    return math.fsum(a[0] * b[1] - a[1] * b[0] for a, b in _sides(ring)) / 2.0


def volume(regions: Sequence[Region]) -> float:
    """Exact."""
    return math.fsum(_own_area(region) * (high - low) for region, _ in walk(regions) for low, high in region.solid)


def surface(regions: Sequence[Region]) -> float:
    """The area of all faces, exact."""
    caps = math.fsum(2.0 * _own_area(region) * len(region.solid) for region, _ in walk(regions))
    walls = math.fsum(
        math.dist(a, b) * (high - low)
        for region, above in walk(regions)
        for low, high, _ in wall_spans(region, above)
        for a, b in _sides(region.ring)
    )
    return caps + walls


def bounds(regions: Sequence[Region]) -> tuple[Corner, Corner]:
    """The lower and the upper corner of the bounding box."""
    points = [point for region in regions for point in region.ring]
    ends = [end for region, _ in walk(regions) for span in region.solid for end in span]
    xs, ys = zip(*points, strict=True)
    return (min(xs), min(ys), min(ends)), (max(xs), max(ys), max(ends))


def region_at(regions: Sequence[Region], point: Point) -> Region | None:
    """The innermost region around a point of the plan."""
    for region in regions:
        if within(region.ring, point):
            return region_at(region.inside, point) or region
    return None


def contains(regions: Sequence[Region], corner: Corner) -> bool:
    """Whether there is material."""
    region = region_at(regions, corner[:2])
    return region is not None and any(low <= corner[2] <= high for low, high in region.solid)


def within(ring: Sequence[Point], point: Point) -> bool:
    """Whether the ring goes around the point."""
    x, y = point
    odd = False
    for (ax, ay), (bx, by) in _sides(ring):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            odd = not odd
    return odd


def mesh(regions: Sequence[Region]) -> list[Facet]:
    """The closed surface of all regions."""
    facets: list[Facet] = []
    for region, above in walk(regions):
        flat = triangulated(region.ring, [inner.ring for inner in region.inside])
        for low, high in region.solid:
            for a, b, c in flat:
                facets.append(Facet(((*a, low), (*c, low), (*b, low)), region.name, True))
                facets.append(Facet(((*a, high), (*b, high), (*c, high)), region.name, True))
        for low, high, outward in wall_spans(region, above):
            for a, b in _sides(region.ring):
                if not outward:
                    a, b = b, a
                facets.append(Facet(((*a, low), (*b, low), (*b, high)), region.name, False))
                facets.append(Facet(((*a, low), (*b, high), (*a, high)), region.name, False))
    return facets


def wall_spans(region: Region, above: Region | None) -> list[tuple[float, float, bool]]:
    """(low, high, outward) of the walls on the region's ring; outward where the material is inside of it."""
    outer = above.solid if above else ()
    ends = sorted({end for span in (*region.solid, *outer) for end in span})
    walls: list[tuple[float, float, bool]] = []
    for low, high in itertools.pairwise(ends):
        here, there = (any(a <= low and high <= b for a, b in solid) for solid in (region.solid, outer))
        if here != there:
            walls.append((low, high, here))
    return walls


def _own_area(region: Region) -> float:
    return area(region.ring) - math.fsum(area(inner.ring) for inner in region.inside)


def _sides(ring: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    for index, point in enumerate(ring):
        yield point, ring[(index + 1) % len(ring)]


def triangulated(ring: Sequence[Point], holes: Sequence[Sequence[Point]]) -> list[Triangle]:
    """Triangles between the ring and the holes, without new corners: holes are bridged, then ears are cut."""
    polygon, left = list(ring), [list(reversed(hole)) for hole in holes]
    left.sort(key=lambda hole: max(hole))
    while left:
        hole = left.pop()
        polygon = _bridged(polygon, hole, left)
    fixed = {edge for each in (ring, *holes) for a, b in _sides(each) for edge in ((a, b), (b, a))}
    return _well_shaped(_ears(polygon), fixed)


def _well_shaped(triangles: Sequence[Triangle], fixed: set[tuple[Point, Point]]) -> list[Triangle]:
    """Diagonals turned until none has a better one (Lawson's flips), so that no sliver is left that need not be."""
    third = {edge: c for a, b, c in triangles for edge, c in (((a, b), c), ((b, c), a), ((c, a), b))}
    waiting = [edge for edge in third if edge not in fixed]
    while waiting:
        a, b = waiting.pop()
        c, d = third.get((a, b)), third.get((b, a))
        if (a, b) in fixed or c is None or d is None or not _better(a, b, c, d):
            continue
        del third[a, b], third[b, a]
        for x, y, z in ((a, d, c), (d, b, c)):
            third[x, y], third[y, z], third[z, x] = z, x, y
        waiting += [(a, d), (d, b), (b, c), (c, a)]
    found: set[Triangle] = set()
    for (a, b), c in third.items():
        found.add(min((a, b, c), (b, c, a), (c, a, b)))
    return sorted(found)


def _better(a: Point, b: Point, c: Point, d: Point) -> bool:
    """Whether c-d is the better diagonal of the convex quadrangle a d b c: c sees a-b under a wide angle, as d does."""
    if _turn(c, d, b) <= 1e-9 or _turn(d, c, a) <= 1e-9:
        return False
    dot_c = (a[0] - c[0]) * (b[0] - c[0]) + (a[1] - c[1]) * (b[1] - c[1])
    dot_d = (a[0] - d[0]) * (b[0] - d[0]) + (a[1] - d[1]) * (b[1] - d[1])
    return _turn(c, a, b) * dot_d + _turn(d, b, a) * dot_c < -1e-9


def _bridged(polygon: list[Point], hole: list[Point], others: Sequence[Sequence[Point]]) -> list[Point]:
    """The polygon with a slit from its nearest corner in sight to the hole's rightmost one."""
    start = max(range(len(hole)), key=lambda index: hole[index])
    p = hole[start]
    sides = [*_sides(polygon), *_sides(hole), *(side for other in others for side in _sides(other))]
    for index in sorted(range(len(polygon)), key=lambda index: (math.dist(polygon[index], p), index)):
        before, q, after = polygon[index - 1], polygon[index], polygon[(index + 1) % len(polygon)]
        if _in_cone(before, q, after, p) and not any(_blocks(p, q, a, b) for a, b in sides):
            around = hole[start:] + hole[:start]
            return [*polygon[: index + 1], *around, around[0], *polygon[index:]]
    raise ValueError("a hole lies outside of its ring, or touches another")


def _in_cone(before: Point, q: Point, after: Point, p: Point) -> bool:
    """Whether p lies on the inner side of the corner q."""
    if _turn(q, after, before) >= 0:
        return _turn(q, p, before) > 0 and _turn(p, q, after) > 0
    return not (_turn(q, p, after) >= 0 and _turn(p, q, before) >= 0)


def _blocks(p: Point, q: Point, a: Point, b: Point) -> bool:
    """Whether the side a-b keeps p and q from seeing each other; sharing a corner does not."""
    if a not in (p, q) and abs(_turn(p, q, a)) < 1e-9:
        dot = (a[0] - p[0]) * (q[0] - p[0]) + (a[1] - p[1]) * (q[1] - p[1])
        if 0 < dot < math.dist(p, q) ** 2:
            return True
    if a in (p, q) or b in (p, q):
        return False
    return _turn(p, q, a) * _turn(p, q, b) < 0 and _turn(a, b, p) * _turn(a, b, q) < 0


def _turn(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def _in_triangle(p: Point, a: Point, b: Point, c: Point) -> bool:
    turns = _turn(a, b, p), _turn(b, c, p), _turn(c, a, p)
    return min(turns) >= -1e-12 or max(turns) <= 1e-12


def _ears(polygon: list[Point]) -> list[Triangle]:
    """The best-shaped ear first, so that slivers are rare."""
    after = [(index + 1) % len(polygon) for index in range(len(polygon))]
    before = [(index - 1) % len(polygon) for index in range(len(polygon))]
    left = set(range(len(polygon)))

    def quality(index: int) -> float:
        a, b, c = polygon[before[index]], polygon[index], polygon[after[index]]
        twice = _turn(a, b, c)
        if twice <= 1e-9:
            return -1.0
        x0, x1 = min(a[0], b[0], c[0]), max(a[0], b[0], c[0])
        y0, y1 = min(a[1], b[1], c[1]), max(a[1], b[1], c[1])
        for other in left:
            point = polygon[other]
            if (
                x0 <= point[0] <= x1
                and y0 <= point[1] <= y1
                and point not in (a, b, c)
                and _in_triangle(point, a, b, c)
            ):
                return -1.0
        return twice / max(math.dist(a, b), math.dist(b, c), math.dist(c, a)) ** 2

    scores = {index: quality(index) for index in left}
    triangles: list[Triangle] = []
    while len(left) > 3:
        index = max(scores, key=lambda each: (scores[each], -each))
        if scores[index] <= 0.0:
            scores = {each: quality(each) for each in left}
            index = max(scores, key=lambda each: (scores[each], -each))
            if scores[index] <= 0.0:
                raise ValueError("the rings touch or cross: no ear is left")
        first, last = before[index], after[index]
        triangles.append((polygon[first], polygon[index], polygon[last]))
        left.remove(index)
        del scores[index]
        after[first], before[last] = last, first
        scores[first], scores[last] = quality(first), quality(last)
    a = min(left)
    triangles.append((polygon[a], polygon[after[a]], polygon[after[after[a]]]))
    return triangles
