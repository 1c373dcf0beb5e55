"""The things whose colliders are asked for, by level: what they are, and how many colliders they may have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...core import Rng
from ...parts.drop_test import Demand
from ...parts.poses import Pose, Vec, about, any_turn, turned
from .assembly import Assembly
from .solids import Tube

_X, _Y, _Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One instance's object."""

    name: str
    assembly: Assembly
    grouped: bool
    cap: int
    demand: Demand


_EXACT = Demand(coverage=0.97, overshoot=0.03, bounds=0.01, height=0.01, tilt_deg=2.0)
_HOLLOW = Demand(coverage=0.92, overshoot=0.08, bounds=0.02, height=0.02, tilt_deg=4.0)
_TAPERED = Demand(coverage=0.92, overshoot=0.08, bounds=0.03, height=0.025, tilt_deg=5.0)


def draw(rng: Rng, level: int) -> Thing:
    """The thing of this stream and level."""
    makers: tuple[dict[str, Callable[[Rng, Assembly], None]], ...] = (
        {"stack of blocks": _blocks},
        {"table": _table, "stool": _stool, "shelf": _shelf},
        {"hammer": _hammer, "floor lamp": _lamp, "toy robot": _robot},
        {"mug": _mug, "wheel": _wheel, "well": _well},
        {"rocket": _rocket, "buoy": _buoy, "goblet": _goblet},
    )
    name = rng.choice(sorted(makers[level]))
    frame = Pose((0.0, 0.0, 0.0))
    if level >= 2:
        shift = (_step(rng, -20, 20), _step(rng, -20, 20), _step(rng, -20, 20))
        turn = any_turn(rng.child("turn")) if level != 3 else about(_Z, 15.0 * rng.integer(0, 23))
        frame = Pose(shift, turn)
    assembly = Assembly(frame)
    makers[level][name](rng.child(name), assembly)
    demand = (_EXACT, _EXACT, _EXACT, _HOLLOW, _TAPERED)[level]
    return Thing(name=name, assembly=assembly, grouped=level < 2, cap=len(assembly.primitives) + 1, demand=demand)


def _step(rng: Rng, low_cm: int, high_cm: int) -> float:
    """A whole number of centimetres, in metres."""
    return rng.integer(low_cm, high_cm) / 100.0


def _blocks(rng: Rng, a: Assembly) -> None:
    width, depth, height = _step(rng, 60, 90), _step(rng, 40, 58), _step(rng, 10, 20)
    a.add_box((width, depth, height), (0.0, 0.0, height / 2.0))
    upper = (_step(rng, 16, 26), _step(rng, 16, 30), _step(rng, 24, 44))
    side = rng.choice((-1, 1))
    x = side * (width / 2.0 - upper[0] / 2.0 - _step(rng, 2, 6))
    a.add_box(upper, (x, _step(rng, -4, 4), height + upper[2] / 2.0))
    if rng.integer(0, 1):
        third = (_step(rng, 12, 20), _step(rng, 12, 24), _step(rng, 8, 18))
        a.add_box(third, (-x, _step(rng, -5, 5), height + third[2] / 2.0))


def _legs(rng: Rng, a: Assembly, half: tuple[float, float], height: float, *, round_legs: bool) -> None:
    thick = _step(rng, 5, 8)
    for sx in (-1, 1):
        for sy in (-1, 1):
            at = (sx * (half[0] - thick), sy * (half[1] - thick), height / 2.0)
            if round_legs:
                a.add_cylinder(thick / 2.0, height, at)
            else:
                a.add_box((thick, thick, height), at)


def _table(rng: Rng, a: Assembly) -> None:
    width, depth, height, top = _step(rng, 90, 130), _step(rng, 60, 80), _step(rng, 50, 75), _step(rng, 4, 7)
    _legs(rng, a, (width / 2.0, depth / 2.0), height, round_legs=bool(rng.integer(0, 1)))
    a.add_box((width, depth, top), (0.0, 0.0, height + top / 2.0))
    rail = _step(rng, 5, 7)
    a.add_box((width - 0.3, rail, rail), (0.0, 0.0, height - rail / 2.0))


def _stool(rng: Rng, a: Assembly) -> None:
    radius, height, seat = _step(rng, 22, 30), _step(rng, 40, 60), _step(rng, 4, 7)
    inner = radius * 0.72
    _legs(rng, a, (inner, inner), height, round_legs=True)
    a.add_cylinder(radius, seat, (0.0, 0.0, height + seat / 2.0))
    back = (_step(rng, 18, 26), 0.04, _step(rng, 22, 34))
    a.add_box(back, (0.0, radius * 0.7, height + seat + back[2] / 2.0))


