"""blender/SceneFromBrief: dress a room with a library's objects so that a brief's relations hold.

Levels: 0 three things, a wall and a table; 1 facing and distances; 2 a camera that looks from the side, origins
anywhere, depth and between; 3 a library in mixed units, copies, visibility; 4 sizes to be measured, stacks,
negations. Relations are measured on the evaluated meshes, the camera and the meshes are gates.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts import relations as rules
from ...parts.polyhedra import PolyMesh, box
from ...parts.relations import Eye, Relation, Room
from . import grading, stage
from .demands import choose, comfortable, sentence
from .layout import UNITS, Item, Layout, furnish

SCENE = "scene.blend"
_UNIT_NAMES = {"m": "metres", "cm": "centimetres", "mm": "millimetres", "inch": "inches"}


@dataclass(frozen=True)
class SceneFromBrief(Family):
    """One room, its things and what is demanded of them."""

    def generate(self, rng: Rng, level: int) -> Instance:
        layout, demands, seed = _drawn(rng, level)
        other = _elsewhere(layout, demands, rng.child("elsewhere"))
        shell = _shell(layout.room)
        words = rng.child("words")
        canary = f"{rng.child('canary').integer(0, 2**96):024x}"
        scene = stage.stage_json(layout, shell)
        truth = {
            "models": {name: model.to_json() for name, model in layout.models.items()},
            "items": [asdict(item) for item in layout.items],
            "elsewhere": [asdict(item) for item in other],
            "relations": [relation.to_json() for relation in demands],
            "room": asdict(layout.room),
            "eye": asdict(layout.eye),
            "shell": shell,
            "attempt": seed,
            "canary": canary,
        }
        return Instance(
            variables={
                "level": level,
                "sentences": [sentence(relation, words.child(str(k)), level) for k, relation in enumerate(demands)],
                "things": [_thing(item, layout, level) for item in layout.items],
                "width": layout.room.x[1] - layout.room.x[0],
                "depth": layout.room.y[1] - layout.room.y[0],
                **_numbers(),
            },
            files={".setup/stage.json": _bytes(scene), ".setup/build.py": stage.SETUP.encode()},
            setup=("python3 .setup/build.py && rm -rf .setup",),
            artefacts=(Artefact(path=SCENE),),
            truth=json.loads(_bytes(truth)),
            secrets=(canary,),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        truth: Any = instance.truth
        return _calls(stage.program(_items(truth["items"]), truth["models"]), look=True)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Any = instance.truth
        items = _items(truth["elsewhere"])
        pieces = [*stage.program(items, truth["models"]), stage.parented(items)]
        return {"elsewhere_and_parented": _calls(pieces)}

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Any = instance.truth
        wrong = stage.wrong(_items(truth["items"]), truth["models"])
        return {name: _calls(pieces) for name, pieces in wrong.items()}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        truth: Any = instance.truth
        items = _items(truth["items"])
        eye = Eye(**{**truth["eye"], "place": tuple(truth["eye"]["place"]), "target": tuple(truth["eye"]["target"])})
        room = Room(x=tuple(truth["room"]["x"]), y=tuple(truth["room"]["y"]), height=truth["room"]["height"])
        question = {
            "path": f"/workspace/{SCENE}",
            "things": {item.name: item.model for item in items},
            "models": truth["models"],
            "room": {part["name"]: part for part in truth["shell"]},
            "eye": eye.place,
        }
        found = await grading.measure(sandbox, question)
        failure = found.get("failure", "")
        opened = Check(name="file", score=float(not failure), gate=True, evidence=failure or "opened")
        if failure:
            return Verdict.of(opened)
        factors = {item.name: UNITS[truth["models"][item.model]["unit"]] for item in items}
        demands = [Relation(**fields) for fields in truth["relations"]]
        return Verdict.of(opened, *grading.judge_scene(found, factors, demands, room, eye))


def _drawn(rng: Rng, level: int) -> tuple[Layout, list[Relation], int]:
    """A layout that has what the level asks for, and the demands."""
    for attempt in range(200):
        layout = furnish(rng.child(f"layout {attempt}"), level)
        demands = choose(layout, rng.child(f"demands {attempt}"), level)
        if demands is not None:
            return layout, demands, attempt
    raise AssertionError("no layout had the relations of its level")


def _elsewhere(layout: Layout, demands: list[Relation], rng: Rng) -> list[Item]:
    """Another layout in which all demands hold: one thing after another moved a little, where that may be."""
    for name in [item.name for item in layout.items]:
        for _ in range(4):
            shift = (rng.integer(-60, 60) / 1000, rng.integer(-60, 60) / 1000)
            moved = layout.moved(name, shift)
            rest = [replace(item) for item in moved.items]
            if all(moved.fits(item) for item in rest) and comfortable(moved, demands):
                layout = moved
                break
    return layout.items


def _shell(room: Room) -> list[dict[str, Any]]:
    """Floor, back wall and left wall, 10 cm thick."""
    (x0, x1), (y0, y1), thick = room.x, room.y, 0.1
    parts: dict[str, PolyMesh] = {
        "Floor": box((x0 - thick, y0, -thick), (x1, y1 + thick, 0.0)),
        "BackWall": box((x0 - thick, y1, 0.0), (x1, y1 + thick, room.height)),
        "LeftWall": box((x0 - thick, y0, 0.0), (x0, y1, room.height)),
    }
    return [
        {"name": name, "points": mesh.points, "faces": mesh.faces, "zones": mesh.zones} for name, mesh in parts.items()
    ]


def _thing(item: Item, layout: Layout, level: int) -> dict[str, Json]:
    model = layout.models[item.model]
    copied = f" (a copy of the library's `{item.model}`)" if item.model != item.name else ""
    size = ""
    if level == 3:
        size = f", modelled in {_UNIT_NAMES[model.unit]}"
    if level == 4:
        size = f", really {model.height() * 100:.4g} cm high"
    return {"name": item.name, "words": copied + size}


def _numbers() -> dict[str, Any]:
    return {
        "picture_percent": round(rules.PICTURE_SHARE * 100),
        "depth_cm": round(rules.DEPTH_M * 100),
        "facing_degrees": round(rules.FACING_DEGREES),
        "wall_cm": round(rules.WALL_M * 100),
        "between_cm": round(rules.BETWEEN_M * 100),
        "on_mm": round(rules.ON_M * 1000),
        "size_percent": round(grading.SIZE_SHARE * 100),
        "upright_degrees": round(grading.UPRIGHT_DEGREES),
    }


def _calls(pieces: Sequence[str], *, look: bool = False) -> tuple[ToolCall, ...]:
    """Run the pieces, look at the picture, save, submit."""
    runs = [ToolCall(tool="python", arguments={"code": piece}) for piece in pieces]
    if look:
        runs += [
            ToolCall(tool="view"),
            ToolCall(tool="python", arguments={"code": stage.LOOK}),
            ToolCall(tool="view", arguments={"path": "look.png"}),
        ]
    return (*runs, ToolCall(tool="python", arguments={"code": stage.SAVE}), ToolCall(tool="submit"))


def _items(values: Sequence[Mapping[str, Any]]) -> list[Item]:
    return [Item(**{**value, "place": tuple(value["place"])}) for value in values]


def _bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
