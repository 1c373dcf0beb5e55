"""A thing under construction: its fine mesh, the convex pieces that the mesh bounds, and colliders that fit it well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from ...core import Json
from ...parts.poses import NO_TURN, Pose, Quat, Vec, about, after, within
from .solids import Solid, Tube, box, frustum, sphere

_SIDES = 32


class Kind(StrEnum):
    """The colliders that may be used."""

    BOX = auto()
    """`size`: full edge lengths."""
    SPHERE = auto()
    """`radius`."""
    CYLINDER = auto()
    """`radius`, `length`; along its own Z."""
    CAPSULE = auto()
    """`radius`, `length` of the part between the round ends; along its own Z."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Primitive:
    """One collider."""

    kind: Kind
    pose: Pose
    size: Vec
    """A box's edges; else (radius, length, 0), the length 0 for a sphere."""

    def to_json(self) -> dict[str, Json]:
        """The form of the collider file."""
        entry: dict[str, Json] = {"type": self.kind.value, "center": [round(value, 6) for value in self.pose.at]}
        if self.kind is not Kind.SPHERE and self.pose.turn != NO_TURN:
            entry["rotation"] = [round(value, 8) for value in self.pose.turn]
        if self.kind is Kind.BOX:
            return {**entry, "size": [round(value, 6) for value in self.size]}
        entry["radius"] = round(self.size[0], 6)
        return entry if self.kind is Kind.SPHERE else {**entry, "length": round(self.size[1], 6)}


class Assembly:
    """Adds solids at poses of its own frame, which itself stands at `frame`."""

    def __init__(self, frame: Pose) -> None:
        self._frame = frame
        self.meshes: list[Solid] = []
        self.pieces: list[Solid] = []
        self.primitives: list[Primitive] = []

    def truth(self) -> list[Mapping[str, Json]]:
        """The convex pieces as JSON."""
        return [
            {"vertices": [list(vertex) for vertex in piece.vertices], "faces": [list(face) for face in piece.faces]}
            for piece in self.pieces
        ]

    def add_box(self, size: Vec, at: Vec, turn: Quat = NO_TURN) -> None:
        pose = Pose(at, turn)
        self._convex(box(size), pose)
        self._fit(Kind.BOX, pose, size)

    def add_sphere(self, radius: float, at: Vec) -> None:
        self._convex(sphere(radius), Pose(at))
        self._fit(Kind.SPHERE, Pose(at), (radius * 0.997, 0.0, 0.0))

    def add_cylinder(self, radius: float, height: float, at: Vec, turn: Quat = NO_TURN) -> None:
        pose = Pose(at, turn)
        self._convex(frustum(radius, radius, height, sides=_SIDES), pose)
        self._fit(Kind.CYLINDER, pose, (radius * 0.998, height, 0.0))

    def add_frustum(self, low: float, high: float, height: float, at: Vec, *, steps: int) -> None:
        """Fitted by a stack of `steps` cylinders, each of the mean radius of its slice."""
        self._convex(frustum(low, high, height, sides=_SIDES), Pose(at))
        for step in range(steps):
            share = (step + 0.5) / steps
            z = at[2] + height * (share - 0.5)
            self._fit(Kind.CYLINDER, Pose((at[0], at[1], z)), (low + (high - low) * share, height / steps, 0.0))

    def add_prism(self, sides: int, radius: float, height: float, at: Vec) -> None:
        """A regular prism with an even number of sides: exactly the union of sides / 2 turned boxes."""
        self._convex(frustum(radius, radius, height, sides=sides), Pose(at))
        across, edge = 2.0 * radius * math.cos(math.pi / sides), 2.0 * radius * math.sin(math.pi / sides)
        for index in range(sides // 2):
            turn = about((0.0, 0.0, 1.0), 360.0 / sides * (index + 0.5))
            self._fit(Kind.BOX, Pose(at, turn), (across, edge, height))

    def add_tube(self, tube: Tube, at: Vec) -> None:
        """Fitted by a box for each side, leaning with the taper; exact for a straight tube."""
        pose = within(self._frame, Pose(at))
        self.meshes.append(tube.mesh().at(pose))
        self.pieces += [piece.at(pose) for piece in tube.pieces()]
        half, taper = math.pi / tube.sides, tube.outer[1] - tube.outer[0]
        mean = (tube.outer[0] + tube.outer[1]) / 2.0
        lean = math.atan2(taper * math.cos(half), tube.height)
        thickness = tube.wall * math.cos(half) * math.cos(lean)
        middle = (mean - tube.wall / 2.0) * math.cos(half)
        size = (thickness, 2.0 * mean * math.sin(half), tube.height / math.cos(lean))
        for index in range(tube.sides):
            degrees = 360.0 / tube.sides * (index + 0.5)
            around = math.radians(degrees)
            turn = after(about((0.0, 1.0, 0.0), math.degrees(lean)), about((0.0, 0.0, 1.0), degrees))
            centre = (at[0] + middle * math.cos(around), at[1] + middle * math.sin(around), at[2])
            self._fit(Kind.BOX, Pose(centre, turn), size)

    def _convex(self, solid: Solid, pose: Pose) -> None:
        moved = solid.at(within(self._frame, pose))
        self.meshes.append(moved)
        self.pieces.append(moved)

    def _fit(self, kind: Kind, pose: Pose, size: Vec) -> None:
        self.primitives.append(Primitive(kind=kind, pose=within(self._frame, pose), size=size))
