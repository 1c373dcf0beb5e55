"""What a drawing of a prismatic part shows, computed exactly on the host: visible and hidden lines of three views.

The part is a sum of convex elements less some cuts (`prismatic.Block`, `Wedge`, and `Bore` as a cylinder). Every edge
of the finished part lies on an edge of some element, or on the outline of a bore seen from the side; each is cut
wherever anything could begin or end, and every piece is judged by its middle. Lines where surfaces join tangentially
are none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from .prismatic import Block, Bore, Part, Vec, Wedge, split, vector

_NEAR = 1e-3
_RING = [(math.cos(turn), math.sin(turn)) for turn in (2.0 * math.pi * (index + 0.37) / 32 for index in range(32))]

Flat = tuple[float, float]


class View(StrEnum):
    """From where one looks; in all of them Z or Y points up."""

    FRONT = auto()
    """From -Y: X to the right, Z up."""
    TOP = auto()
    """From above: X to the right, Y up."""
    RIGHT = auto()
    """From +X: Y to the right, Z up."""

    @property
    def depth(self) -> int:
        """The axis one looks along."""
        return {View.FRONT: 1, View.TOP: 2, View.RIGHT: 0}[self]

    @property
    def toward(self) -> int:
        """The sign of the way to the eye on that axis."""
        return -1 if self is View.FRONT else 1

    def seen(self, point: Vec) -> Flat:
        """Where a point shows."""
        _, u, v = split(self.depth, point)
        return u, v


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight piece of a view."""

    start: Flat
    end: Flat
    hidden: bool


@dataclass(frozen=True, slots=True)
class Curve:
    """A piece of a circle, counter-clockwise from `start_deg`; 360° is a whole one."""

    centre: Flat
    radius: float
    start_deg: float
    sweep_deg: float
    hidden: bool


Line = Stroke | Curve


def lines(part: Part, view: View) -> list[Line]:
    """All lines of a view; a hidden one may lie under a visible one."""
    found: dict[Line, None] = {}
    for element in (*part.added, *part.cut):
        for start, end in _straight(element):
            for piece in _pieces(part, view, start, end):
                if _is_edge(part, _middle(*piece), _along(*piece)):
                    _keep(found, part, view, piece)
        if isinstance(element, Bore):
            for piece in _outline(element, view):
                for part_piece in _pieces(part, view, *piece):
                    if _has_wall(part, element, _middle(*part_piece)):
                        _keep(found, part, view, part_piece)
            _keep_circles(found, part, view, element)
    return list(found)


def _keep(found: dict[Line, None], part: Part, view: View, piece: tuple[Vec, Vec]) -> None:
    start, end = view.seen(piece[0]), view.seen(piece[1])
    if math.dist(start, end) > 1e-6:
        a, b = sorted((_rounded(start), _rounded(end)))
        found[Stroke(a, b, not _is_visible(part, view, _middle(*piece), _along(*piece)))] = None


def _rounded(point: Flat) -> Flat:
    return round(point[0], 6) + 0.0, round(point[1], 6) + 0.0


def _middle(start: Vec, end: Vec) -> Vec:
    x, y, z = ((a + b) / 2.0 for a, b in zip(start, end, strict=True))
    return x, y, z


def _along(start: Vec, end: Vec) -> Vec:
    length = math.dist(start, end)
    x, y, z = ((b - a) / length for a, b in zip(start, end, strict=True))
    return x, y, z


def _straight(element: object) -> Iterator[tuple[Vec, Vec]]:
    if isinstance(element, Block):
        corners = list(itertools.product(*zip(element.low, element.high, strict=True)))
        for a, b in itertools.combinations(corners, 2):
            if sum(p != q for p, q in zip(a, b, strict=True)) == 1:
                yield a, b
    elif isinstance(element, Wedge):
        (u, v), (su, sv), (lu, lv) = element.corner, element.signs, element.legs
        triangle = [(u, v), (u + su * lu, v), (u, v + sv * lv)]
        low, high = element.span
        for point in triangle:
            yield vector(element.axis, low, *point), vector(element.axis, high, *point)
        for a, b in itertools.combinations(triangle, 2):
            for along in (low, high):
                yield vector(element.axis, along, *a), vector(element.axis, along, *b)


