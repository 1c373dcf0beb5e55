"""The Blender programs of this family: the set-up's, the oracle's, another right way and wrong ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .layout import UNITS, Item, Layout

SETUP = """\
import json, math
import bpy
from mathutils import Vector

case = json.load(open("/workspace/.setup/stage.json"))

def colour(index):
    import colorsys
    return (*colorsys.hsv_to_rgb((index * 0.381966) % 1.0, 0.65, 0.55), 1.0)

def paint(name, rgba):
    material = bpy.data.materials.new(name)
    material.diffuse_color = rgba
    material.use_nodes = True
    material.node_tree.nodes["Principled BSDF"].inputs["Base Color"].default_value = rgba
    return material

def thing(name, points, faces, zones, materials):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(points, [], faces)
    for material in materials:
        mesh.materials.append(material)
    for polygon, zone in zip(mesh.polygons, zones):
        polygon.material_index = zone
    item = bpy.data.objects.new(name, mesh)
    bpy.context.collection.objects.link(item)
    return item

bpy.ops.wm.read_factory_settings(use_empty=True)
at = 0.0
for index, model in enumerate(case["models"]):
    materials = [paint(model["name"] + " " + part, colour(2 * index + k)) for k, part in enumerate(("body", "detail"))]
    item = thing(model["name"], model["points"], model["faces"], model["zones"], materials)
    xs = [point[0] for point in model["points"]]
    item.location.x = at - min(xs)
    at += (max(xs) - min(xs)) * 1.1
bpy.ops.wm.save_as_mainfile(filepath="/workspace/library.blend")

bpy.ops.wm.read_factory_settings(use_empty=True)
for index, part in enumerate(case["room"]):
    thing(part["name"], part["points"], part["faces"], part["zones"], [paint(part["name"], (0.5, 0.47, 0.43, 1))])
camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
camera.data.sensor_fit, camera.data.angle = "HORIZONTAL", math.radians(case["eye"]["degrees"])
camera.location = case["eye"]["place"]
heading = Vector(case["eye"]["target"]) - Vector(case["eye"]["place"])
camera.rotation_euler = heading.to_track_quat("-Z", "Y").to_euler()
bpy.context.collection.objects.link(camera)
sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
sun.data.energy, sun.data.angle, sun.rotation_euler = 2.2, 0.1, (0.6, 0.25, 0.4)
bpy.context.collection.objects.link(sun)
scene = bpy.context.scene
scene.camera = camera
scene.world = bpy.data.worlds.new("World")
scene.world.use_nodes = True
scene.world.node_tree.nodes["Background"].inputs["Color"].default_value = (0.8, 0.85, 0.9, 1)
scene.world.node_tree.nodes["Background"].inputs["Strength"].default_value = 0.35
scene.render.engine, scene.view_settings.view_transform = "CYCLES", "Standard"
scene.cycles.samples, scene.cycles.use_denoising = 16, False
scene.render.resolution_x = scene.render.resolution_y = 256
bpy.ops.wm.save_as_mainfile(filepath="/workspace/room.blend")
"""

START = """\
import bpy, math

bpy.ops.wm.open_mainfile(filepath="/workspace/room.blend", use_scripts=False)
with bpy.data.libraries.load("/workspace/library.blend", link=False) as (source, target):
    target.objects = source.objects
library = {item.name: item for item in target.objects}
for name, item in library.items():
    print(name, "low", [round(min(v.co[k] for v in item.data.vertices), 4) for k in range(3)],
          "high", [round(max(v.co[k] for v in item.data.vertices), 4) for k in range(3)])

def put(name, model, place, degrees, unit, origin):
    \"\"\"Stand an object of the library with the middle of its foot at `place`.\"\"\"
    item = library[model]
    if item.name not in bpy.context.collection.objects and item.users_collection == ():
        bpy.context.collection.objects.link(item)
    if name != model:
        item = item.copy()
        bpy.context.collection.objects.link(item)
    item.name = name
    turn = math.radians(degrees)
    item.rotation_euler = (0, 0, turn)
    item.scale = (1 / unit,) * 3
    x, y, z = origin
    item.location = (place[0] + math.cos(turn) * x - math.sin(turn) * y,
                     place[1] + math.sin(turn) * x + math.cos(turn) * y, place[2] + z)
    return item
"""
_DROP_TEMPLATES = """\
for model in {models}:
    if model in bpy.data.objects:
        bpy.data.objects.remove(bpy.data.objects[model])
