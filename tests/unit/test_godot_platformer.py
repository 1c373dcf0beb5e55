"""game/GodotPlatformer without Godot: feels, controllers as text, the script reader, and trials on made-up tracks."""

from __future__ import annotations

import itertools
import math
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, VerifierError, instance_rng
from metier.envs.game.godot_platformer.controllers import FAULTS, controller, other_controller
from metier.envs.game.godot_platformer.family import GodotPlatformer
from metier.envs.game.godot_platformer.feel import ASKED, Feature, Feel, draw_feel
from metier.envs.game.godot_platformer.grading import judged
from metier.envs.game.godot_platformer.ground_trials import jump
from metier.envs.game.godot_platformer.levels import build
from metier.envs.game.godot_platformer.play import Record
from metier.envs.game.godot_platformer.stage import SETTLE, Trial
from metier.envs.game.godot_platformer.trials import trials
from metier.envs.parts.gdscript import problems
from metier.envs.registry import render_brief

ENV_ID = "game/GodotPlatformer-v0"
FAMILY = GodotPlatformer()
LEVELS = range(5)
SEEDS = st.integers(0, 10_000)


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


@given(SEEDS)
@settings(max_examples=40, deadline=None)
def test_a_feel_keeps_its_numbers_apart(seed: int) -> None:
    feel = draw_feel(HashRng(str(seed).encode()))
    assert abs(feel.stop - feel.accelerate) >= 4 and feel.stop > 3
    assert feel.turn < min(feel.stop, feel.accelerate)
    assert feel.rise - feel.fall >= 5
    assert feel.terminal > 1.2 * feel.fall_gravity * feel.fall / 60
    assert feel.coyote >= 5 and feel.buffer >= 5
    assert 0 < feel.cut_height(3) < feel.cut_height(7) < feel.height
    assert feel.cut_height(feel.rise) == pytest.approx(feel.height)


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_differ_and_have_a_whole_brief(level: int) -> None:
    assert made(level, 3) == made(level, 3)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(4)}) == 4
    instance = made(level, 3)
    brief = render_brief(FAMILY, instance, level)
    feel: Any = instance.truth["feel"]
    assert f"{feel['height']} px high" in brief and "{{" not in brief
    assert instance.secrets and not any(secret in brief for secret in instance.secrets)
    assert not any(secret in data.decode() for secret in instance.secrets for data in instance.files.values())


@pytest.mark.parametrize("level", LEVELS)
def test_every_controller_that_counts_is_allowed(level: int) -> None:
    for seed in range(6):
        task = build(HashRng(f"{level} {seed}".encode()), level)
        assert task.start != task.right
        for text in (task.start, task.right, task.other, *task.near.values()):
            assert problems(text) == []
            assert "{%" not in text and "undefined" not in text.lower()


def test_each_fault_changes_the_text_and_each_feature_is_optional() -> None:
    feel = draw_feel(HashRng(b"feel"))
    for level, faults in FAULTS.items():
        right = controller(feel, ASKED[level], title="x")
        texts = {controller(feel, ASKED[level], title="x", faults=[fault]) for fault in faults}
        assert len(texts) == len(faults) and right not in texts
    for without in ASKED[4]:
        assert problems(controller(feel, [each for each in ASKED[4] if each is not without], title="x")) == []
    with pytest.raises(jinja2.UndefinedError):
        other_controller(None, ASKED[4], title="x")  # type: ignore[arg-type]  # what is not known is no blank


@pytest.mark.parametrize(
    "line",
    [
        "	position.y -= 9",
        "	self.position = Vector2()",
        "	self['position'] = 1",
        "	global_transform.origin.x = 4",
        "	var position = 1",
        "	get_tree().quit()",
        "	Engine.time_scale = 0.1",
        "	OS.get_environment('X')",
        "	$Shape.scale = 2",
        "	get_slide_collision(0).collider.position.x = 3",
        "	call('set_position', Vector2())",
        "	var me = self",
        "	var set_position = 3",
        "	load('res://player.gd')",
        "	print(1)",
        "	yield()",
        "	`",
    ],
)
def test_the_reader_refuses(line: str) -> None:
    script = f"extends KinematicBody2D\n\nfunc _physics_process(delta):\n{line}\n"
    assert problems(script)
    assert problems(script.replace(line, "\tmove_and_slide(Vector2(1, delta), Vector2.UP)")) == []


