"""MaterialRenderMatch without Blender: colours, recipes, the judging of what a probe found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.blender.material_render_match import grading
from metier.envs.blender.material_render_match.family import MaterialRenderMatch
from metier.envs.blender.material_render_match.recipes import finish, linear, srgb
from metier.envs.core import HashRng, Instance, Verdict, instance_rng

ENV = "blender/MaterialRenderMatch-v0"
FAMILY = MaterialRenderMatch()
LEVELS = range(5)


def generated(seed: int, level: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV, {}, seed, level), level)


@given(st.floats(0, 1))
def test_colours_survive_the_transfer_curve(value: float) -> None:
    assert srgb(linear(value)) == pytest.approx(value, abs=1e-6)


@pytest.mark.parametrize("level", LEVELS)
def test_same_seed_same_instance_and_another_seed_another(level: int) -> None:
    assert generated(4, level) == generated(4, level)
    assert generated(4, level).truth != generated(5, level).truth


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.integers(0, 4))
def test_the_start_is_far_from_the_goal_at_every_knob(seed: int, level: int) -> None:
    drawn = finish(HashRng(str(seed).encode()), level)
    names = [node["name"] for node in drawn.goal["nodes"]]
    for source, _, target, _ in drawn.goal["links"]:
        assert {source, target} <= set(names)
    for knob in drawn.knobs:
        assert grading.knob_error(knob, knob["value"]) == 0
        if knob["start"] is not None:
            assert grading.knob_error(knob, knob["start"]) > 2 * knob["tolerance"]
    assert drawn.goal != drawn.start


def test_levels_have_more_to_find() -> None:
    counts = [len(finish(HashRng(b"levels"), level).knobs) for level in range(4)]
    assert counts == sorted(set(counts))
    assert [knob["kind"] for knob in finish(HashRng(b"levels"), 4).knobs] == ["texture"]


def test_hidden_views_depend_on_the_hidden_stream_and_show_other_shapes() -> None:
    views = grading.hidden_views("ring", HashRng(b"a"))
    assert views == grading.hidden_views("ring", HashRng(b"a"))
    assert views != grading.hidden_views("ring", HashRng(b"b"))
    assert len({view["mesh"] for view in views}) == 3


@pytest.mark.parametrize("level", LEVELS)
def test_programs_compile_and_the_goal_stays_out_of_what_is_left(level: int) -> None:
    instance = generated(2, level)
    programs = [FAMILY.oracle(instance), *FAMILY.alternatives(instance).values(), *FAMILY.mutants(instance).values()]
    assert len(programs) >= 6
    for calls in programs:
        assert calls[-1].tool == "submit"
        for call in calls:
            if call.tool == "python":
                compile(str(call.arguments["code"]), "piece", "exec")
    assert [name for name in instance.files if not name.startswith(".setup/")] == ["render.py"]
    assert instance.setup[-1].endswith("rm -rf .setup")
    assert instance.secrets[0] in instance.files[".setup/case.json"].decode()


def verdict(level: int, views: list[list[float]], values: dict[str, Any], problems: list[str] | None = None) -> Verdict:
    truth: Any = generated(3, level).truth
    found = {"problems": problems or [], "views": views, "values": values}
    return Verdict.of(*grading.judge(found, truth["knobs"], ["ring", "ball", "block"]))


@pytest.mark.parametrize("level", range(4))
def test_goal_scores_one_start_nothing_and_half_way_something(level: int) -> None:
    truth: Any = generated(3, level).truth
    right = {knob["name"]: knob["value"] for knob in truth["knobs"]}
    start = {knob["name"]: knob["start"] for knob in truth["knobs"]}
    assert verdict(level, [[0.0, 0.2]] * 3, right).passed
    assert verdict(level, [[0.2, 0.2]] * 3, start).reward == 0.0
    assert 0 < verdict(level, [[0.1, 0.2]] * 3, start).reward < 0.5
    assert not verdict(level, [[0.02, 0.04]] * 3, right).passed  # no nearer than half the start's difference
    assert not verdict(level, [[0.0, 0.2]] * 3, {**right, truth["knobs"][-1]["name"]: None}).passed
    assert verdict(level, [], right, ["node 'x' is a TEX_IMAGE"]).reward == 0.0


def test_truth_is_json() -> None:
    for level in LEVELS:
        assert json.loads(json.dumps(generated(1, level).truth)) == generated(1, level).truth
