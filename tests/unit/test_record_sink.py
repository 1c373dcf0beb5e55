"""The sink: whatever is delivered, in whatever order and however often, and whoever dies, is stored once."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metier.envs.core import ConfigError
from metier.harness.record import RecordError, Records, StoreUnavailable
from metier.harness.record.audit import audit
from metier.harness.record.blob import Blob
from metier.harness.record.event import Event
from metier.harness.record.manifest import Catalogue, Manifest, manifest_path
from metier.harness.record.parcel import pack
from metier.harness.record.query import query
from metier.harness.record.sink import Sink, dead_letter_path
from metier.harness.record.store import FolderStore, open_store
from record_samples import Kept, events_of, plain, rich


@dataclass(frozen=True)
class Sent:
    data: bytes


def sent(events: list[Event]) -> list[Sent]:
    return [Sent(pack(event).data) for event in events]


def many(attempts: int, turns: int = 2, run_id: str = "r1") -> list[Event]:
    return [event for seed in range(attempts) for event in events_of(plain(seed, turns=turns), run_id).events]


def stored(folder: Path) -> list[tuple[Any, ...]]:
    """The key of every event that a reader finds, with repetitions."""
    records = Records.open(folder)
    return sorted(event.key for manifest in records.manifests() for event in records.events(manifest))


def counted(folder: Path) -> dict[str, int]:
    tables = ("started", "turns", "steps", "verdicts", "ended")
    records = Records.open(folder)
    return {table: query(records, f"SELECT count(*) FROM {table}").rows[0][0] for table in tables}


# stored once


def test_a_second_delivery_is_known(tmp_path: Path) -> None:
    events = many(3)
    first, second = Sink(FolderStore(tmp_path)), Sink(FolderStore(tmp_path))
    assert len(first.commit(sent(events)).stored) == len(events)
    for sink in (first, second):
        again = sink.commit(sent(events))
        assert (len(again.stored), len(again.known)) == (0, len(events))
    assert stored(tmp_path) == sorted(event.key for event in events)
    assert counted(tmp_path) == {"started": 3, "turns": 6, "steps": 6, "verdicts": 3, "ended": 3}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_order_and_any_batches_store_each_event_once(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / str(random.random())
    events = many(2)
    deliveries = data.draw(st.lists(st.sampled_from(range(len(events))), max_size=40))
    deliveries += data.draw(st.permutations(range(len(events))))
    sinks = [Sink(FolderStore(folder)), Sink(FolderStore(folder))]
    while deliveries:
        size = data.draw(st.integers(1, 12))
        batch, deliveries = deliveries[:size], deliveries[size:]
        data.draw(st.sampled_from(sinks)).commit(sent([events[place] for place in batch]))
    assert stored(folder) == sorted(event.key for event in events)


def test_many_writers_at_once_store_each_event_once(tmp_path: Path) -> None:
    events = many(8, turns=3)
    done: list[int] = []

    def write(seed: int) -> None:
        chosen = random.Random(seed).sample(events, len(events))
        sink = Sink(FolderStore(tmp_path))
        done.append(sum(len(sink.commit(sent(chosen[at : at + 9])).stored) for at in range(0, len(chosen), 9)))

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sum(done) == len(events)
    assert stored(tmp_path) == sorted(event.key for event in events)


def test_a_writer_that_dies_before_its_manifest_stored_nothing(tmp_path: Path) -> None:
    class Dying(FolderStore):
        def create(self, path: str, data: bytes) -> bool:
            if path.startswith("manifests/"):
                raise KeyboardInterrupt
            return super().create(path, data)

    events = many(2)
    with pytest.raises(KeyboardInterrupt):
        Sink(Dying(tmp_path)).commit(sent(events))
    assert len(list(tmp_path.rglob("*.parquet"))) == 5
    assert Records.open(tmp_path).manifests() == [] and counted(tmp_path)["turns"] == 0
    # another batch than the one that was lost
    Sink(FolderStore(tmp_path)).commit(sent(events[:5]))
    Sink(FolderStore(tmp_path)).commit(sent(events))
    assert stored(tmp_path) == sorted(event.key for event in events)


@pytest.mark.parametrize("place", range(9))
def test_a_store_that_fails_anywhere_is_told_and_the_next_try_stores_once(tmp_path: Path, place: int) -> None:
    class Failing(FolderStore):
        calls = 0

        def create(self, path: str, data: bytes) -> bool:
            self.calls += 1
            if self.calls == place:
                raise StoreUnavailable("down")
            if self.calls == place - 1 and path.startswith("manifests/"):
                super().create(path, data)
                raise StoreUnavailable("the answer got lost")
            return super().create(path, data)

    events = many(2)
    sink = Sink(Failing(tmp_path))
    try:
        sink.commit(sent(events))
    except StoreUnavailable:
        sink.commit(sent(events))
    assert stored(tmp_path) == sorted(event.key for event in events)


def test_two_playings_under_one_attempt_are_told_apart(tmp_path: Path) -> None:
    first, second = events_of(plain(), attempt=0).events, events_of(plain(said="y"), attempt=0).events
    sink = Sink(FolderStore(tmp_path))
    mixed = sink.commit(sent([first[0], *second, *first[1:]]))
    assert len(mixed.stored) == len(first) and len(mixed.rivals) == len(second)
    assert "number attempts" in mixed.rivals[0][1]
    assert len(sink.commit(sent(second)).rivals) == len(second)
    (attempt,) = Records.open(tmp_path).attempts()
    assert attempt.events == tuple(first)


def test_what_cannot_be_read_keeps_nobody_else(tmp_path: Path) -> None:
    events = many(1)
    sink = Sink(FolderStore(tmp_path))
    done = sink.commit([Sent(b"rubbish"), *sent(events), Sent(b"{}")])
    assert len(done.stored) == len(events) and len(done.refused) == 2
    for delivery, why in done.refused:
        assert sink.bury(delivery.data, why, 5) == dead_letter_path(delivery.data)
        assert sink.buried(delivery.data)
    sink.bury(b"\xff\x00", "no text", 5)
    letters = [json.loads(path.read_text()) for path in (tmp_path / "dead").iterdir()]
    assert sorted((letter["text"], letter["base64"]) for letter in letters) == [
        ("", "/wA="),
        ("rubbish", ""),
        ("{}", ""),
    ]
    assert len(Records.open(tmp_path).dead_letters()) == 3


def test_absurd_numbers_of_an_endpoint_do_not_spoil_the_batch(tmp_path: Path) -> None:
    from decimal import Decimal

    from metier.harness.policy.contract import AssistantTurn, Usage

    odd = plain().model_copy(
        update={
            "conversation": tuple(
                AssistantTurn(text="", usage=Usage(prompt_tokens=10**30, output_tokens=5, cost_usd=cost))
                for cost in (Decimal("NaN"), Decimal("1e40"), Decimal("0.1234567890123456789"))
            ),
            "steps": (),
        }
    )
    kept = events_of(odd)
    Sink(FolderStore(tmp_path)).commit(sent(kept.events))
    rows = query(Records.open(tmp_path), "SELECT prompt_tokens, output_tokens, cost_usd FROM turns").rows
    assert rows == [(None, 5, None), (None, 5, None), (None, 5, Decimal("0.123456789012"))]
    (attempt,) = Records.open(tmp_path).attempts()
    turns = Records.open(tmp_path).result(attempt).conversation
    assert all(isinstance(turn, AssistantTurn) and turn.usage.prompt_tokens == 10**30 for turn in turns)


# read back


def test_episodes_come_back_whole_from_several_commits(tmp_path: Path) -> None:
    sink = Sink(FolderStore(tmp_path))
    kept = Kept()
    results = {seed: rich(seed=seed) for seed in range(4)}
    for result in results.values():
        one = events_of(result)
        kept.events += one.events
        kept.blobs |= one.blobs
    sink.put_blobs(kept.blobs.values())
    for at in range(0, len(kept.events), 7):
        sink.commit(sent(kept.events[at : at + 7]))
    records = Records.open(tmp_path)
    found = list(records.attempts())
    assert {attempt.started.seed: records.result(attempt) for attempt in found if attempt.started} == results
    assert all(attempt.whole for attempt in found)
    only = list(records.attempts(wanted=lambda name: "seed=2" in name[1]))
    assert len(only) == 1 and only[0].started and only[0].started.seed == 2


def test_an_attempt_without_an_end_is_there_and_not_whole(tmp_path: Path) -> None:
    events = events_of(plain()).events
    Sink(FolderStore(tmp_path)).commit(sent(events[:4]))
    records = Records.open(tmp_path)
    (attempt,) = records.attempts()
    assert not attempt.whole and attempt.ended is None and len(attempt.events) == 4
    row = query(records, "SELECT ended, outcome, reward FROM episodes").rows
    assert row == [(False, None, None)]
    with pytest.raises(ValueError, match="attempt"):
        records.result(attempt)


def test_queries_answer_and_mistakes_name_the_tables(tmp_path: Path) -> None:
    sink = Sink(FolderStore(tmp_path))
    sink.commit(sent([*many(3), *events_of(plain(9, reward=0.25), "r2").events, *events_of(rich()).events]))
    records = Records.open(tmp_path)
    answer = query(records, "SELECT run_id, count(*) AS n, avg(reward) FROM episodes GROUP BY ALL ORDER BY ALL")
    assert answer.rows == [("r1", 4, 0.875), ("r2", 1, 0.25)]
    assert query(records, "SELECT count(*) FROM episodes", ["r2"]).rows == [(1,)]
    one = query(records, "SELECT * FROM episodes WHERE seed = 3").dicts()[0]
    assert (one["limit_name"], one["prompt_tokens"], one["weights_first"], one["weights_last"]) == ("steps", 10, 6, 7)
    assert str(one["cost_usd"]) == "0.000125000000" and one["total_s"] == 2.0
    asked = "SELECT arguments->>'$.command', images FROM steps WHERE env IS NULL"
    with pytest.raises(ConfigError, match="episodes, turns, steps, checks"):
        query(records, asked)
    named = query(
        records,
        "SELECT tool, arguments->>'$.command', len(images) FROM steps WHERE run_id = 'r1' AND step < 2 "
        "AND episode_id LIKE '%seed=3&%' ORDER BY step",
    )
    assert named.rows == [("shell", "ls", 0), ("render", None, 2)]
    checks = query(records, "SELECT name, score, gate FROM checks ORDER BY check_index").rows
    assert checks == [("sum", 0.5, False), ("gate", 1.0, True)]
    for wrong in ("SELEC 1", "SELECT * FROM nowhere"):
        with pytest.raises(ConfigError):
            query(records, wrong)
    with pytest.raises(ConfigError, match=r"no run 'r3'.*r1, r2"):
        query(records, "SELECT 1", ["r3"])


def test_a_store_without_episodes_answers_too(tmp_path: Path) -> None:
    Sink(FolderStore(tmp_path)).commit(list[Sent]())
    records = Records.open(tmp_path)
    assert query(records, "SELECT count(*) FROM episodes").rows == [(0,)]
    assert (records.runs(), list(records.attempts())) == ([], [])


def test_the_audit_tells_what_was_used(tmp_path: Path) -> None:
    from metier.harness.record import Provenance

    sink = Sink(FolderStore(tmp_path))
    for seed, digest in enumerate(("aa", "aa", "bb")):
        made_of = Provenance(environment_digest=digest, image="i", image_digest="c", weights="w")
        sink.commit(sent(events_of(rich(seed=seed), provenance=made_of, run_id="r1").events))
    sink.commit(sent(events_of(plain(7), provenance=Provenance(environment_digest="bb"), run_id="r2").events[:3]))
    rows = audit(Records.open(tmp_path))
    found = [(row["environment_digest"], row["image"], row["num_episodes"], row["num_unfinished"]) for row in rows]
    assert found == [("aa", "i", 2, 0), ("bb", "", 1, 1), ("bb", "i", 1, 0)]
    assert (rows[0]["weights_first"], rows[0]["weights_last"], rows[0]["runs"]) == (6, 7, ["r1"])
    (row,) = audit(Records.open(tmp_path), where="environment_digest = 'aa'", list_episodes=True)
    assert row["episodes"] == [f"test/Echo-v0#seed={seed}&level=1&sample=2 attempt 0" for seed in range(2)]


# what is wrong with a store


def test_no_store_and_a_store_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are no records"):
        Records.open(tmp_path)
    (tmp_path / "format.json").write_text('{"format": "metier-records", "version": 9}')
    with pytest.raises(ConfigError, match="update it"):
        Records.open(tmp_path)
    with pytest.raises(ConfigError, match="update it"):
        Sink(FolderStore(tmp_path)).commit(sent(many(1)))
    (tmp_path / "format.json").write_text("[]")
    with pytest.raises(ConfigError, match="is not what a store of records has"):
        Records.open(tmp_path)
    with pytest.raises(ConfigError, match="ftpx"):
        open_store("ftpx://host/folder")


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / manifest_path("r1", 0)
    fields = json.loads(path.read_text())
    change(fields)
    path.unlink()
    path.write_text(json.dumps(fields))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.update(manifest_version=2), "manifest_version"),
        (lambda m: m.update(run_id="r2"), "another run's"),
        (lambda m: m["segment"].update(path="segments/a/../../../etc/passwd"), "leads out of the store"),
        (lambda m: m["segment"].update(path="/etc/passwd"), "segment.path"),
        (lambda m: m.update(more=1), "more"),
        (lambda m: m.pop("covers"), "covers"),
    ],
)
def test_a_manifest_that_is_none_is_told(tmp_path: Path, change: Callable[[dict[str, Any]], None], words: str) -> None:
    Sink(FolderStore(tmp_path)).commit(sent(many(1)))
    rewrite(tmp_path, change)
    with pytest.raises(RecordError, match=words):
        list(Records.open(tmp_path).attempts())


def test_a_damaged_or_missing_file_is_told(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    sink = Sink(store)
    kept = events_of(rich())
    sink.put_blobs(kept.blobs.values())
    sink.commit(sent(kept.events))
    records = Records.open(tmp_path)
    (manifest,) = records.manifests()
    segment = tmp_path / manifest.segment.path
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-9] + b"\0" * 9)
    with pytest.raises(RecordError, match="is damaged"):
        list(records.attempts())
    segment.unlink()
    with pytest.raises(RecordError, match="is missing, which manifests/r1"):
        list(records.attempts())
    segment.write_bytes(whole)
    blob = next(iter(kept.blobs.values()))
    (tmp_path / blob.ref.path).write_bytes(b"other")
    (attempt,) = records.attempts()
    with pytest.raises(RecordError, match="is damaged"):
        records.result(attempt)
    (tmp_path / manifest.tables["turns"].path).write_bytes(b"no parquet")
    with pytest.raises(RecordError):
        query(records, "SELECT count(text) FROM turns")


def test_a_folder_that_refuses_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "segments").write_text("a file, where a folder should be")
    with pytest.raises(StoreUnavailable, match="name a folder that you may write"):
        Sink(FolderStore(tmp_path)).commit(sent(many(1)))


def test_stores_create_once(tmp_path: Path) -> None:
    for url in (str(tmp_path / "a"), f"file://{tmp_path}/b", f"memory://{tmp_path.name}/c"):
        store = open_store(url)
        assert store.create("x/y", b"1") and not store.create("x/y", b"2")
        assert (store.read("x/y"), store.exists("x/y"), store.exists("x/z")) == (b"1", True, False)
        assert store.names("x") == ["y"] and store.names("nowhere") == []
        with pytest.raises(FileNotFoundError):
            store.read("x/z")
        store.remove("x/y")
        store.remove("x/y")
        assert store.names("x") == []
    assert list(tmp_path.rglob("*.partial")) == []


def test_records_live_on_any_fsspec_filesystem(tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}"
    sink = Sink(open_store(url))
    sink.put_blobs([Blob.of(b"1", "text/plain")])
    sink.commit(sent(many(2)))
    records = Records.open(url)
    assert len(list(records.attempts())) == 2
    assert query(records, "SELECT sum(num_steps) FROM episodes").rows == [(4,)]


def test_the_catalogue_knows_what_others_committed(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    catalogue = Catalogue(store)
    events = many(1)
    catalogue.refresh("r1")
    assert not catalogue.has(events[0].key) and catalogue.next_number("r1") == 0
    Sink(store).commit(sent(events[:3]))
    Sink(store).commit(sent(events[3:]))
    catalogue.refresh("r1")
    assert all(catalogue.has(event.key) for event in events)
    assert isinstance(catalogue.manifests("r1")[1], Manifest) and catalogue.next_number("r1") == 2
    assert catalogue.last_attempt("r1", events[0].episode_id) == 0
