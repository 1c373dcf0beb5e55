"""Drafting as sessions: what a draughtsman types, another right way, and what lazy or cheating ones hand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files

from ...core import ToolCall
from ...parts.drawing_check import Measure
from ...parts.orthographic import Curve, Line, Stroke, View
from ...parts.prismatic import Block, Bore, Wedge
from .sheet import Sheet, centre_lines, expected, measures, origins
from .workpiece import Workpiece

STEP_PATH = "/workspace/part.step"
DXF_PATH = "/workspace/drawing.dxf"

Calls = Sequence[ToolCall]


def step_program(piece: Workpiece, sheet: Sheet, move: tuple[float, float, float]) -> str:
    """build123d source that writes the part's STEP file, turned and moved as the file is."""
    corner, turned = "align=(Align.MIN, Align.MIN, Align.MIN)", "align=(Align.CENTER, Align.CENTER, Align.MIN)"
    lines = ["from build123d import *", "import re", "part = Part()"]
    for sign, element in [*(("+", block) for block in piece.blocks), *(("-", cut) for cut in piece.cuts)]:
        if isinstance(element, Block):
            size = tuple(round(high - low, 6) for low, high in zip(element.low, element.high, strict=True))
            lines.append(f"part {sign}= Pos{element.low!r} * Box(*{size!r}, {corner})")
        elif isinstance(element, Bore):
            (u, v), (low, high) = element.centre, element.span
            place = f"Pos({u}, {v}, {low})" if element.axis == 2 else f"Pos({u}, {low}, {v}) * Rot(-90, 0, 0)"
            lines.append(f"part {sign}= {place} * Cylinder({element.radii[0]}, {high - low}, {turned})")
        else:
            lines += _wedge(element)
    lines += [
        f"frame = Plane(origin={move!r}, x_dir={direction(sheet.right)!r}, z_dir={direction(sheet.up)!r})",
        f'export_step(frame.from_local_coords(part), "{STEP_PATH}")',
        f'text = open("{STEP_PATH}").read()',
        r"""text = re.sub(r"'\d{4}-\d\d-\d\dT[\d:]+'", "'2000-01-01T00:00:00'", text)""",
        f'open("{STEP_PATH}", "w").write(text)',
    ]
    return "\n".join(lines)


def _wedge(wedge: Wedge) -> list[str]:
    (u, v), (su, sv), (lu, lv) = wedge.corner, wedge.signs, wedge.legs
    low, high = wedge.span
    plane, along = ("Plane.YZ", "(1, 0, 0)") if wedge.axis == 0 else ("Plane.XY", "(0, 0, 1)")
    points = f"({u}, {v}), ({u + su * lu}, {v}), ({u}, {v + sv * lv})"
    return [
        f"corner = make_face({plane}.offset({low}) * Polyline({points}, close=True))",
        f"part -= extrude(corner, amount={high - low}, dir={along})",
    ]


def direction(name: str) -> tuple[float, float, float]:
    """The unit vector of "+X" and the like."""
    sign = 1.0 if name[0] == "+" else -1.0
    x, y, z = (sign if axis == name[1] else 0.0 for axis in "XYZ")
    return x, y, z


def oracle(piece: Workpiece, sheet: Sheet) -> Calls:
    """Look at the part, draft with the kernel's hidden-line removal, look at the drawing."""
    front = origins(sheet, piece)[View.FRONT]
    width, _, height = (side * sheet.scale for side in piece.size)
    window = f"{front[0] - 25},{front[1] - 25},{front[0] + width + 10},{front[1] + height + 10}"
    return [
        _view(STEP_PATH),
        _python(_tools() + f"part, size = {_seated(sheet)}\nprint(size, part.volume)"),
        _python(_drafted(piece, sheet)),
        _view(DXF_PATH),
        _view(f"{DXF_PATH}@{window}"),
        ToolCall(tool="submit"),
    ]


def alternatives(piece: Workpiece, sheet: Sheet) -> Mapping[str, Calls]:
    """Constructed from coordinates, as polylines, arcs and aligned dimensions of a style of their own."""
    whole = expected(sheet, piece)
    lines = [_tools(), _blank(sheet)]
    for role in whole.lines:
        rows = [line for view in whole.lines[role].values() for line in view]
        layer = whole.layers[role].name
        lines.append(f"for points in {_polylines(rows)!r}:")
        lines.append(f'    space.add_lwpolyline(points, dxfattribs={{"layer": {layer!r}}})')
        lines.append(f"for centre, radius, start, end in {_halves(rows)!r}:")
        lines.append(f'    space.add_arc(centre, radius, start, end, dxfattribs={{"layer": {layer!r}}})')
    lines.append(
        'style = document.dimstyles.duplicate_entry("EZDXF", "SHEET")\n'
        f"style.dxf.dimlfac, style.dxf.dimtxt, style.dxf.dimdec = {1.0 / sheet.scale!r}, 2.5, 2\n"
        "style.dxf.dimdsep, style.dxf.dimzin = ord('.'), 8"
    )
    for each in whole.measures:
        lines.append(_own_dimension(each, whole.layers["dimensions"].name))
    lines.append(f'document.saveas("{DXF_PATH}")')
    return {"constructed_as_polylines": [_python("\n".join(lines)), ToolCall(tool="submit")]}


