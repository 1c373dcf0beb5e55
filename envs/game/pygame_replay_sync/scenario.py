"""A match that peers play: its config, who joins, what is sent, how long it lasts, and which values are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...core import Json, Rng
from .sources import PLAYERS, Game

Row = dict[str, Json]
Join = tuple[str, Row]
"""A player's name, and the fields of the unit that are not as usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One match, with the players' own names, told without any condition of a network."""

    config: Row
    joins: Sequence[Join]
    messages: Sequence[Row]
    ticks: int
    network: str = "wild"
    """`wild`: messages come early, twice and in any order; `shuffled`: in any order; `plain`: as they stand."""
    draws: bool = False
    """Peers draw, each as often as it likes."""
    looks: bool = False
    """The last frame of every tick that is drawn is looked at."""
    beside: int = 0
    """The seed of another match of the same players, without commands, that peers play at the same time; 0: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is played, and which values count: endings of their names, all where there are none."""

    check: str
    scenario: Scenario
    fields: tuple[str, ...] = ()

    def counts(self, name: str) -> bool:
        """Whether the value of that name is compared."""
        return not self.fields or name.endswith(self.fields)


def config(game: Game, rng: Rng, *, items: Sequence[Row] = (), **more: Json) -> Row:
    """A match's config: without dice, recharging shields or boosts, where `more` does not say so."""
    return {
        "seed": rng.integer(1, 1 << 30),
        "arena": rng.choice(("north", "delta", "old mill", "quarry")),
        "pool": 0,
        "drops": False,
        "recharge": False,
        game.skin.items: [dict(item) for item in items],
        **more,
    }


def players(rng: Rng, count: int) -> list[str]:
    """Names, in their order."""
    return sorted(rng.sample(PLAYERS, count))


def apart(game: Game, rng: Rng, count: int) -> list[Row]:
    """Places so far apart that nobody concerns anybody."""
    step_x, step_y = game.numbers.width / 4.0, game.numbers.height / 3.0
    cells = rng.sample([(x, y) for x in range(4) for y in range(3)], count)
    return [
        {"x": round((x + 0.5) * step_x + rng.integer(-20, 20), 3), "y": round((y + 0.5) * step_y, 3)} for x, y in cells
    ]


def message(tick: int, player: str, seq: int, kind: str, **more: Json) -> Row:
    """A command of `player` for `tick`."""
    return {"tick": tick, "player": player, "seq": seq, "kind": kind, **more}


def way(rng: Rng) -> dict[str, Json]:
    """Any direction."""
    angle = 2.0 * math.pi * rng.fraction()
    return {"x": round(math.cos(angle), 3), "y": round(math.sin(angle), 3)}


def renamed(scenario: Scenario, names: Mapping[str, str]) -> tuple[list[Join], list[Row]]:
    """Joins and messages of the match with other names for the players."""
    joins = [(names[name], fields) for name, fields in scenario.joins]
    whose = ("player", "target")
    messages: list[Row] = [
        {key: names[str(value)] if key in whose else value for key, value in each.items()} for each in scenario.messages
    ]
    return joins, messages
