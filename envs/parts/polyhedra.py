"""Closed polygon meshes of everyday things, made in plain Python: turned, built from cells, with handles and spouts.

Every mesh is closed, manifold and turned outwards: each edge is used once in each direction. Points are rounded to
1e-5, so that the same instance has the same bytes everywhere. A face carries a zone, a small number that a family may
turn into a material.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

Point = tuple[float, float, float]
Face = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolyMesh:
    """Points, and faces that name them counter-clockwise as seen from outside.

    Example:
        >>> box((0, 0, 0), (1, 1, 1)).volume()
        1.0
    """

    points: tuple[Point, ...]
    faces: tuple[Face, ...]
    zones: tuple[int, ...]
    """One a face."""

    def volume(self) -> float:
        """Signed, by the divergence theorem."""
        total = 0.0
        for face in self.faces:
            a = self.points[face[0]]
            for b, c in itertools.pairwise(face[1:]):
                total += dot(a, cross(self.points[b], self.points[c])) / 6
        return total

    def bounds(self) -> tuple[Point, Point]:
        """The lowest and the highest corner."""
        columns = list(zip(*self.points, strict=True))
        low, high = [min(column) for column in columns], [max(column) for column in columns]
        return (low[0], low[1], low[2]), (high[0], high[1], high[2])

    def size(self) -> float:
        """The diagonal of the bounding box."""
        return math.dist(*self.bounds())

    def mapped(self, move: Callable[[Point], Point]) -> PolyMesh:
        """The same faces with every point moved; the map must keep the handedness."""
        return replace(self, points=tuple(rounded(move(point)) for point in self.points))

    def with_zones(self, zone: Callable[[Point], int]) -> PolyMesh:
        """Zones anew, from the middles of faces."""
        return replace(self, zones=tuple(zone(self.middle(face)) for face in self.faces))

    def middle(self, face: Face) -> Point:
        """The mean of a face's corners."""
        return mean([self.points[index] for index in face])

    def joined(self, other: PolyMesh) -> PolyMesh:
        """Both, as one mesh of separate surfaces."""
        shift = len(self.points)
        moved = tuple(tuple(index + shift for index in face) for face in other.faces)
        return PolyMesh(points=self.points + other.points, faces=self.faces + moved, zones=self.zones + other.zones)

    def turned_in(self) -> PolyMesh:
        """The surface of a void: every face looks the other way."""
        return replace(self, faces=tuple(face[::-1] for face in self.faces))

    def fault(self) -> str:
        """Why it is not closed and consistently turned; empty if it is."""
        used: set[tuple[int, int]] = set()
        for face in self.faces:
            for edge in zip(face, (*face[1:], face[0]), strict=True):
                if edge in used or edge[0] == edge[1]:
                    return f"edge {edge} is used twice in one direction"
                used.add(edge)
        lone = [edge for edge in used if (edge[1], edge[0]) not in used]
        return f"edge {lone[0]} has one face" if lone else ""


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Sequence[float], b: Sequence[float]) -> Point:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def minus(a: Sequence[float], b: Sequence[float]) -> Point:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def along(a: Sequence[float], b: Sequence[float], far: float) -> Point:
    """`a` moved by `far` times `b`."""
    return (a[0] + b[0] * far, a[1] + b[1] * far, a[2] + b[2] * far)


def unit(a: Sequence[float]) -> Point:
    length = math.sqrt(dot(a, a)) or 1.0
    return (a[0] / length, a[1] / length, a[2] / length)


def mean(points: Sequence[Point]) -> Point:
    count = len(points)
    return (sum(p[0] for p in points) / count, sum(p[1] for p in points) / count, sum(p[2] for p in points) / count)


def rounded(point: Sequence[float]) -> Point:
    return (round(point[0], 5) + 0.0, round(point[1], 5) + 0.0, round(point[2], 5) + 0.0)


def normal_of(points: Sequence[Point]) -> Point:
    """The direction a polygon faces (Newell)."""
    x = y = z = 0.0
    for a, b in zip(points, [*points[1:], points[0]], strict=True):
        x += (a[1] - b[1]) * (a[2] + b[2])
        y += (a[2] - b[2]) * (a[0] + b[0])
        z += (a[0] - b[0]) * (a[1] + b[1])
    return unit((x, y, z))


def steps(low: float, high: float, at_most: float) -> list[float]:
    """Evenly spaced from low to high, both included, no further apart than `at_most`."""
    count = max(1, math.ceil((high - low) / at_most - 1e-9))
    return [low + (high - low) * k / count for k in range(count + 1)]


def refined(lines: Sequence[float], at_most: float) -> list[float]:
    """Grid lines with more between them, so that none are further apart than `at_most`."""
    result = [lines[0]]
    for a, b in itertools.pairwise(lines):
        result += steps(a, b, at_most)[1:]
    return result


def turned(profile: Sequence[tuple[float, float]], sides: int) -> PolyMesh:
    """Turn a profile of (radius, height) about Z; the first side looks along +X.

    It starts and ends on the axis, running up along the outside; or it is a ring that never meets the axis,
    counter-clockwise with the radius to the right.
    """
    on_axis = profile[0][0] == 0
    rows: list[list[int]] = []
    points: list[Point] = []
    for radius, height in profile:
        if radius == 0:
            rows.append([len(points)] * sides)
            points.append(rounded((0, 0, height)))
            continue
        rows.append([len(points) + k for k in range(sides)])
        angles = [2 * math.pi * (k - 0.5) / sides for k in range(sides)]
        points += [rounded((radius * math.cos(t), radius * math.sin(t), height)) for t in angles]
    pairs = list(itertools.pairwise(rows)) + ([] if on_axis else [(rows[-1], rows[0])])
    faces: list[Face] = []
    for below, above in pairs:
        for k in range(sides):
            after = (k + 1) % sides
            corners = (below[k], below[after], above[after], above[k])
            faces.append(tuple(dict.fromkeys(corners)))
    return PolyMesh(points=tuple(points), faces=tuple(faces), zones=(0,) * len(faces))