def _shelf(rng: Rng, a: Assembly) -> None:
    width, depth, board, gap = _step(rng, 60, 90), _step(rng, 25, 35), _step(rng, 3, 5), _step(rng, 26, 36)
    count = rng.integer(2, 3)
    height = count * gap + (count + 1) * board
    for side in (-1, 1):
        a.add_box((board, depth, height), (side * (width - board) / 2.0, 0.0, height / 2.0))
    for index in range(count + 1):
        a.add_box((width - 2.0 * board, depth, board), (0.0, 0.0, board / 2.0 + index * (gap + board)))
    radius = _step(rng, 4, 6)
    a.add_cylinder(radius, gap / 2.0, (width / 4.0, 0.0, board + gap / 4.0))


def _hammer(rng: Rng, a: Assembly) -> None:
    length, radius, head = _step(rng, 60, 80), _step(rng, 3, 4), (_step(rng, 10, 14), _step(rng, 24, 34), 0.12)
    a.add_cylinder(radius, length, (0.0, 0.0, length / 2.0))
    a.add_box(head, (0.0, 0.0, length + head[2] / 2.0))
    face = _step(rng, 4, 5)
    a.add_cylinder(face, 0.06, (0.0, head[1] / 2.0 + 0.03, length + head[2] / 2.0), about(_X, 90.0))
    a.add_sphere(_step(rng, 5, 6), (0.0, -head[1] / 2.0, length + head[2] / 2.0))


def _lamp(rng: Rng, a: Assembly) -> None:
    foot, height, pole = (_step(rng, 34, 44), _step(rng, 30, 40), 0.06), _step(rng, 70, 100), _step(rng, 3, 4)
    a.add_box(foot, (0.0, 0.0, foot[2] / 2.0))
    a.add_cylinder(pole, height, (0.0, 0.0, foot[2] + height / 2.0))
    a.add_sphere(_step(rng, 12, 16), (0.0, 0.0, foot[2] + height))
    arm = _step(rng, 26, 36)
    tilt, z = 30.0 + 5.0 * rng.integer(0, 6), foot[2] + height * 0.55
    a.add_box((arm, 0.05, 0.05), (arm / 2.0, 0.0, z), about(_Y, -tilt))


def _robot(rng: Rng, a: Assembly) -> None:
    body = (_step(rng, 26, 34), _step(rng, 18, 24), _step(rng, 34, 44))
    a.add_box(body, (0.0, 0.0, 0.3 + body[2] / 2.0))
    a.add_sphere(_step(rng, 10, 12), (0.0, 0.0, 0.3 + body[2] + 0.08))
    for side in (-1, 1):
        a.add_cylinder(0.05, 0.3, (side * body[0] / 4.0, 0.0, 0.15))
        a.add_box((0.12, 0.26, 0.05), (side * (body[0] / 4.0 + 0.02), 0.05, 0.025))
        splay = side * (10.0 + 5.0 * rng.integer(0, 8))
        a.add_cylinder(0.04, 0.3, (side * (body[0] / 2.0 + 0.06), 0.0, 0.3 + body[2] * 0.7), about(_Y, -splay))


def _mug(rng: Rng, a: Assembly) -> None:
    radius, wall, height, floor = _step(rng, 20, 26), _step(rng, 4, 6), _step(rng, 40, 55), _step(rng, 4, 6)
    a.add_tube(Tube(outer=(radius, radius), wall=wall, height=height - floor), (0, 0, (height + floor) / 2.0))
    a.add_cylinder(radius, floor, (0.0, 0.0, floor / 2.0))
    bar, reach, span = 0.05, _step(rng, 12, 18), _step(rng, 20, 28)
    for side in (-1, 1):
        a.add_box((reach, bar, bar), (radius + reach / 2.0 - 0.01, 0.0, height / 2.0 + side * (span - bar) / 2.0))
    a.add_box((bar, bar, span), (radius + reach + bar / 2.0 - 0.01, 0.0, height / 2.0))