@pytest.mark.parametrize(
    "script",
    ["", "extends Node\n", "tool\nextends KinematicBody2D\n", "extends KinematicBody2D\nfunc _process(d):\n\tpass"],
)
def test_the_reader_wants_a_body(script: str) -> None:
    assert problems(script)


def test_comments_and_the_four_actions_pass() -> None:
    script = 'extends KinematicBody2D\n# get_tree() "x"\nvar a = Input.is_action_pressed("jump")  # position\n'
    assert problems(script) == []


@given(SEEDS, st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_trials_stay_within_their_scenarios(seed: int, level: int) -> None:
    rng = HashRng(str(seed).encode())
    plan = trials(draw_feel(rng), ASKED[level], rng.child("hidden"))
    assert {trial.feature for trial in plan} == set(ASKED[level])
    for trial in plan:
        scenario: Any = trial.scenario
        assert 1 <= scenario["ticks"] < 400
        for mark, offset, action, _ in scenario["events"]:
            assert mark == "start" or mark in scenario.get("marks", {}) or mark.endswith(":land")
            assert mark != "start" or 0 <= offset < scenario["ticks"]
            assert action in ("move_left", "move_right", "move_down", "jump")


def flown(feel: Feel, trial: Trial, height: float) -> Record:
    """A track that stands, then rises `height` on a parabola in the feel's time, and falls again."""
    scenario: Any = trial.scenario
    x, y = scenario["start"]
    press = SETTLE + 20
    track: list[tuple[float, float]] = []
    for tick in range(scenario["ticks"]):
        share = (tick - press + 1) / feel.rise - 1.0
        track.append((x, y - height * max(0.0, 1.0 - share * share) if tick >= press else y))
    return Record(track=track, marks={"start": 0})


def test_a_jump_is_judged_by_height_and_time() -> None:
    feel = draw_feel(HashRng(b"jump"))
    trial = jump(feel, HashRng(b"stage"), 0)[0]
    for share, good in ((1.0, True), (1.05, True), (1.12, False), (0.85, False)):
        record = flown(feel, trial, share * feel.height)
        assert (trial.judge(record.track, record.marks) == "") is good


def test_what_was_right_is_a_gate_and_what_was_wrong_is_graded() -> None:
    feel = draw_feel(HashRng(b"verdict"))
    plan = jump(feel, HashRng(b"stage"), 0)
    right, low = ([flown(feel, trial, share * feel.height) for trial in plan] for share in (1.0, 0.5))
    assert judged(feel, plan, right, low, "").reward == 1.0
    assert judged(feel, plan, low, low, "").reward == 0.0
    with pytest.raises(VerifierError):
        judged(feel, plan, low, right, "")


def test_a_leap_fails_whatever_else_is_right() -> None:
    feel = draw_feel(HashRng(b"leap"))
    plan = jump(feel, HashRng(b"stage"), 0)
    right, low = ([flown(feel, trial, share * feel.height) for trial in plan] for share in (1.0, 0.5))
    last = right[0].track[-1]
    leaping = [Record(track=[*right[0].track[:-1], (last[0] + 400.0, last[1])], marks={}), *right[1:]]
    verdict = judged(feel, plan, leaping, low, "")
    assert verdict.reward == 0.0 and not verdict.passed


def test_the_features_of_a_level_contain_those_below() -> None:
    for below, above in itertools.pairwise(ASKED):
        assert set(below) <= set(above)
    assert set(ASKED[4]) == set(Feature)
    assert math.isclose(sum(len(asked) for asked in ASKED), 4 + 6 + 7 + 10 + 12)
