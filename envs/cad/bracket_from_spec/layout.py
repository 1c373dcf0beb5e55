"""The sizes of a bracket and its plates, drawn first: every later feature is placed in a zone that they leave free."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto

from ...core import Rng

INCH_MM = 25.4
_COMMON_BORE_MM = 18.0


class Profile(StrEnum):
    """The outline, seen from the side."""

    L = auto()
    """Base and rear upright."""
    T = auto()
    """The upright stands on the base, in front of its rear edge."""
    U = auto()
    """A second, lower upright at the front edge."""
    Z = auto()
    """A flange at the top of the upright, to the rear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Sizes in millimetres; the rear left lower corner of the base is at (left, rear, 0)."""

    profile: Profile
    left: float
    rear: float
    width: float
    depth: float
    base: float
    """Thickness of the base."""
    base_in_inches: bool
    """Whether the specification gives that thickness in inches."""
    upright: float
    """Thickness of the uprights."""
    setback: float
    """From the rear edge of the base to the rear face of the upright."""
    height: float
    flange: float
    """Thickness of the top flange, 0 without one."""
    overhang: float
    """How far the top flange reaches to the rear."""
    front_height: float
    bend: float
    leg: float
    """The longer leg of the gussets, 0 without them."""

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def middle(self) -> float:
        return self.left + self.width / 2.0

    @property
    def front(self) -> float:
        return self.rear + self.depth

    @property
    def heel(self) -> float:
        """Y of the upright's rear face."""
        return self.rear + self.setback

    @property
    def face(self) -> float:
        """Y of the upright's front face."""
        return self.heel + self.upright

    @property
    def top(self) -> float:
        """Z of the upright's upper end, under the flange if there is one."""
        return self.height - self.flange

    @property
    def base_zone(self) -> tuple[float, float]:
        """The Y of the base between what stands behind and the front edge, or what stands there."""
        end = self.front - self.upright - self.bend if self.profile is Profile.U else self.front
        return self.face + max(self.bend, self.leg), end

    @property
    def upright_zone(self) -> tuple[float, float]:
        """The Z of the upright between what crosses its lower part and its upper end."""
        end = self.top - self.bend if self.flange else self.top
        return self.base + _reach_up(self.profile, self.bend, self.leg), end


def _reach_up(profile: Profile, bend: float, leg: float) -> float:
    """How much of the upright above the base bend and gussets take, or the bore that both uprights share."""
    return max(bend, leg, bend + _COMMON_BORE_MM if profile is Profile.U else 0.0)


def draw_layout(rng: Rng, level: int) -> Layout:
    """The sizes of one bracket."""
    profiles = {3: (Profile.T, Profile.U), 4: (Profile.T, Profile.U, Profile.Z)}
    profile = rng.choice(profiles.get(level, (Profile.L,)))
    width = float(rng.integer(30, 50) * 2)
    in_inches = level >= 3
    base = rng.integer(4, 6) / 16.0 * INCH_MM if in_inches else float(rng.integer(5, 10))
    upright = float(rng.integer(5, 10))
    bend = float(rng.integer(3, 6)) if level >= 1 else 0.0
    leg = float(rng.integer(12, 18)) if level >= 2 else 0.0
    setback = float(rng.integer(20, 26)) if profile is Profile.T else 0.0
    flange = float(rng.integer(5, 8)) if profile is Profile.Z else 0.0
    front = upright + bend if profile is Profile.U else 0.0
    depth = setback + upright + max(bend, leg) + float(rng.integer(26, 36)) + front
    height = float(round(base + _reach_up(profile, bend, leg) + (flange + bend if flange else 0.0))) + float(
        rng.integer(36, 46)
    )
    return Layout(
        profile=profile,
        left=-width / 2.0 if level >= 3 else 0.0,
        rear=-depth if level >= 4 else 0.0,
        width=width,
        depth=depth,
        base=base,
        base_in_inches=in_inches,
        upright=upright,
        setback=setback,
        height=height,
        flange=flange,
        overhang=float(rng.integer(24, 30)) if flange else 0.0,
        front_height=float(round(base + bend)) + float(rng.integer(21, 26)),
        bend=bend,
        leg=leg,
    )
