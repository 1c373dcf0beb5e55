# pyright: reportMissingImports=false
"""Pictures of Blender work, 256 by 256 PNG: the live scene, a .blend file, or a picture file.

The live scene is rendered by a forked child of the process that holds it, so that neither the scene nor that
process is touched, and a crash of the renderer is an error with a text. Once the process itself has used OpenGL a
fork of it would hang: then a copy of the scene is saved and opened in a new process, as .blend files always are
(scripts and drivers off). Workbench is the renderer: it needs no GPU, and gives every object a colour of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE_PX = 256
TIMEOUT_S = 60.0
SHADERS = Path("/opt/metier/shaders")


class ViewError(RuntimeError):
    """There is no picture; the text says why."""


def render(source: str | None, out: str) -> None:
    """Write a picture to `out`: of the current scene (None), of a .blend file, or of a picture file.

    Raises:
        ViewError: the source cannot be shown.
    """
    if source is None:
        _render_live(out)
        return
    path = Path(source)
    if not path.is_file():
        raise ViewError(f"there is no file {source}")
    if path.suffix == ".blend":
        _render_elsewhere(path, out)
    else:
        _copy_picture(path, out)


def _copy_picture(path: Path, out: str) -> None:
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as picture:
            ImageOps.pad(picture.convert("RGB"), (SIZE_PX, SIZE_PX)).save(out, format="PNG")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ViewError(f"{path} is neither a .blend file nor a picture: {error}") from error


def _render_live(out: str) -> None:
    if "libEGL" in Path("/proc/self/maps").read_text():
        import bpy

        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "live.blend")
            bpy.ops.wm.save_as_mainfile(filepath=str(copy), copy=True)
            _render_elsewhere(copy, out)
        return
    _in_child(lambda: _render_scene(out))


def _in_child(work: Callable[[], None]) -> None:
    """Run `work` in a fork of this process, and raise what it raised."""
    with tempfile.TemporaryFile() as noise, tempfile.TemporaryFile() as problem:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.dup2(noise.fileno(), 1)
                os.dup2(noise.fileno(), 2)
                work()
                code = 0
            except BaseException as error:
                os.write(problem.fileno(), str(error).encode())
            finally:
                os._exit(code)
        status = _wait(child)
        if status != 0:
            problem.seek(0)
            raise ViewError(problem.read().decode() or f"the renderer ended with wait status {status}")


def _wait(child: int) -> int:
    until = time.monotonic() + TIMEOUT_S
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > until:
            os.kill(child, 9)
            os.waitpid(child, 0)
            raise ViewError(f"the renderer did not end within {TIMEOUT_S:g} s")
        time.sleep(0.005)


def _render_elsewhere(path: Path, out: str) -> None:
    command = [sys.executable, "-I", __file__, out, str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ViewError(f"{path} was not rendered within {TIMEOUT_S:g} s") from error
    if done.returncode != 0:
        raise ViewError(done.stderr.strip().rpartition("\n")[2] or f"the renderer ended with {done.returncode}")


def _render_scene(out: str) -> None:
    """Render what is visible in the current scene, in 3/4 view, through a scene of our own."""
    import bpy

    _take_shaders()
    bpy.context.view_layer.update()
    shown = [item for item in bpy.context.scene.objects if item.visible_get()]
    scene = bpy.data.scenes.new("view")
    for item in shown:
        scene.collection.objects.link(item)
    scene.world = bpy.data.worlds.new("view")
    scene.world.color = (0.75, 0.75, 0.75)
    scene.render.engine = "BLENDER_WORKBENCH"
    scene.render.resolution_x = scene.render.resolution_y = SIZE_PX
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "PNG"
    scene.render.image_settings.color_mode = "RGB"
    scene.render.filepath = out
    scene.view_settings.view_transform = "Standard"
    scene.display.render_aa = "8"
    shading = scene.display.shading
    shading.light, shading.color_type = "STUDIO", "RANDOM"
    shading.show_cavity = shading.show_object_outline = True
    scene.camera = _camera(scene, _corners(shown))
    bpy.ops.render.render(write_still=True, scene=scene.name)
    if not Path(out).is_file():
        raise ViewError("the renderer wrote no picture")


def _take_shaders() -> None:
    """Let Mesa start from the shaders compiled into the image; it wants its cache writable, so it gets a copy."""
    cache = Path(tempfile.gettempdir(), "view-shaders")
    if "MESA_SHADER_CACHE_DIR" not in os.environ and SHADERS.is_dir():
        if not cache.exists():
            shutil.copytree(SHADERS, cache)
        os.environ["MESA_SHADER_CACHE_DIR"] = str(cache)


def _corners(shown: list[Any]) -> list[Any]:
    """The corners, in world coordinates, of the bounding box of every object that has a surface."""
    from mathutils import Vector

    solid = [item for item in shown if item.type in {"MESH", "CURVE", "SURFACE", "META", "FONT", "CURVES"}]
    corners = [item.matrix_world @ Vector(corner) for item in solid for corner in item.bound_box]
    if not corners:
        raise ViewError("the scene has no visible object with a surface")
    return corners


def _camera(scene: Any, corners: list[Any]) -> Any:
    """A camera in front, to the right and above, from where `corners` fill nine tenths of the picture."""
    import bpy
    from mathutils import Vector

    camera = bpy.data.objects.new("view", bpy.data.cameras.new("view"))
    scene.collection.objects.link(camera)
    direction = Vector((0.55, -0.95, 0.6)).normalized()
    camera.rotation_euler = (-direction).to_track_quat("-Z", "Y").to_euler()
    scene.camera = camera
    depsgraph = scene.view_layers[0].depsgraph
    depsgraph.update()
    location, _ = camera.camera_fit_coords(depsgraph, [value for corner in corners for value in corner])
    middle = sum(corners, Vector()) / len(corners)
    camera.location = location + direction * max((location - middle).length * 0.1, 1e-4)
    reach = max((corner - camera.location).length for corner in corners)
    camera.data.clip_start, camera.data.clip_end = reach * 0.001, reach * 2
    return camera


def _main(out: str, path: str | None = None) -> int:
    """Render a .blend file, or the default scene, in this process."""
    import bpy

    try:
        if path is not None:
            bpy.ops.wm.open_mainfile(filepath=path, load_ui=False, use_scripts=False)
        _render_scene(out)
    except (RuntimeError, OSError) as error:
        print(f"{path} cannot be shown: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
