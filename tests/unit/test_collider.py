"""game/BulletColliderFit without Bullet: solids, turns, volumes of fits, the file reader, the judgement."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any, cast

import jinja2
import pytest

import metier.envs.game.bullet_collider_fit as package
from metier.envs.core import HashRng, Instance, Verdict, VerifierError, instance_rng
from metier.envs.game.bullet_collider_fit import attempts
from metier.envs.game.bullet_collider_fit.family import BulletColliderFit
from metier.envs.game.bullet_collider_fit.solids import Solid, Tube, box, frustum, sphere
from metier.envs.parts import drop_test_probe as probe
from metier.envs.parts.drop_test import LEAST_OVERLAP, Demand, judge
from metier.envs.parts.poses import Pose, about, after, any_turn, placed, turned, within

LEVELS = range(5)
ENV_ID = "game/BulletColliderFit-v0"
DEMAND = Demand(coverage=0.95, overshoot=0.05, bounds=0.01, height=0.01, tilt_deg=3.0)


def made(level: int, seed: int) -> Instance:
    return BulletColliderFit().generate(instance_rng(ENV_ID, {}, seed, level), level)


def volume(solid: Solid) -> float:
    total = 0.0
    for a, b, c in solid.faces:
        (ax, ay, az), (bx, by, bz), (cx, cy, cz) = solid.vertices[a], solid.vertices[b], solid.vertices[c]
        total += ax * (by * cz - bz * cy) - ay * (bx * cz - bz * cx) + az * (bx * cy - by * cx)
    return total / 6.0


@pytest.fixture(autouse=True)
def _fewer_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_SAMPLES", 20_000)


def compared(instance: Instance, primitives: Any, folder: Path) -> dict[str, Any]:
    path = folder / "collider.json"
    path.write_text(json.dumps({"primitives": primitives}))
    truth: Any = instance.truth
    colliders = probe._read(str(path), truth["cap"])
    return probe._compare([probe._halfspaces(piece) for piece in truth["pieces"]], colliders, 7)[0]


@pytest.mark.parametrize(
    ("solid", "expected"),
    [
        (box((1.0, 2.0, 3.0)), 6.0),
        (frustum(1.0, 1.0, 2.0, sides=6), 3.0 * math.sqrt(3.0)),
        (frustum(2.0, 1.0, 3.0, sides=200), 7.0 * math.pi),
        (sphere(1.0), 4.0 / 3.0 * math.pi),
        (Tube(outer=(2.0, 2.0), wall=1.0, height=1.0, sides=200).mesh(), 3.0 * math.pi),
        (Tube(outer=(2.0, 3.0), wall=1.0, height=1.0).pieces()[3], None),
    ],
)
def test_solids_are_closed_and_face_outwards(solid: Solid, expected: float | None) -> None:
    edges = Counter((face[i], face[(i + 1) % 3]) for face in solid.faces for i in range(3))
    assert all(count == 1 and edges[(b, a)] == 1 for (a, b), count in edges.items())
    assert volume(solid) > 0
    if expected is not None:
        assert volume(solid) == pytest.approx(expected, rel=0.02)


def test_turns_compose_in_order() -> None:
    quarter_x, quarter_z = about((1.0, 0.0, 0.0), 90.0), about((0.0, 0.0, 1.0), 90.0)
    assert turned(after(quarter_x, quarter_z), (0.0, 1.0, 0.0)) == pytest.approx((0.0, 0.0, 1.0))
    assert turned(after(quarter_z, quarter_x), (0.0, 1.0, 0.0)) == pytest.approx((-1.0, 0.0, 0.0))
    outer, inner = Pose((1.0, 2.0, 3.0), any_turn(HashRng(b"a"))), Pose((3.0, 1.0, 2.0), any_turn(HashRng(b"b")))
    point = (0.3, -0.2, 0.1)
    assert placed(within(outer, inner), point) == pytest.approx(placed(outer, placed(inner, point)))
    assert math.hypot(*outer.turn) == pytest.approx(1.0)


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_differ_and_render(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert made(level, 1).files != made(level, 2).files
    instance = made(level, 1)
    source = Path(package.__file__ or "", "..", "instruction.md").resolve().read_text()
    text = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(source).render(**instance.variables)
    for needed in (
        "collider.json",
        "metres",
        "full edge lengths",
        "(x, y, z, w)",
        "own Z",
        f"at most {instance.truth['cap']} ",
    ):
        assert needed in text
    mesh = instance.files["mesh.obj"].decode()
    assert (mesh.count("\no part_") + mesh.startswith("o part_") > 1) == (level < 2)
    assert not any(secret in text or secret in mesh for secret in instance.secrets)


@pytest.mark.parametrize("level", LEVELS)
def test_the_fits_meet_the_demand_and_the_hacks_do_not(level: int, tmp_path: Path) -> None:
    for seed in range(4):
        instance = made(level, seed)
        truth: Any = instance.truth
        demand = Demand(**truth["demand"])
        vertices = [vertex for piece in truth["pieces"] for vertex in piece["vertices"]]
        low, high = ([end(vertex[axis] for vertex in vertices) for axis in range(3)] for end in (min, max))
        fit = compared(instance, truth["primitives"], tmp_path)
        assert fit["coverage"] >= demand.coverage
        assert fit["overshoot"] <= demand.overshoot
        assert fit["bounds"] <= demand.bounds
        centre = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        giant = {"type": "box", "center": centre, "size": [b - a for a, b in zip(low, high, strict=True)]}
        hack = compared(instance, [giant], tmp_path)
        assert hack["coverage"] > 0.999
        assert hack["overlap"] < LEAST_OVERLAP


@pytest.mark.parametrize("level", LEVELS)
def test_the_alternative_covers_the_same_volume(level: int, tmp_path: Path) -> None:
    instance = made(level, 4)
    truth: Any = instance.truth
    (calls,) = BulletColliderFit().alternatives(instance).values()
    document = str(calls[0].arguments["command"]).split("END'\n")[1].rpartition("\nEND")[0]
    divided = json.loads(document)["primitives"]
    assert len(divided) == len(truth["primitives"]) + 1
    one, two = compared(instance, truth["primitives"], tmp_path), compared(instance, divided, tmp_path)
    assert two["coverage"] == pytest.approx(one["coverage"], abs=3e-3)
    assert two["overshoot"] == pytest.approx(one["overshoot"], abs=1e-2)


@pytest.mark.parametrize("level", LEVELS)
def test_every_mutant_fails_by_its_shape_alone(level: int, tmp_path: Path) -> None:
    for seed in range(3):
        instance = made(level, seed)
        demand = Demand(**cast("dict[str, float]", instance.truth["demand"]))
        mutants = BulletColliderFit().mutants(instance)
        assert len(mutants) >= 3
        for name, calls in mutants.items():
            assert calls[-1].tool == "submit"
            primitives = json.loads(str(calls[0].arguments["code"]).split('"""')[1])["primitives"]
            if name == "more_than_allowed":
                with pytest.raises(ValueError, match="are allowed"):
                    compared(instance, primitives, tmp_path)
                continue
            fit = compared(instance, primitives, tmp_path)
            good = fit["coverage"] >= demand.coverage and fit["overshoot"] <= demand.overshoot
            assert not (good and fit["bounds"] <= demand.bounds), (seed, name, fit)


