"""game/PygameReplaySync on the host: the right simulation, what conditions do to a wrong one, and the judgement."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import Any

import pytest

from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.game.pygame_replay_sync import peer
from metier.envs.game.pygame_replay_sync.family import NUM_FAULTS, PygameReplaySync
from metier.envs.game.pygame_replay_sync.faults import FAULTS, NEEDS, Part
from metier.envs.game.pygame_replay_sync.grading import expected, judge, names_of, scenarios
from metier.envs.game.pygame_replay_sync.sources import draw_game, game_of, simulation
from metier.envs.game.pygame_replay_sync.trials import trials
from metier.envs.parts.differential import Library
from metier.envs.registry import render_brief

ENV_ID = "game/PygameReplaySync-v0"
FAMILY = PygameReplaySync()
LEVELS = range(5)
GAME = draw_game(HashRng(b"game"))
PLAN = trials(GAME, HashRng(b"hidden"))
RIGHT = expected(GAME, PLAN)
WILD = [{"seed": seed, "earlier_matches": seed % 3, "wild": True} for seed in (5, 6, 7)]


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def played(kinds: Mapping[str, str], conditions: list[dict[str, Any]]) -> list[Any]:
    """What peers with these faults do, here: without drawing, and all under one hash seed."""
    runs: list[Any] = []
    for condition in conditions:
        library = Library(simulation(GAME, kinds))
        make = library.find(f"{GAME.skin.package}.world:World")
        runs.append(peer.play(scenarios(GAME, PLAN), names_of(GAME), make, condition, {}))
    return runs


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_differ_and_have_a_whole_brief(level: int) -> None:
    assert made(level, 2) == made(level, 2)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(4)}) == 4
    instance = made(level, 2)
    kinds: Any = instance.truth["kinds"]
    assert len(kinds) == NUM_FAULTS[level]
    brief = render_brief(FAMILY, instance, level)
    assert instance.artefacts[0].path in brief and "{{" not in brief
    for secret in instance.secrets:
        assert secret not in brief
        assert not any(secret in data.decode() for data in instance.files.values())


@pytest.mark.parametrize("level", LEVELS)
def test_every_file_of_every_instance_is_python(level: int) -> None:
    for seed in range(8):
        instance = made(level, seed)
        for path, data in instance.files.items():
            if path.endswith(".py"):
                ast.parse(data, filename=path)
        facts: Any = instance.truth
        game = game_of(facts["game"])
        assert dict(simulation(game, facts["kinds"]).items()) == {
            p: d.decode() for p, d in instance.files.items() if p.startswith(game.skin.package + "/")
        }


def test_each_fault_changes_the_simulation_and_no_two_alike() -> None:
    right = repr(simulation(GAME, {}))
    texts = [repr(simulation(GAME, {str(fault.part): fault.kind})) for fault in FAULTS]
    assert right not in texts and len(set(texts)) == len(texts)
    assert {fault.part for fault in FAULTS} == set(Part)


def test_the_right_simulation_is_the_same_under_all_conditions() -> None:
    verdict = judge(PLAN, played({}, WILD), RIGHT, [Part.INBOX])
    assert verdict.reward == 1.0 and verdict.passed, verdict


def test_another_right_way_is_right() -> None:
    verdict = judge(PLAN, played({"crowd": "fsum", "inbox": "heap"}, WILD), RIGHT, [Part.CROWD])
    assert verdict.reward == 1.0 and verdict.passed, verdict


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Part.INBOX, "arrival"),
        (Part.INBOX, "number"),
        (Part.INBOX, "repeats"),
        (Part.INBOX, "eager"),
        (Part.CROWD, "join"),
        (Part.MOTION, "clock"),
        (Part.LOOT, "join"),
        (Part.DROPS, "module"),
        (Part.FIGHTS, "heap"),
        (Part.COOLDOWN, "clock"),
        (Part.ROSTER, "join"),
        (Part.ROSTER, "count"),
        (Part.BOARD, "join"),
        (Part.BOARD, "table"),
    ],
)
def test_a_fault_fails_its_own_trial_and_no_gate(part: Part, kind: str) -> None:
    verdict = judge(PLAN, played({str(part): kind}, WILD), RIGHT, [part])
    assert verdict.reward == 0.0 and not verdict.passed
    assert all(check.score == 1.0 for check in verdict.checks if check.gate), verdict
    assert next(check for check in verdict.checks if check.name == part).score == 0.0


def test_a_state_that_stands_still_passes_nothing() -> None:
    still = [[copy.deepcopy([run[0]] * len(run)) for run in RIGHT] for _ in range(3)]
    verdict = judge(PLAN, still, RIGHT, [Part.MOTION])
    assert verdict.reward == 0.0


def test_a_last_bit_between_peers_counts_and_a_rounding_against_the_rules_does_not() -> None:
    runs = [copy.deepcopy(RIGHT) for _ in range(3)]
    index = next(number for number, trial in enumerate(PLAN) if trial.check == Part.CROWD)
    name = next(name for name in RIGHT[index][0] if name.endswith(".vx"))
    for run in runs:
        run[index][0][name] *= 1.0 + 1e-12
    assert judge(PLAN, runs, RIGHT, [Part.CROWD]).passed
    runs[1][index][0][name] *= 1.0 + 1e-15
    assert not judge(PLAN, runs, RIGHT, [Part.CROWD]).passed


def test_a_raise_or_a_missing_tick_is_a_failed_check() -> None:
    runs = [copy.deepcopy(list(RIGHT)) for _ in range(3)]
    runs[0][0] = {"raises": "KeyError: 'x'"}
    runs[1][-1] = runs[1][-1][:-1]
    verdict = judge(PLAN, runs, RIGHT, [Part.INBOX])
    assert verdict.reward == 0.0 and "KeyError" in str(verdict.checks)


def test_needs_name_other_parts() -> None:
    assert all(part not in needs for part, needs in NEEDS.items())
