"""cad/StlPrintRepair on the host: exact bodies, closed clean meshes, honest faults, and the judgement of measures."""

from __future__ import annotations

import ast
import json
import math
import struct
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.cad.stl_print_repair.family import StlPrintRepair
from metier.envs.cad.stl_print_repair.gadget import Gadget, draw
from metier.envs.core import HashRng, Verdict, instance_rng
from metier.envs.parts import prism_mesh
from metier.envs.parts.print_check import Probes, hidden_probes, judge
from metier.envs.parts.prism_mesh import Facet, Region, contains, mesh, walk

LEVELS = range(5)
ENV_ID = "cad/StlPrintRepair-v0"
AT = (20.0, 30.0)


def gadget(level: int, seed: int) -> Gadget:
    return draw(instance_rng(ENV_ID, {}, seed, level).child("gadget"), level)


def signed_volume(facets: list[Facet]) -> float:
    total = 0.0
    for (a, b, c), _, _ in facets:
        total += a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
        total += a[2] * (b[0] * c[1] - b[1] * c[0])
    return total / 6.0


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), level=st.sampled_from(list(LEVELS)))
def test_the_clean_mesh_closes_exactly_and_has_the_exact_volume(seed: int, level: int) -> None:
    bodies = gadget(level, seed).bodies
    facets = mesh(bodies)
    edges = Counter(edge for (a, b, c), _, _ in facets for edge in ((a, b), (b, c), (c, a)))
    assert max(edges.values()) == 1
    assert all((b, a) in edges for a, b in edges)
    assert signed_volume(facets) == pytest.approx(prism_mesh.volume(bodies), rel=1e-9)


def test_truth_survives_json_and_membership_follows_the_plan() -> None:
    for level in LEVELS:
        bodies = gadget(level, 3).bodies
        again = [Region.from_json(json.loads(json.dumps(body.to_json()))) for body in bodies]
        assert tuple(again) == bodies
        holes = [region for region, _ in walk(bodies) if region.kind == "screw hole"]
        for hole in holes:
            x, y = (sum(values) / len(hole.ring) for values in zip(*hole.ring, strict=True))
            assert not contains(bodies, (x, y, 0.5))


def test_instances_repeat_and_levels_differ() -> None:
    family = StlPrintRepair()
    files = [family.generate(instance_rng(ENV_ID, {}, 1, level), level).files["broken.stl"] for level in LEVELS]
    assert len(set(files)) == len(files)
    assert family.generate(instance_rng(ENV_ID, {}, 1, 2), 2).files["broken.stl"] == files[2]


def test_a_binary_file_has_the_length_that_it_states() -> None:
    family = StlPrintRepair()
    for seed in range(6):
        data = family.generate(instance_rng(ENV_ID, {}, seed, 0), 0).files["broken.stl"]
        if not data.startswith(b"solid"):
            assert len(data) == 84 + 50 * struct.unpack_from("<I", data, 80)[0]
            return
    raise AssertionError("no binary file among six")


def test_solutions_are_python() -> None:
    family = StlPrintRepair()
    for level in (0, 4):
        instance = family.generate(instance_rng(ENV_ID, {}, 1, level), level)
        mutants = family.mutants(instance)
        assert len(mutants) >= 6
        for calls in (family.oracle(instance), *family.alternatives(instance).values(), *mutants.values()):
            assert calls[-1].tool == "submit"
            for call in calls:
                ast.parse(str(call.arguments.get("code", "")))


def perfect(gadget: Gadget, probes: Probes) -> dict[str, Any]:
    """What the probe would answer for a perfectly mended file."""
    low, high = prism_mesh.bounds(gadget.bodies)
    return {
        "facets": 1000,
        "open_edges": 0,
        "turned_edges": 0,
        "body_volumes": [1.0] * len(gadget.bodies),
        "bodies": len(gadget.bodies),
        "volume": prism_mesh.volume(gadget.bodies),
        "area": prism_mesh.surface(gadget.bodies),
        "low": [low[0] + AT[0], low[1] + AT[1], low[2]],
        "high": [high[0] + AT[0], high[1] + AT[1], high[2]],
        "thin": 0,
        "repeated": 0,
        "wrong_normals": 0,
        "crossings": 0,
        "windings": [float(inside) for inside in probes.inside],
    }


@pytest.mark.parametrize("level", [0, 4])
def test_a_perfect_file_passes_and_each_fault_does_not(level: int) -> None:
    made = gadget(level, 2)
    probes = hidden_probes(made.bodies, HashRng(b"hidden"), anywhere=40)
    right = perfect(made, probes)
    verdict = Verdict.of(*judge(right, made.bodies, probes, AT))
    assert (verdict.passed, verdict.reward) == (True, 1.0)
    last = probes.names.index("letter 1")
    flipped = [value if index != last else 1.0 - value for index, value in enumerate(right["windings"])]
    faults: list[dict[str, Any]] = [
        {"bodies": 5},
        {"thin": 1},
        {"repeated": 2},
        {"crossings": 1},
        {"wrong_normals": 1},
        {"volume": right["volume"] * 1.006},
        {"area": right["area"] * 0.98},
        {"high": [value + 0.06 for value in right["high"]]},
        {"windings": flipped},
        {"windings": [2.0 * value for value in right["windings"]]},
    ]
    for fault in faults:
        judged = Verdict.of(*judge({**right, **fault}, made.bodies, probes, AT))
        assert not judged.passed, fault
        assert judged.reward < 1.0


@pytest.mark.parametrize(
    "fault",
    [
        {"error": "the file is missing"},
        {"open_edges": 1},
        {"turned_edges": 2},
        {"body_volumes": [-1.0]},
        {"volume": 1.0},
    ],
)
def test_what_does_not_close_or_is_another_part_earns_nothing(fault: dict[str, Any]) -> None:
    made = gadget(1, 2)
    probes = hidden_probes(made.bodies, HashRng(b"hidden"), anywhere=10)
    assert Verdict.of(*judge({**perfect(made, probes), **fault}, made.bodies, probes, AT)).reward == 0.0


def test_every_feature_has_points_on_both_sides() -> None:
    made = gadget(3, 5)
    probes = hidden_probes(made.bodies, HashRng(b"hidden"), anywhere=5)
    named = {region.name for region, _ in walk(made.bodies)}
    assert named <= set(probes.names)
    assert 0.2 < sum(probes.inside) / len(probes.inside) < 0.8
    assert math.isfinite(made.thin_mm) and made.thin_mm >= 0.8