bpy.context.view_layer.update()
"""
LOOK = """\
scene = bpy.context.scene
scene.render.filepath, scene.render.image_settings.file_format = "/workspace/look.png", "PNG"
bpy.ops.render.render(write_still=True)
"""
SAVE = 'bpy.ops.wm.save_as_mainfile(filepath="/workspace/scene.blend")\n'
_PARENTED = """\
for name, carrier in {pairs}:
    item, below = bpy.data.objects[name], bpy.data.objects[carrier]
    world = item.matrix_world.copy()
    item.parent = below
    item.matrix_parent_inverse = below.matrix_world.inverted()
    item.matrix_world = world
for item in bpy.data.objects:
    if item.type == "MESH":
        item.data = item.data.copy()
"""
_CAMERA = """\
eye = bpy.data.objects["Camera"]
eye.location.x, eye.location.y = -eye.location.x, -eye.location.y
eye.rotation_euler.z += math.pi
"""
_SQUASHED = "bpy.data.objects[{name!r}].scale.z *= 0.8\n"
_MESH_EDITED = """\
for v in bpy.data.objects[{name!r}].data.vertices:
    v.co *= 0.5
"""
_REMOVED = "bpy.data.objects.remove(bpy.data.objects[{name!r}])\n"
_HIDDEN_TWIN = """\
twin = bpy.data.objects[{name!r}].copy()
twin.name = "spare"
bpy.context.collection.objects.link(twin)
twin.hide_render = True
twin.hide_set(True)
"""


def stage_json(layout: Layout, room: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the set-up builds from; nothing of where things go."""
    models = [model.to_json() for model in layout.models.values()]
    kept = ("name", "points", "faces", "zones")
    eye = layout.eye
    return {
        "models": [{name: model[name] for name in kept} for model in models],
        "room": room,
        "eye": {"place": eye.place, "target": eye.target, "degrees": eye.degrees},
    }


def program(items: Sequence[Item], models: Mapping[str, Any], *, per_call: int = 6) -> list[str]:
    """Open the room, take the library, put everything in its place."""
    lines = [_put(item, models[item.model]) for item in items]
    pieces = [START, *("".join(lines[first : first + per_call]) for first in range(0, len(lines), per_call))]
    copied = sorted({item.model for item in items if item.name != item.model} - {item.name for item in items})
    return [*pieces, _DROP_TEMPLATES.format(models=copied)]


def _put(item: Item, model: Mapping[str, Any], *, unit: float | None = None) -> str:
    factor = UNITS[model["unit"]] if unit is None else unit
    origin = tuple(model["origin"])
    return f"put({item.name!r}, {item.model!r}, {item.place}, {item.degrees}, {factor}, {origin})\n"


def parented(items: Sequence[Item]) -> str:
    """Every carried thing becomes a child of its carrier, every mesh single-user: nothing moves."""
    return _PARENTED.format(pairs=[(item.name, item.on) for item in items if item.on != "floor"])


def wrong(items: Sequence[Item], models: Mapping[str, Any]) -> Mapping[str, list[str]]:
    """Name → pieces: what a careless or cheating set dresser hands in."""
    right = program(items, models)
    ware = items[-1].name

    def changed(change: Any) -> list[str]:
        return program([change(item) for item in items], models)

    def mirrored(item: Item) -> Item:
        x, y, z = item.place
        return replace(item, place=(-x, y, z), degrees=-item.degrees % 360)

    def lifted(far: float) -> Any:
        return lambda item: (
            replace(item, place=(*item.place[:2], round(item.place[2] + far, 5))) if item.name == ware else item
        )

    found = {
        "mirrored": changed(mirrored),
        "mirrored_and_camera_moved_round": [*changed(mirrored), _CAMERA],
        "floating_4_cm": changed(lifted(0.04)),
        "sunk_3_cm": changed(lifted(-0.03)),
        "backs_to_the_front": changed(lambda item: replace(item, degrees=(item.degrees + 180) % 360)),
        "squashed": [*right, _SQUASHED.format(name=items[0].name)],
        "mesh_edited": [*right, _MESH_EDITED.format(name=items[0].name)],
        "one_left_out": [*right, _REMOVED.format(name=ware)],
        "hidden_twin": [*right, _HIDDEN_TWIN.format(name=ware)],
    }
    if any(model["unit"] != "m" for model in models.values()):
        lines = "".join(_put(item, models[item.model], unit=1.0) for item in items)
        copied = sorted({item.model for item in items if item.name != item.model})
        found["library_units_taken_for_metres"] = [START, lines, _DROP_TEMPLATES.format(models=copied)]
    return found
