"""NonManifoldRepair without Blender: the shapes, the faults put into them, the judging of measures."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.blender.non_manifold_repair import grading
from metier.envs.blender.non_manifold_repair.cases import admit
from metier.envs.blender.non_manifold_repair.family import NonManifoldRepair
from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.parts.furnishings import FURNITURE, WARE
from metier.envs.parts.polyhedra import box, turned

ENV = "blender/NonManifoldRepair-v0"
FAMILY = NonManifoldRepair()
THINGS = {**FURNITURE, **WARE}


def generated(seed: int, level: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV, {}, seed, level), level)


def border(faces: list[tuple[int, ...]]) -> int:
    """Edges with one face."""
    uses = Counter(frozenset(edge) for face in faces for edge in zip(face, (*face[1:], face[0]), strict=True))
    return sum(count == 1 for count in uses.values())


def test_known_volumes() -> None:
    assert box((0, 0, 0), (1, 2, 3), 0.5).volume() == pytest.approx(6)
    ring = turned([(2, 0), (3, 0), (3, 1), (2, 1)], 96)
    assert ring.fault() == ""
    assert ring.volume() == pytest.approx(3.14159 * 5, rel=2e-3)


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(sorted(THINGS)), seed=st.integers(0, 10**6), fine=st.sampled_from([0.05, 0.1, 9.0]))
def test_things_are_closed_and_turned_outwards(name: str, seed: int, fine: float) -> None:
    mesh = THINGS[name](HashRng(str(seed).encode()), fine if name in FURNITURE else fine / 3)
    assert mesh.fault() == ""
    assert mesh.volume() > 0
    assert mesh.bounds()[0][2] == 0.0


@pytest.mark.parametrize("level", range(4))
def test_same_seed_same_bytes_and_another_seed_another(level: int) -> None:
    first = generated(11, level)
    assert first == generated(11, level)
    assert first.truth != generated(12, level).truth


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.integers(0, 3))
def test_what_is_kept_is_in_the_broken_mesh_and_every_patch_is_lost(seed: int, level: int) -> None:
    patient = admit(HashRng(str(seed).encode()), level).patient
    there = {frozenset(patient.points[corner] for corner in face.corners) for face in patient.faces}
    for index in patient.kept():
        assert frozenset(patient.clean.points[corner] for corner in patient.clean.faces[index]) in there
    for patch in patient.patches:
        assert not set(patch) & set(patient.kept())
    assert border([face.corners for face in patient.faces]) > 0
    assert patient.clean.fault() == ""


def test_levels_turn_their_knobs() -> None:
    kinds = [set(admit(HashRng(b"levels"), level).patient.kinds) for level in range(4)]
    assert kinds[0] <= {"plain hole", "strays"}
    assert {"inner wall", "needle", "cap"} <= kinds[2]
    assert {"shaped hole", "spike"} <= kinds[3]
    assert generated(1, 1).artefacts[0].path == "repaired.blend"
    assert "broken.ply" in generated(1, 1).files
    assert ".setup/mesh.json" in generated(1, 2).files


def test_the_set_up_holds_the_broken_mesh_only() -> None:
    instance = generated(5, 2)
    truth: Any = instance.truth
    scene = json.loads(instance.files[".setup/mesh.json"])
    assert scene["points"] == truth["broken"]["points"]
    assert len(scene["faces"]) == len(scene["uvs"]) == len(scene["zones"])
    assert all(len(face) == len(uvs) for face, uvs in zip(scene["faces"], scene["uvs"], strict=True))


def measures(**more: Any) -> dict[str, Any]:
    sound = dict.fromkeys(("open", "fused", "doubled", "turned", "slivers", "loose", "crossings", "astray"), 0)
    whole = {"shells": 1, "euler": 2, "volume": 2.0}
    broken = {**sound, **whole, "open": 8, "loose": 3, "volume": 1.5}
    after = {**sound, **whole, **more.pop("after", {})}
    found = {"before": broken, "after": after, "clean": {**sound, **whole}, "kept": 100, "gaps": [0.0, 0.001]}
    return {**found, "materials": 100, "uvs": 100, **more}


def reward(**more: Any) -> float:
    from metier.envs.core import Verdict

    return Verdict.of(*grading.judge(measures(**more), 100, with_materials=True)).reward


def test_a_sound_repair_scores_one_and_each_way_of_failing_less() -> None:
    assert reward() == 1.0
    broken = measures()["before"]
    assert reward(after=broken, gaps=[0.1, 0.1]) == 0.0
    assert 0 < reward(after={**broken, "loose": 0}, gaps=[0.1, 0.1]) < 0.5
    assert reward(after={"volume": -2.0, "turned": 100}) == 0.0  # a new kind of fault
    assert reward(kept=97, materials=97, uvs=97) == 0.0
    assert reward(materials=50) == 0.0
    assert reward(uvs=0) == 0.0
    assert 0 < reward(gaps=[0.0, 0.02]) < 1
    assert 0 < reward(after={"euler": 0}) < 1
    assert 0 < reward(after={"volume": 2.1}) < 1
