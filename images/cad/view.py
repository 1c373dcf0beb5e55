"""Pictures of CAD work, 256 by 256 PNG: the live part, a STEP or STL file, or a picture file.

A small software renderer: orthographic, seen from the right, the front (+Y) and above, flat light by the normal, sharp
edges drawn dark, hidden ones hidden, and the three axes at the bottom left (X red, Y green, Z blue). No GPU is needed.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageOps

SIZE_PX = 256
_OVERSAMPLING = 2
_EYE = np.array([0.62, 1.0, 0.72]) / np.linalg.norm([0.62, 1.0, 0.72])
_RIGHT = np.cross([0.0, 0.0, 1.0], _EYE) / np.linalg.norm(np.cross([0.0, 0.0, 1.0], _EYE))
_UP = np.cross(_EYE, _RIGHT)
_LIGHT = np.array([0.25, 0.55, 0.8]) / np.linalg.norm([0.25, 0.55, 0.8])
_PAPER, _METAL, _INK = (240, 242, 245), np.array([150.0, 170.0, 196.0]), (28, 34, 44)
_LIVE_NAMES = ("result", "part")
_MAX_TRIANGLES = 200_000


class ViewError(RuntimeError):
    """There is no picture; the text says why."""


class Drawn(NamedTuple):
    """Triangles (indices into points) and polylines of sharp edges."""

    points: np.ndarray
    triangles: np.ndarray
    edges: list[np.ndarray]


def render(source: str | None, out: str) -> None:
    """Write a picture to `out`: of the live part (None), of a .step, .stp or .stl file, or of a picture file.

    The live part is the Python session's variable `result`, else `part`, else the shape that was bound last.

    Raises:
        ViewError: the source cannot be shown.
    """
    if source is None:
        _draw(_of_shape(_live_shape()), out)
        return
    path = Path(source)
    if not path.is_file():
        raise ViewError(f"there is no file {source}")
    suffix = path.suffix.lower()
    if suffix in (".step", ".stp"):
        _draw(_of_shape(_read_step(path)), out)
    elif suffix == ".stl":
        _draw(_of_mesh(path), out)
    else:
        _copy_picture(path, out)


def _copy_picture(path: Path, out: str) -> None:
    try:
        with Image.open(path) as picture:
            ImageOps.pad(picture.convert("RGB"), (SIZE_PX, SIZE_PX)).save(out, format="PNG")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ViewError(f"{path} is no STEP, STL or picture file: {error}") from error


def _live_shape() -> Any:
    from build123d import Builder, Shape

    names = vars(sys.modules["__main__"])
    named = [names[name] for name in _LIVE_NAMES if name in names]
    for value in [*named, *reversed(list(names.values()))]:
        shape: Any = getattr(value, "part", None) if isinstance(value, Builder) else value
        if isinstance(shape, Shape) and shape.wrapped is not None:
            return shape
    raise ViewError("the Python session has no part to show: bind one to the name `part`")


def _read_step(path: Path) -> Any:
    from build123d import import_step

    try:
        return import_step(path)
    except Exception as error:  # whatever the reader finds wrong with the file
        raise ViewError(f"{path} is no readable STEP file: {error}") from error


def _of_shape(shape: Any) -> Drawn:
    box = shape.bounding_box()
    tolerance = max(box.diagonal / 800.0, 1e-6)
    vertices, triangles = shape.tessellate(tolerance, 0.25)
    if not triangles:
        raise ViewError("the shape has no faces to show")
    edges = [_polyline(edge) for edge in shape.edges()]
    return Drawn(np.array([tuple(v) for v in vertices]), np.array(triangles), edges)


def _polyline(edge: Any) -> np.ndarray:
    straight = edge.geom_type.name == "LINE"
    return np.array([tuple(edge.position_at(share)) for share in np.linspace(0.0, 1.0, 2 if straight else 33)])


def _of_mesh(path: Path) -> Drawn:
    import trimesh

    try:
        mesh = trimesh.load_mesh(str(path))
        sharp = mesh.face_adjacency_edges[mesh.face_adjacency_angles > 0.35]
    except Exception as error:  # whatever the reader finds wrong with the file
        raise ViewError(f"{path} is no readable STL file: {error}") from error
    if not len(mesh.faces):
        raise ViewError(f"{path} holds no triangles")
    return Drawn(np.asarray(mesh.vertices), np.asarray(mesh.faces), [mesh.vertices[pair] for pair in sharp])


def _draw(drawn: Drawn, out: str) -> None:
    if len(drawn.triangles) > _MAX_TRIANGLES:
        raise ViewError(f"{len(drawn.triangles)} triangles are too many to draw; at most {_MAX_TRIANGLES}")
    size = SIZE_PX * _OVERSAMPLING
    project = _projection(drawn.points, size)
    colour = np.full((size, size, 3), _PAPER, dtype=np.uint8)
    depth = np.full((size, size), -np.inf)
    screen = project(drawn.points)
    for corners, shade in zip(screen[drawn.triangles], _shades(drawn), strict=True):
        _fill(colour, depth, corners, shade)
    slack = 0.006 * (np.ptp(screen[:, 2]) + 1e-9)
    for line in drawn.edges:
        _stroke(colour, depth, project(line), slack)
    picture = Image.fromarray(colour)
    _axes(ImageDraw.Draw(picture), size)
    picture.resize((SIZE_PX, SIZE_PX), Image.Resampling.BOX).save(out, format="PNG")


def _projection(points: np.ndarray, size: int) -> Any:
    """World to (column, row, nearness), the whole of `points` in the middle of the picture."""
    flat = points @ np.stack([_RIGHT, _UP, _EYE], axis=1)
    low, high = flat.min(axis=0), flat.max(axis=0)
    scale = size * 0.88 / max(high[0] - low[0], high[1] - low[1], 1e-9)
    middle = (low + high) / 2.0

    def project(world: np.ndarray) -> np.ndarray:
        seen = world @ np.stack([_RIGHT, _UP, _EYE], axis=1) - middle
        return np.stack([size / 2 + seen[:, 0] * scale, size / 2 - seen[:, 1] * scale, seen[:, 2] * scale], axis=1)

    return project


def _shades(drawn: Drawn) -> np.ndarray:
    a, b, c = (drawn.points[drawn.triangles[:, corner]] for corner in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-12
    normals *= np.where(normals @ _EYE < 0, -1.0, 1.0)[:, None]
    light = 0.45 + 0.55 * np.clip(normals @ _LIGHT, 0.0, 1.0) + 0.12 * (normals @ _EYE)
    return np.clip(_METAL[None, :] * light[:, None] * 1.25, 0, 255).astype(np.uint8)


def _fill(colour: np.ndarray, depth: np.ndarray, corners: np.ndarray, shade: np.ndarray) -> None:
    size = len(depth)
    x0, y0 = np.clip(np.floor(corners[:, :2].min(axis=0)).astype(int), 0, size - 1)
    x1, y1 = np.clip(np.ceil(corners[:, :2].max(axis=0)).astype(int) + 1, 1, size)
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = corners
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    if abs(area) < 1e-9:
        return
    rows, columns = np.mgrid[y0:y1, x0:x1] + 0.5
    wb = ((columns - ax) * (cy - ay) - (rows - ay) * (cx - ax)) / area
    wc = ((bx - ax) * (rows - ay) - (by - ay) * (columns - ax)) / area
    nearness = az + wb * (bz - az) + wc * (cz - az)
    seen = (wb >= -1e-6) & (wc >= -1e-6) & (wb + wc <= 1 + 1e-6) & (nearness > depth[y0:y1, x0:x1])
    depth[y0:y1, x0:x1][seen] = nearness[seen]
    colour[y0:y1, x0:x1][seen] = shade


def _stroke(colour: np.ndarray, depth: np.ndarray, line: np.ndarray, slack: float) -> None:
    size = len(depth)
    for start, end in itertools.pairwise(line):
        steps = int(np.abs(end - start)[:2].max() * 1.5) + 2
        walk = start + (end - start) * np.linspace(0.0, 1.0, steps)[:, None]
        for shift in ((0, 0), (1, 0), (0, 1), (1, 1)):
            columns, rows = np.floor(walk[:, 0]).astype(int) + shift[0], np.floor(walk[:, 1]).astype(int) + shift[1]
            near = (columns >= 0) & (columns < size) & (rows >= 0) & (rows < size)
            columns, rows, nearness = columns[near], rows[near], walk[near, 2]
            seen = nearness >= depth[rows, columns] - slack
            colour[rows[seen], columns[seen]] = _INK


def _axes(pen: ImageDraw.ImageDraw, size: int) -> None:
    origin, length = np.array([size * 0.085, size * 0.915]), size * 0.062
    for axis, tint in zip(np.eye(3), ((200, 40, 40), (30, 140, 50), (40, 70, 200)), strict=True):
        tip = origin + length * np.array([axis @ _RIGHT, -(axis @ _UP)])
        pen.line([tuple(origin), tuple(tip)], fill=tint, width=5)
