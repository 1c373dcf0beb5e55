"""cad/PartToDxf on the host: exact projections, the sheet's rules, and the judgement of parsed drawings."""

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
from metier.envs.parts.orthographic import Curve, Stroke, View, lines
from metier.envs.parts.prismatic import Block, Bore, Part

LEVELS = range(5)
ENV_ID = "cad/PartToDxf-v0"


def drawn(level: int, seed: int) -> tuple[Workpiece, Sheet]:
    rng = instance_rng(ENV_ID, {}, seed, level)
    return workpiece.draw(rng.child("part"), level), sheet.draw(rng.child("sheet"), level)


def test_a_plate_with_a_bore_shows_what_one_draws_by_hand() -> None:
    plate = Block(low=(0.0, 0.0, 0.0), high=(20.0, 10.0, 4.0))
    part = Part(added=(plate,), cut=(Bore(axis=2, centre=(6.0, 5.0), radii=(2.0, 2.0), span=(0.0, 4.0)),))
    top, front = lines(part, View.TOP), lines(part, View.FRONT)
    assert [line for line in top if isinstance(line, Curve) and not line.hidden] == [
        Curve((6.0, 5.0), 2.0, 0.0, 360.0, False)
    ]
    hidden = {(line.start, line.end) for line in front if isinstance(line, Stroke) and line.hidden}
    assert {((4.0, 0.0), (4.0, 4.0)), ((8.0, 0.0), (8.0, 4.0))} <= hidden
    visible = sum(math.dist(line.start, line.end) for line in front if isinstance(line, Stroke) and not line.hidden)
    assert visible >= 2 * (20.0 + 4.0)


def test_coplanar_blocks_have_no_seam() -> None:
    halves = (Block(low=(0.0, 0.0, 0.0), high=(5.0, 5.0, 5.0)), Block(low=(5.0, 0.0, 0.0), high=(9.0, 5.0, 5.0)))
    seams = [
        line
        for line in lines(Part(added=halves, cut=()), View.FRONT)
        if isinstance(line, Stroke) and line.start[0] == line.end[0] == 5.0
    ]
    assert not seams


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), level=st.sampled_from(list(LEVELS)))
def test_truth_survives_json_and_lines_stay_in_the_box(seed: int, level: int) -> None:
    piece, paper = drawn(level, seed)
    assert drawn(level, seed) == (piece, paper)
    assert Workpiece.from_json(json.loads(json.dumps(piece.to_json()))) == piece
    assert Sheet.from_json(json.loads(json.dumps(paper.to_json()))) == paper
    width, depth, _ = piece.size
    for line in lines(piece.part(), View.TOP):
        for x, y in (line.start, line.end) if isinstance(line, Stroke) else (line.centre,):
            assert -1e-6 <= x <= width + 1e-6 and -1e-6 <= y <= depth + 1e-6


def test_instances_differ_and_solutions_are_python() -> None:
    family = PartToDxf()
    setups = set[str]()
    for level in LEVELS:
        instance = family.generate(instance_rng(ENV_ID, {}, 1, level), level)
        setups.add(instance.setup[0])
        mutants = family.mutants(instance)
        assert len(mutants) >= 7
        for calls in (family.oracle(instance), *mutants.values()):
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
    expected = sheet.expected(paper, piece)
    right = perfect(expected, paper.scale)
    verdict = Verdict.of(*judge(right, expected))
    assert (verdict.passed, verdict.reward) == (True, 1.0), verdict.checks
    visible = expected.layers["visible"].name
    first = right["dimensions"][0]
    faults: list[dict[str, Any]] = [
        {"pieces": [row for row in right["pieces"] if row[0] != expected.layers["hidden"].name]},
        {"pieces": [[visible, *row[1:]] for row in right["pieces"]]},
        {"pieces": [*right["pieces"], [visible, 0.0, 0.0, 5.0, 7.0]]},
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
    expected = sheet.expected(paper, piece)
    assert Verdict.of(*judge({**perfect(expected, paper.scale), **fault}, expected)).reward == 0.0
