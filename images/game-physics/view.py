"""Pictures of physics work, 256 by 256 PNG: the live Bullet world, a .urdf or .obj file, or a picture file.

Bullet's own software renderer draws; the camera stands in front (-Y), to the right and above, and frames every body but
ground planes. Files are loaded into a world of their own, so the live one is not touched. Where there is no Bullet
world, what the session's pygame shows is the live picture.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pybullet as bullet
from PIL import Image, ImageOps

SIZE_PX = 256
_OVERSAMPLING = 2
_EYE = np.array([0.55, -0.95, 0.6]) / np.linalg.norm([0.55, -0.95, 0.6])
_FIELD_OF_VIEW_DEG = 34.0
_GROUND_M = 100.0
"""A body wider than this is ground, and does not move the camera."""


class ViewError(RuntimeError):
    """There is no picture; the text says why."""


def render(source: str | None, out: str) -> None:
    """Write a picture to `out`: of the live world (None), of a .urdf or .obj file, or of a picture file.

    The live world is that of physics client 0, the first that the Python session connected; without it, pygame's
    display surface.

    Raises:
        ViewError: the source cannot be shown.
    """
    if source is None:
        _render_live(out)
        return
    path = Path(source)
    if not path.is_file():
        raise ViewError(f"there is no file {source}")
    if path.suffix.lower() in (".urdf", ".obj"):
        _render_file(path, out)
    else:
        _copy_picture(path, out)


def _copy_picture(path: Path, out: str) -> None:
    try:
        with Image.open(path) as picture:
            ImageOps.pad(picture.convert("RGB"), (SIZE_PX, SIZE_PX)).save(out, format="PNG")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ViewError(f"{path} is no URDF, OBJ or picture file: {error}") from error


def _render_live(out: str) -> None:
    if not bullet.isConnected(0) and _render_display(out):
        return
    if not bullet.isConnected(0):
        raise ViewError("the Python session has no world: import pybullet and connect(pybullet.DIRECT) first")
    _render_world(0, out)


def _render_display(out: str) -> bool:
    """The display surface of this session's pygame, where it has one; never imports pygame by itself."""
    pygame = sys.modules.get("pygame")
    surface = pygame.display.get_surface() if pygame is not None and pygame.display.get_init() else None
    if pygame is None or surface is None:
        return False
    picture = Image.frombytes("RGB", surface.get_size(), pygame.image.tobytes(surface, "RGB"))
    ImageOps.pad(picture, (SIZE_PX, SIZE_PX)).save(out, format="PNG")
    return True


def _render_file(path: Path, out: str) -> None:
    client = bullet.connect(bullet.DIRECT)
    try:
        if path.suffix.lower() == ".urdf":
            bullet.loadURDF(str(path), useFixedBase=True, physicsClientId=client)
        else:
            shape = bullet.createVisualShape(
                bullet.GEOM_MESH, fileName=str(path), rgbaColor=[0.55, 0.66, 0.8, 1.0], physicsClientId=client
            )
            bullet.createMultiBody(baseVisualShapeIndex=shape, physicsClientId=client)
        if path.suffix.lower() == ".obj":
            low, high = _obj_bounds(path)
            _picture(client, low, high, out)
        else:
            _render_world(client, out)
    except bullet.error as error:
        raise ViewError(f"Bullet cannot load {path}: {error}") from error
    finally:
        bullet.disconnect(client)


def _obj_bounds(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Of its vertices: a body with no collision shape has no bounds in Bullet."""
    try:
        lines = path.read_text(errors="replace").splitlines()
        vertices = np.array([line.split()[1:4] for line in lines if line.startswith("v ")], dtype=float)
        return vertices.min(axis=0), vertices.max(axis=0)
    except ValueError as error:
        raise ViewError(f"{path} holds no readable vertices: {error}") from error


def _render_world(client: int, out: str) -> None:
    boxes = []
    for index in range(bullet.getNumBodies(physicsClientId=client)):
        body = bullet.getBodyUniqueId(index, physicsClientId=client)
        for link in range(-1, bullet.getNumJoints(body, physicsClientId=client)):
            box = np.array(bullet.getAABB(body, link, physicsClientId=client))
            if np.ptp(box, axis=0).max() < _GROUND_M:
                boxes.append(box)
    if not boxes:
        raise ViewError("the world holds no body to show")
    _picture(client, np.min([box[0] for box in boxes], axis=0), np.max([box[1] for box in boxes], axis=0), out)


def _picture(client: int, low: np.ndarray, high: np.ndarray, out: str) -> None:
    centre, radius = (low + high) / 2.0, max(float(np.linalg.norm(high - low)) / 2.0, 1e-4)
    distance = radius * 1.05 / np.sin(np.radians(_FIELD_OF_VIEW_DEG / 2.0))
    camera = bullet.computeViewMatrix((centre + _EYE * distance).tolist(), centre.tolist(), [0.0, 0.0, 1.0])
    lens = bullet.computeProjectionMatrixFOV(_FIELD_OF_VIEW_DEG, 1.0, distance * 0.05, distance + 4.0 * radius)
    size = SIZE_PX * _OVERSAMPLING
    width, height, colours, _, _ = bullet.getCameraImage(
        size,
        size,
        viewMatrix=camera,
        projectionMatrix=lens,
        lightDirection=[0.4, -0.6, 1.0],
        shadow=0,
        renderer=bullet.ER_TINY_RENDERER,
        physicsClientId=client,
    )
    pixels = np.asarray(colours, dtype=np.uint8).reshape(height, width, 4)[:, :, :3]
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.resize((SIZE_PX, SIZE_PX), Image.Resampling.BOX).save(out, format="PNG")
