"""Draws a small printed part: an outline, perhaps a rim, raised lettering and features on a grid that keep apart.

The lettering runs along the long side and reads from left to right seen from above, so that it fixes how the part lies.
All corners are multiples of 0.01 mm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ...core import Rng
from ...parts.prism_mesh import Point, Region, Ring, walk

_TITLES = ("cable cover", "sensor plate", "switch panel", "battery tray", "drawer tag", "relay base", "lens holder")
_LETTERS: dict[str, tuple[Sequence[Point], Sequence[Point]]] = {
    "L": (((0, 0), (4, 0), (4, 1), (1, 1), (1, 6), (0, 6)), ()),
    "T": (((1.5, 0), (2.5, 0), (2.5, 5), (4, 5), (4, 6), (0, 6), (0, 5), (1.5, 5)), ()),
    "F": (((0, 0), (1, 0), (1, 2.5), (3, 2.5), (3, 3.5), (1, 3.5), (1, 5), (4, 5), (4, 6), (0, 6)), ()),
    "E": (
        ((0, 0), (4, 0), (4, 1), (1, 1), (1, 2.5), (3, 2.5), (3, 3.5), (1, 3.5), (1, 5), (4, 5), (4, 6), (0, 6)),
        (),
    ),
    "H": (
        ((0, 0), (1, 0), (1, 2.5), (3, 2.5), (3, 0), (4, 0), (4, 6), (3, 6), (3, 3.5), (1, 3.5), (1, 6), (0, 6)),
        (),
    ),
    "U": (((0, 0), (4, 0), (4, 6), (3, 6), (3, 1), (1, 1), (1, 6), (0, 6)), ()),
    "P": (((0, 0), (1, 0), (1, 2.5), (4, 2.5), (4, 6), (0, 6)), ((1, 3.5), (3, 3.5), (3, 5), (1, 5))),
    "D": (((0, 0), (3, 0), (4, 1), (4, 5), (3, 6), (0, 6)), ((1, 1), (2.6, 1), (3, 1.4), (3, 4.6), (2.6, 5), (1, 5))),
    "A": (
        ((0, 0), (1, 0), (1, 2), (3, 2), (3, 0), (4, 0), (4, 5), (3, 6), (1, 6), (0, 5)),
        ((1, 3), (3, 3), (3, 4.6), (2.6, 5), (1.4, 5), (1, 4.6)),
    ),
}
_CELL_MM = 14.0
_GAP_MM = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gadget:
    """One or two bodies on the plate, and what the brief says of them."""

    title: str
    bodies: tuple[Region, ...]
    text: str
    lines: tuple[str, ...]
    thin_mm: float
    """The thinnest wall."""


@dataclass(slots=True)
class _Draft:
    base: float
    rng: Rng
    inside: list[Region] = field(default_factory=list[Region])
    said: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, kind: str, ring: Ring, height: float | None, words: str, inside: tuple[Region, ...] = ()) -> None:
        solid = () if height is None else ((0.0, height),)
        name = f"{kind} {len(self.said.setdefault(kind, [])) + 1}"
        named = tuple(replace(region, name=f"{region.kind} of {name}") for region in inside)
        self.inside.append(Region(name=name, kind=kind, ring=ring, solid=solid, inside=named))
        self.said[kind].append(words)


def draw(rng: Rng, level: int) -> Gadget:
    """The gadget of this stream and level."""
    letters = rng.child("text")
    # the first is not its own mirror image, nor itself upside down
    text = letters.choice("FLP") + "".join(letters.sample(sorted(_LETTERS), letters.integer(2, 3)))
    features = (4, 5, 7, 8, 6)[level]
    first, lines, thin = _body(rng.child("body"), "plate", text, features, rimmed=level >= 1)
    bodies, title = [first], rng.choice(_TITLES)
    if level == 4:
        second, more, other = _body(rng.child("lid"), "lid", "", 4, rimmed=True)
        shift = max(x for x, _ in first.ring) + _GAP_MM
        bodies.append(_moved(second, shift))
        lines = [f"Left body: {line}" for line in lines] + [f"Right body: {line}" for line in more]
        thin = min(thin, other)
    return Gadget(title=title, bodies=tuple(bodies), text=text, lines=tuple(lines), thin_mm=thin)


def _body(rng: Rng, name: str, text: str, features: int, *, rimmed: bool) -> tuple[Region, list[str], float]:
    columns, rows = rng.integer(4, 5), 2
    strip = 11.0 if text else 0.0
    margin = rng.integer(30, 50) / 10.0
    size = (columns * _CELL_MM + 2 * margin, rows * _CELL_MM + strip + 2 * margin)
    draft = _Draft(base=rng.integer(20, 32) / 10.0, rng=rng.child("features"))
    if text:
        _letter(draft, text, (margin + 1.0, margin + 1.0))
    cells = rng.shuffled([(column, row) for column in range(columns) for row in range(rows)])
    kinds = ["screw hole", "screw hole", "post", "rib", *rng.shuffled(["boss", "slot", "pocket", "rib", "screw hole"])]
    sizes = _Sizes(rng.child("sizes"), draft.base)
    for kind, (column, row) in zip(kinds[:features], cells, strict=False):
        middle = (margin + (column + 0.5) * _CELL_MM, margin + strip + (row + 0.5) * _CELL_MM)
        sizes.put(draft, kind, middle)
    corner = rng.integer(20, 35) / 10.0
    ring = _outline(rng.choice(("square", "round", "cut")), size, corner)
    lines = [f"plate {size[0]:g} × {size[1]:g} mm, {draft.base:g} mm thick"]
    thin = sizes.rib
    inside = tuple(draft.inside)
    solid = ((0.0, draft.base),)
    if rimmed and rng.integer(0, 2):
        wall, height = rng.integer(10, 18) / 10.0, rng.integer(7, 11) + 0.0
        floor = Region(name=f"floor of {name}", kind="floor", ring=_inset(size, wall), solid=solid, inside=inside)
        inside, solid, thin = (floor,), ((0.0, height),), min(thin, wall)
        ring = _outline("square", size, 0.0)
        lines.append(f"a rim all around, {wall:g} mm thick, up to {height:g} mm")
    lines += [_summed(kind, said) for kind, said in draft.said.items()]
    return Region(name=name, kind="outline", ring=ring, solid=solid, inside=inside), lines, thin


def _summed(kind: str, said: list[str]) -> str:
    if kind == "letter":
        return said[0]
    return f"{len(said)} {kind}{'' if len(said) == 1 else 's' if not kind.endswith('s') else 'es'}, {said[0]}"


class _Sizes:
    """One size for all features of a kind, as a maker would choose."""

    def __init__(self, rng: Rng, base: float) -> None:
        self._base = base
        self._hole = rng.choice((3.2, 3.4, 4.2, 4.5, 5.2))
        self._post = rng.choice((3.0, 4.0, 5.0))
        self._tall = round(base + rng.integer(25, 50) / 10.0, 2)
        self.rib = rng.choice((0.8, 0.9, 1.0, 1.2))
        self._upright = bool(rng.integer(0, 1))
        self._floor = rng.choice((0.8, 1.0, 1.2))
        self._slot = rng.choice((2.4, 3.0, 3.6))
        self._pilot = rng.choice((2.0, 2.5))

    def put(self, draft: _Draft, kind: str, at: Point) -> None:
        base, tall = self._base, self._tall
        over = f"{tall - base:.1f} mm above the plate".replace(".0 ", " ")
        if kind == "screw hole":
            draft.add(kind, circle(at, self._hole / 2), None, f"Ø {self._hole:g} mm, right through")
        elif kind == "post":
            draft.add(kind, circle(at, self._post / 2), tall, f"solid, Ø {self._post:g} mm, {over}")
        elif kind == "rib":
            size = (self.rib, 10.0) if self._upright else (10.0, self.rib)
            draft.add(kind, box(at, size), tall, f"{self.rib:g} mm thick, {over}")
        elif kind == "boss":
            pilot = Region(name="", kind="pilot hole", ring=circle(at, self._pilot / 2), solid=((0.0, 1.0),))
            words = (
                f"Ø 7 mm, {over}, with a blind pilot hole Ø {self._pilot:g} mm down to 1 mm above the plate's underside"
            )
            draft.add(kind, circle(at, 3.5), tall, words, (pilot,))
        elif kind == "slot":
            draft.add(kind, box(at, (9.0, self._slot)), None, f"9 × {self._slot:g} mm, right through")
        else:
            draft.add(kind, box(at, (8.0, 7.0)), self._floor, f"8 × 7 mm, {self._floor:g} mm left under it")


def _letter(draft: _Draft, text: str, at: Point) -> None:
    unit = draft.rng.choice((1.0, 1.1, 1.2))
    height = round(draft.base + draft.rng.choice((0.6, 0.8, 1.0)), 2)
    raised = f"{height - draft.base:.1f}"
    for index, letter in enumerate(text):
        outer, inner = _LETTERS[letter]
        x = at[0] + index * 6.0 * unit
        counter = tuple(
            Region(name="", kind="counter", ring=_placed(ring, (x, at[1]), unit), solid=((0.0, draft.base),))
            for ring in (inner,)
            if ring
        )
        words = f'the lettering "{text}" on top, raised by {raised} mm, strokes {unit:g} mm wide'
        draft.add("letter", _placed(outer, (x, at[1]), unit), height, words, counter)


def _placed(ring: Sequence[Point], at: Point, unit: float) -> Ring:
    return tuple((round(at[0] + x * unit, 2), round(at[1] + y * unit, 2)) for x, y in ring)


def circle(middle: Point, radius: float) -> Ring:
    """A polygon of a chord error below 0.02 mm."""
    count = 24 if radius < 2.2 else 32
    turns = [2.0 * math.pi * index / count for index in range(count)]
    return _placed([(math.cos(turn), math.sin(turn)) for turn in turns], middle, radius)


def box(middle: Point, size: Point) -> Ring:
    """A rectangle."""
    (x, y), (a, b) = middle, (size[0] / 2, size[1] / 2)
    return _placed([(-a, -b), (a, -b), (a, b), (-a, b)], (x, y), 1.0)


def _inset(size: Point, wall: float) -> Ring:
    return box((size[0] / 2, size[1] / 2), (size[0] - 2 * wall, size[1] - 2 * wall))


def _outline(kind: str, size: Point, r: float) -> Ring:
    w, h = size
    if kind == "square":
        return box((w / 2, h / 2), size)
    steps = 6 if kind == "round" else 1
    points: list[Point] = []
    for x, y, first in ((w - r, r, -90), (w - r, h - r, 0), (r, h - r, 90), (r, r, 180)):
        for step in range(steps + 1):
            turn = math.radians(first + 90.0 * step / steps)
            points.append((x + r * math.cos(turn), y + r * math.sin(turn)))
    return _placed(points, (0.0, 0.0), 1.0)


def _moved(region: Region, dx: float) -> Region:
    ring = tuple((round(x + dx, 2), y) for x, y in region.ring)
    inside = tuple(_moved(inner, dx) for inner in region.inside)
    return replace(region, name=f"right {region.name}", ring=ring, inside=inside)


def named(bodies: Sequence[Region]) -> dict[str, Region]:
    """Every region by its name."""
    return {region.name: region for region, _ in walk(bodies)}
