"""MeshAssemblySpec without Blender: the mathematics of solids, the generator's geometry, the judging of measures."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from metier.envs.blender.mesh_assembly_spec import grading
from metier.envs.blender.mesh_assembly_spec.draft import Contact, Unit, decimal
from metier.envs.blender.mesh_assembly_spec.family import MeshAssemblySpec
from metier.envs.blender.mesh_assembly_spec.solids import (
    Cut,
    Round,
    Solid,
    box,
    chamfered,
    cylinder,
    hexagon,
    profile,
)
from metier.envs.core import HashRng, Instance, ToolCall, instance_rng
from metier.envs.parts.mesh_measures import BlendMeasure, MeshMeasure, MeshQuestion

ENV = "blender/MeshAssemblySpec-v0"
FAMILY = MeshAssemblySpec()
LEVELS = range(5)

TUBE = Solid(name="tube", base=cylinder(0, (5, 1, 2), 40, 100), cuts=(Cut(body=cylinder(0, (5, 1, 2), 30, 100)),))
CONE = Solid(name="cone", base=Round(axis=2, centre=(3, 4), radius_low=20, radius_high=10, low=0, high=30), cuts=())
ANGLE = Solid(name="angle", base=profile(1, ((0, 0), (40, 0), (40, 6), (6, 6), (6, 40), (0, 40)), -50, 50), cuts=())
BLOCK = Solid(
    name="block",
    base=chamfered((0, 0, 10), (60, 40, 20), 8),
    cuts=(
        Cut(body=cylinder(2, (10, 5, 10), 6, 20)),
        Cut(body=box((-10, 0, 15), (10, 12, 10)), open_low=False),
    ),
)


def generated(seed: int, level: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV, {}, seed, level), level)


def solids_of(instance: Instance) -> list[Solid]:
    values = instance.truth["solids"]
    assert isinstance(values, list)
    return [Solid.from_json(value) for value in values if isinstance(value, dict)]


def random_points(solid: Solid, count: int, name: str = "points") -> list[tuple[float, float, float]]:
    rng, (low, high) = HashRng(name.encode()), solid.bounds()
    return [
        (x, y, z)
        for x, y, z in (
            tuple(a + (b - a) * rng.fraction() for a, b in zip(low, high, strict=True)) for _ in range(count)
        )
    ]


@pytest.mark.parametrize("solid", [TUBE, CONE, ANGLE, BLOCK], ids=lambda solid: solid.name)
def test_volume_is_the_integral_of_sections_and_agrees_with_membership(solid: Solid) -> None:
    low, high = solid.bounds()
    for axis in range(3):
        width = (high[axis] - low[axis]) / 600
        integral = sum(solid.section(axis, low[axis] + (step + 0.5) * width) * width for step in range(600))
        assert integral == pytest.approx(solid.volume(), rel=2e-3)
    inside = [solid.distance(point) < 0 for point in random_points(solid, 4000)]
    box_volume = math.prod(b - a for a, b in zip(low, high, strict=True))
    assert sum(inside) / len(inside) * box_volume == pytest.approx(solid.volume(), rel=0.08)


def test_known_volumes() -> None:
    assert TUBE.volume() == pytest.approx(math.pi * (20**2 - 15**2) * 100)
    assert CONE.volume() == pytest.approx(math.pi * 30 * (400 + 200 + 100) / 3)
    assert ANGLE.volume() == pytest.approx((40 * 6 + 34 * 6) * 100)
    assert BLOCK.volume() == pytest.approx((60 * 40 - 2 * 8 * 8) * 20 - math.pi * 9 * 20 - 10 * 12 * 10)
    assert Solid(name="nut", base=hexagon((0, 0), 20, 0, 1)).volume() == pytest.approx(math.sqrt(3) / 2 * 400)


def test_distance_never_exceeds_the_true_one() -> None:
    assert TUBE.distance((5, 1 + 17.5, 2)) == pytest.approx(-2.5)
    assert TUBE.distance((5, 1, 2)) == pytest.approx(15)
    for solid in (TUBE, CONE, ANGLE, BLOCK):
        for one, other in itertools.pairwise(random_points(solid, 200)):
            # a function that is 1-Lipschitz and 0 on the surface is a lower bound of the distance to it
            assert abs(solid.distance(one) - solid.distance(other)) <= math.dist(one, other) + 1e-9


def test_solids_survive_json() -> None:
    for solid in (TUBE, CONE, BLOCK):
        again = Solid.from_json(solid.to_json())
        assert again.to_json() == solid.to_json()
        assert again.volume() == pytest.approx(solid.volume())
        assert again.num_through_holes == solid.num_through_holes


@pytest.mark.parametrize(
    ("length", "unit", "text"), [(12.5, Unit.M, "0.0125"), (120, Unit.CM, "12"), (7, Unit.MM, "7")]
)
def test_lengths_are_written_exactly(length: float, unit: Unit, text: str) -> None:
    assert decimal(length, unit) == text


@pytest.mark.parametrize("level", LEVELS)
def test_same_seed_same_instance_and_other_seed_another(level: int) -> None:
    assert generated(7, level) == generated(7, level)
    assert generated(7, level).variables != generated(8, level).variables


@pytest.mark.parametrize("level", LEVELS)
def test_parts_are_apart_and_cuts_lie_within(level: int) -> None:
    for seed in range(8):
        solids = solids_of(generated(seed, level))
        for solid in solids:
            for cut in solid.cuts:
                cutter = Solid(name="cut", base=cut.body)
                inner = [point for point in random_points(cutter, 20) if cutter.distance(point) < -0.1]
                assert all(solid.base.distance(point) < 1e-6 for point in inner), (seed, solid.name)
        for one, other in itertools.combinations(solids, 2):
            shared = [point for point in random_points(one, 12) if one.distance(point) < -0.3]
            assert all(other.distance(point) > -0.3 for point in shared), (seed, one.name, other.name)


@pytest.mark.parametrize("level", LEVELS)
def test_the_brief_names_every_part_and_contacts_hold(level: int) -> None:
    for seed in range(8):
        instance = generated(seed, level)
        solids = {solid.name: solid for solid in solids_of(instance)}
        text = str(instance.variables["sentences"])
        for name in solids:
            series = name.rpartition("_")[0] if name[-1].isdigit() else name
            assert f"`{name}`" in text or f"`{series}_1`" in text, name
        contacts = instance.truth["contacts"]
        assert isinstance(contacts, list)
        for fields in contacts:
            contact = Contact(**fields)  # type: ignore[arg-type]
            part, other = solids[contact.part].bounds(), solids[contact.other].bounds()
            pair = (part[0], other[1]) if contact.face == "low" else (part[1], other[0])
            assert pair[0][contact.axis] == pytest.approx(pair[1][contact.axis]), contact


def test_levels_grow() -> None:
    counts = [sum(len(solids_of(generated(seed, level))) for seed in range(6)) / 6 for level in LEVELS]
    assert counts[0] <= 2 < counts[1] < counts[2]
    assert counts[4] > counts[3] >= 5


@pytest.mark.parametrize("level", LEVELS)
def test_programs_end_with_save_and_submit_and_hold_no_secret(level: int) -> None:
    instance = generated(1, level)
    programs: list[tuple[ToolCall, ...]] = [tuple(FAMILY.oracle(instance))]
    programs += [tuple(calls) for calls in FAMILY.alternatives(instance).values()]
    mutants = FAMILY.mutants(instance)
    assert len(mutants) >= 8
    programs += [tuple(calls) for calls in mutants.values()]
    for calls in programs:
        assert calls[-1].tool == "submit"
        for call in calls:
            if call.tool == "python":
                compile(str(call.arguments["code"]), "piece", "exec")
            assert not any(secret in str(call.arguments) for secret in instance.secrets)


def measured(solid: Solid, asked: MeshQuestion) -> MeshMeasure:
    """What a perfect mesh of `solid` would measure."""
    low, high = solid.bounds()
    return MeshMeasure(
        shells=1,
        euler=2 - 2 * solid.num_through_holes,
        num_faces=100,
        low=low,
        high=high,
        volume=solid.volume(),
        sections=[solid.section(axis, at) for axis, at in asked.sections],
        windings=[float(solid.distance(point) < 0) for point in asked.points],
    )


@pytest.mark.parametrize("solid", [TUBE, CONE, ANGLE, BLOCK], ids=lambda solid: solid.name)
def test_a_perfect_mesh_scores_one_and_near_misses_less(solid: Solid) -> None:
    asked = grading.question(solid, HashRng(b"hidden"))
    assert len(asked.points) >= 12
    assert len(asked.sections) >= 3
    perfect = measured(solid, asked)
    low, high = solid.bounds()

    def score(found: MeshMeasure | None, *, hidden_object: bool = False) -> float:
        return grading.judge(solid, asked, found, hidden_object=hidden_object).score

    assert score(perfect) == 1.0
    assert score(None) == 0.0
    assert score(perfect, hidden_object=True) == 0.0
    assert score(replace(perfect, volume=-perfect.volume)) == 0.0
    assert score(replace(perfect, open_edges=1)) == 0.0
    assert score(replace(perfect, turned_edges=1)) == 0.0
    assert score(replace(perfect, shells=2)) == 0.0
    assert score(replace(perfect, euler=perfect.euler - 2)) == pytest.approx(2 / 3)
    assert score(replace(perfect, volume=perfect.volume * 1.02)) == pytest.approx(2 / 3)
    assert score(replace(perfect, sections=[area * 1.03 for area in perfect.sections])) == pytest.approx(2 / 3)
    assert score(replace(perfect, windings=[2.0, *perfect.windings[1:]])) == pytest.approx(2 / 3)
    assert score(replace(perfect, volume=math.nan)) == 0.0
    moved = replace(perfect, low=(low[0] + 1, low[1], low[2]), high=(high[0] + 1, high[1], high[2]))
    assert score(moved) == pytest.approx(2 / 3)
    assert score(replace(perfect, high=(high[0] + 2, high[1], high[2]))) == 0.0


def test_hidden_places_depend_on_the_hidden_stream_only() -> None:
    assert grading.question(BLOCK, HashRng(b"a")) == grading.question(BLOCK, HashRng(b"a"))
    assert grading.question(BLOCK, HashRng(b"a")) != grading.question(BLOCK, HashRng(b"b"))


def test_foreign_objects_and_oddities_close_the_gate() -> None:
    types = {"block": "MESH", "Camera": "CAMERA", "Light": "LIGHT"}
    assert grading.scene_check([BLOCK], BlendMeasure(types=types, meshes={})).score == 1.0
    for more in ({"Cube": "MESH"}, {"Empty": "EMPTY"}, {"block": "CURVE"}):
        check = grading.scene_check([BLOCK], BlendMeasure(types={**types, **more}, meshes={}))
        assert (check.score, check.gate) == (0.0, True)
    assert grading.scene_check([BLOCK], BlendMeasure(types=types, meshes={}, oddities=("2 scenes",))).score == 0.0
