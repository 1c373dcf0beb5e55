"""Exact measures of prismatic machine parts, computed on the host without a CAD kernel.

A part is a sum of elements (blocks, wedges, coves) less some cuts (bores, stadiums, wedges, coves). Elements of one
sign never overlap in volume, and every cut lies within what was added, so volumes and moments simply add up. Membership
of a point is exact as well, which gives hidden probe points their expected answer.

Units are millimetres. Axes are numbered 0 (X), 1 (Y), 2 (Z); `u` and `v` are the other two axes, in rising order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

Vec = tuple[float, float, float]
Span = tuple[float, float]

_COVE_AREA = 1.0 - math.pi / 4.0
_COVE_CENTROID = (0.5 - math.pi / 4.0 * (1.0 - 4.0 / (3.0 * math.pi))) / _COVE_AREA
_STEP_MM = 1e-4


class Patch(NamedTuple):
    """A place where a plane may show: a point, and the normal out of the material there."""

    point: Vec
    normal: Vec


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """An oriented plane: the points p with normal·p = offset, the normal out of the material."""

    normal: Vec
    offset: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Turned:
    """A cylinder or cone: `radius` is that of the wide end, `half_angle_deg` 0 for a cylinder.

    `point` lies on the axis, with 0 in the axis' own coordinate; `low` and `high` bound the surface along the axis.
    """

    axis: int
    point: Vec
    radius: float
    half_angle_deg: float
    concave: bool
    low: float
    high: float


class Element(Protocol):
    """One signed volume: what a part is made of."""

    @property
    def volume(self) -> float: ...
    @property
    def centroid(self) -> Vec: ...
    def contains(self, point: Vec) -> bool: ...
    def patches(self, added: bool) -> Iterator[Patch]: ...
    def turned(self, added: bool) -> Iterator[Turned]: ...


def vector(axis: int, along: float, u: float, v: float) -> Vec:
    """The vector with `along` on `axis` and `u`, `v` on the two others.

    Example:
        >>> vector(1, 5.0, 1.0, 2.0)
        (1.0, 5.0, 2.0)
    """
    parts = [u, v]
    parts.insert(axis, along)
    return parts[0], parts[1], parts[2]


def split(axis: int, point: Vec) -> Vec:
    """The inverse of `vector`: (along, u, v)."""
    others = [value for index, value in enumerate(point) if index != axis]
    return point[axis], others[0], others[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A box with faces across the axes."""

    low: Vec
    high: Vec

    @property
    def volume(self) -> float:
        return math.prod(high - low for low, high in zip(self.low, self.high, strict=True))

    @property
    def centroid(self) -> Vec:
        x, y, z = ((low + high) / 2.0 for low, high in zip(self.low, self.high, strict=True))
        return x, y, z

    def contains(self, point: Vec) -> bool:
        return all(low <= p <= high for low, p, high in zip(self.low, point, self.high, strict=True))

    def patches(self, added: bool) -> Iterator[Patch]:
        shares = [(index + 0.5) / 12 for index in range(12)]
        for axis in range(3):
            low, u0, v0 = split(axis, self.low)
            high, u1, v1 = split(axis, self.high)
            for share_u in shares:
                for share_v in shares:
                    u, v = u0 + (u1 - u0) * share_u, v0 + (v1 - v0) * share_v
                    yield Patch(vector(axis, low, u, v), vector(axis, -1.0, 0.0, 0.0))
                    yield Patch(vector(axis, high, u, v), vector(axis, 1.0, 0.0, 0.0))

    def turned(self, added: bool) -> Iterator[Turned]:
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Wedge:
    """A right-angled triangle along `axis`: a gusset when added, a chamfer when cut."""

    axis: int
    corner: tuple[float, float]
    signs: tuple[int, int]
    legs: tuple[float, float]
    span: Span

    @property
    def volume(self) -> float:
        return self.legs[0] * self.legs[1] / 2.0 * (self.span[1] - self.span[0])

    @property
    def centroid(self) -> Vec:
        u, v = (c + s * leg / 3.0 for c, s, leg in zip(self.corner, self.signs, self.legs, strict=True))
        return vector(self.axis, sum(self.span) / 2.0, u, v)

    def contains(self, point: Vec) -> bool:
        along, u, v = split(self.axis, point)
        du, dv = (u - self.corner[0]) * self.signs[0], (v - self.corner[1]) * self.signs[1]
        in_triangle = du >= 0 and dv >= 0 and du / self.legs[0] + dv / self.legs[1] <= 1.0
        return in_triangle and self.span[0] <= along <= self.span[1]

    def patches(self, added: bool) -> Iterator[Patch]:
        middle = sum(self.span) / 2.0
        slope = math.hypot(1.0 / self.legs[0], 1.0 / self.legs[1])
        outward = 1.0 if added else -1.0
        nu, nv = (outward * s / leg / slope for s, leg in zip(self.signs, self.legs, strict=True))
        for share in (0.3, 0.5, 0.7):
            u = self.corner[0] + self.signs[0] * self.legs[0] * share
            v = self.corner[1] + self.signs[1] * self.legs[1] * (1.0 - share)
            yield Patch(vector(self.axis, middle, u, v), vector(self.axis, 0.0, nu, nv))
        _, u, v = split(self.axis, self.centroid)
        yield Patch(vector(self.axis, self.span[0], u, v), vector(self.axis, -outward, 0.0, 0.0))
        yield Patch(vector(self.axis, self.span[1], u, v), vector(self.axis, outward, 0.0, 0.0))

    def turned(self, added: bool) -> Iterator[Turned]:
        return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Cove:
    """A square corner less a quarter disc, along `axis`: an inner fillet when added, an outer rounding when cut."""

    axis: int
    corner: tuple[float, float]
    signs: tuple[int, int]
    radius: float
    span: Span

    @property
    def volume(self) -> float:
        return _COVE_AREA * self.radius**2 * (self.span[1] - self.span[0])

    @property
    def centroid(self) -> Vec:
        u, v = (c + s * self.radius * _COVE_CENTROID for c, s in zip(self.corner, self.signs, strict=True))
        return vector(self.axis, sum(self.span) / 2.0, u, v)

    def contains(self, point: Vec) -> bool:
        along, u, v = split(self.axis, point)
        du, dv = (u - self.corner[0]) * self.signs[0], (v - self.corner[1]) * self.signs[1]
        in_square = 0 <= du <= self.radius and 0 <= dv <= self.radius
        outside_disc = math.hypot(du - self.radius, dv - self.radius) >= self.radius
        return in_square and outside_disc and self.span[0] <= along <= self.span[1]

    def patches(self, added: bool) -> Iterator[Patch]:
        return iter(())

    def turned(self, added: bool) -> Iterator[Turned]:
        u, v = (c + s * self.radius for c, s in zip(self.corner, self.signs, strict=True))
        yield Turned(
            axis=self.axis,
            point=vector(self.axis, 0.0, u, v),
            radius=self.radius,
            half_angle_deg=0.0,
            concave=added,
            low=self.span[0],
            high=self.span[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bore:
    """A turned cut along `axis`: a cylinder where both radii agree, else a cone."""

    axis: int
    centre: tuple[float, float]
    radii: tuple[float, float]
    """At `span[0]` and at `span[1]`."""
    span: Span

    @property
    def volume(self) -> float:
        a, b = self.radii
        return math.pi / 3.0 * (a * a + a * b + b * b) * (self.span[1] - self.span[0])

    @property
    def centroid(self) -> Vec:
        a, b = self.radii
        share = (a * a + 2 * a * b + 3 * b * b) / (4.0 * (a * a + a * b + b * b))
        return vector(self.axis, self.span[0] + share * (self.span[1] - self.span[0]), *self.centre)

    def contains(self, point: Vec) -> bool:
        along, u, v = split(self.axis, point)
        if not self.span[0] <= along <= self.span[1]:
            return False
        share = (along - self.span[0]) / (self.span[1] - self.span[0])
        radius = self.radii[0] + share * (self.radii[1] - self.radii[0])
        return math.hypot(u - self.centre[0], v - self.centre[1]) <= radius

    def patches(self, added: bool) -> Iterator[Patch]:
        inward = 1.0 if not added else -1.0
        for end, along in enumerate(self.span):
            normal = vector(self.axis, inward if end == 0 else -inward, 0.0, 0.0)
            for share in (0.6, 0.8, 0.9, 0.97):
                u = self.centre[0] + share * self.radii[end]
                yield Patch(vector(self.axis, along, u, self.centre[1]), normal)

    def turned(self, added: bool) -> Iterator[Turned]:
        slope = (self.radii[1] - self.radii[0]) / (self.span[1] - self.span[0])
        yield Turned(
            axis=self.axis,
            point=vector(self.axis, 0.0, *self.centre),
            radius=max(self.radii),
            half_angle_deg=math.degrees(math.atan(abs(slope))),
            concave=not added,
            low=self.span[0],
            high=self.span[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stadium:
    """A slot with round ends, cut along `axis`; `along_u` says which of the two other axes it is long in."""

    axis: int
    centre: tuple[float, float]
    length: float
    """Over all, round ends included."""
    width: float
    along_u: bool
    span: Span

    @property
    def volume(self) -> float:
        area = (self.length - self.width) * self.width + math.pi / 4.0 * self.width**2
        return area * (self.span[1] - self.span[0])

    @property
    def centroid(self) -> Vec:
        return vector(self.axis, sum(self.span) / 2.0, *self.centre)

    def contains(self, point: Vec) -> bool:
        along, u, v = split(self.axis, point)
        du, dv = abs(u - self.centre[0]), abs(v - self.centre[1])
        long, short = (du, dv) if self.along_u else (dv, du)
        over = max(0.0, long - (self.length - self.width) / 2.0)
        return math.hypot(over, short) <= self.width / 2.0 and self.span[0] <= along <= self.span[1]

    def patches(self, added: bool) -> Iterator[Patch]:
        for side in (-1.0, 1.0):
            du, dv = (0.0, side) if self.along_u else (side, 0.0)
            u, v = self.centre[0] + du * self.width / 2.0, self.centre[1] + dv * self.width / 2.0
            normal = vector(self.axis, 0.0, -du, -dv)
            for share in (0.2, 0.5, 0.8):
                yield Patch(vector(self.axis, self.span[0] + share * (self.span[1] - self.span[0]), u, v), normal)

    def turned(self, added: bool) -> Iterator[Turned]:
        half = (self.length - self.width) / 2.0
        for side in (-half, half):
            du, dv = (side, 0.0) if self.along_u else (0.0, side)
            yield Turned(
                axis=self.axis,
                point=vector(self.axis, 0.0, self.centre[0] + du, self.centre[1] + dv),
                radius=self.width / 2.0,
                half_angle_deg=0.0,
                concave=True,
                low=self.span[0],
                high=self.span[1],
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is added, less what is cut.

    Example:
        >>> plate = Block(low=(0.0, 0.0, 0.0), high=(10.0, 10.0, 2.0))
        >>> part = Part(added=(plate,), cut=(Bore(axis=2, centre=(5.0, 5.0), radii=(1.0, 1.0), span=(0.0, 2.0)),))
        >>> round(part.volume, 3), part.contains((5.0, 5.0, 1.0)), len(part.planes()), len(part.turned())
        (193.717, False, 6, 1)
    """

    added: Sequence[Element]
    cut: Sequence[Element]

    def _signed(self) -> Iterator[tuple[float, Element]]:
        yield from ((1.0, element) for element in self.added)
        yield from ((-1.0, element) for element in self.cut)

    @property
    def volume(self) -> float:
        return math.fsum(sign * element.volume for sign, element in self._signed())

    @property
    def centroid(self) -> Vec:
        x, y, z = (
            math.fsum(sign * element.volume * element.centroid[axis] for sign, element in self._signed()) / self.volume
            for axis in range(3)
        )
        return x, y, z

    def bounds(self) -> tuple[Vec, Vec]:
        """Of the blocks, which reach furthest in every part made here."""
        blocks = [element for element in self.added if isinstance(element, Block)]
        x0, y0, z0 = (min(block.low[axis] for block in blocks) for axis in range(3))
        x1, y1, z1 = (max(block.high[axis] for block in blocks) for axis in range(3))
        return (x0, y0, z0), (x1, y1, z1)

    def contains(self, point: Vec) -> bool:
        return any(e.contains(point) for e in self.added) and not any(e.contains(point) for e in self.cut)

    def settled(self, point: Vec, margin: float) -> bool:
        """Whether all of the 26 neighbours at `margin` give the same answer as the point."""
        here = self.contains(point)
        steps = (-margin, 0.0, margin)
        x, y, z = point
        return all(self.contains((x + a, y + b, z + c)) == here for a in steps for b in steps for c in steps)

    def planes(self) -> list[Plane]:
        """The distinct oriented planes that show on the finished part."""
        found: dict[tuple[float, ...], Plane] = {}
        for added, elements in ((True, self.added), (False, self.cut)):
            for patch in (patch for element in elements for patch in element.patches(added)):
                offset = math.fsum(n * p for n, p in zip(patch.normal, patch.point, strict=True))
                key = tuple(round(value, 6) + 0.0 for value in (*patch.normal, offset))
                if key not in found and self._shows(patch):
                    found[key] = Plane(normal=patch.normal, offset=offset)
        return list(found.values())

    def _shows(self, patch: Patch) -> bool:
        ahead, behind = (
            (
                patch.point[0] + step * patch.normal[0],
                patch.point[1] + step * patch.normal[1],
                patch.point[2] + step * patch.normal[2],
            )
            for step in (_STEP_MM, -_STEP_MM)
        )
        return self.contains(behind) and not self.contains(ahead)

    def turned(self) -> list[Turned]:
        """The distinct cylinders and cones; pieces of one surface are merged."""
        found: dict[tuple[object, ...], Turned] = {}
        for added, elements in ((True, self.added), (False, self.cut)):
            for piece in (piece for element in elements for piece in element.turned(added)):
                key = (
                    piece.axis,
                    *(round(value, 6) + 0.0 for value in (*piece.point, piece.radius, piece.half_angle_deg)),
                    piece.concave,
                )
                known = found.get(key, piece)
                found[key] = Turned(
                    axis=piece.axis,
                    point=piece.point,
                    radius=piece.radius,
                    half_angle_deg=piece.half_angle_deg,
                    concave=piece.concave,
                    low=min(known.low, piece.low),
                    high=max(known.high, piece.high),
                )
        return list(found.values())