@pytest.mark.parametrize("level", LEVELS)
def test_the_oracle_looks_writes_and_submits(level: int) -> None:
    calls = BulletColliderFit().oracle(made(level, 0))
    assert [call.tool for call in calls].count("view") == 2
    assert any(attempts.COLLIDER_PATH in str(call.arguments) for call in calls)
    assert calls[-1].tool == "submit"


SPHERE = {"type": "sphere", "center": [0, 0, 0], "radius": 1}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "JSONDecodeError"),
        ("[" * 100_000, "RecursionError"),
        ("\x00\xff", "JSONDecodeError"),
        ("[]", "no list"),
        ('{"primitives": []}', "no list"),
        (json.dumps({"primitives": [SPHERE] * 6}), "6 primitives, where 5"),
        (json.dumps({"primitives": [{**SPHERE, "type": "plane"}]}), "no known type"),
        (json.dumps({"primitives": [{**SPHERE, "type": ["box"]}]}), "no known type"),
        (json.dumps({"primitives": [{**SPHERE, "size": [1, 1, 1]}]}), "unknown field"),
        (json.dumps({"primitives": [{**SPHERE, "radius": 0}]}), "radius is not between"),
        (json.dumps({"primitives": [{**SPHERE, "radius": True}]}), "numbers only"),
        (json.dumps({"primitives": [{**SPHERE, "radius": None}]}), "numbers only"),
        (json.dumps({"primitives": [{**SPHERE, "center": [0, 0]}]}), "list of 3"),
        (json.dumps({"primitives": [{**SPHERE, "center": [0, 0, 1e9]}]}), "further than"),
        (json.dumps({"primitives": [{**SPHERE, "center": [0, 0, math.nan]}]}), "not finite"),
        (json.dumps({"primitives": [{**SPHERE, "rotation": [0, 0, 0, 2]}]}), "unit quaternion"),
        ('{"primitives": [{"type": "sphere", "center": [0, 0, 0], "radius": ' + "9" * 5000 + "}]}", "ValueError"),
    ],
)
def test_a_bad_file_is_an_answer_that_says_what_is_wrong(data: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "collider.json"
    path.write_text(data)
    answer = probe.measure({"path": str(path), "cap": 5})
    assert said in answer["error"]
    assert Verdict.of(*judge(answer, DEMAND)).reward == 0.0


def test_a_missing_file_a_folder_and_a_link_are_answers(tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "other.json")
    for path in (tmp_path / "missing.json", tmp_path, link):
        assert "missing" in probe.measure({"path": str(path), "cap": 5})["error"]


def test_the_judgement_grades_each_measure() -> None:
    rest = {"height": 0.001, "tilt_deg": 0.5}
    good = {"coverage": 0.99, "overshoot": 0.01, "overlap": 0.97, "bounds": 0.001, "rests": [rest] * 6}
    assert Verdict.of(*judge(good, DEMAND)).reward == 1.0
    off, tilted, unsure = {**rest, "height": 0.02}, {**rest, "tilt_deg": 9.0}, {**rest, "tilt_deg": None}
    assert Verdict.of(*judge({**good, "rests": [rest] * 4 + [unsure, off]}, DEMAND)).passed
    assert not Verdict.of(*judge({**good, "rests": [rest] * 4 + [tilted, off]}, DEMAND)).passed
    assert not Verdict.of(*judge({**good, "rests": [off]}, DEMAND)).passed
    for fault in ({"coverage": 0.94}, {"overshoot": 0.06}, {"bounds": 0.02}):
        verdict = Verdict.of(*judge({**good, **fault}, DEMAND))
        assert not verdict.passed
        assert verdict.reward > 0
    far = {"coverage": 1.0, "overshoot": 1.0, "overlap": 0.5, "bounds": 0.0}
    assert Verdict.of(*judge(far, DEMAND)).reward == 0.0
    with pytest.raises(VerifierError, match="no rest"):
        judge({**good, "rests": []}, DEMAND)