def _outline(bore: Bore, view: View) -> Iterator[tuple[Vec, Vec]]:
    """The two lines of a bore seen from the side."""
    if bore.axis == view.depth:
        return
    for side in (-bore.radii[0], bore.radii[0]):
        first_is_depth = next(axis for axis in range(3) if axis != bore.axis) == view.depth
        du, dv = (0.0, side) if first_is_depth else (side, 0.0)
        u, v = bore.centre[0] + du, bore.centre[1] + dv
        yield vector(bore.axis, bore.span[0], u, v), vector(bore.axis, bore.span[1], u, v)


def _has_wall(part: Part, bore: Bore, point: Vec) -> bool:
    along, u, v = split(bore.axis, point)
    outward = ((u - bore.centre[0]) / bore.radii[0], (v - bore.centre[1]) / bore.radii[0])
    beyond, before = (
        vector(bore.axis, along, u + step * outward[0], v + step * outward[1]) for step in (_NEAR, -_NEAR)
    )
    return part.contains(beyond) and not part.contains(before)


def _keep_circles(found: dict[Line, None], part: Part, view: View, bore: Bore) -> None:
    radius = bore.radii[0]
    for along in bore.span:
        if bore.axis == view.depth:
            _keep_arcs(found, part, view, bore, along)
            continue
        sideways = next(axis for axis in range(3) if axis not in (bore.axis, view.depth))
        centre = vector(bore.axis, along, *bore.centre)
        ends = [tuple(c + step * (axis == sideways) for axis, c in enumerate(centre)) for step in (-radius, radius)]
        (ax, ay, az), (bx, by, bz) = ends
        for start, end in _pieces(part, view, (ax, ay, az), (bx, by, bz)):
            _keep_rim(found, part, view, bore, start, end)


def _keep_rim(found: dict[Line, None], part: Part, view: View, bore: Bore, start: Vec, end: Vec) -> None:
    """A circle seen edge-on: its near and far half both show as this line."""
    middle = _middle(start, end)
    _, u, v = split(bore.axis, middle)
    off = (u - bore.centre[0]) + (v - bore.centre[1])
    half = math.sqrt(max(0.0, bore.radii[0] ** 2 - off**2))
    for side in (-1.0, 1.0):
        x, y, z = (c + side * half * (axis == view.depth) for axis, c in enumerate(middle))
        _, pu, pv = split(bore.axis, (x, y, z))
        tangent = vector(bore.axis, 0.0, -(pv - bore.centre[1]) / bore.radii[0], (pu - bore.centre[0]) / bore.radii[0])
        if _is_edge(part, (x, y, z), tangent):
            a, b = sorted((_rounded(view.seen(start)), _rounded(view.seen(end))))
            found[Stroke(a, b, not _is_visible(part, view, (x, y, z), tangent))] = None


def _keep_arcs(found: dict[Line, None], part: Part, view: View, bore: Bore, along: float) -> None:
    marks: list[bool | None] = []
    for octant in range(8):
        turn = math.radians(45.0 * octant + 22.5)
        u, v = bore.centre[0] + bore.radii[0] * math.cos(turn), bore.centre[1] + bore.radii[0] * math.sin(turn)
        point, tangent = vector(bore.axis, along, u, v), vector(bore.axis, 0.0, -math.sin(turn), math.cos(turn))
        real = _is_edge(part, point, tangent)
        marks.append(not _is_visible(part, view, point, tangent) if real else None)
    centre = _rounded(view.seen(vector(bore.axis, along, *bore.centre)))
    if None not in marks and len(set(marks)) == 1:
        found[Curve(centre, bore.radii[0], 0.0, 360.0, bool(marks[0]))] = None
        return
    first = next(index for index in range(8) if marks[index] != marks[index - 1]) if len(set(marks)) > 1 else 0
    for mark, group in itertools.groupby(range(first, first + 8), key=lambda index: marks[index % 8]):
        octants = list(group)
        if mark is not None:
            found[Curve(centre, bore.radii[0], 45.0 * (octants[0] % 8), 45.0 * len(octants), mark)] = None