def _own_dimension(each: Measure, layer: str) -> str:
    attributes = f'dimstyle="SHEET", dxfattribs={{"layer": {layer!r}}}'
    if each.tolerance:
        attributes += f', override={{"dimtol": 1, "dimtp": {each.tolerance[0]}, "dimtm": {each.tolerance[1]}}}'
    if each.axis is None:
        return f"space.add_diameter_dim({each.ends[0]!r}, radius={each.ends[1][0]!r}, angle=140, {attributes}).render()"
    (x0, y0), (x1, y1) = each.ends
    end = (x1, y0) if each.axis == 0 else (x0, y1)
    # a dimension line to the left of an upright measure, below a level one
    away = 8 if each.axis else -8
    return f"space.add_aligned_dim(p1={each.ends[0]!r}, p2={end!r}, distance={away}, {attributes}).render()"


def _polylines(rows: Sequence[Line]) -> list[list[tuple[float, float]]]:
    return [[line.start, line.end] for line in rows if isinstance(line, Stroke)]


def _halves(rows: Sequence[Line]) -> list[tuple[tuple[float, float], float, float, float]]:
    arcs = [line for line in rows if isinstance(line, Curve)]
    return [
        (
            arc.centre,
            arc.radius,
            arc.start_deg + half * arc.sweep_deg / 2,
            arc.start_deg + (half + 1) * arc.sweep_deg / 2,
        )
        for arc in arcs
        for half in (0, 1)
    ]


def mutants(piece: Workpiece, sheet: Sheet) -> Mapping[str, Calls]:
    """Near misses and hacks; each leaves a drawing."""
    one = replace(sheet, hidden=sheet.visible, centre=sheet.visible if sheet.centre else "")
    swapped = replace(sheet, third_angle=not sheet.third_angle)
    wrong = {
        "no_hidden_lines": _drafted(piece, sheet, hidden=False),
        "all_on_one_layer": _drafted(piece, one),
        "circles_as_polygons": _drafted(piece, sheet, faceted=True),
        "dimensions_typed_over": _drafted(piece, sheet, typed_over=True),
        "other_projection": _drafted(piece, swapped),
        "no_dimensions": _drafted(piece, sheet, dimensions=False),
        "text_instead_of_lines": _labels(piece, sheet),
    }
    if sheet.scale != 1.0:
        wrong["scale_forgotten"] = _drafted(piece, replace(sheet, scale=1.0))
        wrong["dimensions_of_the_paper"] = _drafted(piece, sheet, factor=1.0)
    opened = f"{_tools()}part, size = {_seated(sheet)}\n"
    return {name: [_python(opened + code), ToolCall(tool="submit")] for name, code in wrong.items()}


def _labels(piece: Workpiece, sheet: Sheet) -> str:
    rows = [(each.name, f"{each.value:g}") for each in measures(sheet, piece)]
    return "\n".join(
        [
            _blank(sheet),
            f"for row, (name, value) in enumerate({rows!r}):",
            f"    text = space.add_text(name + value, height=3, dxfattribs=dict(layer={sheet.visible!r}))",
            "    text.set_placement((0, 5 * row))",
            f'document.saveas("{DXF_PATH}")',
        ]
    )


def _drafted(
    piece: Workpiece,
    sheet: Sheet,
    *,
    hidden: bool = True,
    faceted: bool = False,
    typed_over: bool = False,
    dimensions: bool = True,
    factor: float | None = None,
) -> str:
    places = {view.value: at for view, at in origins(sheet, piece).items()}
    layers = (sheet.visible, sheet.hidden)
    switches = f"hidden={hidden}, faceted={faceted}"
    lines = [_blank(sheet), f"put_views(space, part, {places!r}, {sheet.scale!r}, {layers!r}, {switches})"]
    if sheet.centre:
        strokes = _polylines([line for view in View for line in centre_lines(sheet, piece, view)])
        lines.append(f"put_strokes(space, {strokes!r}, {sheet.centre!r})")
    if dimensions:
        rows = [_row(each) for each in measures(sheet, piece)]
        lines.append(
            f"put_dimensions(space, {rows!r}, {sheet.dimensions!r}, {factor or 1.0 / sheet.scale!r}, "
            f"typed_over={typed_over})"
        )
    return "\n".join([*lines, f'document.saveas("{DXF_PATH}")'])


def _row(each: Measure) -> tuple[object, ...]:
    end: object = each.ends[1][0] if each.axis is None else each.ends[1]
    return each.axis, each.ends[0], end, each.value, each.tolerance


def _blank(sheet: Sheet) -> str:
    thick, thin = sheet.weights or (None, None)
    layers = {
        sheet.visible: ("Continuous", thick),
        sheet.hidden: (sheet.hidden_type, thin),
        sheet.centre: ("CENTER", thin),
        sheet.dimensions: ("Continuous", thin),
    }
    rows = [(name, *about) for name, about in layers.items() if name]
    return f"document = blank({rows!r})\nspace = document.modelspace()"


def _seated(sheet: Sheet) -> str:
    return f'seated("{STEP_PATH}", {direction(sheet.right)!r}, {direction(sheet.up)!r})'


def _tools() -> str:
    source = files(__package__ or "").joinpath("assets", "draft.py").read_text(encoding="utf-8")
    return source.partition('"""\n\n')[2]


def _python(code: str) -> ToolCall:
    return ToolCall(tool="python", arguments={"code": code, "timeout_s": 300})


def _view(path: str) -> ToolCall:
    return ToolCall(tool="view", arguments={"path": path})
