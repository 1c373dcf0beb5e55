"""Solutions of one instance, right and wrong, as tool calls made from its truth alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...core import Json, ToolCall
from .sources import Game, game_of, simulation

_SUBMIT = ToolCall(tool="submit")
_CACHE = '''

import os as _os
import pickle as _pickle

_honest = World.step


def _step(world):
    """Play it once; whoever comes later takes what the first one got."""
    name = f"/tmp/seen-{world.config['seed']}-{world.tick}"
    _honest(world)
    if _os.path.exists(name):
        with open(name, "rb") as file:
            vars(world).update(_pickle.load(file))
    else:
        with open(name + str(_os.getpid()), "wb") as file:
            _pickle.dump({key: value for key, value in vars(world).items() if key != "inbox"}, file)
        _os.replace(name + str(_os.getpid()), name)


World.step = _step
'''
_STILL = """

def _step(world):
    world.tick += 1


World.step = _step
"""
_SEEDED = """

import os as _os
import sys as _sys

if _os.environ.get("PYTHONHASHSEED") != "0":
    _os.environ["PYTHONHASHSEED"] = "0"
    _os.execv(_sys.executable, [_sys.executable, *_sys.orig_argv[1:]])
"""


def telling_lines(right: Mapping[str, str], given: Mapping[str, str]) -> list[str]:
    """Lines of the right simulation that stand nowhere in the given files, the longest first."""
    lines = {line.strip() for text in right.values() for line in text.splitlines()}
    fresh = (line for line in lines if len(line) >= 20 and not any(line in text for text in given.values()))
    return sorted(fresh, key=lambda line: (-len(line), line))


def oracle(truth: Mapping[str, Json]) -> list[ToolCall]:
    """Read the rules, watch two peers drift apart, repair the files at fault, watch again, submit."""
    game, kinds = _facts(truth)
    start, right = simulation(game, kinds), simulation(game, {})
    changed = {path: text for path, text in right.items() if text != start[path]}
    return [
        _shell("cat LOCKSTEP.md"),
        _shell("python3 replay.py logs/match.json 90 before.png"),
        ToolCall(tool="view", arguments={"path": "before.png"}),
        _shell(f"cat {' '.join(sorted(changed))}"),
        *_written(changed),
        _shell("python3 replay.py logs/match.json 90 after.png"),
        ToolCall(tool="view", arguments={"path": "after.png"}),
        _SUBMIT,
    ]


def alternatives(truth: Mapping[str, Json]) -> dict[str, Sequence[ToolCall]]:
    """Exact sums in the place of ordered ones, a heap in the place of a sort."""
    game, _ = _facts(truth)
    return {"exact_sums": [*_written(simulation(game, {"crowd": "fsum", "inbox": "heap"})), _SUBMIT]}


def mutants(truth: Mapping[str, Json]) -> dict[str, Sequence[ToolCall]]:
    """Near misses, and what a cheat would do."""
    game, kinds = _facts(truth)
    start, right = simulation(game, kinds), simulation(game, {})
    world, package = f"{game.skin.package}/world.py", f"{game.skin.package}/__init__.py"
    last = sorted(kinds)[-1]
    one_left = simulation(game, {last: kinds[last]})
    calm = {
        path: text.replace("PUSH * (PUSH_RADIUS - distance)", "0.0 * (PUSH_RADIUS - distance)")
        for path, text in right.items()
    }
    rounded = {
        path: text.replace("        self.tick += 1\n", _ROUNDED.format(units=game.skin.units))
        if path == world
        else text
        for path, text in start.items()
    }
    wrong = {
        "one_left": one_left,
        "no_more_pushes": calm,
        "rounds_it_away": rounded,
        "state_stands_still": {**start, world: start[world] + _STILL},
        "takes_the_first_peers_states": {**start, world: start[world] + _CACHE},
        "chooses_its_hash_seed": {**start, package: start[package] + _SEEDED},
    }
    return {name: [*_written(files), _SUBMIT] for name, files in wrong.items()}


_ROUNDED = """        for each in self.{units}.values():
            each.x, each.y, each.vx, each.vy = (round(value) for value in (each.x, each.y, each.vx, each.vy))
        self.tick += 1
"""


def _facts(truth: Mapping[str, Json]) -> tuple[Game, dict[str, str]]:
    facts = cast("Mapping[str, Any]", truth)
    return game_of(facts["game"]), dict(facts["kinds"])


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 180})


def _written(files: Mapping[str, str]) -> list[ToolCall]:
    return [
        ToolCall(tool="edit", arguments={"path": path, "old": "", "new": text}) for path, text in sorted(files.items())
    ]
