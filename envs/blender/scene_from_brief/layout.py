"""A room with things in it, laid out so that nothing overlaps: where the true relations of a brief come from.

Levels turn: how many things, how far round the camera stands (so that left in the picture is not left in the room),
whether the library's objects have their origin under their feet, and in which unit they are modelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...core import Rng
from ...parts.furnishings import FURNITURE, WARE
from ...parts.polyhedra import PolyMesh
from ...parts.relations import Eye, Flat, Placed, Point, Room, outline, outline_gap

APART_M = 0.22
"""Between the outlines of things on the floor."""
WARE_APART_M = 0.035
_EDGE_M = 0.04
FLAT_TOPPED = ("table", "stool", "bench", "cabinet", "shelf")
_BACKED = ("cabinet", "shelf", "sofa", "bed", "bench")
UNITS = {"m": 1.0, "cm": 100.0, "mm": 1000.0, "inch": 39.3701}
NUM_FURNITURE = (2, 3, 4, 5, 5)
NUM_WARE = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An object of the library: its true shape, and how it was modelled."""

    name: str
    mesh: PolyMesh
    origin: Point = (0.0, 0.0, 0.0)
    """Where the object's origin is, in the true shape's coordinates."""
    unit: str = "m"

    def local(self) -> list[Point]:
        """Its points as they are in the library."""
        factor = UNITS[self.unit]
        return [_near([(c - o) * factor for c, o in zip(p, self.origin, strict=True)]) for p in self.mesh.points]

    def height(self) -> float:
        """True, in metres."""
        return self.mesh.bounds()[1][2]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "points": self.local(),
            "faces": self.mesh.faces,
            "zones": self.mesh.zones,
            "unit": self.unit,
            "origin": self.origin,
            "height": self.height(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing in the room; `place` is the middle of its foot, `degrees` turn it counter-clockwise from above."""

    name: str
    model: str
    place: Point
    degrees: float
    on: str = "floor"


@dataclass(slots=True, kw_only=True)
class Layout:
    """The whole scene."""

    room: Room
    eye: Eye
    models: dict[str, Model] = field(default_factory=dict[str, Model])
    items: list[Item] = field(default_factory=list[Item])
    hulls: dict[str, list[Flat]] = field(default_factory=dict[str, list[Flat]])
    """Model → its outline, once it was asked for."""

    def shape(self, item: Item) -> list[Flat]:
        """Its convex outline from above, in the room."""
        if item.model not in self.hulls:
            self.hulls[item.model] = outline(self.models[item.model].mesh.points)
        return [(x, y) for x, y, _ in _turned([(x, y, 0.0) for x, y in self.hulls[item.model]], item)]

    def corners(self, item: Item) -> list[Point]:
        """All its points in the room."""
        return _turned(self.models[item.model].mesh.points, item)

    def placed(self, item: Item) -> Placed:
        """The thing as its outline at foot and top, which is all that most relations look at."""
        turn, low = math.radians(item.degrees), item.place[2]
        points = [(x, y, z) for x, y in self.shape(item) for z in (low, low + self.models[item.model].height())]
        front = (math.sin(turn), -math.cos(turn))
        return Placed(name=item.name, points=points, front=front, standing_on=frozenset({item.on}))

    def things(self) -> dict[str, Placed]:
        return {item.name: self.placed(item) for item in self.items}

    def fits(self, item: Item) -> bool:
        """Whether it is in the room and in the picture, over what carries it, and clear of all others beside it."""
        thing = self.placed(item)
        low, high = thing.low(), thing.high()
        if not (self.room.x[0] + 0.02 <= low[0] and high[0] <= self.room.x[1] - 0.02):
            return False
        if not (self.room.y[0] + 0.02 <= low[1] and high[1] <= self.room.y[1] - 0.02 and high[2] < self.room.height):
            return False
        pictures = [self.eye.picture(point) for point in thing.points]
        if not all(0.01 < x < 0.99 and 0.01 < y < 0.99 for x, y, _ in pictures):
            return False
        shape = self.shape(item)
        for other in self.items:
            if other.on == item.on and other.name != item.name:
                least = APART_M if item.on == "floor" else WARE_APART_M
                if outline_gap(shape, self.shape(other)) < least:
                    return False
        return item.on == "floor" or self._over(thing, item.on)

    def _over(self, thing: Placed, carrier: str) -> bool:
        below = next(item for item in self.items if item.name == carrier)
        (x0, y0, _), (x1, y1, _) = self.models[below.model].mesh.bounds()
        turn = math.radians(-below.degrees)
        cos, sin = math.cos(turn), math.sin(turn)
        for point in thing.points:
            dx, dy = point[0] - below.place[0], point[1] - below.place[1]
            x, y = cos * dx - sin * dy, sin * dx + cos * dy
            if not (x0 + _EDGE_M <= x <= x1 - _EDGE_M and y0 + _EDGE_M <= y <= y1 - _EDGE_M):
                return False
        return True

    def moved(self, name: str, shift: Flat) -> Layout:
        """A copy with one thing, and all that it carries, elsewhere."""
        carried = {name}
        while True:
            more = {item.name for item in self.items if item.on in carried} | carried
            if more == carried:
                break
            carried = more
        items = [
            replace(item, place=_near((item.place[0] + shift[0], item.place[1] + shift[1], item.place[2])))
            if item.name in carried
            else item
            for item in self.items
        ]
        return Layout(room=self.room, eye=self.eye, models=self.models, items=items, hulls=self.hulls)


def furnish(rng: Rng, level: int) -> Layout:
    """A layout of a level; draws again where things find no room."""
    for attempt in range(60):
        layout = _try(rng.child(f"attempt {attempt}"), level)
        if layout is not None:
            return layout
    raise AssertionError("no layout found room for its things")


def _try(rng: Rng, level: int) -> Layout | None:
    width, depth = rng.integer(48, 58) / 10, rng.integer(42, 50) / 10
    room = Room(x=(-width / 2, width / 2), y=(-depth / 2, depth / 2), height=2.6)
    degrees = rng.integer(-8, 8) if level < 2 else rng.integer(35, 75)
    yaw, far = math.radians(degrees), rng.integer(76, 84) / 10
    place = _near((far * math.sin(yaw), -far * math.cos(yaw), rng.integer(24, 32) / 10))
    layout = Layout(room=room, eye=Eye(place=place, target=(0.0, 0.0, 0.6), degrees=52.0))
    furniture = rng.sample(
        ["table", "chair", "stool", "bench", "shelf", "cabinet", "sofa", "bed"], NUM_FURNITURE[level]
    )
    furniture[0] = rng.choice(FLAT_TOPPED)
    if not set(furniture[1:]) & {*_BACKED, furniture[0]}:
        furniture[-1] = rng.choice(("sofa", "bed"))
    furniture = list(dict.fromkeys(furniture))
    if len(furniture) < NUM_FURNITURE[level]:
        return None
    wares = rng.sample(sorted(WARE), NUM_WARE[level])
    for name in (*furniture, *wares):
        layout.models[name] = _model(name, rng.child(f"model {name}"), level)
    names = [(name, name) for name in furniture]
    if level >= 3:
        twin = "chair" if "chair" in furniture else "stool" if "stool" in furniture else ""
        if twin:
            names = [each for each in names if each[0] != twin] + [(f"{twin}_1", twin), (f"{twin}_2", twin)]
    for name, model in names:
        if not _settle(layout, rng.child(f"place {name}"), name, model):
            return None
    for index, name in enumerate(wares):
        if not _put(layout, rng.child(f"put {name}"), name, level, first=index == 0):
            return None
    return layout


def _model(name: str, rng: Rng, level: int) -> Model:
    mesh = FURNITURE[name](rng, 0.6) if name in FURNITURE else WARE[name](rng, 0.08)
    (x0, y0, _), (_, _, z1) = mesh.bounds()
    origin, unit = (0.0, 0.0, 0.0), "m"
    if level >= 2:
        origin = rng.choice([(0.0, 0.0, 0.0), (0.0, 0.0, round(z1 / 2, 5)), (x0, y0, 0.0), (0.0, 0.0, z1)])
    if level >= 3:
        unit = rng.choice(("m", "cm", "cm", "mm", "inch"))
    return Model(name=name, mesh=mesh, origin=origin, unit=unit)


def _settle(layout: Layout, rng: Rng, name: str, model: str) -> bool:
    """Put a piece of furniture on the floor: against a wall, or free, perhaps looking at another."""
    _, (_, y1, _) = layout.models[model].mesh.bounds()
    for _ in range(80):
        x = layout.room.x[0] + (layout.room.x[1] - layout.room.x[0]) * rng.fraction()
        y = layout.room.y[0] + (layout.room.y[1] - layout.room.y[0]) * rng.fraction()
        if model in _BACKED and rng.integer(0, 3):
            if rng.integer(0, 1):
                degrees, y = 0.0, layout.room.y[1] - y1 - 0.025
            else:
                degrees, x = 90.0, layout.room.x[0] + y1 + 0.025
        elif layout.items and rng.integer(0, 2):
            other = rng.choice(layout.items).place
            degrees = math.degrees(math.atan2(other[0] - x, -(other[1] - y))) + rng.integer(-4, 4)
        else:
            degrees = 15.0 * rng.integer(0, 23)
        item = Item(name=name, model=model, place=_near((x, y, 0.0)), degrees=round(degrees, 1) % 360)
        if layout.fits(item):
            layout.items.append(item)
            return True
    return False


def _put(layout: Layout, rng: Rng, name: str, level: int, *, first: bool) -> bool:
    """Put a smaller thing on furniture, on a book, or on the floor; the first always on furniture."""
    carriers = [item.name for item in layout.items if item.model in FLAT_TOPPED]
    if not first:
        carriers += ["floor"]
    if level >= 4 and name in {"mug", "candlestick"}:
        carriers += ["book"] * 3 * any(item.name == "book" for item in layout.items)
    for _ in range(60):
        on = rng.choice(carriers)
        degrees = 15.0 * rng.integer(0, 23)
        if on == "floor":
            x = layout.room.x[0] + (layout.room.x[1] - layout.room.x[0]) * rng.fraction()
            y = layout.room.y[0] + (layout.room.y[1] - layout.room.y[0]) * rng.fraction()
            z = 0.0
        else:
            below = next(item for item in layout.items if item.name == on)
            _, (reach_x, reach_y, top) = layout.models[below.model].mesh.bounds()
            x = below.place[0] + (2 * rng.fraction() - 1) * max(reach_x, reach_y)
            y = below.place[1] + (2 * rng.fraction() - 1) * max(reach_x, reach_y)
            z = below.place[2] + top
        item = Item(name=name, model=name, place=_near((x, y, z)), degrees=degrees, on=on)
        if layout.fits(item):
            layout.items.append(item)
            return True
    return False


def _turned(points: Sequence[Point], item: Item) -> list[Point]:
    turn = math.radians(item.degrees)
    cos, sin = math.cos(turn), math.sin(turn)
    x, y, z = item.place
    return [(x + cos * p[0] - sin * p[1], y + sin * p[0] + cos * p[1], z + p[2]) for p in points]


def _near(values: Sequence[float]) -> Point:
    return (round(values[0], 5) + 0.0, round(values[1], 5) + 0.0, round(values[2], 5) + 0.0)
