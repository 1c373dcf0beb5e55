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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from ...core import Check, Json, Rng, Sandbox, Verdict
from ...parts.differential import Library
from ...parts.probe import run_probe
from . import peer
from .faults import NEEDS, Part
from .sources import Game, simulation
from .trials import WHOLE, Trial

_TOLERANCE = 1e-6
_PROBE = "peers_probe.py"
State = Mapping[str, Any]
Run = Sequence[Any]
"""Of one peer: for each trial its states, or what it raised."""

_PEER = (
    inspect.getsource(peer)
    + """
import importlib, json, os, sys, time
payload = json.load(sys.stdin)
sys.path.insert(0, payload["top"])
_real, sys.stdout = sys.stdout, open(os.devnull, "w")
def _main():
    import pygame
    world = importlib.import_module(payload["package"] + ".world")
    draw = importlib.import_module(payload["package"] + ".screen").draw
    surface = pygame.Surface((200, 150))
    hooks = {"pause": time.sleep, "draw": lambda match, ahead: draw(match, surface, ahead)}
    return play(payload["trials"], payload["names"], world.World, payload["conditions"], hooks)
try:
    _found = _main()
except BaseException as error:
    _found = {"raises": type(error).__name__ + ": " + str(error)[:300]}
_real.write("\\n" + json.dumps(_found))
_real.flush()
os._exit(0)
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What three peers did, or why one of them left nothing."""

    runs: tuple[Run, ...] | None
    failure: str = ""


def conditions(hidden: Rng) -> list[dict[str, Json]]:
    """Of each peer: the seed of its hashes and of its luck, what it played before, and whether its network is wild."""
    return [
        {
            "seed": hidden.integer(1, 1 << 30),
            "hash_seed": hidden.integer(1, 1 << 20),
            "earlier_matches": matches,
            "wild": True,
        }
        for matches in (0, 2, 1)
    ]


def names_of(game: Game) -> dict[str, str]:
    """What the state is called, for `peer`."""
    return {"units": game.skin.units, "items": game.skin.items, "points": game.skin.points}


def scenarios(game: Game, trials: Sequence[Trial]) -> list[Any]:
    """What peers are told of the trials."""
    return [trial.scenario for trial in trials]


def expected(game: Game, trials: Sequence[Trial]) -> Run:
    """The states of the right simulation, run here."""
    library = Library(simulation(game, {}))
    world = library.find(f"{game.skin.package}.world:World")
    calm = {"seed": 0, "earlier_matches": 0, "wild": False}
    return peer.play(scenarios(game, trials), names_of(game), world, calm, {})


async def observe(sandbox: Sandbox, game: Game, trials: Sequence[Trial], hidden: Rng, *, timeout_s: float) -> Observed:
    """Play all trials in three processes, one after the other in any order; each finds nothing of those before it."""
    peers = conditions(hidden)
    told: dict[str, Json] = {
        "package": game.skin.package,
        "trials": scenarios(game, trials),
        "names": cast("dict[str, Json]", names_of(game)),
    }
    payload: Json = {
        "told": told,
        "peer": _PEER,
        "conditions": cast("list[Json]", peers),
        "order": cast("list[Json]", hidden.shuffled(range(len(peers)))),
        "seconds": timeout_s,
    }
    # the probe runs as root and starts the peers as the agent: the sandbox must know of that
    await sandbox.exec(["true"], user="agent", timeout_s=10)
    source = files(__package__ or "").joinpath(_PROBE).read_text()
    answer = await run_probe(sandbox, source, payload, timeout_s=len(peers) * timeout_s + 30, output_kib=24576)
    if isinstance(answer.value, dict):
        return Observed(runs=None, failure=f"a peer does not play: {answer.value.get('raises')}"[:400])
    if not isinstance(answer.value, list) or len(answer.value) != len(peers):
        return Observed(runs=None, failure=answer.failure or "the peers' answer was replaced")
    for run in answer.value:
        if not isinstance(run, list) or len(run) != len(trials):
            return Observed(runs=None, failure="a peer does not play: its answer was replaced")
    return Observed(runs=tuple(cast("list[list[Any]]", answer.value)))


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
        elif not NEEDS.get(Part(name), frozenset()) & set(planted):
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
