"""Boundary-representation predicates: a STEP file measured in a verifier sandbox, compared with an exact part.

Two gates come first: one valid closed solid of positive volume, and analytic surfaces, so that no triangle mesh passes.
Then bounding box, volume, centre of mass, planes, cylinders and cones, and hidden points inside or outside. Tolerances:
lengths 0.01 mm (bounding box 0.02 mm), volume 0.1%, angles 0.1°, counts exact.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from ..core import Check, Json, Rng, Sandbox
from . import brep_probe
from .control import require_tool
from .prismatic import Part, Plane, Turned, Vec, vector
from .probe import run_probe

LENGTH_MM = 0.01
BOX_MM = 0.02
VOLUME_SHARE = 0.001
ANGLE_DEG = 0.1
_NEAR_MM = 0.05
_CLASSIFIER_MM = 1e-5
_FACETS_ALLOWED = 10

_Expected = TypeVar("_Expected", Plane, Turned)


class HiddenPoints(NamedTuple):
    """Points that the file's author could not foresee, and whether each lies in the part."""

    points: Sequence[Vec]
    inside: Sequence[bool]


def hidden_points(part: Part, rng: Rng, *, count: int) -> HiddenPoints:
    """Half of them anywhere around the part, half 0.05 mm off its surfaces on either side; none where in doubt."""
    low, high = part.bounds()
    planes, turned = part.planes(), part.turned()
    points: list[Vec] = []
    while len(points) < count:
        point = _anywhere(rng, low, high)
        if len(points) % 2:
            off = rng.choice((-_NEAR_MM, _NEAR_MM))
            round_one = bool(turned) and rng.integer(0, 1)
            point = (
                _near_turned(rng, rng.choice(turned), off) if round_one else _near_plane(point, rng.choice(planes), off)
            )
            if part.settled(point, _NEAR_MM + LENGTH_MM):
                continue
        if part.settled(point, LENGTH_MM):
            points.append(point)
    return HiddenPoints(points=points, inside=[part.contains(point) for point in points])


def _anywhere(rng: Rng, low: Vec, high: Vec) -> Vec:
    x, y, z = (a - 1.0 + rng.fraction() * (b - a + 2.0) for a, b in zip(low, high, strict=True))
    return round(x, 4), round(y, 4), round(z, 4)


def _near_plane(point: Vec, plane: Plane, off: float) -> Vec:
    gap = plane.offset + off - math.fsum(n * p for n, p in zip(plane.normal, point, strict=True))
    x, y, z = (p + gap * n for n, p in zip(plane.normal, point, strict=True))
    return x, y, z


def _near_turned(rng: Rng, surface: Turned, off: float) -> Vec:
    share, angle = rng.fraction(), 2.0 * math.pi * rng.fraction()
    along = surface.low + share * (surface.high - surface.low)
    wide_end_above = (surface.high - along) * math.tan(math.radians(surface.half_angle_deg))
    radius = surface.radius - wide_end_above + off
    around = vector(surface.axis, along, radius * math.cos(angle), radius * math.sin(angle))
    x, y, z = (a + b for a, b in zip(surface.point, around, strict=True))
    return x, y, z


async def check_step(sandbox: Sandbox, path: str, part: Part, hidden: HiddenPoints, *, timeout_s: float) -> list[Check]:
    """All checks of the STEP file at `path` against `part`; a file that cannot be measured fails every one.

    Raises:
        VerifierError: the probe broke by itself, or Open CASCADE does not load.
        SandboxLost: the sandbox is gone.
    """
    source = (
        inspect.getsource(brep_probe) + '\n_answer(measure(payload["path"], payload["points"], payload["margin"]))\n'
    )
    payload: Json = {"path": path, "points": [list(point) for point in hidden.points], "margin": _CLASSIFIER_MM}
    result = await run_probe(sandbox, source, payload, timeout_s=timeout_s)
    if not isinstance(result.value, dict):
        await require_tool(sandbox, "OCP.BRepCheck")
        return judge({"error": f"measuring it {result.failure}"}, part, hidden)
    return judge(result.value, part, hidden)


