"""Replays: honest records agree, forged ones are refuted, failures of ours are neither; a kill loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from board_hub import Hub
from forgery import as_passed, forged, members
from metier.envs.core import Limit, Outcome, SandboxUnavailable
from metier.harness.backends import Backends
from metier.harness.evaluate.folder import load
from metier.harness.leaderboard import admission, serving, verification
from metier.harness.leaderboard.contract import Board, BoardRow, State
from metier.harness.leaderboard.ranking import board
from metier.harness.leaderboard.sample import SampleRule, drawn
from metier.harness.leaderboard.store import Submission
from metier.harness.leaderboard.verification import MOST_STARTS, Bench, Verifier, agrees
from metier.harness.result import EpisodeResult
from trials import environment, plan, row

pytest_plugins = ("board_fixtures",)

TRIALS = list(plan(environment(seeds="0:40")).trials())


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    backends = Backends()
    yield await serving.bench(backends, serving.Replaying(backend="fake", concurrency=4))
    await backends.close()


def shown(hub: Hub) -> dict[str, BoardRow]:
    return {row.id: row for group in board(hub.store, hub.boards).groups for row in group.rows}


def better(row: dict[str, Any], episode: dict[str, Any]) -> None:
    if not row["passed"]:
        as_passed(row, episode)


async def test_an_honest_submission_is_verified_and_ranked(hub: Hub, honest: Path, bench: Bench) -> None:
    submission = hub.send(members(honest)).id
    assert await Verifier(hub.store, hub.folders).drain(bench) == {submission: State.VERIFIED}
    made = shown(hub)[submission]
    assert (made.rank, made.rank_best, made.not_ranked) == (1, 1, ())
    assert made.verification.agreed == made.verification.replayed == made.verification.to_replay == 12
    assert made.verification.same_observations == made.verification.num_observations == 36
    assert not hub.folders.held(submission).exists()  # what was removed as a secret is nowhere any more
    assert await Verifier(hub.store, hub.folders).drain(bench) == {}


async def test_forged_rewards_are_refuted_and_never_ranked(
    hub: Hub, honest: Path, tmp_path: Path, bench: Bench
) -> None:
    fine = hub.send(members(honest), by="Other").id
    forgery = hub.send(members(forged(honest, tmp_path / "forged", better))).id
    await Verifier(hub.store, hub.folders).drain(bench)
    made = shown(hub)
    assert (made[fine].rank, made[forgery].rank) == (1, None)
    assert made[forgery].overall.pass_rate == 1.0 and made[forgery].not_ranked
    seen = made[forgery].verification
    assert (seen.flattered, seen.agreed, seen.whole) == (5, 7, True)
    assert {one.tries for one in seen.disagreed} == {3}
    assert list(board(hub.store, hub.boards).groups[0].rows) == [made[fine], made[forgery]]


async def test_one_forged_trial_of_many_makes_all_of_them_be_replayed(
    hub: Hub, honest: Path, tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    lucky = next(row for row in load(honest).rows.values() if not row.passed).key

    def one(row: dict[str, Any], episode: dict[str, Any]) -> None:
        if row["key"] == lucky:
            as_passed(row, episode)

    forgery = forged(honest, tmp_path / "forged", one)
    rows = list(load(forgery).rows.values())
    draw = next(str(n) for n in range(1000) if drawn(rows, str(n), 1)[0].key == lucky)
    monkeypatch.setattr(admission, "secrets", SimpleNamespace(token_hex=lambda _: draw))
    hub.rule(SampleRule(share=0.0, at_least=1))
    submission = hub.send(members(forgery)).id
    assert shown(hub)[submission].verification.to_replay == 1
    assert await Verifier(hub.store, hub.folders).drain(bench) == {submission: State.REFUTED}
    seen = shown(hub)[submission].verification
    assert (seen.replayed, seen.flattered, seen.whole) == (12, 1, True)
    later = hub.send(members(forged(honest, tmp_path / "later", lambda row, _: row["timings_s"].update(queue=1.0))))
    assert shown(hub)[later.id].verification.to_replay == 12  # whoever was refuted is replayed whole
    assert shown(hub)[later.id].refuted_before == 1


async def test_a_record_that_is_worse_than_its_replays_is_told(
    hub: Hub, honest: Path, tmp_path: Path, bench: Bench
) -> None:
    def worse(row: dict[str, Any], episode: dict[str, Any]) -> None:
        for part in (row, episode):
            part["reward"], part["passed"] = 0.0, False
            for check in part["checks"]:
                check["score"] = 0.0

    submission = hub.send(members(forged(honest, tmp_path / "modest", worse))).id
    assert await Verifier(hub.store, hub.folders).drain(bench) == {submission: State.VERIFIED}
    seen = shown(hub)[submission].verification
    assert (seen.flattered, len(seen.disagreed), shown(hub)[submission].rank) == (0, 7, 1)


async def test_a_server_that_is_killed_goes_on_where_it_was(
    hub: Hub, honest: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = hub.send(members(honest)).id
    replay, played = verification.replay, []

    async def counted(episode: EpisodeResult, trial: Any, bench: Bench) -> EpisodeResult:
        if len(played) == 5:
            raise asyncio.CancelledError  # as if the process went away
        played.append(trial.key)
        return await replay(episode, trial, bench)

    monkeypatch.setattr(verification, "replay", counted)
    with pytest.raises(asyncio.CancelledError):
        await Verifier(hub.store, hub.folders).drain(bench)
    kept = len(hub.store.replays(submission))
    assert 0 < kept <= 5 and shown(hub)[submission].state is State.QUEUED
    monkeypatch.setattr(verification, "replay", replay)
    assert await Verifier(hub.store, hub.folders).drain(bench) == {submission: State.VERIFIED}
    assert len(hub.store.replays(submission)) == 12


async def test_failures_of_ours_are_nobodys_fault_and_end(
    hub: Hub, honest: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    submission = hub.send(members(honest)).id

    async def down(*_: object, **__: object) -> object:
        raise SandboxUnavailable("the engine is down")

    monkeypatch.setattr(bench.preparer, "fork", down)
    verifier = Verifier(hub.store, hub.folders)
    states = [(await verifier.drain(bench)).get(submission) for _ in range(MOST_STARTS + 2)]
    assert states == [State.QUEUED] * MOST_STARTS + [State.UNVERIFIED, None]
    assert shown(hub)[submission].not_ranked == ("replays could not be had",)
    monkeypatch.undo()
    hub.store.queue_again(submission)
    assert await verifier.drain(bench) == {submission: State.VERIFIED}


async def test_two_processes_never_replay_the_same_submission(hub: Hub, honest: Path, bench: Bench) -> None:
    submission = hub.send(members(honest)).id
    with hub.folders.claim(submission) as mine:
        assert mine
        assert await Verifier(hub.store, hub.folders).drain(bench) == {submission: State.QUEUED}
        assert hub.store.replays(submission) == []
    assert await Verifier(hub.store, hub.folders).drain(bench) == {submission: State.VERIFIED}


def test_what_agrees() -> None:
    (trial,) = plan(environment(seeds="3")).trials()

    def again(**fields: Any) -> EpisodeResult:
        usual = {"env_id": trial.env_id, "seed": 3, "level": 0, "sample": 0, "outcome": "completed"}
        return EpisodeResult.model_validate({**usual, "reward": 0.5, "passed": False, **fields})

    record = row(trial, False, reward=0.5)
    assert agrees(record, again(), same_secret=True)
    assert not agrees(record, again(reward=0.4), same_secret=True)
    assert agrees(record, again(reward=0.4), same_secret=False)
    assert not agrees(record, again(passed=True), same_secret=False)
    limited = row(trial, False, reward=0.5, outcome=Outcome.AGENT_LIMIT, limit=Limit.TIME)
    assert agrees(limited, again(outcome="agent_limit", limit="tokens"), same_secret=True)
    assert not agrees(limited, again(), same_secret=True)
    assert not agrees(limited, again(outcome="agent_limit", limit="steps"), same_secret=True)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.integers(0, 60), st.text(max_size=5))
def test_the_sample_is_of_its_size_without_repeats_and_follows_from_the_draw(size: int, passed: int, draw: str) -> None:
    rows = [row(trial, number < passed) for number, trial in enumerate(TRIALS)]
    made = drawn(rows, draw, size)
    assert len(made) == len({one.key for one in made}) == min(size, 40)
    assert made == drawn(list(reversed(rows)), draw, size)
    of_passed = sum(bool(one.passed) for one in made)
    assert of_passed >= min(passed, 0.75 * min(size, 40)) or of_passed == min(passed, 40)


def test_the_sample_cannot_be_known_before_the_upload(hub: Hub, honest: Path, tmp_path: Path) -> None:
    draws: list[Submission] = []
    for number in range(3):

        def slower(row: dict[str, Any], _: object, number: int = number) -> None:
            row["timings_s"]["queue"] = number

        found = hub.store.find(hub.send(members(forged(honest, tmp_path / str(number), slower))).id)
        assert found is not None
        draws.append(found)
    assert len({one.draw for one in draws}) == 3
    rows = list(load(honest).rows.values())
    assert len({tuple(one.key for one in drawn(rows, found.draw, 4)) for found in draws}) > 1
    published = board(hub.store, hub.boards).written().decode()
    assert all(found.draw not in published for found in draws)


def test_a_board_of_before_can_be_read() -> None:
    path = Path(__file__).parents[1] / "fixtures" / "leaderboard_v1" / "leaderboard.json"
    made = Board.model_validate_json(path.read_bytes())
    assert made.written() == path.read_bytes()
    assert {row.state for group in made.groups for row in group.rows} == set(State)
