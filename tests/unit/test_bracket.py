"""cad/BracketFromSpec without a CAD kernel: the exact part, its prose, its programs, and the judgement of measures."""

from __future__ import annotations

import ast
import itertools
import json
import math
from pathlib import Path
from typing import Any

import jinja2
import pytest

import metier.envs.cad.bracket_from_spec as package
from metier.envs.cad.bracket_from_spec import design
from metier.envs.cad.bracket_from_spec.family import BracketFromSpec
from metier.envs.cad.bracket_from_spec.features import Bracket, Hole
from metier.envs.core import HashRng, Verdict, instance_rng
from metier.envs.parts.brep import HiddenPoints, hidden_points, judge
from metier.envs.parts.prismatic import Block, Bore, Cove, Part, Stadium, Wedge, split, vector

LEVELS = range(5)
ENV_ID = "cad/BracketFromSpec-v0"


def drawn(level: int, seed: int) -> design.Specification:
    return design.draw(instance_rng(ENV_ID, {}, seed, level), level)


def measured(part: Part, hidden: HiddenPoints) -> dict[str, Any]:
    """What the probe would answer for a perfect file."""
    low, high = part.bounds()
    return {
        "solids": 1,
        "shells": 1,
        "faces": 20,
        "loose_faces": 0,
        "valid": True,
        "volume": part.volume,
        "centroid": list(part.centroid),
        "low": list(low),
        "high": list(high),
        "planes": [{"normal": list(plane.normal), "offset": plane.offset} for plane in part.planes()],
        "turned": [
            {
                "direction": list(vector(surface.axis, 1.0, 0.0, 0.0)),
                "point": list(surface.point),
                "radius": surface.radius,
                "half_angle_deg": surface.half_angle_deg,
                "concave": surface.concave,
                "low": surface.low,
                "high": surface.high,
            }
            for surface in part.turned()
        ],
        "other_faces": 0,
        "inside": list(hidden.inside),
    }


@pytest.mark.parametrize(
    "element",
    [
        Block(low=(0.0, 1.0, 2.0), high=(3.0, 2.0, 5.0)),
        Wedge(axis=0, corner=(1.0, 2.0), signs=(1, -1), legs=(3.0, 2.0), span=(0.0, 4.0)),
        Cove(axis=2, corner=(0.0, 0.0), signs=(-1, 1), radius=2.0, span=(1.0, 3.0)),
        Bore(axis=1, centre=(2.0, 1.0), radii=(1.0, 2.0), span=(0.0, 3.0)),
        Stadium(axis=1, centre=(2.0, 1.0), length=5.0, width=2.0, along_u=False, span=(0.0, 2.0)),
    ],
)
def test_an_elements_volume_and_centroid_agree_with_its_own_membership(element: Any) -> None:
    rng, count = HashRng(b"points"), 40_000
    points = [
        (8.0 * rng.fraction() - 3.0, 8.0 * rng.fraction() - 3.0, 8.0 * rng.fraction() - 3.0) for _ in range(count)
    ]
    inside = [point for point in points if element.contains(point)]
    volume = 512.0 * len(inside) / count
    assert volume == pytest.approx(element.volume, rel=0.25)
    centroid = tuple(sum(point[axis] for point in inside) / len(inside) for axis in range(3))
    assert math.dist(centroid, element.centroid) < 0.3


def test_vectors_and_their_parts_are_inverse() -> None:
    for axis in range(3):
        assert split(axis, vector(axis, 1.0, 2.0, 3.0)) == (1.0, 2.0, 3.0)


