"""Pictures of Godot work, 512 by 512 PNG: a scene file, rendered by the engine itself, or a picture file.

A scene is opened in its own project (the nearest folder above with a project.godot) by the real engine, in a window on
a virtual screen that Mesa's software GL draws, and is seen after half a second of game time.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageOps

SIZE_PX = 512
_ENGINE_S = 90

_WATCHER = """\
extends Node

var frames = 0

func _process(_delta):
	frames += 1
	if frames == 30:
		var picture = get_viewport().get_texture().get_data()
		picture.flip_y()
		picture.save_png(OS.get_environment("VIEW_PNG"))
		get_tree().quit()
"""
_STARTER = """\
extends SceneTree

func _init():
	var scene = load(OS.get_environment("VIEW_SCENE"))
	if scene == null:
		quit(3)
		return
	root.add_child(scene.instance())
	var watcher = Node.new()
	watcher.set_script(load(OS.get_environment("VIEW_WATCHER")))
	root.add_child(watcher)
"""


class ViewError(RuntimeError):
    """There is no picture; the text says why."""


def render(source: str | None, out: str) -> None:
    """Write a picture to `out`, of a .tscn or a picture file.

    Raises:
        ViewError: the source cannot be shown.
    """
    if source is None:
        raise ViewError("there is no live scene here: name a .tscn or a picture file")
    path = Path(source)
    if not path.is_file():
        raise ViewError(f"there is no file {source}")
    if path.suffix != ".tscn":
        _picture(path, out)
        return
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "shot.png"
        _shoot(path.resolve(), Path(folder), shot)
        _picture(shot, out)


def _picture(path: Path, out: str) -> None:
    try:
        with Image.open(path) as picture:
            ImageOps.pad(picture.convert("RGB"), (SIZE_PX, SIZE_PX)).save(out, format="PNG")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ViewError(f"{path} is no scene and no picture: {error}") from error


def _shoot(scene: Path, folder: Path, shot: Path) -> None:
    project = next((parent for parent in scene.parents if (parent / "project.godot").is_file()), None)
    if project is None:
        raise ViewError(f"no project.godot above {scene}")
    (folder / "watcher.gd").write_text(_WATCHER)
    (folder / "starter.gd").write_text(_STARTER)
    here = {
        **os.environ,
        "HOME": str(folder),
        "LANG": "en_US.UTF-8",
        "VIEW_PNG": str(shot),
        "VIEW_SCENE": f"res://{scene.relative_to(project)}",
        "VIEW_WATCHER": str(folder / "watcher.gd"),
    }
    command = ["godot3-runner", "--path", str(project), "--fixed-fps", "60", "--audio-driver", "Dummy"]
    said = on_screen([*command, "-s", str(folder / "starter.gd")], here, folder)
    if not shot.is_file():
        raise ViewError(f"the engine drew nothing: {said[-400:]}")


def on_screen(command: list[str], environment: dict[str, str], folder: Path) -> str:
    """Run a command on a virtual screen of its own; what it wrote to standard error."""
    with open(folder / "screen", "w+") as number:
        screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(number.fileno()), "-screen", "0", "512x512x24", "-nolisten", "tcp"],
            pass_fds=[number.fileno()],
            stderr=subprocess.DEVNULL,
        )
        try:
            while not (folder / "screen").read_text().strip():
                if screen.poll() is not None:
                    raise ViewError("the virtual screen did not start")
                time.sleep(0.02)
            display = ":" + (folder / "screen").read_text().strip()
            ended = subprocess.run(
                command,
                env={**environment, "DISPLAY": display},
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=_ENGINE_S,
            )
            return ended.stderr
        except subprocess.TimeoutExpired:
            return f"the engine did not end within {_ENGINE_S} s"
        finally:
            screen.terminate()
            screen.wait()