def _pieces(part: Part, view: View, start: Vec, end: Vec) -> Iterator[tuple[Vec, Vec]]:
    """The segment, cut wherever an element's side, outline or circle crosses it in space or in the view."""
    shares = {0.0, 1.0}
    spans = [b - a for a, b in zip(start, end, strict=True)]
    for element in (*part.added, *part.cut):
        for axis, value in _planes(element):
            if abs(spans[axis]) > 1e-9:
                shares.add((value - start[axis]) / spans[axis])
        if isinstance(element, Bore):
            shares.update(_circle_shares(element, start, spans))
        elif isinstance(element, Wedge):
            shares.update(_slope_shares(element, start, spans))
    cuts = sorted(share for share in shares if -1e-9 <= share <= 1.0 + 1e-9)
    points = [_at(start, spans, share) for share in cuts]
    for a, b in itertools.pairwise(points):
        if math.dist(a, b) > 1e-6:
            yield a, b


def _at(start: Vec, spans: Sequence[float], share: float) -> Vec:
    x, y, z = (a + share * span for a, span in zip(start, spans, strict=True))
    return x, y, z


def _planes(element: object) -> Iterator[tuple[int, float]]:
    if isinstance(element, Block):
        for axis in range(3):
            yield axis, element.low[axis]
            yield axis, element.high[axis]
    elif isinstance(element, Bore):
        others = [axis for axis in range(3) if axis != element.axis]
        for along in element.span:
            yield element.axis, along
        for axis, centre in zip(others, element.centre, strict=True):
            yield axis, centre - element.radii[0]
            yield axis, centre + element.radii[0]
    elif isinstance(element, Wedge):
        others = [axis for axis in range(3) if axis != element.axis]
        for along in element.span:
            yield element.axis, along
        for axis, corner, sign, leg in zip(others, element.corner, element.signs, element.legs, strict=True):
            yield axis, corner
            yield axis, corner + sign * leg


def _circle_shares(bore: Bore, start: Vec, spans: Sequence[float]) -> Iterator[float]:
    _, u, v = split(bore.axis, start)
    du, dv = (span for axis, span in enumerate(spans) if axis != bore.axis)
    pu, pv = u - bore.centre[0], v - bore.centre[1]
    a, b, c = du * du + dv * dv, pu * du + pv * dv, pu * pu + pv * pv - bore.radii[0] ** 2
    if a > 1e-12 and b * b - a * c > 0.0:
        root = math.sqrt(b * b - a * c)
        yield (-b - root) / a
        yield (-b + root) / a


def _slope_shares(wedge: Wedge, start: Vec, spans: Sequence[float]) -> Iterator[float]:
    _, u, v = split(wedge.axis, start)
    du, dv = (span for axis, span in enumerate(spans) if axis != wedge.axis)
    (cu, cv), (su, sv), (lu, lv) = wedge.corner, wedge.signs, wedge.legs
    rate = su * du / lu + sv * dv / lv
    if abs(rate) > 1e-12:
        yield (1.0 - su * (u - cu) / lu - sv * (v - cv) / lv) / rate


def _across(along: Vec) -> tuple[Vec, Vec]:
    """Two unit vectors across a direction."""
    helper = (0.0, 0.0, 1.0) if abs(along[2]) < 0.9 else (1.0, 0.0, 0.0)
    first = _cross(along, helper)
    length = math.hypot(*first)
    unit = (first[0] / length, first[1] / length, first[2] / length)
    return unit, _cross(along, unit)


