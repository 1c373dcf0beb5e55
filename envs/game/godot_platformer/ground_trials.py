"""Trials on flat ground: running, turning, jumping, falling, and one jump for one press."""

from __future__ import annotations

import math

from ...core import Rng
from .feel import TICKS, Feature, Feel
from .stage import (
    HEIGHT,
    ON_GROUND,
    SETTLE,
    SPEED,
    TERMINAL,
    TIME_TICKS,
    Marks,
    Stage,
    Track,
    Trial,
    apex,
    first_tick,
    first_wrong,
    off_by,
    out_of_time,
)


def run(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    return [_run_one(Stage(feel, rng, m)) for m in (1, -1)]


def _run_one(stage: Stage) -> Trial:
    feel, go = stage.feel, SETTLE
    let_go = go + feel.accelerate + 30
    ticks = let_go + feel.stop + 25

    def judge(track: Track, _marks: Marks) -> str:
        top = feel.max_speed
        full = first_tick(track, go, lambda tick: stage.ahead(track, tick) >= 0.98 * top, let_go)
        half = go + feel.accelerate // 2 - 1
        rest = first_tick(track, let_go, lambda tick: abs(stage.ahead(track, tick)) <= 0.02 * top)
        mean = sum(stage.ahead(track, tick) for tick in range(let_go - 10, let_go)) / 10
        linear = abs(stage.ahead(track, half) - top * (feel.accelerate // 2) / feel.accelerate) <= 0.15 * top
        after = max((abs(stage.ahead(track, tick)) for tick in range(rest or 1, ticks)), default=0.0)
        return first_wrong(
            out_of_time(None if full is None else full - go + 1, feel.accelerate, TIME_TICKS, "full speed after"),
            off_by(mean, top, SPEED, "full speed", "px/s"),
            "" if linear else f"half-way {stage.ahead(track, half):.0f} px/s: the speed does not grow evenly",
            out_of_time(None if rest is None else rest - let_go + 1, feel.stop, TIME_TICKS, "at rest after"),
            "" if after <= 0.02 * top else "moves again after it has stopped",
        )

    events = [("start", go, stage.forward, 1), ("start", let_go, stage.forward, 0)]
    return Trial(feature=Feature.RUN, scenario=stage.scenario(ticks, events), judge=judge)


def turn(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    stage = Stage(feel, rng)
    back = SETTLE + feel.accelerate + 15
    ticks = back + feel.turn + feel.accelerate + 15

    def judge(track: Track, _marks: Marks) -> str:
        rest = first_tick(track, back, lambda tick: stage.ahead(track, tick) <= 0.02 * feel.max_speed)
        full = first_tick(track, back, lambda tick: stage.ahead(track, tick) <= -0.98 * feel.max_speed)
        whole = feel.turn + feel.accelerate
        return first_wrong(
            out_of_time(None if rest is None else rest - back + 1, feel.turn, TIME_TICKS, "turned after"),
            out_of_time(None if full is None else full - back + 1, whole, TIME_TICKS + 1, "full speed back after"),
        )

    events = [
        ("start", SETTLE, stage.forward, 1),
        ("start", back, stage.forward, 0),
        ("start", back, stage.backward, 1),
    ]
    return [Trial(feature=Feature.TURN, scenario=stage.scenario(ticks, events), judge=judge)]


def jump(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    return [_jump_one(Stage(feel, rng), running) for running in (False, True)]


def _jump_one(stage: Stage, running: bool) -> Trial:
    feel, press = stage.feel, SETTLE + 20
    ticks = press + feel.rise + feel.fall + 25

    def judge(track: Track, _marks: Marks) -> str:
        least, when = apex(track, press)
        return first_wrong(
            off_by(track[press - 1][1] - least, feel.height, HEIGHT, "jump height"),
            out_of_time(round(when) - press + 1, feel.rise, TIME_TICKS, "apex after"),
        )

    events = [("start", press, "jump", 1)] + ([("start", SETTLE, stage.forward, 1)] if running else [])
    return Trial(feature=Feature.JUMP, scenario=stage.scenario(ticks, events), judge=judge)


def fall(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    stage, high = Stage(feel, rng), Stage(feel, rng)

    def lands(track: Track, _marks: Marks) -> str:
        _, when = apex(track, SETTLE)
        land = first_tick(track, math.ceil(when) + 2, lambda tick: track[tick][1] >= track[SETTLE - 1][1] - ON_GROUND)
        return out_of_time(None if land is None else round(land - when), feel.fall, TIME_TICKS, "down again after")

    def drops(track: Track, _marks: Marks) -> str:
        fastest = max((track[tick][1] - track[tick - 1][1]) * TICKS for tick in range(1, len(track)))
        return off_by(fastest, feel.terminal, TERMINAL, "greatest falling speed", "px/s")

    jumping = stage.scenario(SETTLE + feel.rise + feel.fall + 25, [("start", SETTLE, "jump", 1)])
    falling = high.scenario(110, [], start=(high.x, high.rest - rng.integer(1000, 1200)))
    return [
        Trial(feature=Feature.FALL, scenario=jumping, judge=lands),
        Trial(feature=Feature.FALL, scenario=falling, judge=drops),
    ]


def single(feel: Feel, rng: Rng, _base: int) -> list[Trial]:
    held, again, early = Stage(feel, rng), Stage(feel, rng), Stage(feel, rng)
    top, land = SETTLE + feel.rise, SETTLE + feel.rise + feel.fall

    def once(track: Track, _marks: Marks) -> str:
        down = first_tick(track, SETTLE + 6, lambda tick: track[tick][1] >= held.rest - ON_GROUND)
        if down is None:
            return "does not come down again"
        again = any(y < held.rest - 2.0 for _, y in track[down + 1 :])
        return "jumps again while the button is held" if again else ""

    def falls(track: Track, _marks: Marks) -> str:
        _, when = apex(track, SETTLE, land + 4)
        rising = any(track[tick][1] < track[tick - 1][1] - 0.5 for tick in range(math.ceil(when) + 2, land - 4))
        return "jumps again in the air, on the way down" if rising else ""

    def no_higher(track: Track, _marks: Marks) -> str:
        height = early.rest - min(y for _, y in track)
        return "" if height <= 1.08 * feel.height else "jumps again in the air, on the way up"

    twice = [("start", SETTLE, "jump", 1), ("start", top + 3, "jump", 0), ("start", top + 5, "jump", 1)]
    soon = [("start", SETTLE, "jump", 1), ("start", SETTLE + 3, "jump", 0), ("start", SETTLE + 4, "jump", 1)]
    return [
        Trial(
            feature=Feature.SINGLE,
            scenario=held.scenario(land + 2 * feel.rise + 20, [("start", SETTLE, "jump", 1)]),
            judge=once,
        ),
        Trial(feature=Feature.SINGLE, scenario=again.scenario(land + 5, twice), judge=falls),
        Trial(feature=Feature.SINGLE, scenario=early.scenario(land + 5, soon), judge=no_higher),
    ]
