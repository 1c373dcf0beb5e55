"""Pictures of CAD work, 256 by 256 PNG: the live part, a STEP, STL or DXF file, or a picture file.

A small software renderer: orthographic, seen from the right, the front (+Y) and above, flat light by the normal, sharp
edges drawn dark, hidden ones hidden, and the three axes at the bottom left (X red, Y green, Z blue). No GPU is needed.
`part.stl@below` looks from another side, `drawing.dxf@0,0,60,40` at a window of the drawing. Of a mesh, facets seen
from their inner side are orange, and edges that do not join exactly two facets are red.
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
_SIDES = {
    "": (0.62, 1.0, 0.72),
    "front": (0.0, 1.0, 0.0),
    "back": (-0.62, -1.0, 0.72),
    "rear": (0.0, -1.0, 0.0),
    "left": (-1.0, 0.0, 0.0),
    "right": (1.0, 0.0, 0.0),
    "above": (0.0, 0.0, 1.0),
    "below": (0.62, 1.0, -0.72),
}
_PAPER, _METAL, _INK = (240, 242, 245), np.array([150.0, 170.0, 196.0]), (28, 34, 44)
_INNER, _FLAW = np.array([232.0, 148.0, 64.0]), (214, 24, 24)
_LIVE_NAMES = ("result", "part")
_MAX_TRIANGLES = 200_000


class ViewError(RuntimeError):
    """There is no picture; the text says why."""


class Drawn(NamedTuple):
    """Triangles (indices into points), polylines of sharp edges, and of edges where a mesh is not closed."""

    points: np.ndarray
    triangles: np.ndarray
    edges: list[np.ndarray]
    flaws: tuple[np.ndarray, ...] = ()
    two_sided: bool = True
    """Whether the inner side of a facet looks like the outer one."""


class Camera(NamedTuple):
    """An orthonormal frame; the eye looks back along its own vector."""

    eye: np.ndarray
    right: np.ndarray
    up: np.ndarray


def _camera(side: str) -> Camera:
    eye = np.array(_SIDES[side]) / np.linalg.norm(_SIDES[side])
    right = np.cross([0.0, 0.0, 1.0], eye) if abs(eye[2]) < 0.99 else np.array([1.0, 0.0, 0.0])
    right = right / np.linalg.norm(right)
    return Camera(eye, right, np.cross(eye, right))


def render(source: str | None, out: str) -> None:
    """Write a picture to `out`: of the live part (None), of a .step, .stp, .stl or .dxf file, or of a picture file.

    The live part is the Python session's variable `result`, else `part`, else the shape that was bound last.

    Raises:
        ViewError: the source cannot be shown.
    """
    if source is None:
        _draw(_of_shape(_live_shape()), out, "")
        return
    name, _, wish = source.rpartition("@") if "@" in source and not Path(source).is_file() else (source, "", "")
    path = Path(name)
    if not path.is_file():
        raise ViewError(f"there is no file {name}")
    suffix = path.suffix.lower()
    if suffix == ".dxf":
        import view_dxf

        try:
            view_dxf.draw(path, out, SIZE_PX, _window(wish))
        except view_dxf.DrawingError as error:
            raise ViewError(str(error)) from error
        return
    if wish not in _SIDES:
        raise ViewError(f"no side {wish!r}; there are {', '.join(filter(None, _SIDES))}")
    if suffix in (".step", ".stp"):
        _draw(_of_shape(_read_step(path)), out, wish)
    elif suffix == ".stl":
        _draw(_of_mesh(path), out, wish)
    else:
        _copy_picture(path, out)


def _window(wish: str) -> tuple[float, float, float, float] | None:
    if not wish:
        return None
    try:
        x0, y0, x1, y1 = (float(part) for part in wish.split(","))
    except ValueError as error:
        raise ViewError(f"the window {wish!r} is not x0,y0,x1,y1") from error
    if not (x0 < x1 and y0 < y1):
        raise ViewError(f"the window {wish!r} is empty")
    return x0, y0, x1, y1


def _copy_picture(path: Path, out: str) -> None:
    try:
        with Image.open(path) as picture:
            ImageOps.pad(picture.convert("RGB"), (SIZE_PX, SIZE_PX)).save(out, format="PNG")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise ViewError(f"{path} is no STEP, STL, DXF or picture file: {error}") from error


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
        mesh: Any = trimesh.load_mesh(str(path))
        sharp = mesh.face_adjacency_edges[mesh.face_adjacency_angles > 0.35]
        pairs, uses = np.unique(mesh.edges_sorted, axis=0, return_counts=True)
    except Exception as error:  # whatever the reader finds wrong with the file
        raise ViewError(f"{path} is no readable STL file: {error}") from error
    if not len(mesh.faces):
        raise ViewError(f"{path} holds no triangles")
    flaws = tuple(mesh.vertices[pair] for pair in pairs[(uses != 2) & (pairs[:, 0] != pairs[:, 1])])
    edges = [mesh.vertices[pair] for pair in sharp]
    return Drawn(np.asarray(mesh.vertices), np.asarray(mesh.faces), edges, flaws, two_sided=False)


def _draw(drawn: Drawn, out: str, side: str) -> None:
    if len(drawn.triangles) > _MAX_TRIANGLES:
        raise ViewError(f"{len(drawn.triangles)} triangles are too many to draw; at most {_MAX_TRIANGLES}")
    size, camera = SIZE_PX * _OVERSAMPLING, _camera(side)
    project = _projection(drawn.points, camera, size)
    colour = np.full((size, size, 3), _PAPER, dtype=np.uint8)
    depth = np.full((size, size), -np.inf)
    screen = project(drawn.points)
    for corners, shade in zip(screen[drawn.triangles], _shades(drawn, camera), strict=True):
        _fill(colour, depth, corners, shade)
    slack = 0.006 * (np.ptp(screen[:, 2]) + 1e-9)
    for line in drawn.edges:
        _stroke(colour, depth, project(line), slack, _INK)
    for line in drawn.flaws:
        _stroke(colour, depth, project(line), 4.0 * slack, _FLAW)
    picture = Image.fromarray(colour)
    _axes(ImageDraw.Draw(picture), camera, size)
    picture.resize((SIZE_PX, SIZE_PX), Image.Resampling.BOX).save(out, format="PNG")


def _projection(points: np.ndarray, camera: Camera, size: int) -> Any:
    """World to (column, row, nearness), the whole of `points` in the middle of the picture."""
    frame = np.stack([camera.right, camera.up, camera.eye], axis=1)
    flat = points @ frame
    low, high = flat.min(axis=0), flat.max(axis=0)
    scale = size * 0.88 / max(high[0] - low[0], high[1] - low[1], 1e-9)
    middle = (low + high) / 2.0

    def project(world: np.ndarray) -> np.ndarray:
        seen = world @ frame - middle
        return np.stack([size / 2 + seen[:, 0] * scale, size / 2 - seen[:, 1] * scale, seen[:, 2] * scale], axis=1)

    return project


def _shades(drawn: Drawn, camera: Camera) -> np.ndarray:
    a, b, c = (drawn.points[drawn.triangles[:, corner]] for corner in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-12
    inner = normals @ camera.eye < 0
    normals *= np.where(inner, -1.0, 1.0)[:, None]
    lamp = camera.eye + 0.6 * camera.up - 0.35 * camera.right
    light = 0.45 + 0.55 * np.clip(normals @ (lamp / np.linalg.norm(lamp)), 0.0, 1.0) + 0.12 * (normals @ camera.eye)
    tint = np.where((inner & (not drawn.two_sided))[:, None], _INNER[None, :], _METAL[None, :])
    return np.clip(tint * light[:, None] * 1.25, 0, 255).astype(np.uint8)


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


def _stroke(colour: np.ndarray, depth: np.ndarray, line: np.ndarray, slack: float, ink: tuple[int, int, int]) -> None:
    size = len(depth)
    for start, end in itertools.pairwise(line):
        steps = int(np.abs(end - start)[:2].max() * 1.5) + 2
        walk = start + (end - start) * np.linspace(0.0, 1.0, steps)[:, None]
        for shift in ((0, 0), (1, 0), (0, 1), (1, 1)):
            columns, rows = np.floor(walk[:, 0]).astype(int) + shift[0], np.floor(walk[:, 1]).astype(int) + shift[1]
            near = (columns >= 0) & (columns < size) & (rows >= 0) & (rows < size)
            columns, rows, nearness = columns[near], rows[near], walk[near, 2]
            seen = nearness >= depth[rows, columns] - slack
            colour[rows[seen], columns[seen]] = ink


def _axes(pen: ImageDraw.ImageDraw, camera: Camera, size: int) -> None:
    origin, length = np.array([size * 0.085, size * 0.915]), size * 0.062
    for axis, tint in zip(np.eye(3), ((200, 40, 40), (30, 140, 50), (40, 70, 200)), strict=True):
        tip = origin + length * np.array([axis @ camera.right, -(axis @ camera.up)])
        pen.line([tuple(origin), tuple(tip)], fill=tint, width=5)
