"""Turns and places of rigid things: unit quaternions in Bullet's order (x, y, z, w), and metres."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..core import Rng

Vec = tuple[float, float, float]
Quat = tuple[float, float, float, float]

NO_TURN: Quat = (0.0, 0.0, 0.0, 1.0)


class Pose(NamedTuple):
    """First the turn, then the move."""

    at: Vec
    turn: Quat = NO_TURN


def about(axis: Vec, degrees: float) -> Quat:
    """The turn about a unit axis, right-handed.

    Example:
        >>> [round(value, 3) for value in turned(about((0.0, 0.0, 1.0), 90.0), (1.0, 0.0, 0.0))]
        [0.0, 1.0, 0.0]
    """
    half = math.radians(degrees) / 2.0
    s = math.sin(half)
    return axis[0] * s, axis[1] * s, axis[2] * s, math.cos(half)


def after(first: Quat, second: Quat) -> Quat:
    """The turn that does `first`, then `second`."""
    x1, y1, z1, w1 = second
    x2, y2, z2, w2 = first
    return (
        w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
        w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
        w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
    )


def turned(turn: Quat, point: Vec) -> Vec:
    """The point, turned about the origin."""
    x, y, z, w = turn
    px, py, pz = point
    tx, ty, tz = 2.0 * (y * pz - z * py), 2.0 * (z * px - x * pz), 2.0 * (x * py - y * px)
    return (
        px + w * tx + y * tz - z * ty,
        py + w * ty + z * tx - x * tz,
        pz + w * tz + x * ty - y * tx,
    )


def placed(pose: Pose, point: Vec) -> Vec:
    """The point of a thing, where the thing stands."""
    x, y, z = turned(pose.turn, point)
    return x + pose.at[0], y + pose.at[1], z + pose.at[2]


def within(outer: Pose, inner: Pose) -> Pose:
    """The pose of a part whose `inner` pose is told in the frame of a thing that stands at `outer`."""
    return Pose(placed(outer, inner.at), after(inner.turn, outer.turn))


def any_turn(rng: Rng) -> Quat:
    """Uniform over all turns (Shoemake's method)."""
    u, v, w = rng.fraction(), 2.0 * math.pi * rng.fraction(), 2.0 * math.pi * rng.fraction()
    a, b = math.sqrt(1.0 - u), math.sqrt(u)
    return a * math.sin(v), a * math.cos(v), b * math.sin(w), b * math.cos(w)
