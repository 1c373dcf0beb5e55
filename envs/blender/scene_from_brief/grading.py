"""How a dressed scene is judged; every rule here is stated in `instruction.md`.

A thing is *sound* when it is the library's own mesh at its real size, upright, inside the room and the picture, steady
on something and in nothing. A relation counts only between sound things, so that nothing is earned by a heap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from ...core import Check, Sandbox
from ...parts.probe import run_probe
from ...parts.relations import Eye, Placed, Relation, Room, judge

SIZE_SHARE = 0.01
UPRIGHT_DEGREES = 2.0
_THING_WEIGHT = 0.3


async def measure(sandbox: Sandbox, question: Mapping[str, Any]) -> dict[str, Any]:
    """What the probe found, or {"failure": why}."""
    source = files(__package__ or "").joinpath("scene_probe.py").read_text(encoding="utf-8")
    result = await run_probe(sandbox, source, dict(question), timeout_s=240)
    answer: Any = result.value
    return {"failure": result.failure} if answer is None else answer


def stage_check(stage: Mapping[str, Any], eye: Eye) -> Check:
    """The gate: room and camera as they were, nothing in the file that does not belong there."""
    problems = [f"{name} was changed" for name, same in stage["room"].items() if not same]
    problems += [f"foreign object {name}" for name in stage["foreign"][:4]]
    problems += [f"driver on {name}" for name in stage["drivers"][:4]]
    if stage["scenes"] != 1 or stage["instances"] or stage["libraries"]:
        problems.append("further scenes, instances or linked libraries")
    if not _same_view(stage["view"], eye):
        problems.append("the camera was changed, or is not the scene's camera")
    return Check(
        name="room and camera",
        score=float(not problems),
        gate=True,
        evidence="; ".join(problems[:6]) or "as they were",
    )


def _same_view(view: Mapping[str, Any] | None, eye: Eye) -> bool:
    if view is None or not view["plain"] or abs(view["angle"] - eye.degrees) > 0.05:
        return False
    right, _, ahead = eye.axes()
    return (
        math.dist(view["place"], eye.place) < 1e-3
        and math.dist(view["ahead"], ahead) < 1e-3
        and math.dist(view["right"], right) < 1e-3
    )


def thing_faults(facts: Mapping[str, Any] | None, factor: float, room: Room, eye: Eye) -> list[str]:
    """Why a thing is not sound."""
    if facts is None:
        return ["there is no mesh object of this name"]
    if not facts["same_mesh"]:
        return ["is not the library's mesh"]
    if not facts["shown"]:
        return ["is hidden, or not in the scene"]
    faults: list[str] = []
    if any(abs(scale * factor - 1) > SIZE_SHARE for scale in facts["scales"]):
        sizes = " × ".join(f"{scale * factor:.3g}" for scale in facts["scales"])
        faults.append(f"has {sizes} times its real size")
    if facts["upright"] < math.cos(math.radians(UPRIGHT_DEGREES)) or facts["square"] < 0.999:
        faults.append("is tilted, sheared or mirrored")
    points = facts["points"]
    low, high = ([pick(p[k] for p in points) for k in range(3)] for pick in (min, max))
    slack = 0.002
    if not (
        room.x[0] - slack <= low[0]
        and high[0] <= room.x[1] + slack
        and room.y[0] - slack <= low[1] <= high[1]
        and high[1] <= room.y[1] + slack
        and low[2] >= -0.005
        and high[2] <= room.height
    ):
        faults.append("reaches out of the room")
    pictures = [eye.picture(point) for point in points]
    if not all(0 <= x <= 1 and 0 <= y <= 1 and depth > 0 for x, y, depth in pictures):
        faults.append("is not whole in the picture")
    if not facts["standing_on"]:
        faults.append(f"stands on nothing (its lowest point is at {low[2]:.3f} m)")
    elif not facts["steady"]:
        faults.append("does not stand steadily: its middle is not over what carries it")
    return faults


def judge_scene(
    found: Mapping[str, Any], factors: Mapping[str, float], relations: Sequence[Relation], room: Room, eye: Eye
) -> list[Check]:
    """The checks on measured facts; `factors` says how many library units a metre has, thing by thing."""
    checks = [stage_check(found["stage"], eye)]
    faults = {name: thing_faults(found["things"].get(name), factor, room, eye) for name, factor in factors.items()}
    for a, b in found["collisions"]:
        faults[a].append(f"runs into {b}")
        faults[b].append(f"runs into {a}")
    sound = {name for name, wrong in faults.items() if not wrong}
    for name, wrong in faults.items():
        checks.append(
            Check(
                name=f"{name} stands",
                score=float(not wrong),
                weight=_THING_WEIGHT,
                evidence="; ".join(wrong[:4]) or "as it should",
            )
        )
    things = {name: _placed(name, found["things"][name]) for name in sound}
    for index, relation in enumerate(relations):
        checks.append(_relation_check(f"demand {index + 1}", relation, things, room, eye))
    return checks


def _placed(name: str, facts: Mapping[str, Any]) -> Placed:
    return Placed(
        name=name,
        points=[(x, y, z) for x, y, z in facts["points"]],
        front=(facts["front"][0], facts["front"][1]),
        standing_on=frozenset(facts["standing_on"]),
        visible=facts["visible"],
    )


def _relation_check(name: str, relation: Relation, things: Mapping[str, Placed], room: Room, eye: Eye) -> Check:
    kind = f"not {relation.kind}" if relation.negated else relation.kind
    title = f"{name}: {kind} {' '.join((*relation.names, relation.wall)).strip()}"
    unsound = [each for each in relation.names if each not in things]
    if unsound:
        return Check(name=title, score=0.0, evidence=f"{', '.join(unsound)} is not in place")
    judged = judge(relation, things, room, eye)
    return Check(name=title, score=float(judged.holds), evidence=judged.evidence)
