"""One peer: does one command at a time, and knows nothing of the next one.

Standard library only and no import of ours: its source is sent into the sandbox, and the host runs the same code with
the right simulation. It shares its process with the simulation, which may turn it into anything; so it holds no plan,
no switch and no right value. The states are read from the public attributes, never from what the simulation says of
itself.
"""

import random
from collections.abc import Callable
from typing import Any, Protocol

UNIT_FIELDS = ("x", "y", "vx", "vy", "ax", "ay", "slot", "health", "shield", "points", "boosts", "cooldown")
_random = random.random


class Screen(Protocol):
    """Where a peer draws."""

    def draw(self, world: Any, ahead: float) -> object:
        """One frame."""

    def look(self, x: float, y: float) -> str:
        """The colour of the last frame where a unit at that place must have been drawn."""
        ...


class Peer:
    """Its worlds by number, and its screen; `names` says what the game calls its units, items and points."""

    def __init__(self, make: Callable[[Any], Any], names: dict[str, str], screen: Screen) -> None:
        self._make, self._names, self._screen = make, names, screen
        self._worlds: dict[int, Any] = {}

    def answer(self, command: list[Any]) -> dict[str, Any]:
        """The state of the world in question as a flat table of plain values, or what it raised."""
        name, world, *more = command
        try:
            return {"world": self._world, "tick": self._tick, "draw": self._draw}[name](world, *more)
        except BaseException as error:  # whatever the program under test does, the other trials are played
            return {"raises": type(error).__name__ + ": " + str(error)[:200]}

    def _world(self, number: int, config: Any, joins: list[Any]) -> dict[str, Any]:
        world = self._worlds[number] = self._make(config)
        for name, fields in joins:
            world.join(name, **fields)
        return {}

    def _tick(self, number: int, messages: list[Any], dice: int) -> dict[str, Any]:
        """Messages arrive, somebody else in the process uses `random`, and then it is time."""
        world = self._worlds[number]
        for message in messages:
            world.receive(message)
        self._throw(dice)
        world.step()
        return self._state(world)

    def _throw(self, dice: int) -> None:
        for _ in range(dice):
            _random()

    def _draw(self, number: int, frames: list[float], looks: bool) -> dict[str, Any]:
        """Some frames of a world; the last one may be looked at."""
        world, units = self._worlds[number], getattr(self._worlds[number], self._names["units"])
        for ahead in frames:
            self._screen.draw(world, ahead)
        state = self._state(world)
        for name in units if looks else ():
            unit, late = units[name], frames[-1] / 60.0
            state[name + ".seen"] = self._screen.look(unit.x + unit.vx * late, unit.y + unit.vy * late)
        return state

    def _state(self, world: Any) -> dict[str, Any]:
        units, items = getattr(world, self._names["units"]), getattr(world, self._names["items"])
        state: dict[str, Any] = {name: _plain(getattr(world, name)) for name in ("tick", "pool", "leader")}
        for name in sorted(units):
            for field in UNIT_FIELDS:
                attribute = self._names["points"] if field == "points" else field
                state[name + "." + field] = _plain(getattr(units[name], attribute))
        for key in sorted(items):
            for field in ("x", "y", "value"):
                state["#" + str(key) + "." + field] = _plain(getattr(items[key], field))
        return state


def _plain(value: Any) -> Any:
    """A number or a text of the built-in types, since others may compare as they like."""
    if type(value) in (int, float, str):
        return value
    return "a " + type(value).__name__
