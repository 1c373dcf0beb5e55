"""Drafting as sessions: what a draughtsman types, another right way, and what lazy or cheating ones hand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files

from ...core import ToolCall
from ...parts.drawing_check import Measure
from ...parts.drawing_views import Stroke, View, source
from .sheet import Sheet, centre_lines, layers, measures, origins
from .workpiece import Workpiece

STEP_PATH = "/workspace/part.step"
DXF_PATH = "/workspace/drawing.dxf"

Calls = Sequence[ToolCall]


def step_program(piece: Workpiece, sheet: Sheet, origin: tuple[float, float, float]) -> str:
    """Source that writes the part's STEP file, turned and moved as the file is."""
    axes = f"{direction(sheet.right)!r}, {direction(sheet.up)!r}, {origin!r}"
    write = f"write(solid({piece.rows!r}), {STEP_PATH!r}, {piece.title!r}, {axes})"
    return "\n".join([source("prismatic_solid"), _asset("step_file"), write])


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
        _python(f"{_asset('draft')}\n{_seated(sheet)}\nprint(size, part.volume)"),
        _python(_drafted(piece, sheet)),
        _view(DXF_PATH),
        _view(f"{DXF_PATH}@{window}"),
        ToolCall(tool="submit"),
    ]


def alternatives(piece: Workpiece, sheet: Sheet) -> Mapping[str, Calls]:
    """Lines found by rays to the eye, drawn as polylines and half arcs; aligned dimensions of a style of their own."""
    roles = layers(sheet)
    lines = [
        f"for view, (x, y) in {_places(piece, sheet)!r}.items():",
        "    for hidden, points in traced(part, *LOOKS[view]):",
        f"        layer = {roles['hidden'].name!r} if hidden else {roles['visible'].name!r}",
        f"        put_run(space, points * {sheet.scale!r} + np.array([x, y]), layer)",
        *_axes(piece, sheet),
        'style = document.dimstyles.duplicate_entry("EZDXF", "SHEET")',
        f"style.dxf.dimlfac, style.dxf.dimtxt, style.dxf.dimdec = {1.0 / sheet.scale!r}, 2.5, 2",
        "style.dxf.dimdsep, style.dxf.dimzin = ord('.'), 8",
        *(_own_dimension(each, sheet.dimensions) for each in measures(sheet, piece)),
        f'document.saveas("{DXF_PATH}")',
    ]
    opened = "\n".join([_asset("draft"), _asset("trace"), _seated(sheet), _blank(sheet)])
    return {"traced_by_rays": [_python("\n".join([opened, *lines])), ToolCall(tool="submit")]}


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


def mutants(piece: Workpiece, sheet: Sheet) -> Mapping[str, Calls]:
    """Near misses and hacks; each leaves a drawing."""
    one = replace(sheet, hidden=sheet.visible, centre=sheet.visible if sheet.centre else "")
    swapped = replace(sheet, third_angle=not sheet.third_angle)
    wrong = {
        "no_hidden_lines": _drafted(piece, sheet, hidden=False),
        "all_on_one_layer": _drafted(piece, one),
        "circles_as_polygons": _drafted(piece, sheet, faceted=True),
        "other_projection": _drafted(piece, swapped),
        "no_dimensions": _drafted(piece, sheet, dimensions=False),
        "dimensions_typed_over": _drafted(piece, sheet, typed_over=True),
        "text_instead_of_lines": _labels(piece, sheet),
    }
    if piece.slotted:
        wrong["tangent_edges_drawn"] = _drafted(piece, sheet, smooth=True)
    if sheet.scale != 1.0:
        wrong["scale_forgotten"] = _drafted(piece, replace(sheet, scale=1.0))
        wrong["dimensions_of_the_paper"] = _drafted(piece, sheet, factor=1.0)
    opened = f"{_asset('draft')}\n{_seated(sheet)}\n"
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
    smooth: bool = False,
    typed_over: bool = False,
    dimensions: bool = True,
    factor: float | None = None,
) -> str:
    switches = f"hidden={hidden}, faceted={faceted}, smooth={smooth}"
    drawn = (sheet.visible, sheet.hidden)
    lines = [
        _blank(sheet),
        f"put_views(space, part, {_places(piece, sheet)!r}, {sheet.scale!r}, {drawn!r}, {switches})",
        *_axes(piece, sheet),
    ]
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


def _places(piece: Workpiece, sheet: Sheet) -> dict[str, tuple[float, float]]:
    return {view.value: at for view, at in origins(sheet, piece).items()}


def _axes(piece: Workpiece, sheet: Sheet) -> list[str]:
    """Source of the centre lines, where they are asked for."""
    if not sheet.centre:
        return []
    drawn = [line for view in View for line in centre_lines(sheet, piece, view)]
    strokes = [(line.start, line.end) for line in drawn if isinstance(line, Stroke)]
    return [f"put_strokes(space, {strokes!r}, {sheet.centre!r})"]


def _blank(sheet: Sheet) -> str:
    # where two roles share a layer, it is that of the first
    rows = {layer.name: (layer.name, layer.linetype, layer.weight) for layer in reversed(layers(sheet).values())}
    return f"document = blank({[*rows.values()]!r})\nspace = document.modelspace()"


def _seated(sheet: Sheet) -> str:
    return f'part, size = seated("{STEP_PATH}", {direction(sheet.right)!r}, {direction(sheet.up)!r})'


def _asset(name: str) -> str:
    """A source of this folder, without its docstring."""
    text = files(__package__ or "").joinpath("assets", f"{name}.py").read_text(encoding="utf-8")
    return text.partition('"""\n\n')[2]


def _python(code: str) -> ToolCall:
    return ToolCall(tool="python", arguments={"code": code, "timeout_s": 300})


def _view(path: str) -> ToolCall:
    return ToolCall(tool="view", arguments={"path": path})