def _wheel(rng: Rng, a: Assembly) -> None:
    radius, wall, width = _step(rng, 34, 44), _step(rng, 6, 8), _step(rng, 12, 18)
    a.add_tube(Tube(outer=(radius, radius), wall=wall, height=width), (0.0, 0.0, 0.0))
    hub, spokes = _step(rng, 7, 9), rng.integer(3, 5)
    a.add_cylinder(hub, width + 0.04, (0.0, 0.0, 0.02))
    reach = radius - wall - hub
    for index in range(spokes):
        turn = about(_Z, 360.0 * index / spokes)
        x, y, _ = _around(hub + reach / 2.0, 360.0 * index / spokes)
        a.add_box((reach + 0.02, 0.06, width * 0.5), (x, y, 0.0), turn)


def _well(rng: Rng, a: Assembly) -> None:
    radius, wall, height = _step(rng, 34, 42), _step(rng, 8, 10), _step(rng, 26, 36)
    a.add_tube(Tube(outer=(radius, radius), wall=wall, height=height), (0.0, 0.0, height / 2.0))
    post, middle = _step(rng, 50, 70), radius - wall / 2.0
    for side in (-1, 1):
        a.add_box((0.07, 0.07, post), (side * middle, 0.0, height + post / 2.0))
    a.add_cylinder(0.05, 2.0 * middle + 0.3, (0.0, 0.0, height + post - 0.1), about(_Y, 90.0))
    a.add_box((2.0 * middle + 0.2, 0.3, 0.05), (0.0, 0.0, height + post + 0.025))


def _around(radius: float, degrees: float) -> Vec:
    return turned(about(_Z, degrees), (radius, 0.0, 0.0))


def _rocket(rng: Rng, a: Assembly) -> None:
    radius, body, sides = _step(rng, 16, 20), _step(rng, 60, 80), rng.choice((6, 8))
    a.add_prism(sides, radius, body, (0.0, 0.0, body / 2.0))
    nose, tip = _step(rng, 30, 40), _step(rng, 5, 7)
    a.add_frustum(radius * 0.85, tip, nose, (0.0, 0.0, body + nose / 2.0), steps=5)
    nozzle = _step(rng, 16, 22)
    a.add_tube(Tube(outer=(radius * 1.1, radius * 0.75), wall=0.05, height=nozzle), (0, 0, -nozzle / 2.0))
    fins = rng.integer(3, 4)
    reach = _step(rng, 18, 24)
    for index in range(fins):
        angle = 360.0 * index / fins + 180.0 / sides
        x, y, _ = _around(radius * 0.85 + reach / 2.0, angle)
        a.add_box((reach, 0.04, _step(rng.child("fin"), 22, 30)), (x, y, 0.16), about(_Z, angle))


def _buoy(rng: Rng, a: Assembly) -> None:
    waist, end, half = _step(rng, 26, 32), _step(rng, 18, 22), _step(rng, 16, 22)
    a.add_frustum(end, waist, half, (0.0, 0.0, -half / 2.0), steps=4)
    a.add_frustum(waist, end, half, (0.0, 0.0, half / 2.0), steps=4)
    mast = _step(rng, 46, 60)
    a.add_cylinder(0.05, mast, (0.0, 0.0, half + mast / 2.0))
    a.add_sphere(_step(rng, 9, 12), (0.0, 0.0, half + mast))
    a.add_tube(Tube(outer=(0.2, 0.2), wall=0.05, height=0.08), (0.0, 0.0, half + mast * 0.45))
    for index in range(3):
        x, y, _ = _around(0.1, 120.0 * index)
        a.add_box((0.14, 0.04, 0.04), (x, y, half + mast * 0.45), about(_Z, 120.0 * index))


def _goblet(rng: Rng, a: Assembly) -> None:
    foot, stem, bowl = _step(rng, 18, 22), _step(rng, 24, 34), _step(rng, 26, 34)
    a.add_frustum(foot, foot * 0.7, 0.08, (0.0, 0.0, 0.04), steps=4)
    a.add_prism(6, 0.06, stem, (0.0, 0.0, 0.08 + stem / 2.0))
    low = _step(rng, 14, 17)
    base = 0.08 + stem
    a.add_frustum(low * 0.8, low, 0.06, (0.0, 0.0, base + 0.03), steps=2)
    a.add_tube(
        Tube(outer=(low, low + _step(rng, 5, 8)), wall=0.05, height=bowl),
        (0.0, 0.0, base + 0.06 + bowl / 2.0),
    )
    a.add_box((0.05, 0.2, 0.05), (low + 0.06, 0.0, base + 0.06 + bowl * 0.4))
