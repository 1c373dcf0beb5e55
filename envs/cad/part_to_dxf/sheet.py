"""The sheet that is asked for: projection, scale, layers, centre lines and dimensions; and the expected drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from ...core import Json, Rng
from ...parts.drawing_check import Expected, Layer, Measure
from ...parts.drawing_views import Curve, Flat, Line, Seen, Stroke, View
from .workpiece import Workpiece

OVERSHOOT_MM = 2.0
_NAMINGS = (
    ("VISIBLE", "HIDDEN", "CENTER", "DIM"),
    ("OUTLINE", "OUTLINE_HIDDEN", "AXES", "DIMENSIONS"),
    ("M-PART-VIS", "M-PART-HID", "M-CNTR", "M-DIMS"),
    ("01_KONTUR", "02_VERDECKT", "03_MITTE", "04_MASSE"),
)
_TURNS: tuple[tuple[str, str], ...] = (
    ("+Y", "+X"), ("-Y", "+Z"), ("+Z", "+X"), ("+Z", "-Y"), ("-X", "+Y"), ("+Y", "-Z"), ("-Z", "-X"), ("+X", "-Y"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What the brief asks for, beside the part."""

    third_angle: bool
    scale: float
    """Sheet over true size."""
    gap: float
    visible: str
    hidden: str
    centre: str
    """Empty where no centre lines are asked for."""
    dimensions: str
    hidden_type: str
    weights: tuple[int, int] | None
    """Of visible lines and of all others, in hundredths of a millimetre."""
    positions: bool
    """Whether holes are dimensioned."""
    tolerance: tuple[float, float] | None
    """Upper and lower, of the overall width."""
    right: str
    """Which direction of the file points to the right in the front view."""
    up: str

    def to_json(self) -> dict[str, Json]:
        """Plain JSON; `from_json` reads it back."""
        return cast("dict[str, Json]", asdict(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sheet:
        """The sheet that `to_json` wrote."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        return cls(**fields)


def draw(rng: Rng, level: int) -> Sheet:
    """The sheet of this stream and level."""
    visible, hidden, centre, dimensions = rng.choice(_NAMINGS)
    right, up = rng.choice(_TURNS) if level >= 3 else ("+X", "+Z")
    return Sheet(
        third_angle=bool(rng.integer(0, 1)) or level == 0,
        scale=rng.choice((0.5, 2.0)) if level >= 2 else 1.0,
        gap=float(rng.integer(16, 22) * 2),
        visible=visible,
        hidden=hidden,
        centre=centre if level >= 1 else "",
        dimensions=dimensions,
        hidden_type=rng.choice(("HIDDEN", "DASHED")),
        weights=rng.choice(((50, 25), (70, 35), (35, 18))) if level >= 2 else None,
        positions=level >= 1,
        tolerance=(rng.integer(1, 3) / 10.0, rng.integer(1, 3) / 20.0) if level >= 4 else None,
        right=right,
        up=up,
    )


def origins(sheet: Sheet, piece: Workpiece) -> dict[View, Flat]:
    """Where the lower left corner of each view lies."""
    width, depth, height = (side * sheet.scale for side in piece.size)
    if sheet.third_angle:
        return {View.FRONT: (0.0, 0.0), View.TOP: (0.0, height + sheet.gap), View.RIGHT: (width + sheet.gap, 0.0)}
    return {View.FRONT: (0.0, 0.0), View.TOP: (0.0, -sheet.gap - depth), View.RIGHT: (-sheet.gap - depth, 0.0)}


def layers(sheet: Sheet) -> dict[str, Layer]:
    """Every layer that the brief asks for, by role."""
    thick, thin = sheet.weights or (None, None)
    found = {
        "visible": Layer(name=sheet.visible, linetype="Continuous", dashes=0, weight=thick),
        "hidden": Layer(name=sheet.hidden, linetype=sheet.hidden_type, dashes=2, weight=thin),
        "dimensions": Layer(name=sheet.dimensions, linetype="Continuous", dashes=0, weight=thin),
    }
    if sheet.centre:
        found["centre"] = Layer(name=sheet.centre, linetype="CENTER", dashes=4, weight=thin)
    return found


def expected(sheet: Sheet, piece: Workpiece, seen: Mapping[View, Seen]) -> Expected:
    """The whole drawing; `seen` are the lines of each view in true size."""
    at = origins(sheet, piece)
    by_role: dict[str, dict[str, list[Line]]] = {
        "visible": {view: [_placed(line, sheet, at[view]) for line in seen[view].visible] for view in View},
        "hidden": {view: [_placed(line, sheet, at[view]) for line in seen[view].hidden] for view in View},
    }
    if sheet.centre:
        by_role["centre"] = {view: centre_lines(sheet, piece, view) for view in View}
    return Expected(lines=by_role, layers=layers(sheet), measures=measures(sheet, piece))


def _placed(line: Line, sheet: Sheet, at: Flat) -> Line:
    if isinstance(line, Stroke):
        return Stroke(_put(line.start, sheet, at), _put(line.end, sheet, at))
    return Curve(_put(line.centre, sheet, at), line.radius * sheet.scale, line.start_deg, line.sweep_deg)


def _put(point: Flat, sheet: Sheet, at: Flat) -> Flat:
    return at[0] + point[0] * sheet.scale, at[1] + point[1] * sheet.scale


def centre_lines(sheet: Sheet, piece: Workpiece, view: View) -> list[Line]:
    """A cross on each circle, and the axis of each hole seen from the side."""
    at, found = origins(sheet, piece)[view], list[Line]()
    for hole in piece.holes:
        if hole.axis == view.depth:
            x, y = _put(hole.centre, sheet, at)
            reach = hole.widest * sheet.scale + OVERSHOOT_MM
            found += [Stroke((x - reach, y), (x + reach, y)), Stroke((x, y - reach), (x, y + reach))]
            continue
        others = [axis for axis in range(3) if axis != hole.axis]
        level = next(axis for axis in range(3) if axis != view.depth) == hole.axis
        across = hole.centre[others.index(3 - hole.axis - view.depth)] * sheet.scale
        low, high = hole.span[0] * sheet.scale - OVERSHOOT_MM, hole.span[1] * sheet.scale + OVERSHOOT_MM
        (ax, ay), (bx, by) = ((low, across), (high, across)) if level else ((across, low), (across, high))
        found.append(Stroke((at[0] + ax, at[1] + ay), (at[0] + bx, at[1] + by)))
    return found


def measures(sheet: Sheet, piece: Workpiece) -> list[Measure]:
    """Every dimension that the brief asks for."""
    at = origins(sheet, piece)
    width, depth, height = piece.size
    sizes = {View.FRONT: (width, height), View.TOP: (width, depth), View.RIGHT: (depth, height)}
    boxes = {view: (*at[view], *_put(sizes[view], sheet, at[view])) for view in View}

    def distance(name: str, view: View, axis: int, value: float, corner: Flat) -> Measure:
        start = _put((0.0, 0.0), sheet, at[view])
        end = _put(corner, sheet, at[view])
        tolerance = sheet.tolerance if name == "overall width" else None
        return Measure(name=name, value=value, ends=(start, end), axis=axis, region=boxes[view], tolerance=tolerance)

    found = [
        distance("overall width", View.FRONT, 0, width, (width, 0.0)),
        distance("overall height", View.FRONT, 1, height, (0.0, height)),
        distance("overall depth", View.TOP, 1, depth, (0.0, depth)),
    ]
    if not sheet.positions:
        return found
    for number, hole in enumerate(piece.holes, start=1):
        view = View.TOP if hole.axis == 2 else View.FRONT
        centre = _put(hole.centre, sheet, at[view])
        for name, radius in (("diameter", hole.radius), ("counterbore", hole.head)):
            if radius:
                ends = (centre, (radius * sheet.scale, 0.0))
                title = f"{name} of hole {number}"
                found.append(Measure(name=title, value=2 * radius, ends=ends, axis=None, region=boxes[view]))
        found.append(distance(f"hole {number} from the left", view, 0, hole.centre[0], hole.centre))
        found.append(distance(f"hole {number} from below", view, 1, hole.centre[1], hole.centre))
    return found
