"""Trials of a simulation: one for each part, in which that part alone decides, and whole matches.

A trial is what peers play (config, joins, messages, ticks) and the values that are compared. Units stand so far apart
that only the part under trial concerns them; what a part cannot do without is in `faults.NEEDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core import Json, Rng
from .faults import Part
from .sources import PLAYERS, Game

WHOLE = "whole match"
Row = dict[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is played, and which values count: endings of their names, all where there are none."""

    check: str
    scenario: Row
    fields: tuple[str, ...] = ()

    def counts(self, name: str) -> bool:
        """Whether the value of that name is compared."""
        return not self.fields or name.endswith(self.fields)


def trials(game: Game, rng: Rng) -> list[Trial]:
    """All trials, drawn from `rng`; played in this order."""
    found: list[Trial] = []
    for part, (count, make) in _MAKERS.items():
        found += [make(game, rng.child(f"{part} {index}")) for index in range(count)]
    return [*found, *(whole(game, rng.child(f"whole {index}"), ticks=150) for index in range(2))]


def _scenario(
    game: Game,
    rng: Rng,
    joins: Sequence[tuple[str, Row]],
    messages: Sequence[Row] = (),
    *,
    ticks: int,
    network: str = "wild",
    draws: bool = False,
    items: Sequence[Row] = (),
    **config: Json,
) -> Row:
    return {
        "config": {
            "seed": rng.integer(1, 1 << 30),
            "arena": rng.choice(("north", "delta", "old mill", "quarry")),
            "pool": 0,
            "drops": False,
            "recharge": False,
            game.skin.items: [dict(item) for item in items],
            **config,
        },
        "joins": [[name, fields] for name, fields in joins],
        "messages": [dict(message) for message in messages],
        "ticks": ticks,
        "network": network,
        "draws": draws,
    }


def _players(rng: Rng, count: int) -> list[str]:
    return sorted(rng.sample(PLAYERS, count))


def _apart(game: Game, rng: Rng, count: int) -> list[Row]:
    """Places so far apart that nobody concerns anybody."""
    step_x, step_y = game.numbers.width / 4.0, game.numbers.height / 3.0
    cells = rng.sample([(x, y) for x in range(4) for y in range(3)], count)
    return [
        {"x": round((x + 0.5) * step_x + rng.integer(-20, 20), 3), "y": round((y + 0.5) * step_y, 3)} for x, y in cells
    ]


def _message(tick: int, player: str, seq: int, kind: str, **more: Json) -> Row:
    return {"tick": tick, "player": player, "seq": seq, "kind": kind, **more}


def _way(rng: Rng) -> dict[str, Json]:
    angle = 2.0 * math.pi * rng.fraction()
    return {"x": round(math.cos(angle), 3), "y": round(math.sin(angle), 3)}


def _inbox(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 8)
    messages: list[Row] = []
    for tick in range(2, 14):
        for name in rng.sample(names, rng.integer(3, 7)):
            seq = 10 * tick + rng.integer(0, 3)
            messages.append(_message(tick, name, seq, "boost", **_way(rng)))
            messages.append(_message(tick, name, seq + 5, "steer", **_way(rng)))
            messages.append(_message(tick, name, seq + 4, "steer", **_way(rng)))
    joins = list(zip(names, _apart(game, rng, 8), strict=True))
    scenario = _scenario(game, rng, joins, messages, ticks=16, pool=rng.integer(14, 22))
    return Trial(check=Part.INBOX, scenario=scenario, fields=(".ax", ".ay", ".boosts", "pool"))


def _crowd(game: Game, rng: Rng) -> Trial:
    names, radius = _players(rng, 9), game.numbers.push_radius
    x, y = game.numbers.width / 2.0, game.numbers.height / 2.0
    spread = int(1000 * 0.42 * radius)
    joins: list[tuple[str, Row]] = [
        (
            name,
            {
                "x": round(x + rng.integer(-spread, spread) / 1000.0, 3),
                "y": round(y + rng.integer(-spread, spread) / 1000.0, 3),
            },
        )
        for name in names
    ]
    return Trial(check=Part.CROWD, scenario=_scenario(game, rng, joins, ticks=1), fields=(".vx", ".vy"))


def _motion(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 5)
    joins: list[tuple[str, Row]] = [
        (name, {**place, "vx": float(rng.integer(-90, 90)), game.skin.points: index})
        for index, (name, place) in enumerate(zip(names, _apart(game, rng, 5), strict=True))
    ]
    messages = [_message(0, name, 1, "steer", **_way(rng)) for name in names]
    scenario = _scenario(game, rng, joins, messages, ticks=30, network="plain")
    return Trial(check=Part.MOTION, scenario=scenario, fields=(".x", ".y", ".vx", ".vy"))


def _loot(game: Game, rng: Rng) -> Trial:
    names, gap = _players(rng, 8), game.numbers.push_radius + 6
    x, y = float(rng.integer(100, 140)), float(rng.integer(200, 300))
    hold = game.numbers.hold
    joins: list[tuple[str, Row]] = [
        (name, {"x": x + gap * index, "y": y, game.skin.points: hold - rng.integer(4, 16)})
        for index, name in enumerate(rng.shuffled(names))
    ]
    items: list[Row] = [
        {
            "id": number,
            "x": round(x + rng.integer(0, 7 * gap), 3),
            "y": y + rng.integer(-9, 9),
            "value": rng.integer(2, 9),
        }
        for number in range(1, 19)
    ]
    scenario = _scenario(game, rng, sorted(joins, key=lambda join: join[0]), ticks=1, items=items)
    return Trial(check=Part.LOOT, scenario=scenario, fields=("." + "points", ".value"))