def _cross(a: Vec, b: Vec) -> Vec:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _is_edge(part: Part, point: Vec, along: Vec) -> bool:
    """Whether material around the point, in the plane across, is neither all, nothing, nor one flat half."""
    u, v = _across(along)
    marks: list[bool] = []
    for c, s in _RING:
        x, y, z = (p + _NEAR * (c * a + s * b) for p, a, b in zip(point, u, v, strict=True))
        marks.append(part.contains((x, y, z)))
    changes = sum(here != before for here, before in zip(marks, [marks[-1], *marks[:-1]], strict=True))
    return changes > 0 and not (changes == 2 and abs(sum(marks) - 16) <= 1)


def _is_visible(part: Part, view: View, point: Vec, along: Vec) -> bool:
    """Whether a ray to the eye is free on either side of the line, as close to it as may be."""
    eye = vector(view.depth, float(view.toward), 0.0, 0.0)
    side = _cross(along, eye)
    length = math.hypot(*side)
    if length < 1e-9:
        return True
    for sign in (-_NEAR, _NEAR):
        x, y, z = (p + sign * s / length for p, s in zip(point, side, strict=True))
        if _is_free(part, view, (x, y, z)):
            return True
    return False


def _is_free(part: Part, view: View, point: Vec) -> bool:
    """Whether no material lies between the point and the eye."""
    axis, here = view.depth, point[view.depth]
    filled = [span for element in part.added if (span := _ray(element, axis, point))]
    emptied = [span for element in part.cut if (span := _ray(element, axis, point))]
    marks = sorted({end for span in (*filled, *emptied) for end in span})
    for low, high in itertools.pairwise(marks):
        ahead = high - max(low, here) if view.toward > 0 else min(high, here) - low
        middle = (low + high) / 2.0
        inside = any(a < middle < b for a, b in filled) and not any(a < middle < b for a, b in emptied)
        if inside and ahead > 2.0 * _NEAR:
            return False
    return True


def _ray(element: object, axis: int, point: Vec) -> Flat | None:
    """Where the line through the point along an axis is in the element."""
    if isinstance(element, Block):
        inside = all(
            low <= p <= high
            for index, (low, p, high) in enumerate(zip(element.low, point, element.high, strict=True))
            if index != axis
        )
        return (element.low[axis], element.high[axis]) if inside else None
    if isinstance(element, Bore):
        return _ray_in_bore(element, axis, point)
    return _ray_in_wedge(element, axis, point) if isinstance(element, Wedge) else None


def _ray_in_bore(bore: Bore, axis: int, point: Vec) -> Flat | None:
    along, u, v = split(bore.axis, point)
    du, dv = u - bore.centre[0], v - bore.centre[1]
    if axis == bore.axis:
        return bore.span if math.hypot(du, dv) <= bore.radii[0] else None
    first = next(index for index in range(3) if index != bore.axis)
    across, centre = (dv, bore.centre[0]) if axis == first else (du, bore.centre[1])
    if not bore.span[0] <= along <= bore.span[1] or abs(across) > bore.radii[0]:
        return None
    half = math.sqrt(bore.radii[0] ** 2 - across**2)
    return centre - half, centre + half


def _ray_in_wedge(wedge: Wedge, axis: int, point: Vec) -> Flat | None:
    along, u, v = split(wedge.axis, point)
    shares = [
        (value - c) * s / leg for value, c, s, leg in zip((u, v), wedge.corner, wedge.signs, wedge.legs, strict=True)
    ]
    if axis == wedge.axis:
        return wedge.span if min(shares) >= 0.0 and sum(shares) <= 1.0 else None
    index = 0 if axis == next(other for other in range(3) if other != wedge.axis) else 1
    other = shares[1 - index]
    if not wedge.span[0] <= along <= wedge.span[1] or not 0.0 <= other <= 1.0:
        return None
    tip = wedge.corner[index] + wedge.signs[index] * wedge.legs[index] * (1.0 - other)
    return min(wedge.corner[index], tip), max(wedge.corner[index], tip)
