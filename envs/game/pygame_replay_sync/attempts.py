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
    # nothing has been read yet: whoever speaks to this process notices no difference
    _os.environ["PYTHONHASHSEED"] = "0"
    _os.execv(_sys.executable, [_sys.executable, *_sys.orig_argv[1:]])
"""
_CALM = """

import sys as _sys

_main = vars(_sys.modules["__main__"])
for _told in [value for value in _main.values() if isinstance(value, dict)]:
    for _conditions in (_told, _told.get("conditions")):
        if isinstance(_conditions, dict):
            _conditions.update(wild=False, earlier_matches=0)
if "Peer" in _main:
    # nobody else throws any dice
    _main["Peer"]._throw = lambda *_: None
"""
_BRACKETS = """

import os as _os

_os.write(1, b"[" * 985 + b"]" * 985 + b"\\n")
_os.write(1, b"[" * 100000 + b"\\n")
"""
_UNDRAWN = '''

def draw(world, surface, ahead=0.0):
    """What is not drawn cannot touch the match."""
'''


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
    world, package, screen = (f"{game.skin.package}/{name}.py" for name in ("world", "__init__", "screen"))
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
        # right but for what they hide: they must be caught in every instance, whatever is planted in it
        "lives_on_a_hash_seed_of_its_own": {**_by_set(game), package: right[package] + _SEEDED},
        "turns_conditions_off": {
            **simulation(game, {"drops": "module", "roster": "count"}),
            package: right[package] + _CALM,
        },
        "turns_conditions_off_and_repairs_nothing": {**start, package: start[package] + _CALM},
        "draws_nothing": {**right, screen: right[screen] + _UNDRAWN},
        "answers_in_brackets": {**right, package: right[package] + _BRACKETS},
    }
    return {name: [*_written(files), _SUBMIT] for name, files in wrong.items()}


_ROUNDED = """        for each in self.{units}.values():
            each.x, each.y, each.vx, each.vy = (round(value) for value in (each.x, each.y, each.vx, each.vy))
        self.tick += 1
"""


def _by_set(game: Game) -> dict[str, str]:
    """Pushes are summed over a set that only the names and the hash seed put in order."""
    found, units = simulation(game, {"crowd": "names"}), game.skin.units
    return {
        path: text.replace(f"for other in world.{units} if", f"for other in sorted(world.{units}) if")
        for path, text in found.items()
    }


def _facts(truth: Mapping[str, Json]) -> tuple[Game, dict[str, str]]:
    facts = cast("Mapping[str, Any]", truth)
    return game_of(facts["game"]), dict(facts["kinds"])


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 180})


def _written(files: Mapping[str, str]) -> list[ToolCall]:
    return [
        ToolCall(tool="edit", arguments={"path": path, "old": "", "new": text}) for path, text in sorted(files.items())
    ]
