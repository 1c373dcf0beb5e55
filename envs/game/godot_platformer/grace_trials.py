"""Trials of what forgives and shapes a jump: graces, the cut, steering in the air, and a ceiling."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core import Json, Rng
from .feel import TICKS, Feature, Feel
from .stage import (
    AIR,
    CUT_HEIGHT,
    FAR,
    GRACE_TICKS,
    ON_GROUND,
    SETTLE,
    TIME_TICKS,
    Marks,
    Stage,
    Track,
    Trial,
    first_tick,
    nothing,
    out_of_time,
)


def coyote(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    return [
        _coyote_one(Stage(feel, rng), feel.coyote - GRACE_TICKS, True),
        _coyote_one(Stage(feel, rng), feel.coyote + GRACE_TICKS, False),
    ]


def _coyote_one(stage: Stage, late: int, jumps: bool) -> Trial:
    feel, edge = stage.feel, 150.0
    side: list[Json] = ["x", "above" if stage.m > 0 else "below", stage.at(edge + feel.half_width), 0]
    ticks = SETTLE + feel.accelerate + math.ceil((edge + 30) / feel.max_speed * TICKS) + late + feel.rise + 10

    def judge(track: Track, marks: Marks) -> str:
        if "off" not in marks or marks["off"] + late + feel.rise > len(track):
            return "does not run off the ledge"
        press = marks["off"] + late
        height = track[press - 1][1] - min(y for _, y in track[press:])
        if jumps:
            good = height >= 0.85 * feel.height
            return "" if good else f"pressed {late} ticks after the edge: rises {height:.0f} px"
        return "" if height <= 1.0 else f"pressed {late} ticks after the edge: still jumps"

    events = [("start", SETTLE, stage.forward, 1), ("off", late, "jump", 1)]
    boxes = [stage.box(-400, edge, stage.ground), [stage.x - FAR, stage.ground + 900, 2.0 * FAR, 100.0]]
    scenario = stage.scenario(ticks, events, boxes=boxes, marks={"off": side})
    return Trial(feature=Feature.COYOTE, scenario=scenario, judge=judge)


def buffer(feel: Feel, rng: Rng, base: int) -> list[Trial]:
    """The first trial only finds out when the body lands; the others fall alike and press before it."""
    stage = Stage(feel, rng)
    high = stage.rest - rng.integer(180, 260)
    land: dict[str, Json] = {"land": ["y", "above", stage.rest - ON_GROUND, 0]}
    ticks = 90 + feel.rise

    def falling(events: Sequence[tuple[str, int, str, int]]) -> dict[str, Json]:
        return stage.scenario(ticks, events, start=(stage.x, high), marks=land)

    found = [Trial(feature=Feature.BUFFER, scenario=falling([]), judge=nothing)]
    for early, jumps in ((feel.buffer - GRACE_TICKS, True), (feel.buffer + GRACE_TICKS, False)):

        def judge(track: Track, marks: Marks, early: int = early, jumps: bool = jumps) -> str:
            if "land" not in marks:
                return "never lands"
            height = stage.rest - min(y for _, y in track[marks["land"] + 1 :])
            if jumps:
                good = height >= 0.85 * feel.height
                return "" if good else f"pressed {early} ticks before it lands: rises {height:.0f} px"
            return "" if height <= 1.0 else f"pressed {early} ticks before it lands: still jumps"

        events = [(f"{base}:land", -early, "jump", 1)]
        found.append(Trial(feature=Feature.BUFFER, scenario=falling(events), judge=judge))
    return found


def cut(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    return [_cut_one(Stage(feel, rng), held) for held in rng.sample((3, 4, 5, 6, 7), 2)]


def _cut_one(stage: Stage, held: int) -> Trial:
    feel = stage.feel

    def judge(track: Track, _marks: Marks) -> str:
        height, wanted = stage.rest - min(y for _, y in track), feel.cut_height(held)
        good = abs(height - wanted) <= CUT_HEIGHT * feel.height
        return "" if good else f"let go after {held} ticks: {height:.0f} px high, wanted {wanted:.0f}"

    events = [("start", SETTLE, "jump", 1), ("start", SETTLE + held, "jump", 0)]
    scenario = stage.scenario(SETTLE + feel.rise + 20, events)
    return Trial(feature=Feature.CUT, scenario=scenario, judge=judge)


def air(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    up, on = Stage(feel, rng), Stage(feel, rng)
    lasts = min(feel.rise + feel.fall - 12, 24)
    gain, loss = min(lasts, feel.air_accelerate - 3), min(lasts, feel.air_stop - 3)
    jump = SETTLE + feel.accelerate + 10

    def gains(track: Track, _marks: Marks) -> str:
        speed, wanted = up.ahead(track, SETTLE + 4 + gain - 1), feel.max_speed * gain / feel.air_accelerate
        good = abs(speed - wanted) <= AIR * feel.max_speed
        return "" if good else f"in the air {speed:.0f} px/s after {gain} ticks of input, wanted {wanted:.0f}"

    def loses(track: Track, _marks: Marks) -> str:
        speed, wanted = on.ahead(track, jump + 4 + loss - 1), feel.max_speed * (1 - loss / feel.air_stop)
        good = abs(speed - wanted) <= AIR * feel.max_speed
        return "" if good else f"in the air {speed:.0f} px/s after {loss} ticks without input, wanted {wanted:.0f}"

    rising = [("start", SETTLE, "jump", 1), ("start", SETTLE + 4, up.forward, 1)]
    running = [
        ("start", SETTLE, on.forward, 1),
        ("start", jump, "jump", 1),
        ("start", jump + 4, on.forward, 0),
    ]
    return [
        Trial(feature=Feature.AIR, scenario=up.scenario(SETTLE + lasts + 10, rising), judge=gains),
        Trial(feature=Feature.AIR, scenario=on.scenario(jump + lasts + 10, running), judge=loses),
    ]


def ceiling(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    stage, share = Stage(feel, rng), rng.integer(35, 55) / 100.0
    clear = share * feel.height
    roof = stage.box(-FAR, FAR, stage.rest - feel.half_height - clear - 60.0, 60.0)

    def judge(track: Track, _marks: Marks) -> str:
        bump = first_tick(track, SETTLE, lambda tick: track[tick][1] <= stage.rest - clear + 1.0)
        if bump is None:
            return f"does not rise to a ceiling {clear:.0f} px above"
        land = first_tick(track, bump + 2, lambda tick: track[tick][1] >= stage.rest - ON_GROUND)
        wanted = math.sqrt(2.0 * clear / feel.fall_gravity) * TICKS
        return out_of_time(None if land is None else land - bump, wanted, TIME_TICKS + 1, "down from the ceiling after")

    scenario = stage.scenario(SETTLE + 2 * feel.rise + 20, [("start", SETTLE, "jump", 1)], boxes=[stage.flat(), roof])
    return [Trial(feature=Feature.CEILING, scenario=scenario, judge=judge)]
