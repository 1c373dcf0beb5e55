# pyright: basic, reportMissingImports=false
"""Runs inside a sandbox, never imported here: builds materials from recipes, a small studio, and renders it.

The set-up makes the goal pictures with this text, and the verifier its hidden ones, so that both see the same. Cycles
on the CPU, a fixed seed, no denoiser: equal materials give equal pixels.
"""

import math

import bpy
from mathutils import Vector

NODE_PREFIX = "ShaderNode"


def build(name, recipe):
    """A material from {"nodes": [{type, name, inputs, ramp}], "links": [[node, output, node, input]]}."""
    material = bpy.data.materials.new(name)
    tree = material.node_tree
    tree.nodes.clear()
    nodes = {}
    for index, part in enumerate(recipe["nodes"]):
        node = tree.nodes.new(NODE_PREFIX + part["type"])
        node.name = node.label = part["name"]
        node.location = (220 * index - 800, 0)
        if part.get("colour"):
            node.data_type = "RGBA"
        for socket, value in part.get("inputs", {}).items():
            socket_of(node.inputs, socket).default_value = value
        for element, (place, colour) in zip(range(2), part.get("ramp", []), strict=False):
            node.color_ramp.elements[element].position = place
            node.color_ramp.elements[element].color = colour
        nodes[part["name"]] = node
    for source, output, target, into in recipe["links"]:
        tree.links.new(socket_of(nodes[source].outputs, output), socket_of(nodes[target].inputs, into))
    return material


def socket_of(sockets, identifier):
    return next(socket for socket in sockets if socket.identifier == identifier)


def shape(kind):
    """An object of about unit radius at the origin."""
    if kind == "ring":
        bpy.ops.mesh.primitive_torus_add(major_radius=0.75, minor_radius=0.32, major_segments=64, minor_segments=24)
    elif kind == "block":
        bpy.ops.mesh.primitive_cube_add(size=1.35)
        bevel = bpy.context.object.modifiers.new("bevel", "BEVEL")
        bevel.width, bevel.segments = 0.18, 5
    elif kind == "monkey":
        bpy.ops.mesh.primitive_monkey_add(size=1.7)
        bpy.context.object.modifiers.new("smooth", "SUBSURF").render_levels = 2
    elif kind == "cylinder":
        bpy.ops.mesh.primitive_cylinder_add(vertices=64, radius=0.8, depth=1.5)
        bevel = bpy.context.object.modifiers.new("bevel", "BEVEL")
        bevel.width, bevel.segments = 0.1, 4
    else:
        bpy.ops.mesh.primitive_uv_sphere_add(segments=64, ring_count=32, radius=1.0)
    item = bpy.context.object
    item.name = "Part"
    for polygon in item.data.polygons:
        polygon.use_smooth = kind != "block"
    return item


def direction(azimuth, elevation):
    a, e = math.radians(azimuth), math.radians(elevation)
    return Vector((math.cos(e) * math.sin(a), -math.cos(e) * math.cos(a), math.sin(e)))


def aimed(item, azimuth, elevation, far):
    item.location = direction(azimuth, elevation) * far
    item.rotation_euler = (-item.location).to_track_quat("-Z", "Y").to_euler()
    bpy.context.collection.objects.link(item)
    return item


def studio(spec):
    """Shape, lights, cameras and world of {"mesh", "lights": [[azimuth, elevation, watts, colour]], "cameras"}."""
    item = shape(spec["mesh"])
    item.rotation_euler = (0.0, 0.0, math.radians(spec.get("turn", 0.0)))
    for index, (azimuth, elevation, watts, colour) in enumerate(spec["lights"]):
        light = bpy.data.lights.new(f"Light{index}", "AREA")
        light.energy, light.size, light.color = watts, 2.0, colour
        aimed(bpy.data.objects.new(f"Light{index}", light), azimuth, elevation, 4.0)
    for name, (azimuth, elevation) in spec["cameras"].items():
        aimed(bpy.data.objects.new(name, bpy.data.cameras.new(name)), azimuth, elevation, 3.9)
    scene = bpy.context.scene
    scene.world = bpy.data.worlds.new("World")
    background = scene.world.node_tree.nodes.get("Background") if scene.world.node_tree else None
    if background is not None:
        background.inputs["Color"].default_value = (0.5, 0.5, 0.5, 1.0)
        background.inputs["Strength"].default_value = spec.get("world", 0.4)
    return item


def settings(size, samples):
    scene = bpy.context.scene
    scene.render.engine, scene.cycles.device = "CYCLES", "CPU"
    scene.cycles.samples, scene.cycles.seed = samples, 7
    scene.cycles.use_denoising = scene.cycles.use_adaptive_sampling = False
    scene.render.resolution_x = scene.render.resolution_y = size
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "PNG"
    scene.render.use_stamp = False
    scene.view_settings.view_transform = "Standard"


def take(camera, path):
    scene = bpy.context.scene
    scene.camera = bpy.data.objects[camera]
    scene.render.filepath = path
    bpy.ops.render.render(write_still=True)


def empty():
    bpy.ops.wm.read_factory_settings(use_empty=True)
