"""Forged submissions: each is refused with its reason, and the honest ones beside them are taken."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from board_hub import Hub
from forgery import ABOUT, as_passed, forged, loose, members
from metier.harness.evaluate.folder import load
from metier.harness.evaluate.report import make_report
from metier.harness.leaderboard.contract import State
from metier.harness.leaderboard.faults import Reason
from metier.harness.leaderboard.ranking import board

pytest_plugins = ("board_fixtures",)


def changed_rows(files: dict[str, bytes], change: Callable[[list[dict[str, Any]]], object]) -> dict[str, bytes]:
    rows = [json.loads(line) for line in files["results.jsonl"].splitlines()]
    change(rows)
    return files | {"results.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows).encode()}


def changed_plan(files: dict[str, bytes], change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    said = json.loads(files["manifest.json"])
    change(said["plan"])
    return files | {"manifest.json": json.dumps(said).encode()}


def test_an_honest_submission_has_the_figures_of_its_own_report(hub: Hub, honest: Path) -> None:
    receipt = hub.send(members(honest))
    assert (receipt.new, receipt.state, receipt.not_ranked) == (True, State.QUEUED, ())
    (group,) = board(hub.store, hub.boards).groups
    (row,) = group.rows
    report = make_report(load(honest))
    assert (row.overall, row.domains) == (report.overall, report.domains)
    assert group.current and group.terms.requested == row.overall.requested == row.overall.valid == 12
    assert row.rank is None and row.not_ranked == ("its replays are not done",)
    public = load(hub.folders.public(receipt.id))  # anybody may compute them again
    assert make_report(public).overall == report.overall
    for key, one in load(honest).rows.items():
        assert public.episode(public.rows[key]) == load(honest).episode(one)
    assert "me@example.org" not in board(hub.store, hub.boards).written().decode()
    assert b'"host": ""' in (hub.folders.public(receipt.id) / "manifest.json").read_bytes()


def test_the_same_results_again_change_nothing_and_are_nobody_elses(hub: Hub, honest: Path) -> None:
    first = hub.send(members(honest))
    before = board(hub.store, hub.boards)
    again = hub.send(members(honest, name="Better name"))
    assert (again.id, again.new) == (first.id, False)
    assert board(hub.store, hub.boards) == before
    assert hub.refuses(members(honest), by="Other").reason is Reason.TAKEN


def test_copied_calls_under_another_name_are_told(hub: Hub, honest: Path) -> None:
    first = hub.send(members(honest))

    def hurried(row: dict[str, Any], episode: dict[str, Any]) -> None:
        row["timings_s"]["total"] += 1
        episode["timings_s"]["total"] += 1

    copy = forged(honest, honest.parent / "copied", hurried)
    hub.send(members(copy), by="Other")
    rows = board(hub.store, hub.boards).groups[0].rows
    assert [row.same_calls_as for row in rows] == [(), (first.id,)]


# rewards, episodes, trajectories


def test_rewards_that_their_checks_do_not_give_are_refused(hub: Hub, honest: Path) -> None:
    def rewarded(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["reward"], row["passed"] = 1.0, True

    assert hub.refuses(changed_rows(loose(honest), rewarded)).reason is Reason.REWARD_DIFFERS


def test_rows_that_say_more_than_their_episodes_are_refused(hub: Hub, honest: Path) -> None:
    refused = hub.refuses(changed_rows(loose(honest), lambda rows: [as_passed(row, row) for row in rows]))
    assert refused.reason is Reason.EPISODE_DIFFERS


def test_edited_trajectories_without_their_digests_are_refused(hub: Hub, honest: Path, tmp_path: Path) -> None:
    made = forged(honest, tmp_path / "forged", lambda _, episode: episode["steps"].pop(), digests=False)
    assert hub.refuses(loose(made)).reason is Reason.EPISODE_DIGEST


def test_calls_that_nobody_said_are_refused(hub: Hub, honest: Path, tmp_path: Path) -> None:
    def slipped_in(row: dict[str, Any], episode: dict[str, Any]) -> None:
        for part in (row, episode):
            part["steps"][-1]["arguments"]["answer"] = "1"

    made = forged(honest, tmp_path / "forged", slipped_in)
    assert hub.refuses(loose(made)).reason is Reason.CALLS_DIFFER


def test_what_no_replay_can_confirm_is_refused(hub: Hub, honest: Path, tmp_path: Path) -> None:
    def from_inside(row: dict[str, Any], episode: dict[str, Any]) -> None:
        row["replayable"] = episode["replayable"] = False

    made = forged(honest, tmp_path / "forged", from_inside)
    assert hub.refuses(loose(made)).reason is Reason.NOT_REPLAYABLE

    def hidden(row: dict[str, Any], episode: dict[str, Any]) -> None:
        episode["replayable"] = False

    made = forged(honest, tmp_path / "hidden", hidden)
    assert hub.refuses(loose(made)).reason is Reason.EPISODE_DIFFERS


def test_turns_must_cost_what_the_row_says(hub: Hub, honest: Path) -> None:
    def cheap(rows: list[dict[str, Any]]) -> None:
        rows[0]["spent"]["cost_usd"] = "0"

    assert hub.refuses(changed_rows(loose(honest), cheap)).reason is Reason.EPISODE_DIFFERS


def test_episodes_that_are_missing_or_nobodys_are_refused(hub: Hub, honest: Path) -> None:
    files = loose(honest)
    name = next(name for name in files if name.startswith("episodes/"))
    less = {one: data for one, data in files.items() if one != name}
    assert hub.refuses(less).reason is Reason.EPISODE_MISSING
    more = files | {f"episodes/{'f' * 32}-0.json.gz": files[name]}
    assert hub.refuses(more).reason is Reason.EPISODE_DIGEST
    unnamed = changed_rows(files, lambda rows: rows[0].update(file=None))
    assert hub.refuses(unnamed).reason is Reason.EPISODE_MISSING


# denominators


def test_a_failure_that_is_declared_invalid_leaves_the_ranking_and_not_the_denominator(
    hub: Hub, honest: Path, tmp_path: Path
) -> None:
    def invalid(row: dict[str, Any], episode: dict[str, Any]) -> None:
        if not row["passed"]:
            for part in (row, episode):
                part |= {"outcome": "sandbox_failure", "reward": None, "passed": None, "checks": [], "failure": "oh"}

    receipt = hub.send(members(forged(honest, tmp_path / "forged", invalid)))
    hub.store.settle(receipt.id, State.VERIFIED)
    (row,) = board(hub.store, hub.boards).groups[0].rows
    assert (row.overall.requested, row.overall.valid, row.overall.pass_rate) == (12, 7, 1.0)
    assert row.rank is None and "not every trial is valid (5 sandbox_failure)" in row.not_ranked[0]


def test_rows_that_are_left_out_are_missed(hub: Hub, honest: Path) -> None:
    fewer = changed_rows(loose(honest), lambda rows: rows.remove(next(row for row in rows if not row["passed"])))
    assert hub.refuses(fewer).reason is Reason.MISSING_TRIALS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda plan: plan["environments"][0].update(seeds="10:13"), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"][0].update(seeds="0:6"), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"][0].update(seeds="0:9223372036854775807"), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"][0].update(levels=[0]), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"][0].update(levels=[0, 1] * 2), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"].clear(), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"][0].update(options={"unit": "m"}), Reason.INCOMPLETE_PLAN),
        (lambda plan: plan["environments"].extend(plan["environments"]), Reason.OTHER_PLAN),
        (lambda plan: plan["environments"][0].update(digest="0" * 64), Reason.OTHER_ENVIRONMENT),
        (lambda plan: plan["environments"][0].update(image_digest="0" * 64), Reason.OTHER_ENVIRONMENT),
        (lambda plan: plan.update(samples=10**9), Reason.NUMBERS),
        (lambda plan: plan["policy"]["settings"].update(prompt="x" * 20_000), Reason.NUMBERS),
        (lambda plan: plan["policy"]["settings"].update(header="Bearer " + "a" * 30), Reason.SECRET_IN_PLAN),
        (lambda plan: plan["policy"]["settings"].update(errs_on=4), Reason.FOREIGN_ROWS),
        (lambda plan: plan["conditions"].update(secret_fingerprint="0" * 12), Reason.FOREIGN_ROWS),
    ],
)
def test_the_server_fixes_environments_levels_and_seeds(
    hub: Hub, honest: Path, change: Callable[[dict[str, Any]], object], reason: Reason
) -> None:
    assert hub.refuses(changed_plan(loose(honest), change)).reason is reason


def test_a_row_of_another_seed_under_the_key_of_this_one_is_refused(hub: Hub, honest: Path) -> None:
    def moved(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["seed"] = 10

    assert hub.refuses(changed_rows(loose(honest), moved)).reason is Reason.RESULTS


def test_a_trial_counts_once(hub: Hub, honest: Path) -> None:
    twice = changed_rows(loose(honest), lambda rows: rows.append(rows[0]))
    assert hub.refuses(twice).reason is Reason.RESULTS


def test_another_suite_and_another_split_are_refused(hub: Hub, honest: Path) -> None:
    files = loose(honest)
    for said in ({"suite": "all-v0"}, {"split": "public"}, {"suite": "' OR 1=1; DROP TABLE submissions; --"}):
        about = json.dumps({**ABOUT, **said}).encode()
        assert hub.refuses(files | {"about.json": about}).reason is Reason.UNKNOWN_BOARD


# numbers and texts


@pytest.mark.parametrize(
    ("text", "instead", "reason"),
    [
        ('"reward": 1.0', '"reward": NaN', Reason.RESULTS),
        ('"reward": 1.0', '"reward": 1e999', Reason.RESULTS),
        ('"reward": 1.0', '"reward": -1', Reason.RESULTS),
        ('"weight": 1.0', '"weight": Infinity', Reason.RESULTS),
        ('"weight": 1.0', '"weight": 1e-320', Reason.EPISODE_DIFFERS),
        ('"num_turns": 3', '"num_turns": 1' + "0" * 5000, Reason.RESULTS),
        ('"num_turns": 3', '"num_turns": 1' + "0" * 30, Reason.NUMBERS),
        ('"cost_usd": "0.03"', '"cost_usd": "1E+999999"', Reason.NUMBERS),
        ('"cost_usd": "0.03"', '"cost_usd": "1E-999999"', Reason.NUMBERS),
        ('"cost_usd": "0.03"', '"cost_usd": "NaN"', Reason.RESULTS),
        ('"total": ', '"total": 1e300, "x": ', Reason.NUMBERS),
        ('"failure": ""', '"failure": "\\ud800"', Reason.RESULTS),
        ('"failure": ""', '"failure": ' + "[" * 50_000, Reason.RESULTS),
        ('"schema_version": 1', '"schema_version": 2', Reason.SCHEMA),
        ('"schema_version": 1', '"schema_version": 1, "more": 1', Reason.RESULTS),
        ("{", "\x00", Reason.RESULTS),
        ("{", "\xff", Reason.RESULTS),
    ],
)
def test_numbers_and_texts_that_nothing_of_ours_writes_are_refused(
    hub: Hub, honest: Path, text: str, instead: str, reason: Reason
) -> None:
    spaced = changed_rows(loose(honest), lambda _: None)
    assert text.encode() in spaced["results.jsonl"]
    made = spaced["results.jsonl"].replace(text.encode(), instead.encode("latin-1"), 1)
    assert hub.refuses(spaced | {"results.jsonl": made}).reason is reason


@pytest.mark.parametrize("name", ["manifest.json", "about.json"])
@pytest.mark.parametrize("data", [b"", b"null", b"[" * 60_000, b"\xff\xfe", b'{"kind": NaN}', b"{}", b"1" * 10_000])
def test_files_that_are_something_else_are_refused(hub: Hub, honest: Path, name: str, data: bytes) -> None:
    reason = Reason.ABOUT if name == "about.json" else Reason.RESULTS
    assert hub.refuses(loose(honest) | {name: data}).reason is reason


@pytest.mark.parametrize("field", ["name", "agent", "model", "commit", "command", "contact"])
def test_without_any_of_these_a_row_cannot_be_compared(hub: Hub, honest: Path, field: str) -> None:
    for said in (None, "", "x\ny", "\u202egnp", "x" * 5000):
        about = {**ABOUT, field: said}
        refused = hub.refuses(loose(honest) | {"about.json": json.dumps(about).encode()})
        assert refused.reason is Reason.ABOUT and field in refused.message


def test_an_episode_that_unpacks_without_end_is_refused(hub: Hub, honest: Path, tmp_path: Path) -> None:
    made = forged(honest, tmp_path / "forged", lambda *_: None)
    row = json.loads((made / "results.jsonl").read_text().splitlines()[0])
    bomb = gzip.compress(bytes(200 << 20), mtime=0)
    files = loose(made) | {f"episodes/{row['key']}-0.json.gz": bomb}

    def named(rows: list[dict[str, Any]]) -> None:
        rows[0]["file"] = {"sha256": hashlib.sha256(bomb).hexdigest(), "size_bytes": len(bomb)}

    refused = hub.refuses(changed_rows(files, named))
    assert refused.reason is Reason.RESULTS and "more than 64 MiB" in refused.message


def test_an_episode_in_an_episode_is_none(hub: Hub, honest: Path, tmp_path: Path) -> None:
    made = forged(honest, tmp_path / "forged", lambda _, episode: episode.update(conversation=[{"role": "user"}]))
    assert hub.refuses(loose(made)).reason is Reason.RESULTS


# cost, and what looks like a secret


def test_without_a_cost_a_row_is_not_ranked(hub: Hub, honest: Path, tmp_path: Path) -> None:
    def priceless(row: dict[str, Any], episode: dict[str, Any]) -> None:
        row["spent"]["cost_usd"] = None
        for part in episode["conversation"]:
            if "usage" in part:
                part["usage"]["cost_usd"] = None

    made = forged(honest, tmp_path / "priceless", priceless)
    assert any("no cost is known" in reason for reason in hub.send(members(made)).not_ranked)
    other = forged(made, tmp_path / "declared", lambda row, _: row["timings_s"].update(queue=9.0))
    assert hub.send(members(other, cost_usd="0.5")).not_ranked == ()
    rows = board(hub.store, hub.boards).groups[0].rows
    assert [(row.cost_usd and str(row.cost_usd), row.cost_declared) for row in rows] == [(None, False), ("0.5", True)]


def test_secrets_are_published_nowhere_and_counted(hub: Hub, honest: Path, tmp_path: Path) -> None:
    key = "sk-proj-" + "Ab1" * 12

    def leaky(_: dict[str, Any], episode: dict[str, Any]) -> None:
        episode["conversation"][0]["text"] += f" OPENAI_API_KEY={key}"

    receipt = hub.send(members(forged(honest, tmp_path / "leaky", leaky), command=f"OPENAI_API_KEY={key} metier eval"))
    assert receipt.secrets_removed == 13
    public = load(hub.folders.public(receipt.id))
    for row in public.rows.values():
        text = public.episode(row).model_dump_json()
        assert key not in text and "looks like a secret" in text
    assert key not in board(hub.store, hub.boards).written().decode()
    assert not re.search(key.encode(), (hub.folders.public(receipt.id) / "results.jsonl").read_bytes())
