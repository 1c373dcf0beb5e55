"""blender/MaterialRenderMatch: set a material so that it looks like the goal pictures, under any light.

Levels: 0 one colour; 1 colour, roughness, metallic; 2 a noise pattern through a ramp; 3 relief, metal and coat under
tinted lights; 4 the graph is to be built. Graded in views that were never shown, on other shapes, beside the reference;
pictures as textures, light of its own and nodes beyond plain procedures close the gate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from . import grading, painting
from .recipes import Recipe, finish

MATCH = "match.blend"
MATERIAL = "Finish"


@dataclass(frozen=True)
class MaterialRenderMatch(Family):
    """One finish, given by pictures."""

    def generate(self, rng: Rng, level: int) -> Instance:
        drawn = finish(rng.child("finish"), level)
        view = rng.child("view")
        shape = view.choice(grading.SHAPES)
        first = view.integer(-60, 60)
        # lights all round: each camera sees one at its back
        studio = {
            "mesh": shape,
            "lights": [
                [(first - 40) % 360, 40, 230, [1.0, 1.0, 1.0]],
                [(first + 130) % 360, 35, 230, [1.0, 1.0, 1.0]],
                *grading.lights(view.child("lights"), tinted=level >= 3)[1:],
            ],
            "cameras": {"CamA": [first, 20], "CamB": [first + 150, 35]},
            "turn": view.integer(0, 359),
        }
        canary = f"{rng.child('canary').integer(0, 2**96):024x}"
        case = {"studio": studio, "start": drawn.start, "goal": drawn.goal, "canary": canary}
        truth = {**case, "knobs": list(drawn.knobs), "shape": shape, "level": level}
        folder = files(__package__ or "")
        own = {name: folder.joinpath(name).read_bytes() for name in ("studio.py", "build.py", "render.py")}
        return Instance(
            variables={
                "level": level,
                "kind": drawn.kind,
                "knobs": [_told(knob) for knob in drawn.knobs],
                "picture_percent": round(grading.PICTURE * 100),
                "tolerances": [*sorted({_tolerance(knob) for knob in drawn.knobs})],
            },
            files={
                "render.py": own["render.py"],
                ".setup/studio.py": own["studio.py"],
                ".setup/build.py": own["build.py"],
                ".setup/case.json": _bytes(case),
            },
            setup=("python3 .setup/build.py && rm -rf .setup",),
            artefacts=(Artefact(path=MATCH),),
            truth=json.loads(_bytes(truth)),
            secrets=(canary,),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        truth: Any = instance.truth
        return _calls(_right(truth), look=True)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Any = instance.truth
        if truth["level"] == 4:
            return {"mixed_instead_of_ramped": _calls(painting.graph(_mixed(truth["goal"])))}
        return {"values_from_nodes": _calls(painting.set_by_nodes(truth["knobs"]))}

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Any = instance.truth
        forged = 'echo \'{"reward": 1.0, "passed": true}\' | tee reward.json verdict.json; echo 1 > answer'
        forgery = ToolCall(tool="shell", arguments={"command": forged})
        wrong = {
            "goal_picture_as_texture": painting.picture_texture(),
            "painted_in_light": _right(truth) + painting.glow(_colours(truth)[0]),
            **(_wrong_graphs(truth["goal"]) if truth["level"] == 4 else _wrong_values(truth["knobs"])),
        }
        named = {name: _calls(code) for name, code in wrong.items()}
        return {**named, "start_saved_with_a_forged_reward": (forgery, *_calls(""))}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        truth: Any = instance.truth
        views = grading.hidden_views(truth["shape"], hidden.child("views"))
        question = {
            "path": f"/workspace/{MATCH}",
            "name": MATERIAL,
            "goal": truth["goal"],
            "start": truth["start"],
            "knobs": truth["knobs"],
            "views": views,
        }
        found = await grading.measure(sandbox, question)
        failure = found.get("failure", "")
        opened = Check(name="file", score=float(not failure), gate=True, evidence=failure or "opened")
        if failure:
            return Verdict.of(opened)
        return Verdict.of(opened, *grading.judge(found, truth["knobs"], [view["mesh"] for view in views]))


def _calls(code: str, *, look: bool = False) -> tuple[ToolCall, ...]:
    """Open, set, save, submit; with `look`, compare pictures before and after."""

    def python(source: str) -> ToolCall:
        return ToolCall(tool="python", arguments={"code": source, "timeout_s": 300})

    if not look:
        return (python(painting.OPEN + code + painting.SAVE), ToolCall(tool="submit"))
    goals = [ToolCall(tool="view", arguments={"path": f"goal_{letter}.png"}) for letter in "ab"]
    mine = [ToolCall(tool="view", arguments={"path": f"look_{letter}.png"}) for letter in "ab"]
    return (
        python(painting.OPEN),
        *goals,
        python(painting.MEASURE),
        mine[0],
        python(code),
        python(painting.COMPARE),
        *mine,
        python(painting.SAVE),
        ToolCall(tool="submit"),
    )


def _right(truth: Mapping[str, Any]) -> str:
    if truth["level"] == 4:
        return painting.graph(truth["goal"])
    return painting.set_knobs(truth["knobs"], {})


def _node(recipe: Recipe, name: str) -> Any:
    return next(node for node in recipe["nodes"] if node["name"] == name)


def _colours(truth: Mapping[str, Any]) -> list[list[float]]:
    if truth["level"] == 4:
        return [colour for _, colour in _node(truth["goal"], "Ramp")["ramp"]]
    return [knob["value"] for knob in truth["knobs"] if knob["kind"] == "colour"]


def _copy(recipe: Recipe) -> Recipe:
    return json.loads(json.dumps(recipe))


def _mixed(goal: Recipe) -> Recipe:
    """The same look with a Mix node in the place of the ramp."""
    recipe = _copy(goal)
    ramp = _node(recipe, "Ramp")
    one, other = (colour for _, colour in ramp.pop("ramp"))
    ramp.update({"type": "Mix", "colour": True, "inputs": {"A_Color": one, "B_Color": other}})
    names = {"Fac": "Factor_Float", "Color": "Result_Color"}
    recipe["links"] = [
        [a, names.get(out, out) if a == "Ramp" else out, b, names.get(into, into) if b == "Ramp" else into]
        for a, out, b, into in recipe["links"]
    ]
    return recipe


def _wrong_values(knobs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    colours = [knob for knob in knobs if knob["kind"] == "colour"]
    typed = {knob["name"]: painting.typed_as_seen(knob["value"]) for knob in colours}
    found = {"colour_typed_as_it_looks": painting.set_knobs(knobs, typed)}
    found["another_colour"] = painting.set_knobs(
        knobs, {knob["name"]: [*reversed(knob["value"][:3]), 1.0] for knob in colours}
    )
    for knob in knobs:
        if knob["name"] in {"roughness", "bump strength"}:
            name = f"{knob['name'].replace(' ', '_')}_left_alone"
            found[name] = painting.set_knobs(knobs, {knob["name"]: knob["start"]})
        if knob["name"] == "pattern scale":
            found["pattern_a_tenth_too_large"] = painting.set_knobs(knobs, {knob["name"]: knob["value"] * 0.9})
    return found


def _wrong_graphs(goal: Recipe) -> dict[str, str]:
    swapped, other, dull, off = (_copy(goal) for _ in range(4))
    ramp = _node(swapped, "Ramp")["ramp"]
    ramp[0][1], ramp[1][1] = ramp[1][1], ramp[0][1]
    pattern = _node(other, "Pattern")
    old = pattern["type"]
    pattern["type"] = "TexVoronoi" if old != "TexVoronoi" else "TexNoise"
    factors = {"TexVoronoi": "Distance"}
    for link in other["links"]:
        if link[0] == "Pattern":
            link[1] = factors.get(pattern["type"], "Fac")
    dull["links"] = [link for link in dull["links"] if link[0] != "Gloss"]
    _node(off, "Pattern")["inputs"]["Scale"] *= 0.9
    return {
        "colours_swapped": painting.graph(swapped),
        "another_pattern": painting.graph(other),
        "one_roughness_all_over": painting.graph(dull),
        "pattern_a_tenth_too_large": painting.graph(off),
    }


def _told(knob: Mapping[str, Any]) -> dict[str, Json]:
    """How the brief names a knob."""
    if knob["kind"] == "texture":
        return {"node": "", "what": ""}
    what = f"colour {knob['ramp'] + 1} of the ramp" if "ramp" in knob else f"`{knob['socket']}`"
    return {"node": knob["node"], "what": what}


def _tolerance(knob: Mapping[str, Any]) -> str:
    if knob["kind"] == "colour":
        return f"colours ±{knob['tolerance']:g} a channel (as they look, sRGB from 0 to 1)"
    if knob["kind"] in {"share", "texture"}:
        return f"scales ±{knob['tolerance']:.0%}"
    return f"{knob['name']} ±{knob['tolerance']:g}"


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
