"""Programs that build a spec almost right: what a careless or cheating modeller would hand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .modelling import program
from .solids import Solid, box

_SCALED = """\
for part in list(bpy.data.objects):
    part.location, part.scale = part.location * 1000, part.scale * 1000
"""
_OPEN = """\
import bmesh
mesh = bpy.data.objects[{name!r}].data
work = bmesh.new()
work.from_mesh(mesh)
bmesh.ops.delete(work, geom=[max(work.faces, key=lambda face: face.calc_area())], context="FACES_ONLY")
work.to_mesh(mesh)
work.free()
"""
_CAVITY = """\
part = bpy.data.objects[{name!r}]
thin = part.modifiers.new("thin", "SOLIDIFY")
thin.thickness, thin.offset = 0.002, -1.0
bpy.context.view_layer.objects.active = part
bpy.ops.object.modifier_apply(modifier=thin.name)
"""
_LEFTOVER = """\
bpy.ops.mesh.primitive_cube_add(size=0.01)
bpy.context.object.name = "cutter"
bpy.context.object.hide_render = True
bpy.context.object.hide_set(True)
"""


def wrong_programs(solids: Sequence[Solid]) -> Mapping[str, Sequence[str]]:
    """Name → program; which ones exist depends on what the spec has."""
    first, last = solids[0], solids[-1]
    right = program(solids)
    wrong: dict[str, Sequence[str]] = {
        "millimetres_as_units": [*right, _SCALED],
        "one_part_missing": program(solids[:-1]),
        "face_missing": [*right, _OPEN.format(name=first.name)],
        "hollow_shell": [*right, _CAVITY.format(name=first.name)],
        "moved_3_mm": [*right, f"bpy.data.objects[{last.name!r}].location.x += 0.003\n"],
        "default_cube_renamed": [f'import bpy\nbpy.data.objects["Cube"].name = {first.name!r}\n'],
        "cutter_left_hidden": [*right, _LEFTOVER],
    }
    if any(solid.cuts for solid in solids):
        wrong["nothing_drilled"] = program([replace(solid, cuts=()) for solid in solids])
    boxes = [bounding_box(solid) for solid in solids]
    if any(
        abs(block.volume() - solid.volume()) > 0.05 * block.volume() for block, solid in zip(boxes, solids, strict=True)
    ):
        wrong["bounding_boxes"] = program(boxes)
    return wrong


def bounding_box(solid: Solid) -> Solid:
    low, high = solid.bounds()
    x, y, z = ((a + b) / 2 for a, b in zip(low, high, strict=True))
    dx, dy, dz = (b - a for a, b in zip(low, high, strict=True))
    return Solid(name=solid.name, base=box((x, y, z), (dx, dy, dz)))
