"""The feel of a character: the numbers that its controller must produce, and which of them a level asks for.

Lengths are pixels, times physics ticks of 1/60 s, speeds pixels a second; all are whole numbers but the share that a
cut jump keeps. The numbers of one feel never contradict: the air is slower than the ground, a long fall reaches the
terminal speed, no grace is so short that its tolerance swallows it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum, auto

from ...core import Rng

TICKS = 60
"""Physics ticks a second."""


class Feature(StrEnum):
    """What a controller does; each is measured by trials of its own."""

    RUN = auto()
    JUMP = auto()
    FALL = auto()
    SINGLE = auto()
    COYOTE = auto()
    BUFFER = auto()
    CUT = auto()
    AIR = auto()
    SLOPES = auto()
    CEILING = auto()
    TURN = auto()
    PLATFORMS = auto()


_BASIC = (Feature.RUN, Feature.JUMP, Feature.FALL, Feature.SINGLE)
_GRACE = (*_BASIC, Feature.COYOTE, Feature.BUFFER)
_GROUND = (*_GRACE, Feature.CUT, Feature.AIR, Feature.SLOPES, Feature.CEILING)
ASKED: tuple[tuple[Feature, ...], ...] = (
    _BASIC,
    _GRACE,
    (*_GRACE, Feature.CUT),
    _GROUND,
    (*_GROUND, Feature.TURN, Feature.PLATFORMS),
)
"""By level: the features of the feel sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feel:
    """One feel sheet."""

    half_width: int
    half_height: int
    max_speed: int
    accelerate: int
    """Ticks from rest to the greatest speed."""
    stop: int
    """Ticks from the greatest speed to rest, without input."""
    turn: int
    """Ticks from the greatest speed to rest, with input the other way."""
    height: int
    """Of a full jump."""
    rise: int
    """Ticks from the ground to the apex."""
    fall: int
    """Ticks from the apex to the same height."""
    terminal: int
    """Greatest falling speed."""
    coyote: int
    buffer: int
    cut: float
    """Share of the upward speed that is left when the button is let go."""
    air_accelerate: int
    air_stop: int
    slope: int
    """Steepest slope, in degrees, that is a floor."""

    @property
    def rise_gravity(self) -> float:
        """g = 2h/t², in px/s²."""
        return 2.0 * self.height / (self.rise / TICKS) ** 2

    @property
    def fall_gravity(self) -> float:
        """The same of the way down."""
        return 2.0 * self.height / (self.fall / TICKS) ** 2

    @property
    def jump_speed(self) -> float:
        """v = 2h/t, in px/s."""
        return 2.0 * self.height / (self.rise / TICKS)

    def cut_height(self, held: int) -> float:
        """How high a jump goes whose button is let go after `held` ticks: v0 t − g t²/2 + (c v)²/2g."""
        seconds = held / TICKS
        speed = self.jump_speed - self.rise_gravity * seconds
        return (self.jump_speed + speed) / 2.0 * seconds + (self.cut * speed) ** 2 / (2.0 * self.rise_gravity)


def draw_feel(rng: Rng) -> Feel:
    """A feel, its numbers apart from one another where a fault may take one for the other."""
    accelerate = rng.integer(8, 16)
    stop = accelerate + rng.choice((-4, 4, 5, 6)) if accelerate > 9 else accelerate + rng.integer(4, 7)
    rise = rng.integer(21, 30)
    fall = rise - rng.integer(5, 7)
    height = 4 * rng.integer(21, 38)
    coyote = rng.integer(6, 9)
    return Feel(
        half_width=rng.choice((10, 12, 14)),
        half_height=rng.choice((18, 20, 22, 24)),
        max_speed=10 * rng.integer(18, 30),
        accelerate=accelerate,
        stop=stop,
        turn=max(3, min(accelerate, stop) - rng.integer(3, 5)),
        height=height,
        rise=rise,
        fall=fall,
        terminal=50 * math.ceil(1.25 * 2.0 * height * TICKS / fall / 50.0),
        coyote=coyote,
        buffer=coyote + rng.choice((-1, 1, 2, 3)),
        cut=rng.integer(8, 11) / 20.0,
        air_accelerate=2 * accelerate + rng.integer(-1, 4),
        air_stop=2 * stop + rng.integer(4, 10),
        slope=rng.integer(34, 46),
    )
