"""Furniture and tableware as closed meshes: each drawn from a stream, standing on Z = 0 about the origin, front to -Y.

Lengths are metres. `fine` bounds the grid spacing; each thing is symmetric about X = 0, vessels with a handle about
Y = 0. Zones: 0 the body, 1 what a maker would give another material.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from ..core import Rng
from .polyhedra import (
    Point,
    PolyMesh,
    from_cells,
    nearest_face,
    refined,
    turned,
    with_handle,
    with_spout,
)

Maker = Callable[[Rng, float], PolyMesh]
Block = tuple[float, float, float, float, float, float]
"""Low x, high x, low y, high y, low z, high z."""


def _of_blocks(blocks: Sequence[Block], fine: float) -> PolyMesh:
    """The union of blocks, on a grid through all their sides."""

    def lines(axis: int) -> list[float]:
        return refined(sorted({round(block[2 * axis + k], 5) for block in blocks for k in (0, 1)}), fine)

    def filled(x: float, y: float, z: float) -> bool:
        return any(b[0] < x < b[1] and b[2] < y < b[3] and b[4] < z < b[5] for b in blocks)

    return from_cells(lines(0), lines(1), lines(2), filled)


def _mm(rng: Rng, low: int, high: int, step: int = 5) -> float:
    return rng.integer(low // step, high // step) * step / 1000


def _legs(width: float, depth: float, thick: float, height: float) -> list[Block]:
    x, y = width / 2, depth / 2
    return [(a, a + thick, b, b + thick, 0.0, height) for a in (-x, x - thick) for b in (-y, y - thick)]


def chair(rng: Rng, fine: float) -> PolyMesh:
    width, depth, seat = _mm(rng, 400, 480, 10), _mm(rng, 400, 460, 10), _mm(rng, 420, 470, 10)
    leg, plate, back = _mm(rng, 35, 45), _mm(rng, 35, 50), _mm(rng, 380, 480, 10)
    x, y, top = width / 2, depth / 2, seat + plate
    blocks = [*_legs(width, depth, leg, seat), (-x, x, -y, y, seat, top), (-x, x, y - leg, y, top, top + back)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > seat - 1e-6))


def table(rng: Rng, fine: float) -> PolyMesh:
    width, depth, height = _mm(rng, 900, 1300, 50), _mm(rng, 650, 850, 50), _mm(rng, 700, 760, 10)
    leg, plate, over = _mm(rng, 50, 70), _mm(rng, 30, 50), _mm(rng, 30, 60, 10)
    x, y = width / 2, depth / 2
    blocks = [*_legs(width - 2 * over, depth - 2 * over, leg, height - plate), (-x, x, -y, y, height - plate, height)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > height - plate - 1e-6))


def stool(rng: Rng, fine: float) -> PolyMesh:
    width, height, leg, plate = _mm(rng, 320, 380, 10), _mm(rng, 420, 480, 10), _mm(rng, 35, 45), _mm(rng, 30, 45)
    x = width / 2
    blocks = [*_legs(width, width, leg, height - plate), (-x, x, -x, x, height - plate, height)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > height - plate - 1e-6))


def bench(rng: Rng, fine: float) -> PolyMesh:
    width, depth, height = _mm(rng, 1000, 1400, 50), _mm(rng, 320, 400, 10), _mm(rng, 420, 460, 10)
    side, plate = _mm(rng, 50, 80, 10), _mm(rng, 40, 60, 10)
    x, y = width / 2, depth / 2
    blocks: list[Block] = [(-x, x, -y, y, height - plate, height)]
    blocks += [(a, a + side, -y, y, 0.0, height - plate) for a in (-x + 0.1, x - 0.1 - side)]
    blocks.append((-x + 0.1 + side, x - 0.1 - side, -0.03, 0.03, 0.12, 0.2))
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > height - plate - 1e-6))


def shelf(rng: Rng, fine: float) -> PolyMesh:
    width, depth, boards = _mm(rng, 700, 900, 50), _mm(rng, 280, 340, 10), rng.integer(3, 4)
    board, gap = _mm(rng, 25, 35), _mm(rng, 280, 340, 10)
    x, y, height = width / 2, depth / 2, boards * (gap + board) + board
    blocks: list[Block] = [(-x, -x + board, -y, y, 0, height), (x - board, x, -y, y, 0, height)]
    blocks += [(-x, x, -y, y, k * (gap + board), k * (gap + board) + board) for k in range(boards + 1)]
    blocks.append((-x, x, y - board, y, 0, height))
    return _of_blocks(blocks, fine).with_zones(lambda p: int(abs(p[0]) > x - board + 1e-6))


def cabinet(rng: Rng, fine: float) -> PolyMesh:
    width, depth, height = _mm(rng, 700, 1000, 50), _mm(rng, 380, 440, 10), _mm(rng, 700, 900, 50)
    x, y, foot, knob = width / 2, depth / 2, 0.08, 0.02
    blocks = [*_legs(width, depth, 0.06, foot), (-x, x, -y, y, foot, height)]
    blocks += [(a, a + 0.03, -y - knob, -y, height - 0.3, height - 0.14) for a in (-0.07, 0.04)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] < foot - 1e-6 or p[1] < -y - 1e-6))


def sofa(rng: Rng, fine: float) -> PolyMesh:
    width, depth, seat = _mm(rng, 1400, 1800, 50), _mm(rng, 750, 850, 50), _mm(rng, 400, 440, 10)
    arm, back, arms, top = (
        _mm(rng, 140, 180, 10),
        _mm(rng, 180, 220, 10),
        _mm(rng, 560, 620, 10),
        _mm(rng, 760, 840, 10),
    )
    x, y, foot = width / 2, depth / 2, 0.1
    blocks = [*_legs(width, depth, 0.08, foot), (-x, x, -y, y, foot, seat), (-x, x, y - back, y, seat, top)]
    blocks += [(-x, -x + arm, -y, y, seat, arms), (x - arm, x, -y, y, seat, arms)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > foot - 1e-6))


def bed(rng: Rng, fine: float) -> PolyMesh:
    width, depth, height = _mm(rng, 900, 1400, 100), _mm(rng, 1900, 2100, 100), _mm(rng, 400, 500, 20)
    x, y, head = width / 2, depth / 2, _mm(rng, 800, 1000, 50)
    blocks = [*_legs(width, depth, 0.09, 0.2), (-x, x, -y, y, 0.2, height), (-x, x, y - 0.09, y, height, head)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > 0.2 - 1e-6))


def steps_(rng: Rng, fine: float) -> PolyMesh:
    width, tread, rise, count = (
        _mm(rng, 380, 460, 20),
        _mm(rng, 200, 240, 10),
        _mm(rng, 170, 210, 10),
        rng.integer(2, 3),
    )
    x, y = width / 2, count * tread / 2
    blocks: list[Block] = [(-x, x, -y + k * tread, y, k * rise, (k + 1) * rise) for k in range(count)]
    blocks.append((-x, x, y - 0.05, y, 0.0, count * rise + _mm(rng, 150, 250, 10)))
    return _of_blocks(blocks, fine).with_zones(lambda p: int(p[2] > count * rise + 1e-6))


def crate(rng: Rng, fine: float) -> PolyMesh:
    width, depth, height, wall = _mm(rng, 400, 560, 20), _mm(rng, 300, 380, 20), _mm(rng, 240, 320, 20), 0.02
    x, y = width / 2, depth / 2
    blocks: list[Block] = [(-x, x, -y, y, 0, wall), (-x, x, -y, -y + wall, 0, height), (-x, x, y - wall, y, 0, height)]
    blocks += [(-x, -x + wall, -y, y, 0, height), (x - wall, x, -y, y, 0, height)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(abs(p[0]) < x - wall and abs(p[1]) < y - wall))


def book(rng: Rng, fine: float) -> PolyMesh:
    width, depth, thick, cover = _mm(rng, 150, 210, 10), _mm(rng, 210, 290, 10), _mm(rng, 30, 50), 0.005
    x, y = width / 2, depth / 2
    blocks: list[Block] = [(-x, x, -y, y, 0, cover), (-x, x, -y, y, thick - cover, thick)]
    blocks += [(-x, -x + cover, -y, y, 0, thick), (-x, x - 0.008, -y + 0.008, y - 0.008, cover, thick - cover)]
    return _of_blocks(blocks, fine).with_zones(lambda p: int(cover < p[2] < thick - cover and p[0] > -x + 2 * cover))


def _turned(profile: Sequence[tuple[float, float]], fine: float, sides: int) -> PolyMesh:
    dense = [profile[0]]
    for (r0, z0), (r1, z1) in itertools.pairwise(profile):
        count = max(1, math.ceil(math.hypot(r1 - r0, z1 - z0) / fine - 1e-9))
        dense += [(r0 + (r1 - r0) * k / count, z0 + (z1 - z0) * k / count) for k in range(1, count + 1)]
    return turned([(round(r, 6), round(z, 6)) for r, z in dense], sides)


def vase(rng: Rng, fine: float) -> PolyMesh:
    foot, belly, neck, height = _mm(rng, 45, 60), _mm(rng, 80, 110), _mm(rng, 30, 45), _mm(rng, 260, 380, 10)
    wall, lip = 0.008, neck + 0.015
    outer = [(foot, 0.0), (belly, height * 0.4), (neck, height * 0.8), (lip, height)]
    inner = [(lip - wall, height), (neck - wall, height * 0.8), (belly - wall, height * 0.4), (foot - wall, 0.02)]
    mesh = _turned([(0.0, 0.0), *outer, *inner, (0.0, 0.02)], fine, 24)
    return mesh.with_zones(lambda p: int(p[2] > height * 0.8))


def bowl(rng: Rng, fine: float) -> PolyMesh:
    radius, height, foot, wall = _mm(rng, 110, 150), _mm(rng, 80, 110), _mm(rng, 50, 65), 0.008
    arc = [math.pi / 2 * k / 5 for k in range(1, 6)]
    outer = [(foot + (radius - foot) * math.sin(t), 0.015 + (height - 0.015) * (1 - math.cos(t))) for t in arc]
    inner = [(r - wall, max(z, 0.025)) for r, z in reversed(outer)]
    mesh = _turned(
        [(0.0, 0.0), (foot, 0.0), (foot, 0.015), *outer, *inner, (foot - wall, 0.025), (0.0, 0.025)], fine, 24
    )
    return mesh.with_zones(lambda p: int(p[2] < 0.016))


def lamp(rng: Rng, fine: float) -> PolyMesh:
    foot, stem, height = _mm(rng, 80, 110), _mm(rng, 10, 14, 1), _mm(rng, 240, 320, 10)
    low, high, shade = _mm(rng, 120, 150), _mm(rng, 80, 100), _mm(rng, 140, 190, 10)
    outline = [(0.0, 0.0), (foot, 0.0), (foot, 0.02), (stem, 0.035), (stem, height), (low, height)]
    mesh = _turned([*outline, (high, height + shade), (0.0, height + shade)], fine, 24)
    return mesh.with_zones(lambda p: int(p[2] > height - 1e-6))


def candlestick(rng: Rng, fine: float) -> PolyMesh:
    foot, stem, height, cup = _mm(rng, 50, 65), _mm(rng, 9, 13, 1), _mm(rng, 180, 260, 10), _mm(rng, 25, 32, 1)
    outline = [(0.0, 0.0), (foot, 0.0), (foot, 0.01), (stem, 0.025), (stem, height * 0.5), (stem * 2, height * 0.55)]
    outline += [(stem, height * 0.6), (stem, height * 0.85), (cup, height * 0.9), (cup, height)]
    mesh = _turned([*outline, (cup - 0.008, height), (cup - 0.008, height * 0.93), (0.0, height * 0.93)], fine, 24)
    return mesh.with_zones(lambda p: int(p[2] > height * 0.86))


def plant_pot(rng: Rng, fine: float) -> PolyMesh:
    """Open above, with a drain hole through its floor."""
    foot, rim, height, wall = _mm(rng, 70, 90), _mm(rng, 100, 125), _mm(rng, 170, 220, 10), 0.01
    drain, floor = 0.015, 0.015
    ring = [(drain, 0.0), (foot, 0.0), (rim - 0.008, height - 0.04), (rim, height - 0.04), (rim, height)]
    ring += [(rim - wall - 0.008, height), (foot - wall, floor), (drain, floor)]
    return _turned(ring, fine, 24).with_zones(lambda p: int(p[2] > height - 0.041))


def _vessel(rng: Rng, fine: float, foot: float, belly: float, top: float, height: float) -> tuple[PolyMesh, float]:
    wall = 0.006
    outer = [(foot, 0.0), (belly, height * 0.45), (top, height)]
    inner = [(top - wall, height), (belly - wall, height * 0.45), (foot - wall, 0.01)]
    return _turned([(0.0, 0.0), *outer, *inner, (0.0, 0.01)], fine, 24), height


def _handled(mesh: PolyMesh, high: float, low: float, out: float, width: float) -> PolyMesh:
    """A handle on the +X side between two heights, reaching `out` from the wall."""
    start = _side_face(mesh, high)
    end = _side_face(mesh, low)
    a, b = mesh.middle(mesh.faces[start]), mesh.middle(mesh.faces[end])
    turns = [math.pi * k / 8 for k in range(1, 8)]
    middle, reach = ((a[0] + b[0]) / 2, (a[2] + b[2]) / 2), (a[2] - b[2]) / 2
    path: list[Point] = [
        (
            max(middle[0], 0.6 * (a[0] + b[0]) * 0.5) + 0.012 + (out - 0.012) * math.sin(t),
            0.0,
            middle[1] + reach * math.cos(t),
        )
        for t in turns
    ]
    return with_handle(mesh, start, end, path, across=(0.0, 1.0, 0.0), width=width, thick=width * 0.7, zone=1)


def _side_face(mesh: PolyMesh, height: float) -> int:
    """The outer quad that looks along +X, nearest to a height."""
    outside = max(point[0] for point in mesh.points)
    return nearest_face(mesh, (outside * 1.5, 0.0, height))


def mug(rng: Rng, fine: float) -> PolyMesh:
    radius, height = _mm(rng, 38, 46, 1), _mm(rng, 88, 104, 2)
    mesh, _ = _vessel(rng, min(fine, height / 8), radius * 0.9, radius, radius, height)
    return _handled(mesh, height * 0.78, height * 0.3, _mm(rng, 26, 34, 1), 0.011)


def jug(rng: Rng, fine: float) -> PolyMesh:
    foot, belly, top, height = _mm(rng, 55, 65), _mm(rng, 75, 90), _mm(rng, 45, 55), _mm(rng, 220, 280, 10)
    mesh, _ = _vessel(rng, min(fine, height / 10), foot, belly, top, height)
    return _handled(mesh, height * 0.82, height * 0.4, _mm(rng, 45, 60), 0.016)


def kettle(rng: Rng, fine: float) -> PolyMesh:
    """Closed above, a handle on one side and a spout on the other."""
    foot, belly, height = _mm(rng, 80, 95), _mm(rng, 95, 110), _mm(rng, 170, 210, 10)
    outline = [(0.0, 0.0), (foot, 0.0), (belly, height * 0.4), (foot * 0.6, height * 0.85), (0.02, height * 0.88)]
    outline += [(0.02, height), (0.0, height)]
    body = _turned(outline, min(fine, height / 9), 24)
    mesh = _handled(body, height * 0.7, height * 0.28, _mm(rng, 45, 55), 0.016)
    start = nearest_face(mesh, (-belly * 1.5, 0.0, height * 0.35))
    x, _, z = mesh.middle(mesh.faces[start])
    rings: list[list[Point]] = []
    for k in range(1, 6):
        far, half = 0.022 * k, 0.014 - 0.0012 * k
        at = (x - far, 0.0, z + 0.75 * far)
        rings.append(
            [
                (at[0] - s * half * 0.6, w * half, at[2] - s * -half * -0.8)
                for w, s in ((-1, -1), (1, -1), (1, 1), (-1, 1))
            ]
        )
    return with_spout(mesh, start, rings, 1)


FURNITURE: Mapping[str, Maker] = {
    "chair": chair,
    "table": table,
    "stool": stool,
    "bench": bench,
    "shelf": shelf,
    "cabinet": cabinet,
    "sofa": sofa,
    "bed": bed,
    "steps": steps_,
}
"""Stands on the floor."""
WARE: Mapping[str, Maker] = {
    "crate": crate,
    "book": book,
    "vase": vase,
    "bowl": bowl,
    "lamp": lamp,
    "candlestick": candlestick,
    "plant_pot": plant_pot,
    "mug": mug,
    "jug": jug,
    "kettle": kettle,
}
"""May stand on furniture."""
