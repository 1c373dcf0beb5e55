"""SceneFromBrief without Blender: relations, layouts, demands, the judging of facts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.blender.scene_from_brief import grading
from metier.envs.blender.scene_from_brief.demands import choose, comfortable
from metier.envs.blender.scene_from_brief.family import SceneFromBrief
from metier.envs.blender.scene_from_brief.layout import Item, Layout, furnish
from metier.envs.core import HashRng, Instance, Verdict, instance_rng
from metier.envs.parts.relations import Eye, Placed, Relation, Room, footprint_gap, judge

ENV = "blender/SceneFromBrief-v0"
FAMILY = SceneFromBrief()
ROOM = Room(x=(-3, 3), y=(-2, 2), height=2.5)
FRONT = Eye(place=(0, -8, 2), target=(0, 0, 0.5), degrees=50)
BEHIND = Eye(place=(0, 8, 2), target=(0, 0, 0.5), degrees=50)


def generated(seed: int, level: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV, {}, seed, level), level)


def block(name: str, x: float, y: float, front: tuple[float, float] = (0, -1), **more: Any) -> Placed:
    points = [(x + a, y + b, c) for a in (-0.2, 0.2) for b in (-0.2, 0.2) for c in (0.0, 0.5)]
    return Placed(name=name, points=points, front=front, **more)


def slack(relation: Relation, *things: Placed, eye: Eye = FRONT) -> float:
    return judge(relation, {thing.name: thing for thing in things}, ROOM, eye).slack


def test_left_is_the_cameras_left() -> None:
    a, b, relation = block("a", -1, 0), block("b", 1, 0), Relation(kind="left_of", a="a", b="b")
    assert slack(relation, a, b) > 0
    assert slack(relation, a, b, eye=BEHIND) < 0
    assert slack(Relation(kind="nearer", a="b", b="a"), block("a", 0, 1), block("b", 0, -1)) > 0


def test_facing_against_and_distances() -> None:
    a, b = block("a", 0, 1.8), block("b", 0, -1)
    assert slack(Relation(kind="facing", a="a", b="b"), a, b) == pytest.approx(15)
    assert slack(Relation(kind="facing", a="b", b="a"), a, b) == pytest.approx(-165)
    assert slack(Relation(kind="facing", a="b", b="a", negated=True), a, b) == pytest.approx(165)
    assert slack(Relation(kind="against", a="a", wall="back"), a) >= 0
    assert slack(Relation(kind="against", a="b", wall="back"), b) < 0
    turned = block("a", 0, 1.8, front=(0, 1))
    assert slack(Relation(kind="against", a="a", wall="back"), turned) < 0
    assert footprint_gap(a, b) == pytest.approx(2.4)
    assert footprint_gap(a, block("c", 0.1, 1.7)) == 0
    assert slack(Relation(kind="gap_min", a="a", b="b", value=2.0), a, b) == pytest.approx(0.4)
    assert slack(Relation(kind="gap_max", a="a", b="b", value=2.0), a, b) == pytest.approx(-0.4)
    corner = footprint_gap(block("a", 0, 0), block("b", 1, 1))
    assert corner == pytest.approx(math.hypot(0.6, 0.6))


def test_between_on_and_negation() -> None:
    a, b, c = block("a", 0, 0.1), block("b", -1, 0), block("c", 1, 0)
    assert slack(Relation(kind="between", a="a", b="b", c="c"), a, b, c) > 0
    assert slack(Relation(kind="between", a="b", b="a", c="c"), a, b, c) < 0
    mug = block("mug", 0, 0, standing_on=frozenset({"b"}))
    assert slack(Relation(kind="on", a="mug", b="b"), mug, b) > 0
    assert slack(Relation(kind="on", a="mug", b="c", negated=True), mug, c) > 0
    assert slack(Relation(kind="carries_nothing", a="b"), mug, b) < 0
    assert slack(Relation(kind="carries_nothing", a="c"), mug, c) > 0


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.integers(0, 4))
def test_layouts_are_apart_inside_and_carried(seed: int, level: int) -> None:
    layout = furnish(HashRng(str(seed).encode()), level)
    things = layout.things()
    for item in layout.items:
        assert layout.fits(item)
        corners = layout.corners(item)
        assert min(p[2] for p in corners) == pytest.approx(things[item.name].low()[2], abs=1e-4)
        assert item.on == "floor" or item.on in things
    demands = choose(layout, HashRng(b"demands"), level)
    assert demands is None or comfortable(layout, demands)


def facts(layout: Layout, item: Item) -> dict[str, Any]:
    """What the probe would say of a thing that stands where it should."""
    thing = layout.placed(item)
    return {
        "same_mesh": True,
        "shown": True,
        "scales": [1.0, 1.0, 1.0],
        "upright": 1.0,
        "square": 1.0,
        "front": thing.front,
        "points": thing.points,
        "standing_on": sorted(thing.standing_on),
        "steady": True,
        "visible": 1.0,
    }


def test_a_right_scene_scores_one_and_a_changed_camera_nothing() -> None:
    layout = furnish(HashRng(b"right"), 0)
    eye, room = layout.eye, layout.room
    right, _, ahead = eye.axes()
    view = {"place": eye.place, "ahead": ahead, "right": right, "angle": eye.degrees, "plain": True}
    stage = {"room": {"Floor": True}, "foreign": [], "drivers": [], "scenes": 1, "instances": 0, "libraries": 0}
    things = {item.name: facts(layout, item) for item in layout.items}
    ware = layout.items[-1]
    demands = [Relation(kind="on", a=ware.name, b=ware.on)]

    def verdict(collisions: list[list[str]] | None = None, camera: Any = view, **changes: Any) -> Verdict:
        changed = {**things, ware.name: {**things[ware.name], **changes}}
        found = {"stage": {**stage, "view": camera}, "things": changed, "collisions": collisions or []}
        factors = dict.fromkeys(things, 1.0)
        return Verdict.of(*grading.judge_scene(found, factors, demands, room, eye))

    assert verdict().passed
    assert verdict(camera=None).reward == 0.0
    assert verdict(camera={**view, "place": (0.0, -8.0, 2.9)}).reward == 0.0
    for change in ({"same_mesh": False}, {"shown": False}, {"scales": [1, 1, 1.2]}, {"standing_on": []}):
        assert 0 < verdict(**change).reward < 1  # type: ignore[arg-type]
    assert not verdict(collisions=[[ware.name, ware.on]]).passed


@pytest.mark.parametrize("level", [0, 2, 3, 4])
def test_instances_repeat_and_the_stage_tells_no_places(level: int) -> None:
    instance = generated(6, level)
    assert instance == generated(6, level)
    assert instance.secrets[0] not in instance.files[".setup/stage.json"].decode()
    truth: Any = instance.truth
    assert len(truth["elsewhere"]) == len(truth["items"])
    programs = [FAMILY.oracle(instance), *FAMILY.alternatives(instance).values(), *FAMILY.mutants(instance).values()]
    for calls in programs:
        assert calls[-1].tool == "submit"
        for call in calls:
            if call.tool == "python":
                compile(str(call.arguments["code"]), "piece", "exec")
