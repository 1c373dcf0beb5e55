"""A clean mesh and its broken twin: which faces were left alone, and where the shape has to be restored.

A face of the clean mesh is *taken* once a fault touches it or a neighbour, so that two faults never share a place. What
was not taken away or moved is *kept*: a repair that is no remesh finds it again, corner by corner.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core import Rng
from ...parts.polyhedra import Face, Point, PolyMesh, cross, dot, mean, minus, normal_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenFace:
    """A face of the broken mesh; `origin` is the clean face it comes from, -1 for none."""

    corners: Face
    origin: int


@dataclass(slots=True, kw_only=True)
class Patient:
    """What the faults write into."""

    clean: PolyMesh
    rng: Rng
    mirror: int = -1
    """The axis across which the clean mesh is its own mirror image; -1 where that may not be used."""
    points: list[Point] = field(default_factory=list[Point])
    faces: list[BrokenFace] = field(default_factory=list[BrokenFace])
    edges: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    taken: set[int] = field(default_factory=set[int])
    changed: set[int] = field(default_factory=set[int])
    """Clean faces that are not to be found again as they were."""
    patches: list[list[int]] = field(default_factory=list[list[int]])
    """Clean faces whose surface has to be restored, a list for each place."""
    spikes: list[tuple[Point, Point]] = field(default_factory=list[tuple[Point, Point]])
    """Where a point is, and where it belongs."""
    kinds: list[str] = field(default_factory=list[str])
    around: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    """Point → the clean faces at it."""
    twins: dict[int, int] = field(default_factory=dict[int, int])
    """Clean face → its mirror image."""
    size: float = field(init=False)
    """Of the clean mesh."""

    def __post_init__(self) -> None:
        self.size = self.clean.size()
        self.points = list(self.clean.points)
        self.faces = [BrokenFace(corners=face, origin=index) for index, face in enumerate(self.clean.faces)]
        around: dict[int, set[int]] = defaultdict(set)
        for index, face in enumerate(self.clean.faces):
            for corner in face:
                around[corner].add(index)
        self.around = dict(around)
        if self.mirror >= 0:
            middles = {self._key(self.clean.middle(face)): index for index, face in enumerate(self.clean.faces)}
            for index, face in enumerate(self.clean.faces):
                there = self._mirrored(self.clean.middle(face))
                self.twins[index] = middles.get(self._key(there), index)

    def _key(self, point: Point) -> tuple[int, int, int]:
        step = 2e-4 * self.size
        return (round(point[0] / step), round(point[1] / step), round(point[2] / step))

    def _mirrored(self, point: Point) -> Point:
        values = [-value if axis == self.mirror else value for axis, value in enumerate(point)]
        return (values[0], values[1], values[2])

    def neighbours(self, face: int) -> set[int]:
        """Faces that share an edge with it."""
        corners = self.clean.faces[face]
        pairs = zip(corners, (*corners[1:], corners[0]), strict=True)
        return {other for a, b in pairs for other in self.around[a] & self.around[b]} - {face}

    def ring(self, faces: Iterable[int]) -> set[int]:
        """The faces, and all that share a point with them."""
        return {other for face in faces for corner in self.clean.faces[face] for other in self.around[corner]}

    def free(self, faces: Iterable[int]) -> bool:
        """Whether a fault may be put there: neither these faces nor those around are taken."""
        return not (self.ring(faces) & self.taken)

    def take(self, faces: Iterable[int], *, twins: bool = False) -> None:
        """Mark the place of a fault, and where it is to be restored from its mirror image, that too."""
        ring = self.ring(faces)
        self.taken |= ring
        if twins:
            self.taken |= self.ring(self.twins[face] for face in faces)

    def grown(self, seed: int, count: int) -> list[int]:
        """A patch of up to `count` faces about a seed, nearest first."""
        patch, middle = [seed], self.clean.middle(self.clean.faces[seed])
        while len(patch) < count:
            edge = sorted({other for face in patch for other in self.neighbours(face)} - set(patch))
            if not edge:
                break
            patch.append(min(edge, key=lambda face: math.dist(self.clean.middle(self.clean.faces[face]), middle)))
        return patch

    def outline(self, patch: Sequence[int]) -> list[int] | None:
        """The points round a patch in order; None unless it is one disc."""
        directed: set[tuple[int, int]] = set()
        for face in patch:
            corners = self.clean.faces[face]
            directed |= set(zip(corners, (*corners[1:], corners[0]), strict=True))
        after: dict[int, int] = {}
        for a, b in sorted(directed):
            if (b, a) not in directed:
                if a in after:
                    return None
                after[a] = b
        if not after:
            return None
        loop = [min(after)]
        while after[loop[-1]] != loop[0]:
            loop.append(after[loop[-1]])
            if len(loop) > len(after):
                return None
        points = {corner for face in patch for corner in self.clean.faces[face]}
        edges = (len(directed) + len(loop)) // 2
        return loop if len(loop) == len(after) and len(points) - edges + len(patch) == 1 else None

    def unevenness(self, patch: Sequence[int], loop: Sequence[int]) -> float:
        """The farthest that the patch leaves the mean plane of its outline, as a share of the size."""
        border = [self.clean.points[index] for index in loop]
        normal, middle = normal_of(border), mean(border)
        points = {corner for face in patch for corner in self.clean.faces[face]}
        return max(abs(dot(normal, minus(self.clean.points[p], middle))) for p in points) / self.size

    def clearance(self, patch: Sequence[int], loop: Sequence[int]) -> float:
        """From the middle of the patch to its outline, as a share of the size."""
        centre = mean([self.clean.middle(self.clean.faces[face]) for face in patch])
        border = [self.clean.points[index] for index in loop]
        return min(_to_segment(centre, a, b) for a, b in zip(border, [*border[1:], border[0]], strict=True)) / (
            self.size
        )

    def drop(self, patch: Iterable[int]) -> None:
        """Take faces away."""
        gone = set(patch)
        self.faces = [face for face in self.faces if face.origin not in gone]
        self.changed |= gone

    def replace_face(self, origin: int, corners: Sequence[Face]) -> None:
        """Put other faces in the place of one."""
        self.drop([origin])
        self.faces += [BrokenFace(corners=face, origin=origin) for face in corners]

    def add_point(self, point: Sequence[float]) -> int:
        self.points.append((round(point[0], 8), round(point[1], 8), round(point[2], 8)))
        return len(self.points) - 1

    def inside(self, point: Point) -> bool:
        """Whether the clean solid is there, by the winding of its surface."""
        total = 0.0
        for face in self.clean.faces:
            corners = [minus(self.clean.points[index], point) for index in face]
            for b, c in itertools.pairwise(corners[1:]):
                total += _solid_angle(corners[0], b, c)
        return total > 2 * math.pi

    def kept(self) -> list[int]:
        return [index for index in range(len(self.clean.faces)) if index not in self.changed]

    def to_json(self) -> dict[str, Any]:
        """All that a verifier has to know."""
        return {
            "clean": {"points": self.clean.points, "faces": self.clean.faces, "zones": self.clean.zones},
            "broken": {
                "points": self.points,
                "faces": [face.corners for face in self.faces],
                "origins": [face.origin for face in self.faces],
                "edges": self.edges,
            },
            "kept": self.kept(),
            "patches": self.patches,
            "spikes": self.spikes,
            "mirror": self.mirror,
            "kinds": self.kinds,
        }


def _to_segment(p: Point, a: Point, b: Point) -> float:
    ab, ap = minus(b, a), minus(p, a)
    share = min(1.0, max(0.0, dot(ap, ab) / (dot(ab, ab) or 1.0)))
    return math.dist(p, (a[0] + share * ab[0], a[1] + share * ab[1], a[2] + share * ab[2]))


def _solid_angle(a: Point, b: Point, c: Point) -> float:
    """Of a triangle seen from the origin (van Oosterom and Strackee, 1983)."""
    la, lb, lc = math.hypot(*a), math.hypot(*b), math.hypot(*c)
    below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
    return 2 * math.atan2(dot(a, cross(b, c)), below)
