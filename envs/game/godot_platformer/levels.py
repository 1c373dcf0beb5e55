"""What each level hands over: a feel, the controller to start with, the right ones, and near misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...core import Rng
from .controllers import FAULTS, OLD_JUMP, Fault, controller, other_controller
from .feel import ASKED, Feature, Feel, draw_feel

_HEROES = ("fox", "courier", "robot", "lamplighter", "diver", "squirrel", "miner", "ghost", "chef", "astronaut")
_GAMES = ("Lantern Hills", "Copper Canyon", "Night Post", "Tin Garden", "Moss & Iron", "Salt Towers", "Paper Reef")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One instance, before it becomes files."""

    hero: str
    game: str
    feel: Feel
    asked: tuple[Feature, ...]
    missing: tuple[Feature, ...]
    """Features that the starting controller was never given."""
    symptoms: tuple[str, ...]
    start: str
    right: str
    other: str
    near: Mapping[str, str]
    """Name → a controller that is almost right."""


def build(rng: Rng, level: int) -> Task:
    """The task of a level."""
    feel, asked = draw_feel(rng.child("feel")), ASKED[level]
    hero, game = rng.choice(_HEROES), rng.choice(_GAMES)
    title = f"{hero.capitalize()} of {game}"
    right = controller(feel, asked, title=title)
    faults = _faults(rng.child("faults"), level)
    if faults:
        start, missing = controller(feel, asked, title=title, faults=faults), ()
        miss = _another(rng.child("miss"), level, faults)
        near = {"another_mistake": controller(feel, asked, title=title, faults=[miss])}
        if len(faults) > 1:
            near["one_mistake_left"] = controller(feel, asked, title=title, faults=faults[1:])
    else:
        missing = tuple(feature for feature in asked if feature not in OLD_JUMP and feature is not Feature.CEILING)
        old = feel if level < 4 else _prototype(rng.child("prototype"), feel)
        start = controller(old, OLD_JUMP, title=title)
        left = rng.choice([feature for feature in missing if feature not in (Feature.FALL, Feature.AIR)])
        near = {f"without_{left}": controller(feel, [each for each in asked if each is not left], title=title)}
        near["one_gravity"] = controller(replace(feel, fall=feel.rise), asked, title=title)
    near["tuned_by_eye"] = controller(_by_eye(feel), asked, title=title)
    return Task(
        hero=hero,
        game=game,
        feel=feel,
        asked=asked,
        missing=missing,
        symptoms=tuple(fault.symptom for fault in faults),
        start=start,
        right=right,
        other=other_controller(feel, asked, title=title),
        near=near,
    )


def _faults(rng: Rng, level: int) -> tuple[Fault, ...]:
    """One of the ground at level 0; at level 1 one of the graces, and one that breaks another feature."""
    if level > 1:
        return ()
    if level == 0:
        return (rng.choice(FAULTS[0]),)
    first = rng.choice(FAULTS[1])
    others = [fault for fault in FAULTS[0] if fault.breaks is not first.breaks and fault.breaks is not Feature.SINGLE]
    return first, rng.choice(others)


def _another(rng: Rng, level: int, faults: Sequence[Fault]) -> Fault:
    return rng.choice([fault for fault in FAULTS[level] if fault not in faults])


def _by_eye(feel: Feel) -> Feel:
    """Numbers that look right: a seventh too high, a little too fast."""
    return replace(feel, height=round(feel.height * 1.14), max_speed=round(feel.max_speed * 1.08))


def _prototype(rng: Rng, feel: Feel) -> Feel:
    """Another feel: nothing of it is near the numbers asked for."""
    return replace(
        feel,
        max_speed=round(feel.max_speed * rng.choice((0.7, 0.8, 1.2, 1.35))),
        accelerate=feel.accelerate + rng.choice((-4, 5, 7)),
        height=round(feel.height * rng.choice((0.7, 0.8, 1.25, 1.4))),
    )