def judge(measured: Mapping[str, Any], part: Part, hidden: HiddenPoints) -> list[Check]:
    """The checks on what `brep_probe.measure` answered."""
    problem = _problem(measured)
    planes, turned = part.planes(), part.turned()
    gates = [Check(name="one valid solid", score=0.0 if problem else 1.0, gate=True, evidence=problem or "one solid")]
    if problem:
        return [*gates, *(Check(name=name, score=0.0, evidence="not measured") for name in _NAMES)]
    facets, other = len(measured["planes"]), measured["other_faces"]
    analytic = not other and facets <= len(planes) + _FACETS_ALLOWED
    evidence = f"{facets} distinct planes, {other} faces neither plane, cylinder nor cone"
    gates.append(Check(name="analytic surfaces", score=float(analytic), gate=True, evidence=evidence))
    return [
        *gates,
        _box(measured, part),
        _volume(measured["volume"], part.volume),
        _centroid(measured["centroid"], part.centroid),
        _surfaces("planes", planes, measured["planes"], _same_plane),
        _surfaces("cylinders and cones", turned, measured["turned"], _same_turned),
        _points(cast("list[bool | None]", measured["inside"]), hidden),
    ]


_NAMES = ("bounding box", "volume", "centre of mass", "planes", "cylinders and cones", "hidden points")


def _problem(measured: Mapping[str, Any]) -> str:
    if "error" in measured:
        return str(measured["error"])
    if measured["solids"] != 1:
        return f"{measured['solids']} solids, where one is asked for"
    if "volume" not in measured:
        return f"{measured['faces']} faces are too many for this part"
    if measured["loose_faces"] or measured["shells"] != 1:
        return f"{measured['shells']} shells and {measured['loose_faces']} faces outside of the solid"
    if not measured["valid"]:
        return "the kernel's check finds the solid invalid"
    return "" if measured["volume"] > 0 else f"volume {measured['volume']:.3f} mm³: the solid is inside out"


def _box(measured: Mapping[str, Any], part: Part) -> Check:
    low, high = part.bounds()
    error = max(abs(a - b) for a, b in zip([*low, *high], [*measured["low"], *measured["high"]], strict=True))
    evidence = f"largest deviation {error:.4f} mm, allowed {BOX_MM} mm"
    return Check(name="bounding box", score=float(error <= BOX_MM), evidence=evidence)


def _volume(measured: float, expected: float) -> Check:
    share = abs(measured - expected) / expected
    evidence = f"{measured:.2f} mm³, off by {share:.3%}, allowed {VOLUME_SHARE:.1%}"
    return Check(name="volume", score=float(share <= VOLUME_SHARE), evidence=evidence)


def _centroid(measured: Sequence[float], expected: Vec) -> Check:
    distance = math.dist(measured, expected)
    evidence = f"off by {distance:.4f} mm, allowed {LENGTH_MM} mm"
    return Check(name="centre of mass", score=float(distance <= LENGTH_MM), evidence=evidence)


def _surfaces(
    name: str,
    expected: Sequence[_Expected],
    found: Sequence[Mapping[str, Any]],
    same: Callable[[_Expected, Mapping[str, Any]], bool],
) -> Check:
    open_rows = list(found)
    matched = 0
    for surface in expected:
        row = next((row for row in open_rows if same(surface, row)), None)
        if row is not None:
            open_rows.remove(row)
            matched += 1
    score = matched / max(len(expected), len(found), 1)
    evidence = f"{matched} of {len(expected)} match, {len(found) - matched} of the file's match none"
    return Check(name=name, score=score, evidence=evidence)


def _same_plane(plane: Plane, row: Mapping[str, Any]) -> bool:
    return _angle_deg(plane.normal, row["normal"]) <= ANGLE_DEG and abs(plane.offset - row["offset"]) <= LENGTH_MM


def _same_turned(surface: Turned, row: Mapping[str, Any]) -> bool:
    return (
        _angle_deg(vector(surface.axis, 1.0, 0.0, 0.0), row["direction"]) <= ANGLE_DEG
        and math.dist(surface.point, row["point"]) <= LENGTH_MM
        and abs(surface.radius - row["radius"]) <= LENGTH_MM
        and abs(surface.half_angle_deg - row["half_angle_deg"]) <= ANGLE_DEG
        and surface.concave == row["concave"]
        and abs(surface.low - row["low"]) <= LENGTH_MM
        and abs(surface.high - row["high"]) <= LENGTH_MM
    )


def _angle_deg(a: Sequence[float], b: Sequence[float]) -> float:
    cross = (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
    return math.degrees(math.atan2(math.hypot(*cross), math.fsum(x * y for x, y in zip(a, b, strict=True))))


def _points(answers: Sequence[bool | None], hidden: HiddenPoints) -> Check:
    wrong = sum(answer is not inside for answer, inside in zip(answers, hidden.inside, strict=True))
    share = wrong / len(hidden.inside)
    evidence = f"{wrong} of {len(hidden.inside)} are on the wrong side"
    return Check(name="hidden points", score=max(0.0, 1.0 - 2.0 * share), evidence=evidence)
