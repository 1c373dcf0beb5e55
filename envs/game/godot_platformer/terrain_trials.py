"""Trials on slopes and one-way platforms."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core import Json, Rng
from .feel import TICKS, Feature, Feel
from .stage import (
    CREST_TICKS,
    DRIFT_PX,
    FAR,
    GAP_PX,
    HEIGHT,
    ON_GROUND,
    SETTLE,
    SPEED_SLOPE,
    STEEP_ABOVE_DEG,
    WALK_BELOW_DEG,
    Marks,
    Stage,
    Track,
    Trial,
    apex,
    first_wrong,
    off_by,
)

_RUN_UP, _RAMP, _PLATEAU = 140.0, 260.0, 160.0


def slopes(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    """Up, down, at rest and jumping on slopes that are a floor, and against one that is not."""
    degrees = feel.slope - WALK_BELOW_DEG - rng.integer(0, 6)
    return [
        _idle(Stage(feel, rng), degrees),
        _steep(Stage(feel, rng), feel.slope + STEEP_ABOVE_DEG),
        _over(Stage(feel, rng), degrees),
    ]


def _ramp(stage: Stage, near: float, far: float, low: float, high: float) -> Json:
    """A slope from height `low` at `near` to `high` at `far`, filled below."""
    deep = max(low, high) + 200.0
    points = [(stage.at(near), low), (stage.at(far), high), (stage.at(far), deep), (stage.at(near), deep)]
    return [[round(x, 3), round(y, 3)] for x, y in points]


def _over(stage: Stage, degrees: int) -> Trial:
    """Over a hill: its speed on both sides, and that it keeps to the ground."""
    feel, slope = stage.feel, math.tan(math.radians(degrees))
    top = stage.ground - _RAMP * slope
    up, down = _RUN_UP, _RUN_UP + _RAMP + _PLATEAU
    ticks = SETTLE + feel.accelerate + math.ceil((down + _RAMP + 60.0) / feel.max_speed * TICKS) + 5

    def surface(x: float) -> float:
        """Height of the ground `x` pixels ahead of the start."""
        if up <= x <= up + _RAMP:
            return stage.ground - (x - up) * slope
        if up + _RAMP < x < down:
            return top
        return top + (x - down) * slope if down <= x <= down + _RAMP else stage.ground

    def gap(at: tuple[float, float]) -> float:
        ahead = stage.m * (at[0] - stage.x)
        highest = min(surface(ahead - feel.half_width), surface(ahead + feel.half_width))
        return highest - (at[1] + feel.half_height)

    def mean(track: Track, near: float, far: float) -> float:
        inside = [
            stage.ahead(track, tick)
            for tick in range(SETTLE, len(track))
            if near <= stage.m * (track[tick][0] - stage.x) <= far
        ]
        return sum(inside) / len(inside) if inside else 0.0

    def judge(track: Track, _marks: Marks) -> str:
        gaps = [gap(at) for at in track[SETTLE:]]
        apart = sum(value > GAP_PX for value in gaps)
        return first_wrong(
            off_by(mean(track, up + 60, up + _RAMP - 40), feel.max_speed, SPEED_SLOPE, f"up {degrees}°", "px/s"),
            off_by(mean(track, down + 60, down + _RAMP - 40), feel.max_speed, SPEED_SLOPE, f"down {degrees}°", "px/s"),
            "" if apart <= CREST_TICKS else f"over a hill of {degrees}° leaves the ground by up to {max(gaps):.1f} px",
        )

    boxes = [
        stage.box(-500, up, stage.ground),
        stage.box(up + _RAMP, down, top, 300.0),
        stage.box(down + _RAMP, down + _RAMP + 900, stage.ground),
    ]
    hill: list[Json] = [
        _ramp(stage, up, up + _RAMP, stage.ground, top),
        _ramp(stage, down, down + _RAMP, top, stage.ground),
    ]
    scenario = stage.scenario(ticks, [("start", SETTLE, stage.forward, 1)], boxes=boxes, polygons=hill)
    return Trial(feature=Feature.SLOPES, scenario=scenario, judge=judge)


def _idle(stage: Stage, degrees: int) -> Trial:
    """Dropped on a slope it stands still there, and jumps as high as from flat ground."""
    feel = stage.feel
    rise = 300.0 * math.tan(math.radians(degrees))
    settled, jump = SETTLE + 40, SETTLE + 110
    start = (stage.x, stage.ground - rise / 2.0 - feel.half_height - feel.half_width - 20.0)

    def judge(track: Track, _marks: Marks) -> str:
        drift = math.dist(track[settled], track[jump - 1])
        least, _ = apex(track, jump)
        return first_wrong(
            "" if drift <= DRIFT_PX else f"at rest on {degrees}° drifts {drift:.1f} px",
            off_by(track[jump - 1][1] - least, feel.height, HEIGHT, f"jump height on {degrees}°"),
        )

    hill: list[Json] = [_ramp(stage, -150, 150, stage.ground, stage.ground - rise)]
    base = [stage.x - FAR, stage.ground + 150.0, 2.0 * FAR, 100.0]
    events = [("start", jump, "jump", 1)]
    scenario = stage.scenario(jump + feel.rise + 20, events, boxes=[base], polygons=hill, start=start)
    return Trial(feature=Feature.SLOPES, scenario=scenario, judge=judge)


def _steep(stage: Stage, degrees: int) -> Trial:
    feel = stage.feel

    def judge(track: Track, _marks: Marks) -> str:
        gain = stage.rest - min(y for _, y in track)
        return "" if gain <= feel.half_height else f"walks {gain:.0f} px up a slope of {degrees}°"

    hill: list[Json] = [
        _ramp(stage, _RUN_UP, _RUN_UP + 200, stage.ground, stage.ground - 200.0 * math.tan(math.radians(degrees)))
    ]
    ticks = SETTLE + feel.accelerate + math.ceil(260.0 / feel.max_speed * TICKS) + 40
    scenario = stage.scenario(ticks, [("start", SETTLE, stage.forward, 1)], polygons=hill)
    return Trial(feature=Feature.SLOPES, scenario=scenario, judge=judge)


def platforms(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    """Up through a platform and onto it, down through one and no further, and a plain jump where the floor is solid."""
    return [
        _through(Stage(feel, rng), rng.integer(55, 70) / 100.0),
        _drop(Stage(feel, rng), rng.integer(85, 110) / 100.0),
        _solid(Stage(feel, rng)),
    ]


def _platform(stage: Stage, top: float) -> list[Json]:
    return [round(stage.x - 200.0, 3), round(top, 3), 400.0]


def _through(stage: Stage, share: float) -> Trial:
    feel = stage.feel
    top = round(stage.ground - share * feel.height, 3)

    def judge(track: Track, _marks: Marks) -> str:
        above = top - feel.half_height - track[-1][1]
        return "" if abs(above) <= ON_GROUND else f"after a jump from below lies {above:.1f} px above the platform"

    more: list[Json] = [_platform(stage, top)]
    ticks = SETTLE + feel.rise + feel.fall + 30
    scenario = stage.scenario(ticks, [("start", SETTLE, "jump", 1)], platforms=more)
    return Trial(feature=Feature.PLATFORMS, scenario=scenario, judge=judge)


_DOWN = ("start", SETTLE + 10, "move_down", 1), ("start", SETTLE + 14, "jump", 1), ("start", SETTLE + 18, "jump", 0)


def _drop(stage: Stage, share: float) -> Trial:
    feel = stage.feel
    apart = share * feel.height
    upper, lower = round(stage.ground - 2 * apart, 3), round(stage.ground - apart, 3)

    def judge(track: Track, _marks: Marks) -> str:
        rest, final = upper - feel.half_height, track[-1][1]
        rises = track[SETTLE + 13][1] - min(y for _, y in track[SETTLE + 13 :])
        lies = abs(final - (lower - feel.half_height)) <= ON_GROUND
        stood = abs(track[SETTLE + 13][1] - rest) <= ON_GROUND
        return first_wrong(
            "" if stood else "does not stand on the upper platform",
            "" if rises <= 1.0 else f"down and jump: rises {rises:.0f} px",
            "" if lies else f"down and jump: ends {final - rest:.0f} px below the first platform, wanted {apart:.0f}",
        )

    more: list[Json] = [_platform(stage, upper), _platform(stage, lower)]
    start = (stage.x, upper - feel.half_height - 1.0)
    events: Sequence[tuple[str, int, str, int]] = (*_DOWN, ("start", SETTLE + 18, "move_down", 0))
    scenario = stage.scenario(SETTLE + 75, events, start=start, platforms=more)
    return Trial(feature=Feature.PLATFORMS, scenario=scenario, judge=judge)


def _solid(stage: Stage) -> Trial:
    feel = stage.feel

    def judge(track: Track, _marks: Marks) -> str:
        height = stage.rest - min(y for _, y in track)
        return off_by(height, feel.height, HEIGHT, "down and jump on solid ground: jump height")

    scenario = stage.scenario(SETTLE + feel.rise + 40, _DOWN[:2])
    return Trial(feature=Feature.PLATFORMS, scenario=scenario, judge=judge)
