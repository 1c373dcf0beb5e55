"""The bracket as build123d programs: what a modeller would type, and what a careless one would.

Every program leaves the part in the variable `part`. `Style.FACETED` cuts holes as 48-sided prisms.
"""

from __future__ import annotations

from enum import StrEnum, auto

from .features import Bracket, Head, Hole, Slot, head_depth

STEP_PATH = "/workspace/bracket.step"
_FROM_CORNER = "align=(Align.MIN, Align.MIN, Align.MIN)"
_FROM_FLOOR = "align=(Align.CENTER, Align.CENTER, Align.MIN)"


class Style(StrEnum):
    """How round cuts are made."""

    TURNED = auto()
    """As cylinders and cones."""
    FACETED = auto()
    """As prisms with many flat sides, which only look round."""


def modelling(bracket: Bracket, style: Style = Style.TURNED) -> list[str]:
    """One source per step of the work: plates, bends, gussets, corners, holes; empty steps are left out."""
    steps = [_plates(bracket), _bends(bracket), _gussets(bracket), _corners(bracket), _cuts(bracket, style)]
    return [step for step in steps if step]


def from_profile(bracket: Bracket) -> str:
    """Another way to the same part: the side view as one sketch, extruded; one cutter for all round cuts."""
    left, right = bracket.plates[0].low[0], bracket.plates[0].high[0]
    lines = ["from build123d import *", "side = Sketch()"]
    for plate in bracket.plates:
        (_, y0, z0), (_, y1, z1) = plate.low, plate.high
        lines.append(
            f"side += Pos({_n(y0)}, {_n(z0)}) * Rectangle({_n(y1 - y0)}, {_n(z1 - z0)}, align=(Align.MIN, Align.MIN))"
        )
    lines.append(f"part = extrude(Plane.YZ.offset({_n(left)}) * side, {_n(right - left)})")
    lines += [step for step in (_corners(bracket), _bends(bracket), _gussets(bracket)) if step]
    cutters = [cutter for hole in bracket.holes for cutter in _hole(hole, Style.TURNED)] + [
        _slot(slot) for slot in bracket.slots
    ]
    lines += [f"cutter = {cutters[0]}", *(f"cutter += {cutter}" for cutter in cutters[1:]), "part -= cutter"]
    return "\n".join(lines)


def checking() -> str:
    """What a modeller looks at before handing over."""
    return "\n".join(
        [
            "box = part.bounding_box()",
            'print("valid", part.is_valid, "solids", len(part.solids()), "volume", round(part.volume, 3), "mm3")',
            'print("from", tuple(box.min), "to", tuple(box.max))',
        ]
    )


def exporting() -> str:
    """Write the STEP file."""
    return f'export_step(part, "{STEP_PATH}")'


def exporting_mesh() -> str:
    """The hack: a triangle mesh, sewn and written as STEP."""
    return "\n".join(
        [
            "vertices, triangles = part.tessellate(0.01, 0.1)",
            "faces = [Face(Wire.make_polygon([vertices[i] for i in corners])) for corners in triangles]",
            "part = Solid(Shell(faces))",
            exporting(),
        ]
    )


def exporting_twice() -> str:
    """Two coincident solids in one file."""
    return "\n".join(
        [
            "import copy",
            f'export_step(Compound(children=[part.solid(), copy.copy(part.solid())]), "{STEP_PATH}")',
        ]
    )


def _n(value: float) -> str:
    return f"{round(value, 6) + 0.0:.10g}"


def _plates(bracket: Bracket) -> str:
    """Uprights go down to the underside of the base, so that their height is the one in the specification."""
    lines = ["from build123d import *"]
    for index, plate in enumerate(bracket.plates):
        foot = (*plate.low[:2], 0.0) if "upright" in plate.name else plate.low
        size = ", ".join(_n(high - low) for low, high in zip(foot, plate.high, strict=True))
        at = ", ".join(_n(low) for low in foot)
        lines.append(f"part {'+=' if index else '='} Pos({at}) * Box({size}, {_FROM_CORNER})  # {plate.name}")
    return "\n".join(lines)


