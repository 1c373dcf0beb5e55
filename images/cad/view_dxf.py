"""Drawings as pictures: the model space of a DXF file, or a window of it, on white paper.

Lines have the dashes of their line type, the width of their weight and the colour of their layer; dimensions are
drawn as their block draws them, so that one without a block does not show. Text is set in the image's own font.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

_OVERSAMPLING = 4
_FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
_PAPER, _INK = (255, 255, 255), (20, 20, 24)
_MARGIN = 0.05
_MAX_ENTITIES = 20_000
_HEAVY = 35
"""From this line weight on (hundredths of a millimetre) a line is drawn thick."""

Window = tuple[float, float, float, float]


class DrawingError(RuntimeError):
    """There is no picture; the text says why."""


def draw(path: Path, out: str, size_px: int, window: Window | None) -> None:
    """Write the picture.

    Raises:
        DrawingError: the file is no readable drawing, or has nothing to show.
    """
    import ezdxf
    from ezdxf import disassemble

    try:
        document = ezdxf.readfile(path)
        entities = list(itertools.islice(disassemble.recursive_decompose(document.modelspace()), _MAX_ENTITIES))
        strokes = [(entity, list(_lines(entity))) for entity in entities]
    except Exception as error:  # whatever the reader finds wrong with the file
        raise DrawingError(f"{path} is no readable DXF file: {error}") from error
    points = [point for _, lines in strokes for line in lines for point in line]
    points += [(entity.dxf.insert.x, entity.dxf.insert.y) for entity in entities if _is_text(entity)]
    if not points:
        raise DrawingError(f"{path} has nothing to show in its model space")
    sheet = _Sheet(document, size_px, window or _around(points))
    for entity, lines in strokes:
        if _is_text(entity):
            sheet.write(entity)
        else:
            sheet.stroke(entity, lines)
    sheet.save(out)


def _is_text(entity: Any) -> bool:
    return entity.dxftype() in ("TEXT", "MTEXT")


def _lines(entity: Any) -> Iterator[list[tuple[float, float]]]:
    """The entity as polylines; nothing for what has no lines."""
    from ezdxf import path

    kind = entity.dxftype()
    if kind in ("SOLID", "TRACE"):
        yield [(corner.x, corner.y) for corner in entity.vertices()]
    elif kind not in ("TEXT", "MTEXT", "POINT"):
        try:
            shape = path.make_path(entity)
        except TypeError:
            return
        reach = float(entity.dxf.radius) if kind in ("CIRCLE", "ARC") else 1.0
        yield [(point.x, point.y) for point in shape.flattening(max(reach, 1e-3) * 2e-3)]


def _around(points: Iterable[tuple[float, float]]) -> Window:
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


class _Sheet:
    """The paper, and how drawing units come onto it."""

    def __init__(self, document: Any, size_px: int, window: Window) -> None:
        self._document = document
        self._size_px = size_px
        size = size_px * _OVERSAMPLING
        x0, y0, x1, y1 = window
        self._scale = size * (1.0 - 2.0 * _MARGIN) / max(x1 - x0, y1 - y0, 1e-9)
        self._middle = ((x0 + x1) / 2.0, (y0 + y1) / 2.0)
        self._image = Image.new("RGB", (size, size), _PAPER)
        self._pen = ImageDraw.Draw(self._image)

    def _at(self, point: tuple[float, float]) -> tuple[float, float]:
        half = self._image.width / 2.0
        return (
            half + (point[0] - self._middle[0]) * self._scale,
            half - (point[1] - self._middle[1]) * self._scale,
        )

    def _layer(self, entity: Any) -> Any:
        layers = self._document.layers
        return layers.get(entity.dxf.layer) if layers.has_entry(entity.dxf.layer) else None

    def _colour(self, entity: Any) -> tuple[int, int, int]:
        from ezdxf.colors import aci2rgb

        index, layer = int(entity.dxf.get("color", 256)), self._layer(entity)
        if index == 256:
            index = int(layer.dxf.get("color", 7)) if layer is not None else 7
        return _INK if index in (0, 7) or not 0 < index < 256 else tuple(aci2rgb(index))

    def _width(self, entity: Any) -> int:
        weight, layer = int(entity.dxf.get("lineweight", -1)), self._layer(entity)
        if weight == -1 and layer is not None:
            weight = int(layer.dxf.get("lineweight", -3))
        return 7 if weight >= _HEAVY else 4

    def _dashes(self, entity: Any) -> tuple[float, ...]:
        name, layer = str(entity.dxf.get("linetype", "BYLAYER")), self._layer(entity)
        if name.upper() == "BYLAYER" and layer is not None:
            name = str(layer.dxf.get("linetype", "CONTINUOUS"))
        types = self._document.linetypes
        if not types.has_entry(name):
            return ()
        factor = float(self._document.header.get("$LTSCALE", 1.0)) * float(entity.dxf.get("ltscale", 1.0))
        pattern = tuple(abs(part) * factor for part in types.get(name).simplified_line_pattern())
        return pattern if sum(pattern) * self._scale > 4 * _OVERSAMPLING else ()

    def stroke(self, entity: Any, lines: list[list[tuple[float, float]]]) -> None:
        """Draw the polylines of an entity; a solid is filled."""
        colour, width = self._colour(entity), self._width(entity)
        for line in lines:
            if entity.dxftype() in ("SOLID", "TRACE"):
                self._pen.polygon([self._at(point) for point in line], fill=colour)
                continue
            for piece in _dashed(line, self._dashes(entity)):
                self._pen.line([self._at(point) for point in piece], fill=colour, width=width)

    def write(self, entity: Any) -> None:
        """Set a text at its place, turned as it is."""
        multi = entity.dxftype() == "MTEXT"
        words = str(entity.plain_text()).strip()
        height = float(entity.dxf.get("char_height" if multi else "height", 2.5))
        pixels = int(height * self._scale * 1.35)
        if not words or not 4 <= pixels <= 2000:
            return
        font = ImageFont.truetype(_FONT, pixels)
        box = self._pen.textbbox((0, 0), words, font=font)
        label = Image.new("L", (max(1, int(box[2])) + 4, max(1, int(box[3])) + 4), 0)
        ImageDraw.Draw(label).text((0, 0), words, font=font, fill=255)
        turn = float(entity.get_rotation()) if multi else float(entity.dxf.get("rotation", 0.0))
        across, down = _anchor(entity, multi)
        dx, dy = (0.5 - across) * label.width, (0.5 - down) * label.height
        angle = math.radians(turn)
        x, y = self._at((entity.dxf.insert.x, entity.dxf.insert.y))
        if not multi and entity.dxf.hasattr("align_point") and (entity.dxf.halign or entity.dxf.valign):
            x, y = self._at((entity.dxf.align_point.x, entity.dxf.align_point.y))
        x, y = x + dx * math.cos(angle) + dy * math.sin(angle), y - dx * math.sin(angle) + dy * math.cos(angle)
        turned = label.rotate(turn, expand=True, resample=Image.Resampling.BICUBIC)
        self._image.paste(self._colour(entity), (round(x - turned.width / 2.0), round(y - turned.height / 2.0)), turned)

    def save(self, out: str) -> None:
        """The picture in its final size."""
        self._image.resize((self._size_px, self._size_px), Image.Resampling.BOX).save(out, format="PNG")


def _anchor(entity: Any, multi: bool) -> tuple[float, float]:
    """Which share of the label, from its left and upper edge, lies on its point."""
    if multi:
        index = int(entity.dxf.get("attachment_point", 1)) - 1
        return (index % 3) / 2.0, (index // 3) / 2.0
    across = {0: 0.0, 1: 0.5, 2: 1.0, 4: 0.5}.get(int(entity.dxf.get("halign", 0)), 0.0)
    return across, {0: 0.85, 1: 1.0, 2: 0.5, 3: 0.0}.get(int(entity.dxf.get("valign", 0)), 0.85)


def _dashed(line: list[tuple[float, float]], pattern: tuple[float, ...]) -> Iterator[list[tuple[float, float]]]:
    """The dashes of a polyline; the pattern is dash, gap, dash, gap…, in drawing units."""
    if not pattern:
        yield line
        return
    lengths = itertools.cycle(pattern)
    left, drawing = next(lengths), True
    piece = [line[0]]
    for start, end in itertools.pairwise(line):
        whole = math.dist(start, end)
        done = 0.0
        while whole - done > left:
            done += left
            share = done / whole
            point = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
            if drawing:
                yield [*piece, point]
            left, drawing, piece = max(next(lengths), 1e-6), not drawing, [point]
        left -= whole - done
        piece.append(end)
    if drawing and len(piece) > 1:
        yield piece
