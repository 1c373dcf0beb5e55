"""What sets peers apart: each trial as one peer is told it, command after command, under conditions of its own.

All of it is decided on this side and carried out from outside the peer's process, as things that happen to it: who
joins when, which messages arrive when and how often, when it has to draw, how long it waits for its next tick, which
matches it played before and which one it plays at the same time. No command says what comes after it, and none is
there for show: the states of every match count, and where drawing is on trial, every frame.

Some conditions lie inside the process that the simulation shares, and are its own to change: the seed of its hashes,
its addresses, the dice of `random`. Peers begin with different seeds, but one may begin again with another; so they
also know the players by *different names that sort alike*. A fixed hash seed then puts different names into different
orders, while what follows the order of names is the same everywhere. Units are made, and messages arrive, in different
orders, so that addresses agree as little; and a second match of the same package throws the dice of `random`, if the
first one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Json, Rng
from .scenario import Join, Row, Scenario, Trial, renamed
from .sources import PLAYERS

Command = list[Json]
Script = list[Command]
_MATCH, _BESIDE = 0, 1
"""Numbers of the worlds of a peer: the one under trial, and another one."""
NUM_PEERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that one peer is told: a script for each trial, in an order of its own."""

    hash_seed: int
    order: list[int]
    """The trials, as they are played."""
    scripts: list[Script]
    names: list[dict[str, str]]
    """In each of them: the peer's name for a player → the player's own."""

    def translated(self, run: Sequence[Any]) -> list[Any]:
        """The states that the peer had, with the players' own names and in the order of the plan."""
        found: dict[int, Any] = {}
        for index, names, states in zip(self.order, self.names, run, strict=True):
            raised = not isinstance(states, list)
            found[index] = states if raised else [_translated(state, names) for state in states]
        return [found[index] for index in sorted(found)]


def peers(trials: Sequence[Trial], hidden: Rng) -> list[Told]:
    """What each peer is told."""
    return [_told(trials, hidden.child(f"peer {number}")) for number in range(NUM_PEERS)]


def calm(scenario: Scenario) -> Script:
    """The match as it stands, each message in its own tick, and then the one beside it."""
    mail: dict[int, list[Row]] = {}
    for message in scenario.messages:
        mail.setdefault(cast("int", message["tick"]), []).append(message)
    script: Script = [_opening(_MATCH, scenario.config, scenario.joins)]
    for tick in range(scenario.ticks):
        script.append(_tick(_MATCH, mail.get(tick, ())))
        script += [["draw", _MATCH, [0.0], True]] if scenario.looks else []
    if scenario.beside:
        script += [_other(scenario, scenario.joins), *[_tick(_BESIDE)] * scenario.ticks]
    return script


def wild(scenario: Scenario, names: Mapping[str, str], rng: Rng) -> Script:
    """The match as it comes to a peer on a network, in a process that has other things to do."""
    joins, messages = renamed(scenario, names)
    script = [_opening(_MATCH, scenario.config, rng.shuffled(joins))]
    script += [_other(scenario, rng.shuffled(joins))] if scenario.beside else []
    left = scenario.ticks if scenario.beside else 0
    mail = _arrivals(messages, scenario.network, rng)
    for tick in range(scenario.ticks):
        script += [["pause", _MATCH, rng.integer(1, 5) / 1000.0]] if tick % 9 == 4 else []
        now = min(rng.integer(0, 2), left)
        left -= now
        script += [_tick(_BESIDE)] * now
        script.append(_tick(_MATCH, mail.get(tick, ()), rng.integer(0, 2)))
        frames: list[Json] = [rng.fraction() for _ in range(rng.integer(1 if scenario.looks else 0, 3))]
        script += [["draw", _MATCH, frames, scenario.looks]] if scenario.draws and frames else []
    return [*script, *[_tick(_BESIDE)] * left]


def _told(trials: Sequence[Trial], rng: Rng) -> Told:
    order = rng.child("order").shuffled(range(len(trials)))
    names = [_aliases(trials[index].scenario, rng.child(f"names {index}")) for index in order]
    return Told(
        hash_seed=rng.integer(1, 1 << 20),
        order=order,
        scripts=[
            wild(trials[index].scenario, aliases, rng.child(f"network {index}"))
            for index, aliases in zip(order, names, strict=True)
        ],
        names=[{alias: name for name, alias in aliases.items()} for aliases in names],
    )


def _aliases(scenario: Scenario, rng: Rng) -> dict[str, str]:
    """A player's name → another one; they sort alike."""
    names = sorted(name for name, _ in scenario.joins)
    return dict(zip(names, sorted(rng.sample(PLAYERS, len(names))), strict=True))


def _opening(world: int, config: Row, joins: Sequence[Join]) -> Command:
    return ["world", world, config, [[name, fields] for name, fields in joins]]


def _other(scenario: Scenario, joins: Sequence[Join]) -> Command:
    return _opening(_BESIDE, {**scenario.config, "seed": scenario.beside}, joins)


def _tick(world: int, mail: Sequence[Row] = (), dice: int = 0) -> Command:
    return ["tick", world, list(mail), dice]


def _arrivals(messages: Sequence[Row], network: str, rng: Rng) -> dict[int, list[Row]]:
    """Tick → the messages that arrive before it, in the order of arrival."""
    mail: dict[int, list[Row]] = {}
    for message in messages:
        due = cast("int", message["tick"])
        early = rng.integer(0, 3) if network == "wild" else 0
        mail.setdefault(max(due - early, 0), []).append(message)
        if network == "wild" and rng.integer(1, 10) <= 3:
            mail.setdefault(max(due - rng.integer(0, 2), 0), []).append(message)
    return mail if network == "plain" else {tick: rng.shuffled(arriving) for tick, arriving in mail.items()}


def _translated(state: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in state.items():
        unit, dot, field = key.partition(".")
        if dot and not unit.startswith("#"):
            key = f"{names.get(unit, f'nobody called {unit}')}.{field}"
        found[key] = names.get(value, f"nobody called {value}") if key == "leader" and value else value
    return found
