"""Compaction and retention: events stay the same in fewer files, and only what nothing names goes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from metier.cli import app
from metier.harness.record import Records
from metier.harness.record.keeping import GRACE_S, compact, prune
from metier.harness.record.parcel import MAX_QUEUED_BYTES, pack
from metier.harness.record.query import query
from metier.harness.record.sink import Sink
from metier.harness.record.store import FolderStore
from record_samples import events_of, plain, rich


class Line:
    def __init__(self, data: bytes) -> None:
        self.data = data


def filled(folder: Path, run_id: str = "r1", count: int = 10, **more: Any) -> Records:
    """A commit for each of `count` episodes, one with pictures and one with a large turn among them."""
    sink = Sink(FolderStore(folder))
    for seed in range(count):
        result = {0: rich(), 1: plain(1, said="x" * MAX_QUEUED_BYTES)}.get(seed, plain(seed))
        kept = events_of(result, run_id, **more)
        parcels = [pack(event) for event in kept.events]
        sink.put_blobs([*kept.blobs.values(), *(blob for parcel in parcels for blob in parcel.blobs)])
        sink.commit([Line(parcel.data) for parcel in parcels])
    return Records.open(folder)


def contents(records: Records) -> Any:
    episodes = {(a.run_id, a.episode_id): records.result(a) for a in records.attempts()}
    tables = {
        table: query(records, f"SELECT * FROM {table} ORDER BY run_id, episode_id, seq").rows
        for table in ("started", "turns", "steps", "verdicts", "ended")
    }
    return episodes, tables


def age(folder: Path) -> None:
    """A day later."""
    for path in folder.rglob("*"):
        old = time.time() - GRACE_S - 60
        os.utime(path, (old, old))


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_compaction_keeps_every_event_in_fewer_files(tmp_path: Path) -> None:
    records = filled(tmp_path)
    before = contents(records)
    events = sum(manifest.num_events for manifest in records.manifests())
    assert compact(records, "r1") == 10
    (manifest,) = records.manifests()
    assert manifest.num_events == events and manifest.replaces == tuple(range(10))
    for opened in (records, Records.open(tmp_path)):
        assert contents(opened) == before
    assert compact(records, "r1") == 0
    again = Sink(FolderStore(tmp_path)).commit([Line(pack(event).data) for event in events_of(plain(3)).events])
    assert len(again.rivals) == 7 and not again.stored, "it still knows what is there"


def test_of_two_who_compact_one_wins(tmp_path: Path) -> None:
    first, second = filled(tmp_path), Records.open(tmp_path)
    before = contents(first)
    manifests = second.manifests(["r1"])
    assert compact(first, "r1") == 10
    assert not Sink(second.store).replace("r1", [], manifests)
    assert compact(second, "r1") == 0
    assert contents(Records.open(tmp_path)) == before


def test_what_was_replaced_goes_after_a_day_and_nothing_else(tmp_path: Path) -> None:
    records = filled(tmp_path)
    before, everything = contents(records), files(tmp_path)
    compact(records, "r1")
    assert prune(records, older_than_s=None).paths == []
    age(tmp_path)
    told = prune(records, older_than_s=None)
    assert not told.runs and len(told.paths) == 10 * 6 + 1 and set(told.paths) < everything
    assert everything < files(tmp_path)
    assert prune(records, older_than_s=None, remove=True).paths == told.paths
    assert contents(Records.open(tmp_path)) == before
    assert prune(records, older_than_s=None).paths == []


def test_an_old_run_goes_with_its_blobs_and_spares_what_others_use(tmp_path: Path) -> None:
    filled(tmp_path, "old", 3)
    records = filled(tmp_path, "new", 1)
    kept = {key: value for key, value in contents(records)[0].items() if key[0] == "new"}
    age(tmp_path)
    assert prune(records, older_than_s=0, run_ids=frozenset({"other"}), remove=True).runs == []
    assert prune(records, older_than_s=0, run_ids=frozenset({"old"}), remove=True).runs == ["old"]
    after = Records.open(tmp_path)
    assert after.runs() == ["new"] and contents(after)[0] == kept
    assert not [path for path in files(tmp_path) if "old" in path]
    assert len([path for path in files(tmp_path) if path.startswith("blobs/")]) == 2, "the pictures; not the large turn"
    assert prune(records, older_than_s=3600).runs == [], "not old enough"


def test_the_commands_say_what_they_do_and_tell_before_they_remove(tmp_path: Path) -> None:
    filled(tmp_path)

    def said(*words: str) -> str:
        done = CliRunner().invoke(app, ["records", *words, "--records", str(tmp_path)], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return done.stdout

    assert "r1: 10 commits taken together" in said("compact")
    before = files(tmp_path)
    told = json.loads(said("prune", "--older-than-days", "0", "--json"))
    assert told["runs"] == ["r1"] and not told["removed"] and files(tmp_path) == before
    assert "say --yes" in said("prune", "--older-than-days", "0")
    assert "files removed" in said("prune", "--older-than-days", "0", "--yes")
    assert {path for path in files(tmp_path) if not path.startswith("blobs/")} == {"format.json"}


@pytest.mark.parametrize("min_commits", [2, 4])
def test_few_commits_are_left_alone(tmp_path: Path, min_commits: int) -> None:
    records = filled(tmp_path, count=3)
    assert compact(records, "r1", min_commits=min_commits) == (3 if min_commits == 2 else 0)
