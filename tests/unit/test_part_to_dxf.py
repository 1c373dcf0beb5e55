"""cad/PartToDxf on the host: the parts and sheets that are drawn, and the judgement of parsed drawings."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.cad.part_to_dxf import sheet, workpiece
from metier.envs.cad.part_to_dxf.family import PartToDxf
from metier.envs.cad.part_to_dxf.sheet import Sheet
from metier.envs.cad.part_to_dxf.workpiece import Workpiece
from metier.envs.core import Verdict, instance_rng
from metier.envs.parts.drawing_check import Expected, Measure, judge
from metier.envs.parts.drawing_views import Curve, Flat, Seen, Stroke, View
from metier.envs.parts.prismatic import Block

LEVELS = range(5)
ENV_ID = "cad/PartToDxf-v0"


def drawn(level: int, seed: int) -> tuple[Workpiece, Sheet]:
    rng = instance_rng(ENV_ID, {}, seed, level)
    return workpiece.draw(rng.child("part"), level), sheet.draw(rng.child("sheet"), level)


def outlines(piece: Workpiece) -> dict[View, Seen]:
    """Not what the part shows, but enough to judge by: outlines, circles in the top view, a hidden line in each."""
    width, depth, height = piece.size
    sizes = {View.FRONT: (width, height), View.TOP: (width, depth), View.RIGHT: (depth, height)}
    seen: dict[View, Seen] = {}
    for view, (x, y) in sizes.items():
        corners: list[Flat] = [(0.0, 0.0), (x, 0.0), (x, y), (0.0, y)]
        around = [Stroke(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]
        holes = [hole for hole in piece.holes if hole.axis == view.depth == 2]
        circles = [Curve(hole.centre, hole.radius, 0.0, 360.0) for hole in holes]
        # the lower half runs under the outline
        under = [Stroke((0.0, y / 3.0), (x, y / 3.0)), Stroke((0.0, 0.0), (x, 0.0))]
        seen[view] = Seen([*around, *circles], under)
    return seen


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), level=st.sampled_from(list(LEVELS)))
def test_truth_survives_json(seed: int, level: int) -> None:
    piece, paper = drawn(level, seed)
    assert drawn(level, seed) == (piece, paper)
    assert Workpiece.from_json(json.loads(json.dumps(piece.to_json()))) == piece
    assert Sheet.from_json(json.loads(json.dumps(paper.to_json()))) == paper
    assert json.loads(json.dumps(piece.rows))


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 100_000), level=st.sampled_from(list(LEVELS)))
def test_features_keep_clear_of_each_other(seed: int, level: int) -> None:
    """Else there would be edges that are neither straight nor round, or that meet by chance."""
    piece, _ = drawn(level, seed)
    width, depth, height = piece.size
    taken: list[tuple[float, float]] = []
    for hole in piece.holes:
        (x, v), reach = hole.centre, hole.widest
        if hole.axis == 2:
            taken.append((x - reach, x + reach))
            assert v - reach >= 1.0 and v + reach <= depth - 1.0
        else:
            # a chamfer of the upper edge takes up to 3 mm
            assert v + reach <= height - 4.0 and x - reach > 0.0 and x + reach < width
    for cut in piece.cuts:
        if isinstance(cut, Block) and cut.high[0] - cut.low[0] < width:
            taken.append((cut.low[0], cut.high[0]))
    for (_, end), (start, _) in zip(sorted(taken), sorted(taken)[1:], strict=False):
        assert end < start


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), level=st.sampled_from(list(LEVELS)))
def test_dimensions_measure_what_they_show(seed: int, level: int) -> None:
    piece, paper = drawn(level, seed)
    found = sheet.measures(paper, piece)
    assert len(found) == 3 + (sum(4 if hole.head else 3 for hole in piece.holes) if level else 0)
    for each in found:
        start, end = each.ends
        measured = 2.0 * end[0] if each.axis is None else end[each.axis] - start[each.axis]
        assert math.isclose(measured / paper.scale, each.value, abs_tol=1e-9)
        x0, y0, x1, y1 = each.region
        assert x0 <= start[0] <= x1 and y0 <= start[1] <= y1


def test_instances_differ_and_solutions_are_python() -> None:
    family = PartToDxf()
    setups = set[str]()
    for level in LEVELS:
        instance = family.generate(instance_rng(ENV_ID, {}, 1, level), level)
        setups.add(instance.setup[0])
        mutants = family.mutants(instance)
        assert len(mutants) >= 7 and ("tangent_edges_drawn" in mutants) == (level >= 2)
        for calls in (family.oracle(instance), *mutants.values(), *family.alternatives(instance).values()):
            assert calls[-1].tool == "submit"
            for call in calls:
                ast.parse(str(call.arguments.get("code", "")))
    assert len(setups) == len(LEVELS)


def _dimension(each: Measure, layer: str, scale: float) -> dict[str, Any]:
    points: dict[str, list[float]] = {name: [0.0, 0.0] for name in ("defpoint", "defpoint2", "defpoint3", "defpoint4")}
    if each.axis is None:
        (x, y), (radius, _) = each.ends
        points |= {"defpoint": [x - radius, y], "defpoint4": [x + radius, y]}
    else:
        (x0, y0), (x1, y1) = each.ends
        points |= {"defpoint2": [x0, y0], "defpoint3": [x1, y0] if each.axis == 0 else [x0, y1]}
    return {
        "layer": layer,
        "kind": 3 if each.axis is None else 0,
        "angle": None if each.axis is None else 90.0 * each.axis,
        "points": points,
        "factor": 1.0 / scale,
        "text": "<>",
        "numbers": [each.value],
        "lines": 3,
        "tolerances": list(each.tolerance or ()),
    }


def perfect(expected: Expected, scale: float) -> dict[str, Any]:
    """What the probe would answer for a perfect drawing."""
    pieces: list[list[Any]] = []
    for role, views in expected.lines.items():
        for line in (line for view in views.values() for line in view):
            layer = expected.layers[role].name
            if isinstance(line, Stroke):
                pieces.append([layer, *line.start, *line.end])
            else:
                pieces.append([layer, *line.centre, line.radius, line.start_deg, line.sweep_deg])
    return {
        "version": "AC1024",
        "units": 4,
        "metric": 1,
        "layers": {
            layer.name: {
                "linetype": layer.linetype,
                "dashes": layer.dashes,
                "weight": layer.weight or -3,
                "shown": True,
            }
            for layer in expected.layers.values()
        },
        "pieces": pieces,
        "dimensions": [_dimension(each, expected.layers["dimensions"].name, scale) for each in expected.measures],
        "texts": 0,
        "strange": {},
        "styled": 0,
    }


@pytest.mark.parametrize("level", [0, 4])
def test_a_perfect_drawing_passes_and_each_fault_does_not(level: int) -> None:
    piece, paper = drawn(level, 3)
    expected = sheet.expected(paper, piece, outlines(piece))
    right = perfect(expected, paper.scale)
    verdict = Verdict.of(*judge(right, expected))
    assert (verdict.passed, verdict.reward) == (True, 1.0), verdict.checks
    visible = expected.layers["visible"].name
    first = right["dimensions"][0]
    faults: list[dict[str, Any]] = [
        {"pieces": [row for row in right["pieces"] if row[0] != expected.layers["hidden"].name]},
        {"pieces": [[visible, *row[1:]] for row in right["pieces"]]},
        {"pieces": [*right["pieces"], [visible, 0.0, 0.0, 5.0, 7.0]]},
        {"pieces": [*right["pieces"], [expected.layers["dimensions"].name, 0.0, 0.0, 5.0, 0.0]]},
        {"pieces": right["pieces"][1:] if right["pieces"][0] not in right["pieces"][1:] else right["pieces"][5:]},
        {"dimensions": right["dimensions"][1:]},
        {"dimensions": [{**first, "text": f"{first['numbers'][0]}"}, *right["dimensions"][1:]]},
        {"dimensions": [{**first, "numbers": [1.0]}, *right["dimensions"][1:]]},
        {"dimensions": [{**first, "factor": 3.0}, *right["dimensions"][1:]]},
        {"units": 1},
        {"strange": {"INSERT": 1}},
        {"layers": {}},
    ]
    for fault in faults:
        judged = Verdict.of(*judge({**right, **fault}, expected))
        assert not judged.passed, fault
        assert judged.reward < 1.0


@pytest.mark.parametrize("fault", [{"error": "the file is missing"}, {"pieces": []}])
def test_no_drawing_earns_nothing(fault: dict[str, Any]) -> None:
    piece, paper = drawn(1, 3)
    expected = sheet.expected(paper, piece, outlines(piece))
    assert Verdict.of(*judge({**perfect(expected, paper.scale), **fault}, expected)).reward == 0.0
