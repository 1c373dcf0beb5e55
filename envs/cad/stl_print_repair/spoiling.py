"""What is wrong with a file at each level, and how the file lies: a plan that the truth carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

import numpy as np

from ...core import Json, Rng
from ...parts.prism_mesh import mesh, walk
from . import faults
from .gadget import Gadget

_UNITS_MM = {"inches": 25.4, "centimetres": 10.0, "metres": 1000.0}
_LYING = (
    ((0, 2, 1), (1, -1, 1)),
    ((0, 2, 1), (-1, 1, 1)),
    ((2, 1, 0), (1, -1, 1)),
    ((2, 1, 0), (-1, 1, 1)),
    ((0, 1, 2), (1, -1, -1)),
    ((1, 0, 2), (1, 1, -1)),
    ((1, 2, 0), (1, 1, 1)),
    ((2, 0, 1), (1, 1, 1)),
)
_STANDING = (((1, 0, 2), (-1, 1, 1)), ((0, 1, 2), (-1, -1, 1)), ((1, 0, 2), (1, -1, 1)))


_GAPS = ("flat gaps", "gaps around edges", "lids gone")
_DEEP = (*_GAPS, "bores without wall", "bodies apart")
_SURFACE = ("facets twice", "facets flipped")
_PLANS: tuple[tuple[str, ...], ...] = (
    ("flat gaps",),
    (*_GAPS, *_SURFACE, "needles"),
    (*_GAPS, *_SURFACE, "crumbs", "corners apart"),
    (*_DEEP, *_SURFACE, "crumbs", "needles"),
    (*_DEEP, *_SURFACE, "crumbs", "corners apart", "a body twice", "sheets"),
)
"""The kinds of fault in a file of each level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    """How the file lies: axis i of the file is `signs[i]` times axis `axes[i]` of the part, in its unit, moved."""

    axes: tuple[int, int, int]
    signs: tuple[int, int, int]
    unit_mm: float
    move: tuple[float, float, float]
    """In millimetres."""

    def to_json(self) -> dict[str, Json]:
        """Plain JSON."""
        return cast("dict[str, Json]", asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Pose:
        """The pose that `to_json` wrote."""
        axes, signs, move = (tuple(data[name]) for name in ("axes", "signs", "move"))
        return cls(axes=axes, signs=signs, unit_mm=data["unit_mm"], move=move)  # pyright: ignore[reportArgumentType]

    def applied(self, soup: np.ndarray) -> np.ndarray:
        """The facets as the file has them; exact moves only, so that equal corners stay equal."""
        turned = soup[:, :, list(self.axes)] * np.array(self.signs, dtype=np.float64)
        return (turned + np.array(self.move)) / self.unit_mm


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoiled:
    """The file, how it lies, and the kinds of fault in it."""

    data: bytes
    pose: Pose
    faults: tuple[str, ...]


def spoil(gadget: Gadget, corner: tuple[float, float], rng: Rng, level: int) -> Spoiled:
    """The broken file; `corner` is where the part belongs on the plate."""
    bodies, plan = gadget.bodies, _PLANS[level]
    shells = faults.loosened(bodies, rng.child("loose")) if "bodies apart" in plan else bodies
    broken = faults.Broken(mesh(shells))
    if "a body twice" in plan:
        right = {region.name for region, _ in walk(bodies[1:])}
        faults.doubled(broken, right, inward=bool(rng.integer(0, 1)))
        left = {region.name for region, _ in walk(bodies[:1])}
        whole = [facet for facet in broken.facets if facet.region not in left]
        broken.facets = [facet for facet in broken.facets if facet.region in left]
        _gaps(broken, gadget, rng.child("gaps"), level)
        broken.facets += whole
    else:
        _gaps(broken, gadget, rng.child("gaps"), level)
    if "sheets" in plan:
        faults.sheets(broken, bodies)
    if "needles" in plan:
        faults.needles(broken, rng.child("needles"), 3)
    if "crumbs" in plan:
        faults.crumbs(broken, rng.child("crumbs"), rng.integer(2, 3))
    if "facets twice" in plan:
        faults.repeats(broken, rng.child("repeats"), rng.integer(3, 8))
    inverted = rng.child("inverted").integer(0, 1) == 1
    faults.flips(broken, rng.child("flips"), (100 if inverted else 0, 15, 20, 50, 35)[level])
    soup = np.array([facet.corners for facet in broken.facets], dtype=np.float64)
    if "corners apart" in plan:
        soup = faults.jittered(soup, rng.child("jitter"))
    pose = _pose(corner, rng.child("pose"), level)
    data = faults.stl(pose.applied(soup), rng.child("order"), text=bool(rng.integer(0, 1)))
    return Spoiled(data=data, pose=pose, faults=plan)


def _gaps(broken: faults.Broken, gadget: Gadget, rng: Rng, level: int) -> None:
    if "bores without wall" in _PLANS[level]:
        faults.lost_bores(broken, gadget.bodies[:1], rng.child("bores"), 2)
    if "lids gone" in _PLANS[level]:
        faults.lidless(broken, gadget.bodies[:1], rng.child("lidless"), 1 if level == 1 else 2)
        faults.edge_gaps(broken, rng.child("edges"), 2)
    faults.flat_gaps(broken, rng.child("flat"), rng.integer(2, 3))


def _pose(corner: tuple[float, float], rng: Rng, level: int) -> Pose:
    if level < 2:
        return Pose(axes=(0, 1, 2), signs=(1, 1, 1), unit_mm=1.0, move=(*corner, 0.0))
    axes, signs = rng.choice(_STANDING if level == 2 else _LYING)
    move = (rng.integer(-60, 60) / 2.0, rng.integer(-60, 60) / 2.0, rng.integer(-60, 60) / 2.0)
    unit = 1.0 if level == 2 else _UNITS_MM[rng.choice(sorted(_UNITS_MM))]
    return Pose(axes=axes, signs=signs, unit_mm=unit, move=move)
