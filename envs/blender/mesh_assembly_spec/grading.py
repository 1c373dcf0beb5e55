"""What is asked of a mesh and how the answer is judged; every rule here is stated in `instruction.md`.

A part that is not one closed solid scores 0. Otherwise its size, its place and its shape count a third each; shape
needs the right size first, since hidden planes and points are laid for it. Where the measured bounding box sits
elsewhere, planes and points move with it, so that a shifted part fails by its place only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...core import Check, Rng
from ...parts.mesh_measures import BlendMeasure, MeshMeasure, MeshQuestion
from .draft import AXES, Contact
from .solids import Body, Point3, Round, Solid

LENGTH_MM = 0.5
CONTACT_MM = 0.1
VOLUME_SHARE = 0.015
SECTION_SHARE = 0.02
MIN_SIDES = 64
SAGITTA = 1 - math.cos(math.pi / MIN_SIDES)
"""How far, as a share of the radius, a facet may lie inside the true circle."""
NUM_SECTIONS = 3
"""Per axis."""
NUM_POINTS = 24
_PLAIN_TYPES = {"CAMERA", "LIGHT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How one part came out."""

    score: float
    size_ok: bool = False
    faults: tuple[str, ...] = ()


def question(solid: Solid, hidden: Rng) -> MeshQuestion:
    """Planes and points drawn from the hidden stream, away from where an error within tolerance would matter."""
    low, high = solid.bounds()
    x, y, z = ((a + b) / 2 for a, b in zip(low, high, strict=True))
    return MeshQuestion(centre=(x, y, z), sections=_planes(solid, hidden), points=_points(solid, hidden))


def _planes(solid: Solid, hidden: Rng) -> list[tuple[int, float]]:
    low, high = solid.bounds()
    margin, planes = _margin(solid), []
    for axis in range(3):
        found = 0
        for _ in range(12 * NUM_SECTIONS):
            at = low[axis] + (high[axis] - low[axis]) * hidden.fraction()
            area = solid.section(axis, at)
            beside = [solid.section(axis, at + sign * margin) for sign in (-1, 1)]
            if (
                found < NUM_SECTIONS
                and area > 0
                and all(abs(each - area) < SECTION_SHARE / 2 * area for each in beside)
            ):
                planes.append((axis, at))
                found += 1
    return planes


def _points(solid: Solid, hidden: Rng) -> list[Point3]:
    """Points all through and around the part, and some in every cut."""
    regions: list[tuple[Body, int]] = [(solid.base, NUM_POINTS), *((cut.body, 2) for cut in solid.cuts)]
    margin, points = _margin(solid), []
    for body, wanted in regions:
        low, high = body.bounds()
        for _ in range(wanted * 4):
            shares = [1.2 * hidden.fraction() - 0.1 for _ in range(3)]
            x, y, z = (a + (b - a) * share for a, b, share in zip(low, high, shares, strict=True))
            if abs(solid.distance((x, y, z))) > margin and wanted:
                points.append((x, y, z))
                wanted -= 1
    return points


def _margin(solid: Solid) -> float:
    return LENGTH_MM + max(_facet(body) for body in (solid.base, *(cut.body for cut in solid.cuts)))


def _facet(body: Body) -> float:
    return SAGITTA * max(body.radius_low, body.radius_high) if isinstance(body, Round) else 0.0


def judge(solid: Solid, asked: MeshQuestion, found: MeshMeasure | None, *, hidden_object: bool) -> Judged:
    """Score one part, and say what is wrong with it."""
    if found is None:
        return Judged(score=0.0, faults=("there is no mesh object of this name",))
    if hidden_object:
        return Judged(score=0.0, faults=("is hidden, or not in the scene",))
    if found.fault:
        return Judged(score=0.0, faults=(found.fault,))
    low, high = solid.bounds()
    size, place, faults = True, True, []
    for axis in range(3):
        slack = LENGTH_MM + (2 * _facet(solid.base) if axis != solid.base.axis else 0.0)
        wanted, measured = high[axis] - low[axis], found.high[axis] - found.low[axis]
        if not abs(measured - wanted) <= slack:
            size = False
            faults.append(f"measures {measured:.2f} mm along {AXES[axis]}, not {wanted:.2f}")
        middle, centre = (found.low[axis] + found.high[axis]) / 2, asked.centre[axis]
        if not abs(middle - centre) <= slack:
            place = False
            faults.append(f"its middle is at {AXES[axis]} = {middle:.2f} mm, not {centre:.2f}")
    shape_faults = _shape_faults(solid, asked, found) if size else []
    score = (size + place + (size and not shape_faults)) / 3
    return Judged(score=score, size_ok=size, faults=(*faults, *shape_faults))


def _shape_faults(solid: Solid, asked: MeshQuestion, found: MeshMeasure) -> list[str]:
    faults: list[str] = []
    holes = (2 - found.euler) / 2
    if holes != solid.num_through_holes:
        faults.append(f"has {holes:g} through-holes, not {solid.num_through_holes}")
    volume = solid.volume()
    if not abs(found.volume - volume) <= VOLUME_SHARE * volume:
        faults.append(f"has a volume of {found.volume:.0f} mm3, not {volume:.0f}")
    for (axis, at), area in zip(asked.sections, found.sections, strict=True):
        wanted = solid.section(axis, at)
        if not abs(area - wanted) <= SECTION_SHARE * wanted:
            faults.append(f"its section at {AXES[axis]} = {at:.1f} mm has {area:.0f} mm2, not {wanted:.0f}")
    pairs = zip(asked.points, found.windings, strict=True)
    wrong = [point for point, turns in pairs if not abs(turns - (solid.distance(point) < 0)) < 0.1]
    if wrong:
        faults.append(f"{len(wrong)} of {len(asked.points)} probed points are on the wrong side of its surface")
    return faults


def scene_check(solids: list[Solid], found: BlendMeasure) -> Check:
    """The gate: nothing in the file but the named parts, cameras and lights, and no geometry from elsewhere."""
    names = {solid.name for solid in solids}
    problems = [
        f"object {name!r} ({kind}) is not in the brief"
        for name, kind in found.types.items()
        if name not in names and kind not in _PLAIN_TYPES
    ]
    problems += [
        f"object {name!r} is a {found.types[name]}, not a mesh"
        for name in sorted(names & set(found.types))
        if found.types[name] != "MESH"
    ]
    problems += list(found.oddities)
    evidence = "; ".join(problems[:5]) or f"{len(found.types)} objects, none foreign"
    return Check(name="scene", score=0.0 if problems else 1.0, gate=True, evidence=evidence)


def contact_check(contacts: list[Contact], found: BlendMeasure, judged: dict[str, Judged]) -> Check:
    """The share of contacts whose two faces lie on each other; both parts must have the right size."""
    good, faults = 0, []
    for contact in contacts:
        if not (judged[contact.part].size_ok and judged[contact.other].size_ok):
            faults.append(f"{contact.part} on {contact.other}: a part is missing or of another size")
            continue
        part, other = found.meshes[contact.part], found.meshes[contact.other]
        pair = (part.low, other.high) if contact.face == "low" else (part.high, other.low)
        gap = abs(pair[0][contact.axis] - pair[1][contact.axis])
        if gap <= CONTACT_MM:
            good += 1
        else:
            faults.append(f"{contact.part} and {contact.other} are {gap:.2f} mm off contact")
    evidence = "; ".join(faults[:5]) or f"{good} of {len(contacts)} contacts hold"
    return Check(name="contacts", score=good / len(contacts), evidence=evidence)
