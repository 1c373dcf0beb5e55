# pyright: basic, reportMissingImports=false, reportUndefinedVariable=false
# ruff: noqa: F821  the names of studio.py, and those of the probe's frame
"""Runs inside a verifier sandbox behind `studio.py`, never imported here: an agent's material beside the reference.

Only the material is taken from the agent's file, into a scene of our own; scripts and drivers stay off. Whatever a bad
file can raise is an answer. Each hidden view is rendered with the agent's material, the goal's and the start's.
"""

import os
import tempfile

import numpy as np
from PIL import Image

ALLOWED = {
    "BSDF_PRINCIPLED", "OUTPUT_MATERIAL", "TEX_NOISE", "TEX_VORONOI", "TEX_WAVE", "TEX_CHECKER", "TEX_BRICK",
    "TEX_MAGIC", "TEX_GRADIENT", "VALTORGB", "MIX", "MIX_RGB", "MATH", "VECT_MATH", "RGB", "VALUE", "BUMP", "MAPPING",
    "TEX_COORD", "CLAMP", "MAP_RANGE", "HUE_SAT", "SEPARATE_COLOR", "COMBINE_COLOR", "SEPXYZ", "COMBXYZ", "REROUTE",
    "FRAME", "INVERT", "BRIGHTCONTRAST", "GAMMA",
}  # fmt: skip
MAX_NODES = 40


def take_material(path, name):
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    with bpy.data.libraries.load(path, link=False) as (source, target):
        if name not in source.materials:
            return None, f"no material named {name!r}; there are {sorted(source.materials)[:6]}"
        target.materials = [name]
    return target.materials[0], ""


def problems(material):
    """What a plain procedural material has not."""
    tree = material.node_tree
    if tree is None:
        return ["it has no nodes"]
    found = [f"node {node.name!r} is a {node.type}" for node in tree.nodes if node.type not in ALLOWED]
    if len(tree.nodes) > MAX_NODES:
        found.append(f"{len(tree.nodes)} nodes, more than {MAX_NODES}")
    if tree.animation_data or material.animation_data:
        found.append("animation or drivers")
    outputs = [node for node in tree.nodes if node.type == "OUTPUT_MATERIAL" and node.is_active_output]
    shaders = [node for node in tree.nodes if node.type == "BSDF_PRINCIPLED"]
    if len(outputs) != 1 or len(shaders) != 1:
        return [*found, f"{len(outputs)} active outputs and {len(shaders)} Principled BSDFs, not one each"]
    surface, *others = outputs[0].inputs[:3]
    if not surface.is_linked or root_of(surface) != shaders[0]:
        found.append("the Principled BSDF is not what is put out")
    if any(socket.is_linked for socket in others):
        found.append("volume or displacement is used")
    emission = shaders[0].inputs["Emission Strength"]
    if emission.is_linked or emission.default_value != 0:
        found.append("it emits light")
    for plain in ("Alpha", "Transmission Weight"):
        socket = shaders[0].inputs[plain]
        if socket.is_linked or abs(socket.default_value - (plain == "Alpha")) > 1e-6:
            found.append(f"{plain} was changed")
    for node in tree.nodes:
        if node.type == "TEX_COORD" and node.object is not None:
            found.append("texture coordinates of another object")
    return found


def root_of(socket):
    """The node that feeds a socket, reroutes passed over."""
    node = socket.links[0].from_node
    while node.type == "REROUTE" and node.inputs[0].is_linked:
        node = node.inputs[0].links[0].from_node
    return node


def constant(socket):
    """The value of an input, typed in or from an RGB or Value node; None where it varies."""
    if not socket.is_linked:
        value = socket.default_value
        return list(value) if hasattr(value, "__len__") else float(value)
    node = root_of(socket)
    if node.type in {"RGB", "VALUE"}:
        value = node.outputs[0].default_value
        return list(value) if hasattr(value, "__len__") else float(value)
    return None


def knob_value(tree, knob):
    if knob["kind"] == "texture":
        found = [node for node in tree.nodes if node.type == knob["type"]]
        scales = [constant(node.inputs["Scale"]) for node in found]
        return min((s for s in scales if s is not None), key=lambda s: abs(s - knob["value"]), default=None)
    node = tree.nodes.get(knob["node"])
    if node is None:
        return None
    if "ramp" in knob:
        if node.type != "VALTORGB" or knob["ramp"] >= len(node.color_ramp.elements):
            return None
        return list(node.color_ramp.elements[knob["ramp"]].color)
    socket = node.inputs.get(knob["socket"])
    return constant(socket) if socket is not None else None


def picture(folder, item, material):
    item.data.materials.clear()
    item.data.materials.append(material)
    path = os.path.join(folder, "view.png")
    take("Cam", path)
    return np.asarray(Image.open(path).convert("RGBA"), dtype=float) / 255


def differences(question, views, materials):
    """Mean absolute differences over the shape's pixels to the goal: of the agent's material and of the start."""
    answer = []
    with tempfile.TemporaryDirectory() as folder:
        for view in views:
            for old in list(bpy.data.objects):
                bpy.data.objects.remove(old)
            item = studio(view)
            settings(question["size"], question["samples"])
            bpy.context.scene.render.film_transparent = True
            bpy.context.scene.render.image_settings.color_mode = "RGBA"
            theirs, goal, start = (picture(folder, item, material) for material in materials)
            mask = goal[:, :, 3] > 0.99
            answer.append([float(np.abs(p - goal)[mask][:, :3].mean()) for p in (theirs, start)])
    return answer


def main(question):
    try:
        empty()
        material, why = take_material(question["path"], question["name"])
        if material is None:
            return {"failure": why}
        wrong = problems(material)
        values = {}
        if material.node_tree is not None:
            values = {knob["name"]: knob_value(material.node_tree, knob) for knob in question["knobs"]}
        if wrong:
            return {"problems": wrong, "values": values, "views": []}
        goal, start = build("Goal", question["goal"]), build("Start", question["start"])
        views = differences(question, question["views"], (material, goal, start))
        return {"problems": [], "values": values, "views": views}
    except (RuntimeError, ValueError, MemoryError, OSError, UnicodeDecodeError, TypeError, KeyError) as error:
        return {"failure": f"{type(error).__name__}: {str(error).strip()[:300]}"}


_answer(main(payload))