def _drops(game: Game, rng: Rng) -> Trial:
    ticks = 8 * game.numbers.drop_every + 2
    scenario = _scenario(game, rng, [], ticks=ticks, drops=True)
    return Trial(check=Part.DROPS, scenario=scenario)


def _fights(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 9)
    victims, attackers = rng.sample(names, 2), list[str]()
    attackers = [name for name in names if name not in victims]
    joins: list[tuple[str, Row]] = [
        (name, {**place, "health": rng.integer(20, 100), "shield": rng.integer(0, 9)})
        for name, place in zip(names, _apart(game, rng, 9), strict=True)
    ]
    messages = [_message(0, name, rng.integer(1, 9), "fire", target=rng.choice(victims)) for name in attackers]
    scenario = _scenario(game, rng, joins, messages, ticks=1, network="shuffled")
    return Trial(check=Part.FIGHTS, scenario=scenario, fields=(".health", ".points"))


def _cooldown(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 3)
    ticks = 4 * game.numbers.cooldown
    messages = [_message(tick, names[0], tick, "fire", target=rng.choice(names[1:])) for tick in range(ticks)]
    joins = list(zip(names, _apart(game, rng, 3), strict=True))
    scenario = _scenario(game, rng, joins, messages, ticks=ticks, network="plain")
    return Trial(check=Part.COOLDOWN, scenario=scenario, fields=(".health", ".cooldown", ".points"))


def _roster(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 7)
    joins = list(zip(names, _apart(game, rng, 7), strict=True))
    scenario = _scenario(game, rng, joins, ticks=12, recharge=True)
    return Trial(check=Part.ROSTER, scenario=scenario, fields=(".slot", ".shield"))


def _board(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 8)
    joins: list[tuple[str, Row]] = [
        (name, {**place, game.skin.points: rng.integer(3, 5)})
        for name, place in zip(names, _apart(game, rng, 8), strict=True)
    ]
    return Trial(check=Part.BOARD, scenario=_scenario(game, rng, joins, ticks=1), fields=("leader",))


def _screen(game: Game, rng: Rng) -> Trial:
    names = _players(rng, 4)
    joins: list[tuple[str, Row]] = [
        (name, {**place, "vx": float(rng.integer(30, 90)), "cooldown": 60, game.skin.points: game.numbers.hold + index})
        for index, (name, place) in enumerate(zip(names, _apart(game, rng, 4), strict=True))
    ]
    items: list[Row] = [
        {"id": number, "x": float(rng.integer(5, 90)), "y": float(rng.integer(5, 90)), "value": 40}
        for number in (1, 2, 3)
    ]
    ticks = 3 * game.numbers.drop_every + 12
    scenario = _scenario(game, rng, joins, ticks=ticks, network="plain", draws=True, items=items, drops=True)
    # all but slots and what follows from them, which the roster alone decides
    fields = (".x", ".y", ".vx", ".vy", ".health", ".points", ".cooldown", ".value")
    return Trial(check=Part.SCREEN, scenario=scenario, fields=fields)


def whole(game: Game, rng: Rng, *, ticks: int) -> Trial:
    """A match in which everything happens."""
    names, numbers = _players(rng, 8), game.numbers
    near = 2 * numbers.push_radius
    joins: list[tuple[str, Row]] = [
        (
            name,
            {
                "x": float(numbers.width // 2 + rng.integer(-near, near)),
                "y": float(numbers.height // 2 + rng.integer(-near, near)),
            },
        )
        for name in names
    ]
    messages: list[Row] = []
    for tick in range(0, ticks, 4):
        for name in rng.sample(names, 4):
            seq = 10 * tick
            messages.append(_message(tick, name, seq, "steer", **_way(rng)))
            if rng.integer(1, 3) == 1:
                messages.append(_message(tick, name, seq + 1, "boost", **_way(rng)))
            if rng.integer(1, 2) == 1:
                messages.append(_message(tick, name, seq + 2, "fire", target=rng.choice(names)))
    items: list[Row] = [
        {
            "id": number,
            "x": float(rng.integer(50, numbers.width - 50)),
            "y": float(rng.integer(50, numbers.height - 50)),
            "value": rng.integer(1, 9),
        }
        for number in range(1, 13)
    ]
    scenario = _scenario(
        game, rng, joins, messages, ticks=ticks, draws=True, items=items, pool=30, drops=True, recharge=True
    )
    return Trial(check=WHOLE, scenario=scenario)


_MAKERS: dict[Part, tuple[int, Callable[[Game, Rng], Trial]]] = {
    Part.INBOX: (8, _inbox),
    Part.CROWD: (6, _crowd),
    Part.MOTION: (1, _motion),
    Part.LOOT: (6, _loot),
    Part.DROPS: (2, _drops),
    Part.FIGHTS: (8, _fights),
    Part.COOLDOWN: (1, _cooldown),
    Part.ROSTER: (3, _roster),
    Part.BOARD: (8, _board),
    Part.SCREEN: (1, _screen),
}
"""Part → how many trials (of all its own a fault escapes at most once in 50,000 matches), and how one is made."""