def _bends(bracket: Bracket) -> str:
    bends = [bend for bend in bracket.bends if bend.radius > 0]
    if not bends:
        return ""
    lines = [
        "def inner_edges(y, z):",
        "    along = part.edges().filter_by(Axis.X)",
        "    return [e for e in along if abs(e.center().Y - y) < 1e-4 and abs(e.center().Z - z) < 1e-4]",
        "",
    ]
    for bend in bends:
        y, z = bend.corner
        lines.append(f"part = fillet(inner_edges({_n(y)}, {_n(z)}), {_n(bend.radius)})")
    return "\n".join(lines)


def _gussets(bracket: Bracket) -> str:
    lines = []
    for web in bracket.gussets:
        (y, z), (sy, sz), (leg_y, leg_z) = web.corner, web.signs, web.legs
        points = f"({_n(y)}, {_n(z)}), ({_n(y + sy * leg_y)}, {_n(z)}), ({_n(y)}, {_n(z + sz * leg_z)})"
        lines.append(f"web = make_face(Plane.YZ.offset({_n(web.span[0])}) * Polyline({points}, close=True))")
        lines.append(f"part += extrude(web, amount={_n(web.span[1] - web.span[0])}, dir=(1, 0, 0))")
    return "\n".join(lines)


def _corners(bracket: Bracket) -> str:
    lines = []
    for corner in bracket.corners:
        (u, v), middle = corner.corner, sum(corner.span) / 2.0
        spot = (u, middle, v) if corner.axis == 1 else (u, v, middle)
        axis = "XYZ"[corner.axis]
        edge = f"part.edges().filter_by(Axis.{axis}).sort_by_distance(({', '.join(map(_n, spot))}))[0]"
        lines.append(f"part = {'chamfer' if corner.chamfer else 'fillet'}({edge}, {_n(corner.size)})")
    return "\n".join(lines)


def _cuts(bracket: Bracket, style: Style) -> str:
    lines = [f"part -= {cutter}" for hole in bracket.holes for cutter in _hole(hole, style)]
    lines += [f"part -= {_slot(slot)}" for slot in bracket.slots]
    return "\n".join(lines)


def _at(axis: int, centre: tuple[float, float], along: float) -> str:
    u, v = centre
    if axis == 1:
        return f"Pos({_n(u)}, {_n(along)}, {_n(v)}) * Rot(-90, 0, 0)"
    return f"Pos({_n(u)}, {_n(v)}, {_n(along)})"


def _hole(hole: Hole, style: Style) -> list[str]:
    low, high = hole.span
    floor = high - head_depth(hole)
    cutters = [f"{_at(hole.axis, hole.centre, low)} * {_round(hole.diameter, high - low, style)}"]
    if hole.head is Head.COUNTERBORE:
        cutters.append(f"{_at(hole.axis, hole.centre, floor)} * {_round(hole.head_diameter, high - floor, style)}")
    elif hole.head is Head.COUNTERSINK:
        radii = f"{_n(hole.diameter / 2.0)}, {_n(hole.head_diameter / 2.0)}, {_n(high - floor)}"
        cutters.append(f"{_at(hole.axis, hole.centre, floor)} * Cone({radii}, {_FROM_FLOOR})")
    return cutters


def _round(diameter: float, height: float, style: Style) -> str:
    if style is Style.FACETED:
        return f"extrude(RegularPolygon({_n(diameter)} / 2, 48), {_n(height)})"
    return f"Cylinder({_n(diameter)} / 2, {_n(height)}, {_FROM_FLOOR})"


def _slot(slot: Slot) -> str:
    turn = "" if slot.along_u else " * Rot(0, 0, 90)"
    shape = f"extrude(SlotOverall({_n(slot.length)}, {_n(slot.width)}), {_n(slot.span[1] - slot.span[0])})"
    return f"{_at(slot.axis, slot.centre, slot.span[0])}{turn} * {shape}"
