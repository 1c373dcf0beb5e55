"""Which relations of a layout the brief asks for, and in what words; every one holds there with room to spare."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ...core import Rng
from ...parts.relations import Placed, Point, Relation, footprint_gap, judge
from .layout import FLAT_TOPPED, Layout

_COMFORT = {
    "on": 0.5,
    "carries_nothing": 0.5,
    "left_of": 0.03,
    "nearer": 0.2,
    "facing": 7.0,
    "against": 0.02,
    "between": 0.08,
    "gap_min": 0.08,
    "gap_max": 0.08,
    "visible": 0.25,
}
_NOT_COMFORT = {"on": 0.5, "facing": 25.0, "between": 0.3}
_QUOTAS: tuple[Mapping[str, int], ...] = (
    {"against": 1, "left_of": 1},
    {"against": 1, "facing": 1, "left_of": 2, "gap_min": 1},
    {"against": 1, "facing": 1, "left_of": 2, "nearer": 1, "gap_min": 1, "gap_max": 1, "between": 1},
    {"against": 2, "facing": 2, "left_of": 3, "nearer": 2, "gap_min": 2, "gap_max": 1, "between": 1, "visible": 1},
    {"against": 2, "facing": 2, "left_of": 4, "nearer": 2, "gap_min": 2, "gap_max": 2, "between": 2, "visible": 2}
    | {"carries_nothing": 1, "not on": 1, "not facing": 1, "not between": 1},
)
_WORDS: Mapping[str, tuple[str, ...]] = {
    "on": ("`{a}` stands on {b}.", "Put `{a}` on {b}."),
    "not on": ("`{a}` does not stand on {b}.",),
    "carries_nothing": ("Nothing stands on `{a}`.",),
    "left_of": (
        "Seen from the camera, `{a}` is to the left of {b}.",
        "In the picture, {b} is to the right of `{a}`.",
    ),
    "nearer": ("`{a}` is nearer to the camera than {b}.", "{b} is farther from the camera than `{a}`."),
    "facing": ("`{a}` faces {b}.", "Turn `{a}` so that it faces {b}."),
    "not facing": ("`{a}` does not face {b}.",),
    "against": ("`{a}` stands against the {wall} wall, its back to it.",),
    "between": ("`{a}` is between {b} and {c}.",),
    "not between": ("`{a}` is not between {b} and {c}.",),
    "gap_min": ("Leave at least {value} between `{a}` and {b}.", "`{a}` and {b} are at least {value} apart."),
    "gap_max": ("No more than {value} lie between `{a}` and {b}.", "`{a}` is within {value} of {b}."),
    "visible": ("`{a}` can be seen: other things hide no more than half of it from the camera.",),
}


def key(relation: Relation) -> str:
    """Its kind, as quotas and words name it."""
    return f"not {relation.kind}" if relation.negated else relation.kind


def choose(layout: Layout, rng: Rng, level: int) -> list[Relation] | None:
    """The demands of a level, every thing in one at least; None where the layout does not have them."""
    things = layout.things()
    known: dict[str, list[Relation]] = {}
    for relation in _candidates(layout, things, level):
        least = (_NOT_COMFORT if relation.negated else _COMFORT)[relation.kind]
        if relation.kind != "visible" and judge(relation, things, layout.room, layout.eye).slack < least:
            continue
        known.setdefault(key(relation), []).append(relation)
    chosen = list(known.get("on", []))
    for kind, count in _QUOTAS[level].items():
        found = known.get(kind, [])
        if len(found) < min(count, 1):
            return None
        chosen += rng.child(kind).sample(found, min(count, len(found)))
    named = {name for relation in chosen for name in relation.names}
    for name in sorted(set(things) - named):
        about = [
            each for kind in ("left_of", "nearer", "gap_max") for each in known.get(kind, []) if name in each.names
        ]
        if not about:
            return None
        chosen.append(rng.child(name).choice(about))
    return rng.child("order").shuffled(chosen)


def comfortable(layout: Layout, relations: list[Relation]) -> bool:
    """Whether every demand holds in a layout with something to spare."""
    things = layout.things()
    for relation in relations:
        least = (_NOT_COMFORT if relation.negated else _COMFORT)[relation.kind]
        if relation.kind != "visible" and judge(relation, things, layout.room, layout.eye).slack < least / 3:
            return False
    return True


def _candidates(layout: Layout, things: Mapping[str, Placed], level: int) -> Iterator[Relation]:
    floor = [item.name for item in layout.items if item.on == "floor"]
    carried = {item.name: item.on for item in layout.items}
    furniture = [item.name for item in layout.items if item.name != item.model or item.model in _FRONTED]
    flat = {item.name for item in layout.items if item.model in FLAT_TOPPED}
    for name, on in carried.items():
        if on != "floor":
            yield Relation(kind="on", a=name, b=on)
    for name in floor:
        for wall in ("back", "left"):
            if name in furniture:
                yield Relation(kind="against", a=name, wall=wall)
        if name in furniture and name not in carried.values():
            yield Relation(kind="carries_nothing", a=name)
    for a in things:
        for b in things:
            if a == b:
                continue
            yield Relation(kind="left_of", a=a, b=b)
            if a in floor and b in floor:
                yield Relation(kind="nearer", a=a, b=b)
                if a in furniture:
                    yield Relation(kind="facing", a=a, b=b)
                    yield Relation(kind="facing", a=a, b=b, negated=True)
                yield from _gaps(a, b, footprint_gap(things[a], things[b]))
                for c in floor:
                    if b < c and c != a:
                        yield Relation(kind="between", a=a, b=b, c=c)
                        yield Relation(kind="between", a=a, b=b, c=c, negated=True)
            if a not in floor and b in flat and carried[a] != b:
                yield Relation(kind="on", a=a, b=b, negated=True)
    if level >= 3:
        for name in sorted(things):
            if _seen(layout, things, name) >= 0.5 + _COMFORT["visible"]:
                yield Relation(kind="visible", a=name)


_FRONTED = frozenset({"chair", "bench", "shelf", "cabinet", "sofa", "bed"})


def _gaps(a: str, b: str, gap: float) -> Iterator[Relation]:
    if a < b and gap >= 0.4:
        yield Relation(kind="gap_min", a=a, b=b, value=round(math.floor((min(gap, 1.6) - 0.1) / 0.05) * 0.05, 2))
    if a < b and gap <= 1.1:
        yield Relation(kind="gap_max", a=a, b=b, value=round(math.ceil((gap + 0.1) / 0.05) * 0.05, 2))


def _seen(layout: Layout, things: Mapping[str, Placed], name: str) -> float:
    """The share of a thing's corners that no other thing's bounding box hides: never more than the truth."""
    itself = next(item for item in layout.items if item.name == name)
    carrier = itself.on
    boxes = [(thing.low(), thing.high()) for thing in things.values() if thing.name not in {name, carrier}]
    points = layout.corners(itself)
    free = sum(not any(_hits(layout.eye.place, point, box) for box in boxes) for point in points)
    return free / len(points)


def _hits(start: Point, end: Point, box: tuple[Point, Point]) -> bool:
    near, far = 0.0, 1.0
    for axis in range(3):
        step = end[axis] - start[axis]
        if abs(step) < 1e-12:
            if not box[0][axis] <= start[axis] <= box[1][axis]:
                return False
            continue
        one, other = sorted(((box[0][axis] - start[axis]) / step, (box[1][axis] - start[axis]) / step))
        near, far = max(near, one), min(far, other)
    return near < far


def sentence(relation: Relation, rng: Rng, level: int) -> str:
    """In words."""
    metres = relation.value
    texts = [f"{metres:g} m"] if level < 2 else [f"{metres * 100:g} cm"]
    if level >= 4:
        texts += [f"{metres:g} m", f"{metres * 1000:g} mm"]
    return rng.choice(_WORDS[key(relation)]).format(
        a=relation.a, b=f"`{relation.b}`", c=f"`{relation.c}`", wall=relation.wall, value=rng.choice(texts)
    )
