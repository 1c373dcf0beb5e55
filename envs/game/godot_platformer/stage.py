"""What trials share: the stage they happen on, what a trial is, and how a track is measured.

A track is where the body's centre was after each tick. Judgement uses tracks and the level's own geometry only, never
what the script says of itself. The tolerances here are those that the brief states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...core import Json, Rng
from .feel import TICKS, Feature, Feel

Track = Sequence[tuple[float, float]]
Marks = dict[str, int]

SETTLE = 20
"""Ticks before the first input, in which the body comes to rest on its ground."""
ON_GROUND = 0.6
"""Pixels: nearer to the height of rest than this is on the ground."""
FAR = 4000

HEIGHT, SPEED, SPEED_SLOPE, AIR, CUT_HEIGHT, TERMINAL = 0.06, 0.03, 0.06, 0.10, 0.10, 0.04
TIME_TICKS, GRACE_TICKS, GAP_PX, DRIFT_PX, CREST_TICKS = 2, 2, 3.0, 2.0, 2
WALK_BELOW_DEG, STEEP_ABOVE_DEG = 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One scenario and its judge, which says what is wrong, or nothing."""

    feature: Feature
    scenario: dict[str, Json]
    judge: Callable[[Track, Marks], str] = field(repr=False)


def nothing(_track: Track, _marks: Marks) -> str:
    return ""


class Stage:
    """Where one trial happens: a ground height, a place to start, a side to run to."""

    def __init__(self, feel: Feel, rng: Rng, m: int | None = None) -> None:
        self.feel, self.m = feel, m if m is not None else rng.choice((-1, 1))
        self.ground = float(rng.integer(200, 600))
        self.x = float(rng.integer(-300, 300))
        self.rest = self.ground - feel.half_height
        self.forward = "move_right" if self.m > 0 else "move_left"
        self.backward = "move_left" if self.m > 0 else "move_right"

    def at(self, x: float) -> float:
        """The place `x` pixels ahead of the start."""
        return self.x + self.m * x

    def flat(self) -> list[float]:
        return [self.x - FAR, self.ground, 2.0 * FAR, 200.0]

    def box(self, near: float, far: float, top: float, thick: float = 200.0) -> list[float]:
        """A box from `near` to `far` ahead, its top edge at `top`."""
        return [min(self.at(near), self.at(far)), top, abs(far - near), thick]

    def scenario(
        self,
        ticks: int,
        events: Sequence[tuple[str, int, str, int]],
        *,
        boxes: Sequence[Sequence[float]] = (),
        start: tuple[float, float] | None = None,
        **more: Json,
    ) -> dict[str, Json]:
        x, y = start or (self.x, self.rest - 1.0)
        return {
            "start": [round(x, 3), round(y, 3)],
            "ticks": ticks,
            "boxes": [[round(value, 3) for value in box] for box in boxes or [self.flat()]],
            "events": [list(event) for event in events],
            **more,
        }

    def ahead(self, track: Track, tick: int) -> float:
        """Horizontal speed towards the side of the trial, in px/s."""
        return self.m * (track[tick][0] - track[tick - 1][0]) * TICKS


def off_by(value: float, wanted: float, share: float, what: str, unit: str = "px") -> str:
    good = abs(value - wanted) <= share * abs(wanted) + 1e-6
    return "" if good else f"{what} {value:.1f} {unit}, wanted {wanted:.1f} ± {share:.0%}"


def out_of_time(value: int | None, wanted: float, within: int, what: str) -> str:
    good = value is not None and abs(value - wanted) <= within + 1e-6
    return "" if good else f"{what} {'never' if value is None else f'{value} ticks'}, wanted {wanted:.0f} ± {within}"


def first_tick(track: Track, start: int, holds: Callable[[int], bool], stop: int | None = None) -> int | None:
    return next((tick for tick in range(start, stop or len(track)) if holds(tick)), None)


def first_wrong(*wrong: str) -> str:
    return next((each for each in wrong if each), "")


def apex(track: Track, start: int, stop: int | None = None) -> tuple[float, float]:
    """Least y from `start` on, and when: the middle of the ticks that are as high."""
    part = track[start:stop]
    least = min(y for _, y in part)
    at = [start + index for index, (_, y) in enumerate(part) if y <= least + 0.05]
    return least, (at[0] + at[-1]) / 2.0


def tolerances() -> dict[str, Json]:
    """What the brief says of them: shares in per cent, the rest as it stands."""
    shares = {"height": HEIGHT, "speed": SPEED, "slope_speed": SPEED_SLOPE, "air": AIR, "cut": CUT_HEIGHT}
    found: dict[str, Json] = {name: round(100 * share) for name, share in {**shares, "terminal": TERMINAL}.items()}
    return {
        **found,
        "ticks": TIME_TICKS,
        "grace": GRACE_TICKS,
        "gap": GAP_PX,
        "drift": DRIFT_PX,
        "crest": CREST_TICKS,
        "walk": WALK_BELOW_DEG,
        "steep": STEEP_ABOVE_DEG,
    }
