"""Triangle meshes of simple solids, and the convex pieces that they are made of.

Every face is wound so that its normal points out. A convex solid is its own only piece; a tube is one closed mesh,
made of as many convex sectors as it has sides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...parts.poses import Pose, Vec, placed

Face = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Solid:
    """A closed triangle mesh."""

    vertices: tuple[Vec, ...]
    faces: tuple[Face, ...]

    def at(self, pose: Pose) -> Solid:
        """The same solid elsewhere; coordinates rounded to a micrometre."""
        moved = (placed(pose, vertex) for vertex in self.vertices)
        return Solid(vertices=tuple((round(x, 6), round(y, 6), round(z, 6)) for x, y, z in moved), faces=self.faces)


def box(size: Vec) -> Solid:
    """Centred on the origin."""
    a, b, c = (value / 2.0 for value in size)
    vertices = tuple((x, y, z) for x in (-a, a) for y in (-b, b) for z in (-c, c))
    quads = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    return Solid(vertices=vertices, faces=tuple(face for quad in quads for face in _quad(*quad)))


def frustum(low_radius: float, high_radius: float, height: float, *, sides: int) -> Solid:
    """Along Z, centred on the origin; a cylinder or a regular prism where both radii (to the corners) agree."""
    vertices = [*_circle(low_radius, -height / 2.0, sides), *_circle(high_radius, height / 2.0, sides)]
    faces = [face for i in range(sides) for face in _quad(i, (i + 1) % sides, sides + (i + 1) % sides, sides + i)]
    faces += [(0, i + 1, i) for i in range(1, sides - 1)]
    faces += [(sides, sides + i, sides + i + 1) for i in range(1, sides - 1)]
    return Solid(vertices=tuple(vertices), faces=tuple(faces))


def sphere(radius: float, *, rings: int = 20, sides: int = 40) -> Solid:
    """Centred on the origin."""
    vertices: list[Vec] = [(0.0, 0.0, -radius)]
    for ring in range(1, rings):
        angle = math.pi * ring / rings
        vertices += _circle(radius * math.sin(angle), -radius * math.cos(angle), sides)
    vertices.append((0.0, 0.0, radius))
    top = len(vertices) - 1
    faces: list[Face] = []
    for i in range(sides):
        j = (i + 1) % sides
        faces.append((0, 1 + j, 1 + i))
        for ring in range(rings - 2):
            low, high = 1 + ring * sides, 1 + (ring + 1) * sides
            faces += _quad(low + i, low + j, high + j, high + i)
        faces.append((top - sides + i, top - sides + j, top))
    return Solid(vertices=tuple(vertices), faces=tuple(faces))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tube:
    """A straight or tapered pipe along Z, centred on the origin; radii at the lower and the upper end."""

    outer: tuple[float, float]
    wall: float
    height: float
    sides: int = 16

    def mesh(self) -> Solid:
        """One closed mesh."""
        n, rings = self.sides, self._rings()
        vertices = tuple(vertex for ring in rings for vertex in ring)
        outer_low, outer_high, inner_low, inner_high = (index * n for index in range(4))
        faces: list[Face] = []
        for i in range(n):
            j = (i + 1) % n
            faces += _quad(outer_low + i, outer_low + j, outer_high + j, outer_high + i)
            faces += _quad(inner_low + j, inner_low + i, inner_high + i, inner_high + j)
            faces += _quad(outer_high + i, outer_high + j, inner_high + j, inner_high + i)
            faces += _quad(outer_low + j, outer_low + i, inner_low + i, inner_low + j)
        return Solid(vertices=vertices, faces=tuple(faces))

    def pieces(self) -> list[Solid]:
        """The convex sectors."""
        outer_low, outer_high, inner_low, inner_high = self._rings()
        faces = box((1.0, 1.0, 1.0)).faces
        sectors = []
        for i in range(self.sides):
            j = (i + 1) % self.sides
            corners = (
                inner_low[i], inner_high[i], inner_low[j], inner_high[j],
                outer_low[i], outer_high[i], outer_low[j], outer_high[j],
            )  # fmt: skip
            sectors.append(Solid(vertices=corners, faces=faces))
        return sectors

    def _rings(self) -> list[list[Vec]]:
        half = self.height / 2.0
        return [
            _circle(self.outer[end] - inset, z, self.sides)
            for inset in (0.0, self.wall)
            for end, z in ((0, -half), (1, half))
        ]


def obj_text(solids: Sequence[Solid], *, grouped: bool) -> str:
    """Wavefront OBJ: one object per solid, or all in one."""
    lines = [] if grouped else ["o mesh"]
    offset = 1
    for number, solid in enumerate(solids, start=1):
        if grouped:
            lines.append(f"o part_{number}")
        lines += [f"v {x:.6f} {y:.6f} {z:.6f}" for x, y, z in solid.vertices]
        lines += [f"f {a + offset} {b + offset} {c + offset}" for a, b, c in solid.faces]
        offset += len(solid.vertices)
    return "\n".join(lines) + "\n"


def _circle(radius: float, z: float, sides: int) -> list[Vec]:
    angles = [2.0 * math.pi * index / sides for index in range(sides)]
    return [(radius * math.cos(angle), radius * math.sin(angle), z) for angle in angles]


def _quad(a: int, b: int, c: int, d: int) -> list[Face]:
    return [(a, b, c), (a, c, d)]