def from_cells(
    xs: Sequence[float], ys: Sequence[float], zs: Sequence[float], filled: Callable[[float, float, float], bool]
) -> PolyMesh:
    """The surface of the grid cells whose middle is `filled`; cells must not meet in an edge or a corner alone."""
    shape = (len(xs) - 1, len(ys) - 1, len(zs) - 1)
    lines = (xs, ys, zs)
    inside = {
        (i, j, k)
        for i in range(shape[0])
        for j in range(shape[1])
        for k in range(shape[2])
        if filled((xs[i] + xs[i + 1]) / 2, (ys[j] + ys[j + 1]) / 2, (zs[k] + zs[k + 1]) / 2)
    }
    index: dict[tuple[int, int, int], int] = {}
    faces: list[Face] = []
    for cell in sorted(inside):
        for axis in range(3):
            for side in (0, 1):
                beside = list(cell)
                beside[axis] += 1 if side else -1
                if tuple(beside) not in inside:
                    corners = _cell_face(cell, axis, side)
                    faces.append(tuple(index.setdefault(corner, len(index)) for corner in corners))
    points = tuple(rounded([lines[axis][corner[axis]] for axis in range(3)]) for corner in index)
    return PolyMesh(points=points, faces=tuple(faces), zones=(0,) * len(faces))


def _cell_face(cell: tuple[int, int, int], axis: int, side: int) -> list[tuple[int, int, int]]:
    u, v = (axis + 1) % 3, (axis + 2) % 3
    corners: list[tuple[int, int, int]] = []
    for du, dv in ((0, 0), (1, 0), (1, 1), (0, 1)):
        corner = list(cell)
        corner[axis] += side
        corner[u] += du
        corner[v] += dv
        corners.append((corner[0], corner[1], corner[2]))
    return corners if side else corners[::-1]


def box(low: Point, high: Point, at_most: float = math.inf) -> PolyMesh:
    """A block, its faces divided where they are longer than `at_most`."""
    lines = [refined((low[axis], high[axis]), at_most) for axis in range(3)]
    return from_cells(lines[0], lines[1], lines[2], lambda x, y, z: True)


def nearest_face(mesh: PolyMesh, point: Point) -> int:
    """The quad whose middle is nearest."""
    quads = [index for index, face in enumerate(mesh.faces) if len(face) == 4]
    return min(quads, key=lambda index: math.dist(mesh.middle(mesh.faces[index]), point))


def with_handle(
    mesh: PolyMesh, start: int, end: int, path: Sequence[Point], *, across: Point, width: float, thick: float, zone: int
) -> PolyMesh:
    """Draw quad `start` out along `path` and into quad `end`; `across` is perpendicular to the path's plane."""
    points, loop = list(mesh.points), mesh.faces[start]
    rings, before = [loop], mesh.middle(loop)
    stops = [*path, mesh.middle(mesh.faces[end])]
    for at, after in itertools.pairwise(stops):
        heading = unit(minus(after, before))
        side = unit(cross(heading, across))
        square = [
            rounded(along(along(at, across, w * width / 2), side, s * thick / 2))
            for w, s in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ]
        rings.append(_matched(points, rings[-1], square))
        before = at
    rings.append(_fitting(points, rings[-1], mesh.faces[end][::-1]))
    return _drawn(mesh, points, rings, {start, end}, (), zone)


def with_spout(mesh: PolyMesh, start: int, rings: Sequence[Sequence[Point]], zone: int) -> PolyMesh:
    """Draw quad `start` out through rings of four points, and close the last."""
    points = list(mesh.points)
    drawn = [mesh.faces[start]]
    for square in rings:
        drawn.append(_matched(points, drawn[-1], [rounded(point) for point in square]))
    return _drawn(mesh, points, drawn, {start}, (drawn[-1],), zone)


def _matched(points: list[Point], ring: Face, square: Sequence[Point]) -> Face:
    """Add the points of a new ring, in the order that twists least."""
    first = len(points)
    points += square
    names = tuple(range(first, first + len(square)))
    return min(
        (_fitting(points, ring, names), _fitting(points, ring, names[::-1])), key=lambda r: _far(points, ring, r)
    )


def _fitting(points: Sequence[Point], ring: Face, other: Face) -> Face:
    turns = [other[k:] + other[:k] for k in range(len(other))]
    return min(turns, key=lambda turn: _far(points, ring, turn))


def _far(points: Sequence[Point], ring: Face, other: Face) -> float:
    return sum(math.dist(points[a], points[b]) ** 2 for a, b in zip(ring, other, strict=True))


def _drawn(
    mesh: PolyMesh, points: list[Point], rings: Sequence[Face], gone: set[int], caps: Sequence[Face], zone: int
) -> PolyMesh:
    kept = [index for index in range(len(mesh.faces)) if index not in gone]
    new: list[Face] = [*caps]
    for ring, after in itertools.pairwise(rings):
        for k in range(len(ring)):
            following = (k + 1) % len(ring)
            new.append((ring[k], ring[following], after[following], after[k]))
    faces = tuple(mesh.faces[index] for index in kept) + tuple(new)
    zones = tuple(mesh.zones[index] for index in kept) + (zone,) * len(new)
    return PolyMesh(points=tuple(points), faces=faces, zones=zones)