def test_a_plate_with_a_counterbored_hole_has_the_surfaces_one_counts_by_hand() -> None:
    plate = Block(low=(0.0, 0.0, 0.0), high=(20.0, 20.0, 6.0))
    through = Bore(axis=2, centre=(10.0, 10.0), radii=(2.0, 2.0), span=(0.0, 4.0))
    head = Bore(axis=2, centre=(10.0, 10.0), radii=(4.0, 4.0), span=(4.0, 6.0))
    part = Part(added=(plate,), cut=(through, head))
    assert part.volume == pytest.approx(2400.0 - math.pi * (16.0 + 32.0))
    assert len(part.planes()) == 7
    assert sorted((surface.radius, surface.low, surface.high) for surface in part.turned()) == [
        (2.0, 0.0, 4.0),
        (4.0, 4.0, 6.0),
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_truth_survives_json_and_repeats(level: int) -> None:
    for seed in range(8):
        specification = drawn(level, seed)
        assert specification == drawn(level, seed)
        assert Bracket.from_json(json.loads(json.dumps(specification.bracket.to_json()))) == specification.bracket
    assert len({drawn(level, seed).lines for seed in range(8)}) == 8


@pytest.mark.parametrize("level", LEVELS)
def test_features_keep_clear_of_each_other(level: int) -> None:
    for seed in range(40):
        bracket = drawn(level, seed).bracket
        circles = [(hole.axis, hole.span, hole.centre, _rim(hole)) for hole in bracket.holes]
        circles += [(slot.axis, slot.span, slot.centre, slot.length / 2) for slot in bracket.slots if not slot.along_u]
        for one, other in itertools.combinations(circles, 2):
            if one[:2] == other[:2]:
                assert math.dist(one[2], other[2]) - one[3] - other[3] > 1.0, (seed, one, other)
        for hole in bracket.holes:
            assert _edge_distance(bracket, hole) > 1.5, (seed, hole)


def _rim(hole: Hole) -> float:
    return max(hole.diameter, hole.head_diameter) / 2


def _edge_distance(bracket: Bracket, hole: Hole) -> float:
    """From the rim of the hole, or of its head, to the outline of the plate it goes through."""
    gaps: list[float] = []
    for plate in bracket.plates:
        along, *low = split(hole.axis, plate.low)
        high = split(hole.axis, plate.high)[1:]
        if along == hole.span[0]:
            gaps.append(min(min(c - a, b - c) for a, c, b in zip(low, hole.centre, high, strict=True)))
    return max(gaps) - _rim(hole)


@pytest.mark.parametrize("level", LEVELS)
def test_the_brief_renders_and_names_every_convention(level: int) -> None:
    instance = BracketFromSpec().generate(instance_rng(ENV_ID, {}, 3, level), level)
    source = Path(package.__file__ or "", "..", "instruction.md").resolve().read_text()
    text = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(source).render(**instance.variables)
    for needed in ("bracket.step", "millimetres", "X is the width", "one closed solid", "0.01 mm", "0.1%", "view"):
        assert needed in text
    assert ("1 in = 25.4 mm" in text) == (level >= 2)
    assert not any(secret in text for secret in instance.secrets)


@pytest.mark.parametrize("level", LEVELS)
def test_programs_are_python_and_mutants_differ_from_the_oracle(level: int) -> None:
    family = BracketFromSpec()
    instance = family.generate(instance_rng(ENV_ID, {}, 1, level), level)
    oracle, mutants = family.oracle(instance), family.mutants(instance)
    assert oracle[-1].tool == "submit"
    assert any(call.tool == "view" for call in oracle)
    assert len(mutants) >= 3
    for calls in (oracle, *mutants.values()):
        for call in calls:
            ast.parse(str(call.arguments.get("code", "")))
    sources = {name: [call.arguments for call in calls] for name, calls in mutants.items()}
    assert all(source != [call.arguments for call in oracle if call.tool != "view"] for source in sources.values())


@pytest.mark.parametrize("level", LEVELS)
def test_a_perfect_file_passes_and_small_faults_do_not(level: int) -> None:
    part = drawn(level, 2).bracket.part()
    hidden = hidden_points(part, HashRng(b"hidden"), count=60)
    perfect = measured(part, hidden)
    verdict = Verdict.of(*judge(perfect, part, hidden))
    assert (verdict.passed, verdict.reward) == (True, 1.0)
    first, *others = perfect["turned"]
    faults: list[dict[str, Any]] = [
        {"volume": perfect["volume"] * 1.002},
        {"centroid": [value + 0.01 for value in perfect["centroid"]]},
        {"high": [value + 0.03 for value in perfect["high"]]},
        {"planes": perfect["planes"][1:]},
        {"planes": [*perfect["planes"], {"normal": [1.0, 0.0, 0.0], "offset": 1.0}]},
        {"turned": [{**first, "radius": first["radius"] + 0.02}, *others]},
        {"turned": [{**first, "concave": not first["concave"]}, *others]},
        {"turned": [{**first, "low": first["low"] - 0.02}, *others]},
        {"inside": [not perfect["inside"][0], *perfect["inside"][1:]]},
        {"volume": math.nan},
    ]
    for fault in faults:
        judged = Verdict.of(*judge({**perfect, **fault}, part, hidden))
        assert not judged.passed, fault
        assert judged.reward < 1.0


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "the file is missing"},
        {"solids": 2},
        {"solids": 0},
        {"shells": 2},
        {"loose_faces": 1},
        {"valid": False},
        {"volume": -1.0},
        {"other_faces": 1},
        {"planes": [{"normal": [0.0, 0.0, 1.0], "offset": float(index)} for index in range(200)]},
    ],
)
def test_what_is_no_clean_solid_earns_nothing(fault: dict[str, Any]) -> None:
    part = drawn(1, 0).bracket.part()
    hidden = hidden_points(part, HashRng(b"hidden"), count=20)
    assert Verdict.of(*judge({**measured(part, hidden), **fault}, part, hidden)).reward == 0.0


def test_hidden_points_are_near_surfaces_and_on_both_sides() -> None:
    part = drawn(4, 0).bracket.part()
    hidden = hidden_points(part, HashRng(b"hidden"), count=100)
    assert 20 < sum(hidden.inside) < 80
    assert sum(not part.settled(point, 0.06) for point in hidden.points) >= 50
