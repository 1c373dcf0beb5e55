"""Three peers under three conditions against each other and against the right simulation.

Peers must agree to the last bit, as hashes of their states that this side computes; with the right simulation, which
runs here and never enters a sandbox, they must agree to a relative 1e-6, since a right sum may be rounded otherwise.
What no planted fault touches was right before, and is a gate.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from ...core import Check, Json, Rng, Sandbox, Verdict
from ...parts.differential import Library
from ...parts.probe import run_probe
from . import conductor, peer
from .conditions import Told, calm, peers
from .faults import NEEDS, Part
from .sources import COLOURS, Game, simulation
from .trials import FRAMES, WHOLE, Trial

_TOLERANCE = 1e-6
State = Mapping[str, Any]
Run = Sequence[Any]
"""Of one peer: for each trial its states, or what it raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What three peers did, or why one of them left nothing."""

    runs: tuple[Run, ...] | None
    failure: str = ""


class Picture:
    """What right frames show, where units are far apart: needs no pygame, and touches nothing."""

    def __init__(self, game: Game) -> None:
        self._units = game.skin.units
        self._places: list[tuple[float, float]] = []

    def draw(self, world: Any, ahead: float) -> None:
        """The units' places, by name."""
        units = [unit for _, unit in sorted(getattr(world, self._units).items())]
        self._places = [(unit.x + unit.vx * ahead / 60.0, unit.y + unit.vy * ahead / 60.0) for unit in units]

    def look(self, x: float, y: float) -> str:
        """The colour of the unit at that place, of none where there is none."""
        for number, place in enumerate(self._places):
            if math.dist(place, (x, y)) < 1.0:
                return " ".join(map(str, COLOURS[number % len(COLOURS)]))
        return ""


def played(game: Game, source: Mapping[str, str], scripts: Sequence[Any]) -> list[Any]:
    """What a trusted simulation does in a process of ours, its drawing aside."""
    world = Library(source).find(f"{game.skin.package}.world:World")
    actor = peer.Peer(world, _names(game), Picture(game))
    # through text and back, so that every value is an object of its own, as it is for a peer
    return conductor.conduct(list(scripts), lambda command: actor.answer(json.loads(json.dumps(command))), time.sleep)


def expected(game: Game, trials: Sequence[Trial]) -> Run:
    """The states of the right simulation, run here."""
    return played(game, simulation(game, {}), [calm(trial.scenario) for trial in trials])


async def observe(sandbox: Sandbox, game: Game, trials: Sequence[Trial], hidden: Rng, *, timeout_s: float) -> Observed:
    """Play all trials in three processes, one after the other in any order; each finds nothing of those before it."""
    told = peers(trials, hidden)
    order = hidden.child("order").shuffled(range(len(told)))
    # the probe runs as root and starts the peers as the agent: the sandbox must know of that
    await sandbox.exec(["true"], user="agent", timeout_s=10)
    answer = await run_probe(
        sandbox,
        inspect.getsource(conductor) + _text("peers_probe.py"),
        _payload(game, told, order, timeout_s),
        timeout_s=len(told) * timeout_s + 30,
        output_kib=24576,
    )
    if isinstance(answer.value, dict):
        return Observed(runs=None, failure=f"a peer does not play: {answer.value.get('raises')}"[:400])
    if not isinstance(answer.value, list):
        return Observed(runs=None, failure=answer.failure or "the peers' answer was replaced")
    runs = cast("list[list[Any]]", answer.value)
    return Observed(runs=tuple(each.translated(run) for each, run in zip(told, runs, strict=True)))


def _payload(game: Game, told: Sequence[Told], order: list[int], seconds: float) -> Json:
    numbers = game.numbers
    payload: dict[str, Any] = {
        "told": {"package": game.skin.package, "names": _names(game), "size": [numbers.width, numbers.height]},
        "peer": inspect.getsource(peer) + _text("peer_process.py"),
        "peers": [{"hash_seed": each.hash_seed, "scripts": each.scripts} for each in told],
        "order": order,
        "seconds": seconds,
    }
    return payload


def _names(game: Game) -> dict[str, str]:
    return {"units": game.skin.units, "items": game.skin.items, "points": game.skin.points}


def _text(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text()


def judge(trials: Sequence[Trial], runs: Sequence[Run], right: Run, planted: Sequence[Part]) -> Verdict:
    """One check for each planted part, one for whole matches; a gate for each part that was right and can be tried."""
    wrong: dict[str, str] = {}
    for index, trial in enumerate(trials):
        problem = _problem(trial, [run[index] for run in runs], right[index])
        wrong[trial.check] = wrong.get(trial.check) or problem
    checks: list[Check] = []
    left = [name for name, problem in wrong.items() if problem and name in planted]
    wrong[WHOLE] = wrong[WHOLE] or (f"still wrong on its own: {', '.join(left)}" if left else "")
    for name, problem in wrong.items():
        if name == WHOLE:
            checks.append(_check(WHOLE, problem, weight=2.0))
        elif name in planted:
            checks.append(_check(name, problem))
        elif name == FRAMES or not NEEDS.get(Part(name), frozenset()) & set(planted):
            checks.append(_check(f"{name} as before", problem, gate=True))
    return Verdict.of(*checks)


def _check(name: str, problem: str, *, weight: float = 1.0, gate: bool = False) -> Check:
    evidence = problem or "peers agree to the last bit, and with the right simulation"
    return Check(name=name, score=0.0 if problem else 1.0, weight=weight, gate=gate, evidence=evidence)


def _problem(trial: Trial, runs: Sequence[Any], right: Any) -> str:
    """What differs first, or nothing."""
    assert isinstance(right, list), right  # our own simulation does not raise
    for run in runs:
        if not isinstance(run, list) or not all(isinstance(state, dict) for state in run):
            return f"a peer raised {run.get('raises') if isinstance(run, dict) else run}"[:300]
        if len(run) != len(right):
            return f"a peer played {len(run)} ticks of {len(right)}"
    for tick, wanted in enumerate(right):
        states = [run[tick] for run in runs]
        if len({state_hash(trial, state) for state in states}) > 1:
            return f"tick {tick}: {_difference(trial, states)}"
        if far := _far(trial, states[0], wanted):
            return f"tick {tick}: {far}"
    return ""


def state_hash(trial: Trial, state: State) -> str:
    """Of the values that the trial compares, to the last bit."""
    counted = {name: value for name, value in state.items() if trial.counts(name)}
    return hashlib.sha256(json.dumps(counted, sort_keys=True).encode()).hexdigest()


def _difference(trial: Trial, states: Sequence[State]) -> str:
    for name in sorted({name for state in states for name in state if trial.counts(name)}):
        values = [state.get(name) for state in states]
        if any(json.dumps(value) != json.dumps(values[0]) for value in values):
            return f"peers disagree on {name}: {' | '.join(str(value) for value in values)}"[:300]
    return "peers disagree"


def _far(trial: Trial, state: State, wanted: State) -> str:
    """What is not as in the right simulation."""
    mine = {name for name in state if trial.counts(name)}
    theirs = {name for name in wanted if trial.counts(name)}
    if mine != theirs:
        return f"peers agree, but on a state without or with {', '.join(sorted(mine ^ theirs)[:4])}"
    for name in sorted(theirs):
        if not _same(state[name], wanted[name]):
            return f"peers agree, but {name} is {state[name]}, by the rules {wanted[name]}"[:300]
    return ""


def _same(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and type(value) in (int, float):
        return math.isclose(value, wanted, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return type(value) is type(wanted) and value == wanted
