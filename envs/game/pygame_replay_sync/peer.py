"""One peer: plays trials with a simulation, under its own conditions, and reads the state after every tick.

Standard library only and no import of ours: its source is sent into the sandbox, and the host runs the same code with
the right simulation. The states are read from the public attributes by this code, never from what the simulation says
of itself.
"""

import random
from collections.abc import Callable
from typing import Any


def play(
    trials: list[dict[str, Any]],
    names: dict[str, str],
    make: Callable[[Any], Any],
    conditions: dict[str, Any],
    hooks: dict[str, Callable[..., Any]],
) -> list[Any]:
    """The states of each trial, or what it raised; `names` says what the game calls its units and items."""
    dice = random.Random(conditions["seed"])
    found: list[Any] = []
    for _ in range(conditions["earlier_matches"]):
        _quietly(trials[0], names, make, {**conditions, "wild": False}, dice, hooks)
    for trial in trials:
        found.append(_quietly(trial, names, make, conditions, dice, hooks))
    return found


def _quietly(trial: Any, names: Any, make: Any, conditions: Any, dice: Any, hooks: Any) -> Any:
    try:
        return _one(trial, names, make, conditions, dice, hooks)
    except BaseException as error:  # whatever the program under test does, the other trials are played
        return {"raises": type(error).__name__ + ": " + str(error)[:200]}


def _one(trial: Any, names: Any, make: Any, conditions: Any, dice: Any, hooks: Any) -> Any:
    wild = conditions["wild"]
    world = make({**trial["config"]})
    joins = list(trial["joins"])
    kept = []
    if wild:
        dice.shuffle(joins)
    for name, fields in joins:
        if wild:
            kept.append([_Ballast() for _ in range(dice.randrange(40))])
        world.join(_fresh(name), **fields)
    mail = _mail(trial, dice, wild)
    states = []
    for tick in range(trial["ticks"]):
        for message in mail.get(tick, ()):
            world.receive({key: _fresh(value) for key, value in message.items()})
        if wild:
            [random.random() for _ in range(dice.randrange(3))]
            if "pause" in hooks and tick % 9 == 4:
                hooks["pause"](dice.randrange(1, 6) / 1000.0)
        world.step()
        if wild and trial["draws"] and "draw" in hooks:
            for _ in range(dice.randrange(4)):
                hooks["draw"](world, dice.random())
        states.append(_state(world, names))
    return states


def _fresh(value: Any) -> Any:
    """As it comes off a network: an object of its own, at an address of its own."""
    return "".join(list(value)) if isinstance(value, str) else value


class _Ballast:
    """Takes room between the simulation's objects."""

    def __init__(self) -> None:
        self.weight = 0


def _mail(trial: Any, dice: Any, wild: bool) -> dict[int, list[Any]]:
    """Tick → the messages that arrive before it, in the order of arrival."""
    mail: dict[int, list[Any]] = {}
    for message in trial["messages"]:
        early = dice.randrange(4) if wild and trial["network"] == "wild" else 0
        mail.setdefault(max(message["tick"] - early, 0), []).append(message)
        if wild and trial["network"] == "wild" and dice.random() < 0.3:
            mail.setdefault(max(message["tick"] - dice.randrange(3), 0), []).append(message)
    if wild and trial["network"] != "plain":
        for arriving in mail.values():
            dice.shuffle(arriving)
    return mail


UNIT_FIELDS = ("x", "y", "vx", "vy", "ax", "ay", "slot", "health", "shield", "points", "boosts", "cooldown")


def _state(world: Any, names: dict[str, str]) -> dict[str, Any]:
    """One flat table of plain numbers and texts."""
    units, items = getattr(world, names["units"]), getattr(world, names["items"])
    state: dict[str, Any] = {"tick": _plain(world.tick), "pool": _plain(world.pool), "leader": _plain(world.leader)}
    for name in sorted(units):
        for field in UNIT_FIELDS:
            state[name + "." + field] = _plain(getattr(units[name], names["points"] if field == "points" else field))
    for key in sorted(items):
        for field in ("x", "y", "value"):
            state["#" + str(key) + "." + field] = _plain(getattr(items[key], field))
    return state


def _plain(value: Any) -> Any:
    """A number or a text of the built-in types, since others may compare as they like."""
    if type(value) in (int, float, str):
        return value
    return "a " + type(value).__name__
