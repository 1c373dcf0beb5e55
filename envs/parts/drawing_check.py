"""A DXF drawing measured against the lines, dimensions and layers that it should have.

Lines are compared both ways by points: every point of an expected line lies on a drawn one of its layer and kind, and
every point of a drawn line on an expected one. So it does not matter how lines are cut or joined, but polygons are no
circles, and text is no geometry. Tolerance 0.02 mm on the sheet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Check, Sandbox
from .control import require_tool
from .drawing_views import Curve, Flat, Line, Stroke, line_of, source
from .probe import run_probe

LINE_MM = 0.02
VALUE_MM = 0.01
LEAST_SHARE = 0.5
_STEP_MM = 0.4
_MOST_POINTS = 60_000
_MOST_OF_A_LINE = 1000
_DIAMETRIC, _LINEAR, _ALIGNED = 3, 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A layer as it is asked for."""

    name: str
    linetype: str
    dashes: int
    """The fewest dashes and gaps of its line type; 0 for a continuous one."""
    weight: int | None = None
    """Hundredths of a millimetre; None where it does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A dimension that is asked for, in sheet coordinates."""

    name: str
    value: float
    """What it must show: the true size."""
    ends: tuple[Flat, Flat]
    """For a distance: points whose coordinate along the measure counts. For a diameter: centre, and (radius, 0)."""
    axis: int | None
    """0 across, 1 upright, None for a diameter."""
    region: tuple[float, float, float, float]
    """Where its origin points must lie: the view."""
    tolerance: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The whole drawing: the lines of each role by view, and everything else."""

    lines: Mapping[str, Mapping[str, Sequence[Line]]]
    """Role (visible, hidden, centre) → view → lines on the sheet."""
    layers: Mapping[str, Layer]
    measures: Sequence[Measure]


async def check_drawing(sandbox: Sandbox, path: str, expected: Expected, *, timeout_s: float) -> list[Check]:
    """All checks of the DXF file at `path`.

    Raises:
        VerifierError: the probe broke by itself, or ezdxf does not load.
        SandboxLost: the sandbox is gone.
    """
    result = await run_probe(sandbox, source("drawing_probe"), {"path": path}, timeout_s=timeout_s)
    if not isinstance(result.value, dict):
        await require_tool(sandbox, "ezdxf")
        return judge({"error": f"parsing it {result.failure}"}, expected)
    return judge(result.value, expected)


def judge(found: Mapping[str, Any], expected: Expected) -> list[Check]:
    """The checks on what `drawing_probe.measure` answered."""
    error = str(found.get("error", ""))
    gates = [Check(name="readable DXF", score=float(not error), gate=True, evidence=error or str(found["version"]))]
    names = [f"{role} lines, {view}" for role, views in expected.lines.items() for view in views]
    others = ["layers", "header and contents", "dimensions"]
    if error:
        return [*gates, *(Check(name=name, score=0.0, evidence="not measured") for name in (*names, *others))]
    drawn = {role: _on_layer(found["pieces"], expected.layers[role].name) for role in expected.lines}
    visible = [line for lines in expected.lines["visible"].values() for line in lines]
    share = _covered(visible, drawn["visible"])
    evidence = (
        f"{share:.0%} of the visible lines are there, at least {LEAST_SHARE:.0%} are needed for anything to count"
    )
    gates.append(Check(name="a drawing of this part", score=float(share >= LEAST_SHARE), gate=True, evidence=evidence))
    return [
        *gates,
        *_views(expected, drawn),
        _layers(found, expected),
        _contents(found, expected),
        _dimensions(found["dimensions"], expected),
    ]


def _on_layer(pieces: Sequence[Sequence[Any]], layer: str) -> list[Line]:
    return [line_of(numbers) for name, *numbers in pieces if str(name).upper() == layer.upper()]


def _views(expected: Expected, drawn: Mapping[str, Sequence[Line]]) -> Iterator[Check]:
    """A drawn line belongs to the view whose expected lines are nearest to it."""
    boxes = {view: _box(lines) for view, lines in expected.lines["visible"].items()}
    for role, views in expected.lines.items():
        mine: dict[str, list[Line]] = {view: [] for view in views}
        for line in drawn[role]:
            middle = _points(line, 3)[1]
            mine[min(boxes, key=lambda view: _away(boxes[view], middle))].append(line)
        allowed = ("visible", "hidden") if role == "hidden" else (role,)
        for view, lines in views.items():
            needed = lines if role != "hidden" else _not_under(lines, expected.lines["visible"][view])
            may = [line for kind in allowed for line in expected.lines[kind][view]]
            there, right = _covered(needed, drawn[role]), _covered(mine[view], may)
            evidence = f"{there:.1%} of the lines are there, {right:.1%} of what is drawn belongs there"
            yield Check(name=f"{role} lines, {view}", score=_steps(min(there, right)), evidence=evidence)


def _steps(share: float) -> float:
    """1 only where all is right; below, half a share missing is nothing right."""
    return 1.0 if share > 0.9995 else max(0.0, min(0.99, 2.0 * share - 1.0))


def _box(lines: Sequence[Line]) -> tuple[float, float, float, float]:
    points = np.concatenate([_points(line, 9) for line in lines])
    (x0, y0), (x1, y1) = points.min(axis=0), points.max(axis=0)
    return float(x0), float(y0), float(x1), float(y1)


def _away(box: tuple[float, float, float, float], point: np.ndarray) -> float:
    dx = max(box[0] - point[0], 0.0, point[0] - box[2])
    dy = max(box[1] - point[1], 0.0, point[1] - box[3])
    return math.hypot(dx, dy)


def _points(line: Line, count: int) -> np.ndarray:
    shares = np.linspace(0.0, 1.0, count)[:, None]
    if isinstance(line, Stroke):
        return np.array(line.start) + shares * (np.array(line.end) - np.array(line.start))
    turns = np.radians(line.start_deg + shares[:, 0] * line.sweep_deg)
    return np.array(line.centre) + line.radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)


def _length(line: Line) -> float:
    if isinstance(line, Stroke):
        return math.dist(line.start, line.end)
    return line.radius * math.radians(line.sweep_deg)


def _covered(needed: Sequence[Line], given: Sequence[Line]) -> float:
    """The share of the points of `needed` that lie on a line of the same kind in `given`; 1 where none is needed."""
    total, on = 0, 0
    strokes = _ends(given)
    curves = [other for other in given if isinstance(other, Curve)]
    for line in needed:
        points = _points(line, min(max(3, math.ceil(_length(line) / _STEP_MM)), _MOST_OF_A_LINE))
        total += len(points)
        if total > _MOST_POINTS:
            return 0.0
        hit = _on_strokes(points, strokes) if isinstance(line, Stroke) else _on_curves(points, line, curves)
        on += int(hit.sum())
    return on / total if total else 1.0


def _ends(lines: Sequence[Line]) -> np.ndarray:
    """The straight ones, a row each."""
    return np.array([(*line.start, *line.end) for line in lines if isinstance(line, Stroke)]).reshape(-1, 4)


def _on_strokes(points: np.ndarray, strokes: np.ndarray) -> np.ndarray:
    starts, ends = strokes[:, :2], strokes[:, 2:]
    low, high = points.min(axis=0) - LINE_MM, points.max(axis=0) + LINE_MM
    near = ((np.minimum(starts, ends) <= high) & (np.maximum(starts, ends) >= low)).all(axis=1)
    hit = np.zeros(len(points), dtype=bool)
    for start, span in zip(starts[near], (ends - starts)[near], strict=True):
        shares = np.clip((points - start) @ span / max(float(span @ span), 1e-12), 0.0, 1.0)
        hit |= np.hypot(*(points - start - shares[:, None] * span).T) <= LINE_MM
    return hit


def _on_curves(points: np.ndarray, line: Curve, curves: Sequence[Curve]) -> np.ndarray:
    hit = np.zeros(len(points), dtype=bool)
    for other in curves:
        if math.dist(line.centre, other.centre) > LINE_MM or abs(line.radius - other.radius) > LINE_MM:
            continue
        away = points - np.array(other.centre)
        turns = (np.degrees(np.arctan2(away[:, 1], away[:, 0])) - other.start_deg) % 360.0
        slack = math.degrees(LINE_MM / max(other.radius, LINE_MM))
        hit |= (turns <= other.sweep_deg + slack) | (turns >= 360.0 - slack)
    return hit


def _not_under(lines: Sequence[Line], visible: Sequence[Line]) -> list[Line]:
    """Pieces of lines that no visible one covers."""
    left: list[Line] = []
    strokes = _ends(visible)
    for line in lines:
        if isinstance(line, Curve):
            if _covered([line], visible) < 0.5:
                left.append(line)
            continue
        points = _points(line, max(3, math.ceil(math.dist(line.start, line.end) / (2.0 * LINE_MM))))
        under = _on_strokes(points, strokes)
        runs = np.flatnonzero(np.diff(np.concatenate([[True], under, [True]]).astype(int)))
        for first, last in zip(runs[::2], runs[1::2] - 1, strict=True):
            if last > first:
                a, b = points[first], points[last]
                left.append(Stroke((float(a[0]), float(a[1])), (float(b[0]), float(b[1]))))
    return left


def _layers(found: Mapping[str, Any], expected: Expected) -> Check:
    there = {str(name).upper(): about for name, about in found["layers"].items()}
    wrong: list[str] = []
    for layer in expected.layers.values():
        about = there.get(layer.name.upper())
        if about is None:
            wrong.append(f"no layer {layer.name}")
        elif str(about["linetype"]).upper() != layer.linetype.upper():
            wrong.append(f"{layer.name} has line type {about['linetype']}")
        elif about["dashes"] < layer.dashes:
            wrong.append(f"line type {layer.linetype} has no dashes")
        elif layer.weight is not None and about["weight"] != layer.weight:
            wrong.append(f"{layer.name} has weight {about['weight']}")
        elif not about["shown"]:
            wrong.append(f"{layer.name} is off or frozen")
    score = 1.0 - len(wrong) / len(expected.layers)
    return Check(name="layers", score=score, evidence="; ".join(wrong[:6]) or "all as asked for")


def _contents(found: Mapping[str, Any], expected: Expected) -> Check:
    names = {expected.layers[role].name.upper() for role in expected.lines}
    off = [str(piece[0]) for piece in found["pieces"] if str(piece[0]).upper() not in names]
    wrong = [f"{count} {kind}" for kind, count in found["strange"].items()]
    if found["units"] != 4 or found["metric"] != 1:
        wrong.append(f"$INSUNITS {found['units']}, $MEASUREMENT {found['metric']}")
    if str(found["version"]) < "AC1015":
        wrong.append(f"version {found['version']}")
    if off:
        wrong.append(f"{len(off)} lines on layers that are not for lines ({off[0]})")
    if found["styled"]:
        wrong.append(f"{found['styled']} lines with a line type, colour or weight of their own")
    score = max(0.0, 1.0 - len(wrong) / 3.0)
    return Check(name="header and contents", score=score, evidence="; ".join(wrong[:6])[:300] or "as asked for")


def _dimensions(found: Sequence[Mapping[str, Any]], expected: Expected) -> Check:
    layer = expected.layers["dimensions"].name.upper()
    honest = [row for row in found if not _fault(row, layer)]
    missing = [each.name for each in expected.measures if not any(_shows(row, each) for row in honest)]
    faults = [fault for row in found if (fault := _fault(row, layer))]
    total = max(len(expected.measures), 1)
    score = max(0.0, 1.0 - (len(missing) + 0.5 * len(faults)) / total)
    evidence = f"{len(missing)} of {total} missing or wrong: {', '.join(missing[:5])}" if missing else "all there"
    if faults:
        evidence += f"; {len(faults)} not honest: {faults[0]}"
    return Check(name="dimensions", score=score, weight=3.0, evidence=evidence)


def _measured(row: Mapping[str, Any]) -> float:
    points = row["points"]
    if row["kind"] == _DIAMETRIC:
        return math.dist(points["defpoint"], points["defpoint4"])
    (ax, ay), (bx, by) = points["defpoint2"], points["defpoint3"]
    if row["kind"] == _ALIGNED:
        return math.dist((ax, ay), (bx, by))
    turn = math.radians(row["angle"])
    return abs((bx - ax) * math.cos(turn) + (by - ay) * math.sin(turn))


def _fault(row: Mapping[str, Any], layer: str) -> str:
    """Why a dimension does not show what it measures."""
    shown = _measured(row) * row["factor"]
    if str(row["layer"]).upper() != layer:
        return f"on layer {row['layer']}"
    if row["kind"] not in (_DIAMETRIC, _LINEAR, _ALIGNED):
        return f"of type {row['kind']}"
    if row["text"] not in ("", "<>"):
        return f"its text is typed over: {row['text'][:40]!r}"
    if not row["lines"] or not row["numbers"]:
        return "not rendered: its block is missing or empty"
    if abs(row["numbers"][0] - shown) > VALUE_MM:
        return f"its block shows {row['numbers'][0]:g}, it measures {shown:.3f}"
    return ""


def _shows(row: Mapping[str, Any], asked: Measure) -> bool:
    if abs(_measured(row) * row["factor"] - asked.value) > VALUE_MM:
        return False
    if asked.tolerance is not None:
        if len(row["tolerances"]) != 2:
            return False
        upper, lower = row["tolerances"]
        if abs(upper - asked.tolerance[0]) > 1e-6 or abs(lower - asked.tolerance[1]) > 1e-6:
            return False
    points = row["points"]
    if asked.axis is None:
        middle = [(a + b) / 2.0 for a, b in zip(points["defpoint"], points["defpoint4"], strict=True)]
        return row["kind"] == _DIAMETRIC and math.dist(middle, asked.ends[0]) <= LINE_MM
    if row["kind"] == _DIAMETRIC or not _lies_along(row, asked.axis):
        return False
    x0, y0, x1, y1 = asked.region
    ends = [points["defpoint2"], points["defpoint3"]]
    inside = all(x0 - LINE_MM <= x <= x1 + LINE_MM and y0 - LINE_MM <= y <= y1 + LINE_MM for x, y in ends)
    here, there = sorted(end[asked.axis] for end in ends), sorted(end[asked.axis] for end in asked.ends)
    return inside and all(abs(a - b) <= LINE_MM for a, b in zip(here, there, strict=True))


def _lies_along(row: Mapping[str, Any], axis: int) -> bool:
    points = row["points"]
    if row["kind"] == _ALIGNED:
        return abs(points["defpoint2"][1 - axis] - points["defpoint3"][1 - axis]) <= LINE_MM
    return abs(math.sin(math.radians(row["angle"] - 90.0 * axis))) < 1e-6
