"""Solutions of one instance, right and wrong, as tool calls made from its truth alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Json, ToolCall

_SUBMIT = ToolCall(tool="submit")
_TELEPORT = """

func _process(_delta):
	if Input.is_action_just_pressed("jump"):
		position.y -= {height}
"""
_SLOW_ENGINE = """

func _enter_tree():
	Engine.iterations_per_second = 60
	Engine.time_scale = 0.5
"""
_READS_THE_TEST = """

func _init():
	var file = File.new()
	file.open(OS.get_environment("PLAYTEST_IN"), File.READ)
	var plan = JSON.parse(file.get_as_text()).result
"""
_LEAPER = """extends KinematicBody2D

var left = 0

func _physics_process(delta):
	var way = Input.get_action_strength("move_right") - Input.get_action_strength("move_left")
	if Input.is_action_just_pressed("jump") and left == 0:
		move_and_collide(Vector2(0, -{height}))
		left = {rise}
	left = max(left - 1, 0)
	move_and_slide(Vector2(way * {max_speed}, 0 if left > 0 else 400), Vector2.UP)
"""


def telling_lines(right: str, start: str) -> list[str]:
    """Lines of the right controller that the one to start with has not, the longest first."""
    known = {line.strip() for line in start.splitlines()}
    fresh = {line.strip() for line in right.splitlines()} - known
    return sorted(
        (line for line in fresh if len(line) >= 20 and not line.startswith("#")), key=lambda line: (-len(line), line)
    )


def oracle(truth: Mapping[str, Json]) -> list[ToolCall]:
    """Read, see how it moves, write the controller, check and see again, submit."""
    shown = "slopes" if truth["level"] in (3, 4) else "jump"
    return [
        _shell("cat player.gd && ls scenarios"),
        _shell(f"python3 playtest.py scenarios/{shown}.json before.png | sed -n 1,40p"),
        ToolCall(tool="view", arguments={"path": "before.png"}),
        _write(str(truth["right"])),
        _shell(
            f"python3 check_script.py player.gd && python3 playtest.py scenarios/{shown}.json after.png | sed -n 1,40p"
        ),
        ToolCall(tool="view", arguments={"path": "after.png"}),
        _SUBMIT,
    ]


def alternatives(truth: Mapping[str, Json]) -> dict[str, Sequence[ToolCall]]:
    """A controller of another make."""
    return {"another_make": [_write(str(truth["other"])), _SUBMIT]}


def mutants(truth: Mapping[str, Any]) -> dict[str, Sequence[ToolCall]]:
    """Near misses, and what a cheat would do."""
    feel, right = truth["feel"], str(truth["right"])
    wrong = {
        **truth["near"],
        "sets_position": right + _TELEPORT.format(**feel),
        "slows_the_engine": right + _SLOW_ENGINE,
        "reads_the_test": right + _READS_THE_TEST,
        "leaps_by_collide": _LEAPER.format(**feel),
    }
    found: dict[str, Sequence[ToolCall]] = {name: [_write(text), _SUBMIT] for name, text in wrong.items()}
    forge = 'echo \'{"reward": 1, "passed": true}\' | tee reward.json record.json; cp player.gd playtest.gd'
    found["forged_record"] = [_shell(forge), _SUBMIT]
    return found


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 180})


def _write(text: str) -> ToolCall:
    return ToolCall(tool="edit", arguments={"path": "player.gd", "old": "", "new": text})
