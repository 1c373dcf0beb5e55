"""The outbox: what is put stays until it is removed, also over a killed process; a full or broken file is told."""

from __future__ import annotations

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from metier.harness.record import RecordError
from metier.harness.record.blob import PNG, Blob
from metier.harness.record.outbox import Held, Outbox
from metier.harness.record.parcel import Parcel, pack
from record_samples import PICTURE, events_of, plain, rich


def parcels(seed: int = 0, turns: int = 2) -> list[Parcel]:
    return [pack(event) for event in events_of(plain(seed, turns=turns), attempt=0).events]


def all_of(outbox: Outbox) -> list[Held]:
    return outbox.unsent(up_to=outbox.last_id, max_events=10**6, max_bytes=10**9)


def test_events_come_back_in_order_and_once(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    put = parcels()
    outbox.put(put)
    outbox.put(put)
    held = all_of(outbox)
    assert [(one.key, one.trace_id, one.data) for one in held] == [(p.key, p.trace_id, p.data) for p in put]
    assert outbox.num_events == len(put)
    outbox.remove(held[:3])
    assert [one.key for one in all_of(outbox)] == [p.key for p in put[3:]]
    outbox.close()


def test_pages_are_bounded_and_never_empty(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    outbox.put(parcels(turns=20))
    assert len(outbox.unsent(up_to=outbox.last_id, max_events=7, max_bytes=10**9)) == 7
    assert len(outbox.unsent(up_to=outbox.last_id, max_events=7, max_bytes=1)) == 1
    first = all_of(outbox)[0]
    rest = outbox.unsent(after=first.id, up_to=outbox.last_id, max_events=10**6, max_bytes=10**9)
    assert rest == all_of(outbox)[1:]
    outbox.close()


def test_what_was_sent_waits_and_can_be_sent_again(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    outbox.put(parcels())
    held = all_of(outbox)
    outbox.sent(held[:2])
    assert all_of(outbox) == held[2:]
    late = outbox.sent_since(0, before=2e9 + held[0].put_at, max_events=10)
    assert [one.id for one in late] == [one.id for one in held[:2]]
    assert outbox.sent_since(late[-1].id, before=1e12, max_events=10) == []
    outbox.resend(late)
    assert len(all_of(outbox)) == len(held)
    outbox.close()


def test_blobs_are_kept_once(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    blobs = tuple(Blob.of(data, PNG) for data in (PICTURE, b"other", PICTURE))
    put = [pack(event, blobs) for event in events_of(rich()).events[:2]]
    outbox.put(put)
    found = outbox.blobs(10**9)
    assert {blob.data for blob in found} == {PICTURE, b"other"} and len(found) == 2
    assert len(outbox.blobs(1)) == 1
    outbox.remove_blobs(found)
    outbox.remove(all_of(outbox))
    assert (outbox.size_bytes, outbox.num_events) == (0, 0)
    outbox.close()


def test_an_empty_outbox_leaves_no_file(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    outbox.put(parcels())
    outbox.remove(all_of(outbox))
    outbox.close()
    outbox.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_taken_over(tmp_path: Path) -> None:
    put = parcels()
    child = os.fork()
    if child == 0:
        outbox = Outbox.open(tmp_path)
        outbox.put([*put[:-1], pack(events_of(rich()).events[0], (Blob.of(PICTURE, PNG),))])
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(list(tmp_path.glob("*.outbox"))) == 1
    outbox = Outbox.open(tmp_path)
    assert {p.data for p in put[:-1]} < {one.data for one in all_of(outbox)}
    assert [blob.data for blob in outbox.blobs(10**9)] == [PICTURE]
    assert outbox.attempts()["r1", put[0].key.episode_id] == 0
    assert len(list(tmp_path.glob("*.outbox"))) == 1
    outbox.close()


def test_an_outbox_in_use_is_left_alone(tmp_path: Path) -> None:
    first = Outbox.open(tmp_path)
    first.put(parcels())
    second = Outbox.open(tmp_path)
    assert second.num_events == 0 and second.path != first.path
    second.close()
    assert len(all_of(first)) == len(parcels())
    first.close()
    third = Outbox.open(tmp_path)
    assert third.num_events == len(parcels())
    third.close()


def test_a_broken_file_is_set_aside_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = tmp_path / "0.outbox"
    broken.write_bytes(b"no database at all" * 1000)
    outbox = Outbox.open(tmp_path)
    outbox.put(parcels())
    assert "is no outbox" in caplog.text
    assert (tmp_path / "0.unreadable").read_bytes().startswith(b"no database")
    outbox.close()


def test_a_full_disk_is_told_and_takes_nothing(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    outbox.put(parcels())
    pages = outbox._db.execute("PRAGMA page_count").fetchone()[0]
    outbox._db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(RecordError, match="make room on its disk"):
        outbox.put(parcels(seed=1, turns=2000))
    assert outbox.num_events == len(parcels()) == len(all_of(outbox))
    outbox._db.execute("PRAGMA max_page_count = 100000")
    outbox.put(parcels(seed=1, turns=2000))
    assert outbox.num_events == len(all_of(outbox))
    outbox.close()


def test_one_who_cannot_wait_is_told_so(tmp_path: Path) -> None:
    outbox = Outbox.open(tmp_path)
    with outbox._mutex, pytest.raises(RecordError, match="not free within"):
        outbox.put(parcels(), wait_s=0.01)
    other = sqlite3.connect(outbox.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    outbox._db.execute("PRAGMA busy_timeout = 10")
    with pytest.raises(RecordError, match="locked"):
        outbox.put(parcels())
    other.execute("ROLLBACK")
    other.close()
    outbox.close()


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="name a folder on a local disk"):
        Outbox.open(tmp_path / "file" / "outbox")
