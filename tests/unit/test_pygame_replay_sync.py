"""game/PygameReplaySync on the host: the right simulation, what conditions do to a wrong one, and the judgement."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.game.pygame_replay_sync.conditions import NUM_PEERS, Script, Told, peers
from metier.envs.game.pygame_replay_sync.conductor import conduct, read
from metier.envs.game.pygame_replay_sync.family import NUM_FAULTS, PygameReplaySync
from metier.envs.game.pygame_replay_sync.faults import FAULTS, NEEDS, Part
from metier.envs.game.pygame_replay_sync.grading import Picture, expected, judge, played
from metier.envs.game.pygame_replay_sync.sources import draw_game, game_of, simulation
from metier.envs.game.pygame_replay_sync.trials import FRAMES, WHOLE, trials
from metier.envs.registry import render_brief

ENV_ID = "game/PygameReplaySync-v0"
FAMILY = PygameReplaySync()
LEVELS = range(5)
GAME = draw_game(HashRng(b"game"))
PLAN = trials(GAME, HashRng(b"hidden"))
RIGHT = expected(GAME, PLAN)
PEERS = peers(PLAN, HashRng(b"peers"))
NEEDS_PYGAME = {(Part.MOTION, "frame"), *((fault.part, fault.kind) for fault in FAULTS if fault.part is Part.SCREEN)}


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def runs(kinds: Mapping[str, str], told: list[Told] = PEERS) -> list[Any]:
    """What peers with these faults do, here: without drawing, and all under this process's hash seed."""
    source = simulation(GAME, kinds)
    return [each.translated(played(GAME, source, each.scripts)) for each in told]


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
    verdict = judge(PLAN, runs({}), RIGHT, [Part.INBOX])
    assert verdict.reward == 1.0 and verdict.passed, verdict


def test_another_right_way_is_right() -> None:
    verdict = judge(PLAN, runs({"crowd": "fsum", "inbox": "heap"}), RIGHT, [Part.CROWD])
    assert verdict.reward == 1.0 and verdict.passed, verdict


@pytest.mark.parametrize(
    ("part", "kind"),
    [(fault.part, fault.kind) for fault in FAULTS if (fault.part, fault.kind) not in NEEDS_PYGAME],
)
def test_a_fault_fails_its_own_trial_and_no_gate_though_all_peers_have_one_hash_seed(part: Part, kind: str) -> None:
    verdict = judge(PLAN, runs({str(part): kind}), RIGHT, [part])
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


def test_dice_of_the_process_are_caught_though_nobody_else_throws_them() -> None:
    def quiet(script: Script) -> Script:
        return [[*command[:3], 0] if command[0] == "tick" else command for command in script]

    told = [replace(each, scripts=[quiet(script) for script in each.scripts]) for each in PEERS]
    verdict = judge(PLAN, runs({"drops": "module"}, told), RIGHT, [Part.DROPS])
    assert verdict.reward == 0.0 and not verdict.passed


def test_who_does_not_draw_fails_a_gate_whatever_is_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Picture, "draw", lambda *_: None)
    verdict = judge(PLAN, runs({}), RIGHT, list(Part))
    assert [check.name for check in verdict.checks if check.gate and not check.score] == [f"{FRAMES} as before"]
    assert verdict.reward == 0.0 and not verdict.passed


def test_peers_play_in_different_orders_and_know_players_by_different_names_that_sort_alike() -> None:
    whole = next(number for number, trial in enumerate(PLAN) if trial.check == WHOLE)
    for each in PEERS:
        assert sorted(each.order) == list(range(len(PLAN)))
        for names in each.names:
            assert [names[alias] for alias in sorted(names)] == sorted(names.values())
    assert len({tuple(each.order) for each in PEERS}) == NUM_PEERS
    assert len({tuple(each.names[each.order.index(whole)]) for each in PEERS}) == NUM_PEERS
    assert len({each.hash_seed for each in PEERS}) == NUM_PEERS


def test_a_name_that_a_peer_made_up_stays_one_too_many() -> None:
    told = Told(hash_seed=1, order=[1, 0], scripts=[[], []], names=[{"bo": "ada"}, {}])
    state = {"tick": 1, "leader": "bo", "bo.x": 1.0, "ada.x": 2.0, "#3.value": 4}
    raised = {"raises": "KeyError: 'x'"}
    assert told.translated([[state], raised]) == [
        raised,
        [{"tick": 1, "leader": "ada", "ada.x": 1.0, "nobody called ada.x": 2.0, "#3.value": 4}],
    ]


def test_a_peer_hears_one_command_at_a_time_and_never_of_a_pause() -> None:
    heard: list[Any] = []
    waited: list[float] = []
    script: list[Any] = [["tick", 1], ["pause", 0, 0.5], ["tick", 0], ["draw", 0, [0.1]], ["tick", 1]]

    def answer(command: list[Any]) -> dict[str, Any]:
        heard.append(command)
        return {"tick": len(heard)} if len(heard) < 6 else {"raises": "ValueError: no"}

    raised = {"raises": "ValueError: no"}
    assert conduct([script, script], answer, waited.append) == [[{"tick": 3}, {"tick": 1}, {"tick": 4}], raised]
    assert waited == [0.5, 0.5]
    assert heard == [["tick", 1], ["tick", 0], ["draw", 0, [0.1]], ["tick", 1], ["tick", 1], ["tick", 0]]


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 985 + b"]" * 985,
        b"[" * 200_000,
        b'{"a":' * 985 + b"1" + b"}" * 985,
        b"null",
        b"{",
        b"\xff\xfe",
        b'{"x": true}',
        b'{"x": [1]}',
        b'{"x": 1' + b"0" * 400 + b"}",
        b'{"x": ' + b"9" * 5000 + b"}",
        b"{" + b", ".join(b'"%d": 1' % number for number in range(5000)) + b"}",
    ],
)
def test_an_answer_that_is_no_flat_table_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        read(line)


def test_what_is_read_of_an_answer_is_short_and_in_ascii() -> None:
    found = read(b'{"x": 1, "y": -2.5, "leader": "' + b"z" * 9000 + b'", "\\ud800": NaN}')
    assert found["x"] == 1 and found["y"] == -2.5 and found["leader"] == "z" * 200
    assert found["\\ud800"] != found["\\ud800"]


def test_needs_name_other_parts() -> None:
    assert all(part not in needs for part, needs in NEEDS.items())
