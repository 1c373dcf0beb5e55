# pyright: reportMissingImports=false
"""Blender's real work once: a cut measured, Cycles and Workbench pictures looked at, a file saved and opened."""

import math
import os
import sys
from pathlib import Path

import bpy
import numpy as np

sys.path.insert(0, "/opt/metier")
import view

WORK = Path("/workspace")


def pixels(path: Path) -> np.ndarray:
    image = bpy.data.images.load(str(path))
    values = np.empty(len(image.pixels), dtype=np.float32)
    image.pixels.foreach_get(values)
    bpy.data.images.remove(image)
    return values.reshape(-1, 4)[:, :3]


def build() -> bpy.types.Object:
    """A 2 m cube with a round hole of 0.5 m radius through it."""
    bpy.ops.object.select_all(action="SELECT")
    bpy.ops.object.delete()
    bpy.ops.mesh.primitive_cylinder_add(vertices=128, radius=0.5, depth=4)
    cutter = bpy.context.object
    bpy.ops.mesh.primitive_cube_add(size=2)
    block = bpy.context.object
    cut = block.modifiers.new("cut", "BOOLEAN")
    cut.operation, cut.solver, cut.object = "DIFFERENCE", "EXACT", cutter
    bpy.ops.object.modifier_apply(modifier="cut")
    bpy.data.objects.remove(cutter)
    return block


def volume(block: bpy.types.Object) -> float:
    import bmesh  # there only once bpy is imported

    mesh = bmesh.new()
    mesh.from_mesh(block.data)
    result = mesh.calc_volume(signed=True)
    mesh.free()
    return result


def cycles(out: Path) -> None:
    scene = bpy.context.scene
    scene.camera = bpy.data.objects.new("eye", bpy.data.cameras.new("eye"))
    scene.collection.objects.link(scene.camera)
    scene.camera.location, scene.camera.rotation_euler = (0, 0, 9), (0, 0, 0)
    scene.collection.objects.link(bpy.data.objects.new("sun", bpy.data.lights.new("sun", "SUN")))
    scene.render.engine, scene.cycles.device, scene.cycles.samples = "CYCLES", "CPU", 8
    scene.cycles.use_denoising = False
    scene.render.resolution_x = scene.render.resolution_y = 64
    scene.render.filepath, scene.render.image_settings.file_format = str(out), "PNG"
    bpy.ops.render.render(write_still=True)


def main() -> None:
    expected = 8 - 2 * math.pi * 0.25
    measured = volume(build())
    assert abs(measured - expected) < 0.01, f"the cut block has {measured} m3, not {expected}"
    view.render(None, str(WORK / "live.png"))
    cycles(WORK / "cycles.png")
    bpy.ops.wm.save_as_mainfile(filepath=str(WORK / "model.blend"))
    view.render(str(WORK / "model.blend"), str(WORK / "file.png"))
    view.render(str(WORK / "cycles.png"), str(WORK / "copy.png"))
    for name, size in (("live", 256), ("file", 256), ("copy", 256), ("cycles", 64)):
        values = pixels(WORK / f"{name}.png")
        assert len(values) == size * size, f"{name}.png has {len(values)} pixels"
        assert values.std() > 0.03, f"{name}.png shows nothing"
    assert os.environ.get("METIER_PRELOAD") == "bpy", "the Python session would not hold bpy"


main()
