"""The Blender programs of this family: the oracle's, other right ways and wrong ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .recipes import Recipe, srgb

OPEN = """\
import sys
import bpy
sys.path.insert(0, "/workspace")
import render

bpy.ops.wm.open_mainfile(filepath="/workspace/scene.blend", use_scripts=False)
material = bpy.data.materials["Finish"]
tree = material.node_tree
for node in tree.nodes:
    print(node.name, node.type, [s.name for s in node.inputs if s.is_linked])
"""
MEASURE = """\
def average(path, low=0.42, high=0.58):
    \"\"\"Mean colour of the middle of a picture, as it looks.\"\"\"
    from PIL import Image
    picture = Image.open(path).convert("RGB")
    size = picture.size[0]
    part = picture.crop([int(size * k) for k in (low, low, high, high)])
    return [round(sum(band.getdata()) / (part.size[0] * part.size[1]) / 255, 3) for band in part.split()]

def compare():
    \"\"\"Render the goal views, and say how far they are from the goal, from 0 to 1.\"\"\"
    from PIL import Image, ImageChops, ImageStat
    render.pictures("look")
    for letter in "ab":
        pictures = [Image.open(f"/workspace/{name}_{letter}.png").convert("RGB") for name in ("look", "goal")]
        print(letter, [round(v / 255, 4) for v in ImageStat.Stat(ImageChops.difference(*pictures)).mean])

print("goal", average("/workspace/goal_a.png"), average("/workspace/goal_b.png"))
compare()
"""
COMPARE = "compare()\n"
SAVE = 'bpy.ops.wm.save_as_mainfile(filepath="/workspace/match.blend")\n'
_RGB = """\
shader, extra = tree.nodes[{node!r}], tree.nodes.new("ShaderNode{kind}")
extra.outputs[0].default_value = {value}
tree.links.new(extra.outputs[0], shader.inputs[{socket!r}])
"""
_PICTURE = """\
picture = tree.nodes.new("ShaderNodeTexImage")
picture.image = bpy.data.images.load("/workspace/goal_a.png")
picture.image.pack()
where = tree.nodes.new("ShaderNodeTexCoord")
tree.links.new(where.outputs["Window"], picture.inputs["Vector"])
tree.links.new(picture.outputs["Color"], tree.nodes["Principled BSDF"].inputs["Base Color"])
"""
_GLOW = """\
shader = tree.nodes["Principled BSDF"]
shader.inputs["Emission Color"].default_value = {colour}
shader.inputs["Emission Strength"].default_value = 0.6
"""


def set_knobs(knobs: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> str:
    """Type values into the nodes they belong to."""
    lines: list[str] = []
    for knob in knobs:
        value = values.get(knob["name"], knob["value"])
        node = f"tree.nodes[{knob['node']!r}]"
        if "ramp" in knob:
            lines.append(f"{node}.color_ramp.elements[{knob['ramp']}].color = {value}")
        else:
            lines.append(f"{node}.inputs[{knob['socket']!r}].default_value = {value}")
    return "\n".join(lines) + "\n"


def set_by_nodes(knobs: Sequence[Mapping[str, Any]]) -> str:
    """The same values from RGB and Value nodes, where there is a socket to link them to."""
    pieces: list[str] = []
    for knob in knobs:
        if "ramp" in knob:
            pieces.append(set_knobs([knob], {}))
        else:
            kind = "RGB" if knob["kind"] == "colour" else "Value"
            pieces.append(_RGB.format(node=knob["node"], socket=knob["socket"], value=knob["value"], kind=kind))
    return "".join(pieces)


def graph(recipe: Recipe) -> str:
    """Build a recipe's nodes and links from nothing."""
    lines = ["tree.nodes.clear()", "made = {}"]
    for index, part in enumerate(recipe["nodes"]):
        name = part["name"]
        lines.append(f"made[{name!r}] = node = tree.nodes.new('ShaderNode{part['type']}')")
        lines.append(f"node.name, node.location.x = {name!r}, {220 * index - 800}")
        if part.get("colour"):
            lines.append("node.data_type = 'RGBA'")
        for socket, value in part.get("inputs", {}).items():
            lines.append(f"next(s for s in node.inputs if s.identifier == {socket!r}).default_value = {value}")
        for element, (place, colour) in enumerate(part.get("ramp", [])):
            lines.append(f"node.color_ramp.elements[{element}].position = {place}")
            lines.append(f"node.color_ramp.elements[{element}].color = {colour}")
    for source, output, target, into in recipe["links"]:
        lines.append(
            f"tree.links.new(next(s for s in made[{source!r}].outputs if s.identifier == {output!r}), "
            f"next(s for s in made[{target!r}].inputs if s.identifier == {into!r}))"
        )
    return "\n".join(lines) + "\n"


def picture_texture() -> str:
    return _PICTURE


def glow(colour: Sequence[float]) -> str:
    return _GLOW.format(colour=list(colour))


def typed_as_seen(colour: Sequence[float]) -> list[float]:
    """The mistake of typing sRGB values where Blender wants linear ones."""
    return [*(round(srgb(value), 4) for value in colour[:3]), 1.0]
