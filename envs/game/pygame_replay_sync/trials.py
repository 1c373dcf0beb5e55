"""Trials of a simulation: one for each part, in which that part alone decides, and whole matches.

Units stand so far apart that only the part under trial concerns them; what a part cannot do without is in
`faults.NEEDS`.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core import Rng
from .faults import Part
from .scenario import Join, Row, Scenario, Trial, apart, config, message, players, way
from .sources import Game

WHOLE = "whole match"
FRAMES = "frames"
"""Whether drawing draws, without anything that another part could spoil; who draws nothing touches nothing."""


def trials(game: Game, rng: Rng) -> list[Trial]:
    """All trials, drawn from `rng`; played in this order."""
    found: list[Trial] = []
    for part, (count, make) in _MAKERS.items():
        found += [make(game, rng.child(f"{part} {index}")) for index in range(count)]
    found.append(_frames(game, rng.child("frames")))
    return [*found, *(whole(game, rng.child(f"whole {index}"), ticks=150) for index in range(2))]


def _inbox(game: Game, rng: Rng) -> Trial:
    names = players(rng, 8)
    messages: list[Row] = []
    for tick in range(2, 14):
        for name in rng.sample(names, rng.integer(3, 7)):
            seq = 10 * tick + rng.integer(0, 3)
            messages.append(message(tick, name, seq, "boost", **way(rng)))
            messages.append(message(tick, name, seq + 5, "steer", **way(rng)))
            messages.append(message(tick, name, seq + 4, "steer", **way(rng)))
    joins = list(zip(names, apart(game, rng, 8), strict=True))
    told = config(game, rng, pool=rng.integer(14, 22))
    scenario = Scenario(config=told, joins=joins, messages=messages, ticks=16)
    return Trial(check=Part.INBOX, scenario=scenario, fields=(".ax", ".ay", ".boosts", "pool"))


def _crowd(game: Game, rng: Rng) -> Trial:
    names, radius = players(rng, 9), game.numbers.push_radius
    x, y = game.numbers.width / 2.0, game.numbers.height / 2.0
    spread = int(1000 * 0.42 * radius)
    near = [(x + rng.integer(-spread, spread) / 1000.0, y + rng.integer(-spread, spread) / 1000.0) for _ in names]
    joins: list[Join] = [
        (name, {"x": round(at_x, 3), "y": round(at_y, 3)}) for name, (at_x, at_y) in zip(names, near, strict=True)
    ]
    scenario = Scenario(config=config(game, rng), joins=joins, messages=(), ticks=1)
    return Trial(check=Part.CROWD, scenario=scenario, fields=(".vx", ".vy"))


def _motion(game: Game, rng: Rng) -> Trial:
    names = players(rng, 5)
    joins: list[Join] = [
        (name, {**place, "vx": float(rng.integer(-90, 90)), game.skin.points: index})
        for index, (name, place) in enumerate(zip(names, apart(game, rng, 5), strict=True))
    ]
    messages = [message(0, name, 1, "steer", **way(rng)) for name in names]
    scenario = Scenario(config=config(game, rng), joins=joins, messages=messages, ticks=30, network="plain")
    return Trial(check=Part.MOTION, scenario=scenario, fields=(".x", ".y", ".vx", ".vy"))


def _loot(game: Game, rng: Rng) -> Trial:
    names, gap = players(rng, 8), game.numbers.push_radius + 6
    x, y = float(rng.integer(100, 140)), float(rng.integer(200, 300))
    hold = game.numbers.hold
    joins: list[Join] = [
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
    in_order = sorted(joins, key=lambda join: join[0])
    scenario = Scenario(config=config(game, rng, items=items), joins=in_order, messages=(), ticks=1)
    return Trial(check=Part.LOOT, scenario=scenario, fields=(".points", ".value"))


def _drops(game: Game, rng: Rng) -> Trial:
    ticks = 8 * game.numbers.drop_every + 2
    told, beside = config(game, rng, drops=True), rng.integer(1, 1 << 30)
    scenario = Scenario(config=told, joins=(), messages=(), ticks=ticks, beside=beside)
    return Trial(check=Part.DROPS, scenario=scenario)


def _fights(game: Game, rng: Rng) -> Trial:
    names = players(rng, 9)
    victims = rng.sample(names, 2)
    attackers = [name for name in names if name not in victims]
    joins: list[Join] = [
        (name, {**place, "health": rng.integer(20, 100), "shield": rng.integer(0, 9)})
        for name, place in zip(names, apart(game, rng, 9), strict=True)
    ]
    messages = [message(0, name, rng.integer(1, 9), "fire", target=rng.choice(victims)) for name in attackers]
    scenario = Scenario(config=config(game, rng), joins=joins, messages=messages, ticks=1, network="shuffled")
    return Trial(check=Part.FIGHTS, scenario=scenario, fields=(".health", ".points"))


def _cooldown(game: Game, rng: Rng) -> Trial:
    names = players(rng, 3)
    ticks = 4 * game.numbers.cooldown
    messages = [message(tick, names[0], tick, "fire", target=rng.choice(names[1:])) for tick in range(ticks)]
    joins = list(zip(names, apart(game, rng, 3), strict=True))
    scenario = Scenario(config=config(game, rng), joins=joins, messages=messages, ticks=ticks, network="plain")
    return Trial(check=Part.COOLDOWN, scenario=scenario, fields=(".health", ".cooldown", ".points"))


def _roster(game: Game, rng: Rng) -> Trial:
    names = players(rng, 7)
    joins = list(zip(names, apart(game, rng, 7), strict=True))
    scenario = Scenario(config=config(game, rng, recharge=True), joins=joins, messages=(), ticks=12)
    return Trial(check=Part.ROSTER, scenario=scenario, fields=(".slot", ".shield"))


def _board(game: Game, rng: Rng) -> Trial:
    names = players(rng, 8)
    joins: list[Join] = [
        (name, {**place, game.skin.points: rng.integer(3, 5)})
        for name, place in zip(names, apart(game, rng, 8), strict=True)
    ]
    scenario = Scenario(config=config(game, rng), joins=joins, messages=(), ticks=1)
    return Trial(check=Part.BOARD, scenario=scenario, fields=("leader",))


def _screen(game: Game, rng: Rng) -> Trial:
    names = players(rng, 4)
    joins: list[Join] = [
        (name, {**place, "vx": float(rng.integer(30, 90)), "cooldown": 60, game.skin.points: game.numbers.hold + index})
        for index, (name, place) in enumerate(zip(names, apart(game, rng, 4), strict=True))
    ]
    items: list[Row] = [
        {"id": number, "x": float(rng.integer(5, 90)), "y": float(rng.integer(5, 90)), "value": 40}
        for number in (1, 2, 3)
    ]
    ticks = 3 * game.numbers.drop_every + 12
    told = config(game, rng, items=items, drops=True)
    scenario = Scenario(config=told, joins=joins, messages=(), ticks=ticks, network="plain", draws=True, looks=True)
    # all but slots and what follows from them, which the roster alone decides
    fields = (".x", ".y", ".vx", ".vy", ".health", ".points", ".cooldown", ".value", ".seen")
    return Trial(check=Part.SCREEN, scenario=scenario, fields=fields)


def _frames(game: Game, rng: Rng) -> Trial:
    joins = list(zip(players(rng, 6), apart(game, rng, 6), strict=True))
    scenario = Scenario(config=config(game, rng), joins=joins, messages=(), ticks=3, draws=True, looks=True)
    return Trial(check=FRAMES, scenario=scenario, fields=(".seen",))


def whole(game: Game, rng: Rng, *, ticks: int) -> Trial:
    """A match in which everything happens."""
    names, numbers = players(rng, 8), game.numbers
    near = 2 * numbers.push_radius
    x, y = numbers.width // 2, numbers.height // 2
    joins: list[Join] = [
        (name, {"x": float(x + rng.integer(-near, near)), "y": float(y + rng.integer(-near, near))}) for name in names
    ]
    messages: list[Row] = []
    for tick in range(0, ticks, 4):
        for name in rng.sample(names, 4):
            seq = 10 * tick
            messages.append(message(tick, name, seq, "steer", **way(rng)))
            if rng.integer(1, 3) == 1:
                messages.append(message(tick, name, seq + 1, "boost", **way(rng)))
            if rng.integer(1, 2) == 1:
                messages.append(message(tick, name, seq + 2, "fire", target=rng.choice(names)))
    items: list[Row] = [
        {
            "id": number,
            "x": float(rng.integer(50, numbers.width - 50)),
            "y": float(rng.integer(50, numbers.height - 50)),
            "value": rng.integer(1, 9),
        }
        for number in range(1, 13)
    ]
    told = config(game, rng, items=items, pool=30, drops=True, recharge=True)
    beside = rng.integer(1, 1 << 30)
    scenario = Scenario(config=told, joins=joins, messages=messages, ticks=ticks, draws=True, beside=beside)
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
