"""Tool calls that fit colliders: as a professional would, in another right way, and wrongly."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...core import Json, ToolCall

MESH_PATH, COLLIDER_PATH = "/workspace/mesh.obj", "/workspace/collider.json"
Entry = dict[str, Json]

_LOOK = f"""\
import trimesh
mesh = trimesh.load("{MESH_PATH}", force="mesh")
print("bounds", mesh.bounds.round(4).tolist(), "volume", round(mesh.volume, 5))
for number, part in enumerate(mesh.split(only_watertight=False), start=1):
    centre, size = part.bounds.mean(axis=0).round(4).tolist(), part.extents.round(4).tolist()
    print(number, "vertices", len(part.vertices), "centre", centre, "size", size, "volume", round(part.volume, 5))"""

_BOX_PER_PART = f"""\
import json
import numpy as np

parts = {{}}
for line in open("{MESH_PATH}"):
    word = line.split()
    if word[0] == "o":
        points = parts[word[1]] = []
    elif word[0] == "v":
        points.append([float(value) for value in word[1:]])
primitives = []
for points in parts.values():
    low, high = np.min(points, axis=0), np.max(points, axis=0)
    primitives.append({{"type": "box", "center": ((low + high) / 2).tolist(), "size": (high - low).tolist()}})
with open("{COLLIDER_PATH}", "w") as file:
    json.dump({{"primitives": primitives}}, file)
print(len(primitives), "boxes")"""

_SHOW = f"""\
import json
import pybullet as p

p.connect(p.DIRECT)
for c in json.load(open("{COLLIDER_PATH}"))["primitives"]:
    if c["type"] == "box":
        shape = p.createCollisionShape(p.GEOM_BOX, halfExtents=[value / 2 for value in c["size"]])
    elif c["type"] == "sphere":
        shape = p.createCollisionShape(p.GEOM_SPHERE, radius=c["radius"])
    else:
        shape = p.createCollisionShape(p.GEOM_CYLINDER, radius=c["radius"], height=c["length"])
    p.createMultiBody(0, shape, basePosition=c["center"], baseOrientation=c.get("rotation", [0, 0, 0, 1]))
print(p.getNumBodies(), "colliders in the world")"""


def oracle(primitives: Sequence[Entry], *, boxes_only: bool) -> list[ToolCall]:
    """Look at the mesh, fit, look at the colliders, submit."""
    return [
        ToolCall(tool="view", arguments={"path": MESH_PATH}),
        *([] if boxes_only else [_python(_LOOK)]),
        _python(_BOX_PER_PART if boxes_only else _writing(primitives)),
        _python(_SHOW),
        ToolCall(tool="view"),
        ToolCall(tool="submit"),
    ]


def alternatives(primitives: Sequence[Entry]) -> dict[str, list[ToolCall]]:
    """The same union otherwise divided, written by the shell."""
    index = next(number for number, entry in enumerate(primitives) if entry["type"] == "box")
    divided = [*primitives[:index], *_halves(primitives[index]), *primitives[index + 1 :]]
    command = f"cat > collider.json <<'END'\n{_document(divided)}\nEND"
    return {"a_box_in_two": [ToolCall(tool="shell", arguments={"command": command}), ToolCall(tool="submit")]}


def mutants(
    primitives: Sequence[Entry], low: Sequence[float], high: Sequence[float], *, cap: int
) -> dict[str, list[ToolCall]]:
    """Near misses, and the hack: one box around it all."""
    centre = [(a + b) / 2.0 for a, b in zip(low, high, strict=True)]
    box: Entry = {"type": "box", "center": list(centre), "size": [b - a for a, b in zip(low, high, strict=True)]}
    ball: Entry = {"type": "sphere", "center": list(centre), "radius": math.dist(low, high) / 2.0}
    smaller_half = sorted(primitives, key=_volume)[: len(primitives) // 2]
    shift = 0.06 * math.dist(low, high)
    wrong: dict[str, Sequence[Entry]] = {
        "one_giant_box": [box],
        "bounding_sphere": [ball],
        "larger_half_forgotten": smaller_half,
        "sizes_halved": [_scaled(entry, 0.5) for entry in primitives],
        "set_on_another_origin": [_moved(entry, (0.0, 0.0, shift)) for entry in primitives],
        "more_than_allowed": [*primitives, *([primitives[0]] * (cap + 1 - len(primitives)))],
    }
    if any("rotation" in entry for entry in primitives):
        wrong["rotation_scalar_first"] = [_scalar_first(entry) for entry in primitives]
    return {name: [_python(_writing(entries)), ToolCall(tool="submit")] for name, entries in wrong.items()}


def _python(code: str) -> ToolCall:
    return ToolCall(tool="python", arguments={"code": code})


def _document(primitives: Sequence[Entry]) -> str:
    rows = ",\n".join(json.dumps(entry) for entry in primitives)
    return f'{{"primitives": [\n{rows}\n]}}'


def _writing(primitives: Sequence[Entry]) -> str:
    return f'with open("{COLLIDER_PATH}", "w") as file:\n    file.write("""{_document(primitives)}""")'


def _numbers(entry: Mapping[str, Json], field: str) -> list[float]:
    return list(cast("Sequence[float]", entry[field]))


def _halves(entry: Entry) -> list[Entry]:
    """A box in two along its longest edge."""
    size, centre = _numbers(entry, "size"), _numbers(entry, "center")
    axis = size.index(max(size))
    x, y, z, w = _numbers(entry, "rotation") if "rotation" in entry else (0.0, 0.0, 0.0, 1.0)
    columns = (
        (1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)),
        (2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)),
        (2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)),
    )
    half: list[Json] = [value / 2.0 if number == axis else value for number, value in enumerate(size)]
    step = [size[axis] / 4.0 * value for value in columns[axis]]
    return [
        {**entry, "size": half, "center": [c + side * s for c, s in zip(centre, step, strict=True)]} for side in (-1, 1)
    ]


def _volume(entry: Mapping[str, Json]) -> float:
    if entry["type"] == "box":
        return math.prod(_numbers(entry, "size"))
    radius = cast("float", entry["radius"])
    if entry["type"] == "sphere":
        return 4.0 / 3.0 * math.pi * radius**3
    return math.pi * radius**2 * cast("float", entry["length"])


def _scaled(entry: Entry, factor: float) -> Entry:
    changed: dict[str, Any] = dict(entry)
    if "size" in entry:
        changed["size"] = [factor * value for value in _numbers(entry, "size")]
    for field in ("radius", "length"):
        if field in entry:
            changed[field] = factor * cast("float", entry[field])
    return changed


def _moved(entry: Entry, by: Sequence[float]) -> Entry:
    return {**entry, "center": [a + b for a, b in zip(_numbers(entry, "center"), by, strict=True)]}


def _scalar_first(entry: Entry) -> Entry:
    if "rotation" not in entry:
        return entry
    x, y, z, w = _numbers(entry, "rotation")
    return {**entry, "rotation": [w, x, y, z]}
