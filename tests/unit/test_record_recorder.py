"""The recorder: it never makes a rollout wait, drops only lines of logs, and what it took is stored, whoever dies."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import ConfigError
from metier.harness.record import (
    ForwardSettings,
    LogHandler,
    Recorder,
    RecordError,
    Records,
    RecordSettings,
    StoreUnavailable,
)
from metier.harness.record.event import Event
from metier.harness.record.outbox import Outbox
from metier.harness.record.parcel import Parcel
from metier.harness.record.query import query
from metier.harness.record.sink import Sink
from metier.harness.record.store import FolderStore
from record_samples import events_of, plain, playing, rich

FAST = ForwardSettings(flush_s=0.05)


def settings(folder: Path, **more: Any) -> RecordSettings:
    return RecordSettings(store=str(folder / "store"), outbox=folder / "outbox", **{"forward": FAST, **more})


def keys(folder: Path) -> list[tuple[Any, ...]]:
    records = Records.open(folder / "store")
    return sorted(event.key for manifest in records.manifests() for event in records.events(manifest))


def wait_for(what: Any, seconds: float = 20) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "in time"
        time.sleep(0.01)


class Stuck:
    """An outbox whose disk can be made to hang, or to be full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.free = threading.Event()
        self.free.set()
        self.full = False
        put = Outbox.put

        def slow(outbox: Outbox, parcels: Sequence[Parcel], *, wait_s: float = 5.0) -> None:
            if self.full or not self.free.wait(wait_s if wait_s < 1 else None):
                raise RecordError("no room; make room on its disk")
            put(outbox, parcels, wait_s=wait_s)

        monkeypatch.setattr(Outbox, "put", slow)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> Stuck:
    return Stuck(monkeypatch)


# what is taken is stored


def test_what_is_recorded_is_stored_soon_and_leaves_the_outbox_empty(tmp_path: Path) -> None:
    with Recorder.open(settings(tmp_path)) as recorder:
        recorder.record(playing(rich()), rich())
        wait_for(lambda: recorder.stats().outbox_events == 0 and recorder.stats().memory_bytes == 0)
        wait_for(lambda: (tmp_path / "store" / "format.json").exists())
        wait_for(lambda: len(keys(tmp_path)) == 10)
    records = Records.open(tmp_path / "store")
    (attempt,) = records.attempts()
    assert records.result(attempt) == rich()
    assert list((tmp_path / "outbox").iterdir()) == []


async def test_it_is_an_async_context_manager_too(tmp_path: Path) -> None:
    async with Recorder.open(settings(tmp_path)) as recorder:
        recorder.record(playing(plain()), plain())
    assert len(keys(tmp_path)) == 7


def test_many_threads_may_record(tmp_path: Path) -> None:
    def play(recorder: Recorder, first: int) -> None:
        for seed in range(first, first + 5):
            recorder.record(playing(plain(seed)), plain(seed))

    with Recorder.open(settings(tmp_path)) as recorder:
        players = [threading.Thread(target=play, args=(recorder, 10 * index)) for index in range(6)]
        for player in players:
            player.start()
        for player in players:
            player.join()
    assert len(keys(tmp_path)) == len(set(keys(tmp_path))) == 30 * 7


def test_a_closed_recorder_refuses(tmp_path: Path) -> None:
    recorder = Recorder.open(settings(tmp_path))
    recorder.close()
    recorder.close()
    with pytest.raises(RecordError, match="closed"):
        recorder.record(playing(plain()), plain())
    with pytest.raises(RecordError, match="closed"):
        recorder.log("r1", "info", "x")


def test_a_wrong_store_or_transport_is_the_callers_mistake(tmp_path: Path) -> None:
    for store, transport, words in [
        ("no-such-kind://x", "", "fsspec"),
        (str(tmp_path), "kafka://x", "nats://host:4222 and redis"),
        (str(tmp_path), "nats://h:1/a.b", "a stream of NATS is named"),
        (str(tmp_path), "nats:", "no transport"),
    ]:
        with pytest.raises(ConfigError, match=words):
            Recorder.open(RecordSettings(store=store, transport=transport, outbox=tmp_path / "outbox"))


# attempts are numbered


def test_attempts_go_on_from_what_is_stored_and_from_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def three(recorder: Recorder) -> list[int]:
        return [recorder.record(playing(plain()), plain()).attempt for _ in range(3)]

    with Recorder.open(settings(tmp_path)) as recorder:
        assert three(recorder) == [0, 1, 2]
    with Recorder.open(settings(tmp_path)) as recorder:
        assert three(recorder) == [3, 4, 5]
        assert recorder.next_attempt("r2", "e") == 0
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "commit", _down)
        recorder = Recorder.open(settings(tmp_path))
        assert three(recorder) == [6, 7, 8]
        assert recorder.close(wait_s=0.3).outbox_events == 21
    with Recorder.open(settings(tmp_path)) as recorder:
        assert three(recorder) == [9, 10, 11]
    assert len(set(keys(tmp_path))) == len(keys(tmp_path)) == 12 * 7


def _down(*_: object) -> Any:
    raise StoreUnavailable("the store is down")


# never blocking


def test_a_store_that_is_down_reaches_nobody_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "commit", _down)
        recorder = Recorder.open(settings(tmp_path))
        for seed in range(20):
            recorder.record(playing(plain(seed)), plain(seed))
        wait_for(lambda: recorder.stats().trouble != "")
        stats = recorder.stats()
        assert "the store is down" in stats.trouble and stats.num_failures > 0
        wait_for(lambda: recorder.stats().outbox_events == 140)
        assert recorder.stats().outbox_oldest_s > 0
    wait_for(lambda: recorder.stats().outbox_events == 0)
    wait_for(lambda: recorder.stats().trouble == "")
    recorder.close()
    assert len(keys(tmp_path)) == 140


def test_close_waits_no_longer_than_told_and_leaves_the_rest_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "commit", _down)
        recorder = Recorder.open(settings(tmp_path))
        recorder.record(playing(plain()), plain())
        began = time.monotonic()
        assert recorder.close(wait_s=0.5).outbox_events == 7
        assert time.monotonic() - began < 5
    Recorder.open(settings(tmp_path)).close()
    assert len(keys(tmp_path)) == 7


async def test_a_disk_that_hangs_does_not_hold_up_the_loop(tmp_path: Path, stuck: Stuck) -> None:
    recorder = Recorder.open(settings(tmp_path))
    stuck.free.clear()
    longest = 0.0
    for seed in range(200):
        began = time.perf_counter()
        recorder.record(playing(plain(seed)), plain(seed))
        longest = max(longest, time.perf_counter() - began)
        await asyncio.sleep(0)
    stats = recorder.stats()
    assert stats.memory_bytes > 0 and stats.num_events == 1400 and stats.num_spilled == 0
    stuck.free.set()
    await asyncio.to_thread(recorder.close)
    assert len(keys(tmp_path)) == 1400
    assert longest < 2, "seconds, on a machine that is busy with other things"


def test_where_memory_is_full_logs_are_dropped_and_trajectories_spilled(tmp_path: Path, stuck: Stuck) -> None:
    recorder = Recorder.open(settings(tmp_path, memory_mb=1))
    stuck.free.clear()
    lines = 0
    while recorder.log("r1", "info", "x" * 1000):
        lines += 1
        assert recorder.stats().memory_bytes <= 1 << 20
    assert not recorder.log("r1", "info", "x" * 1000)
    assert recorder.stats().num_logs_dropped == 2
    with pytest.raises(RecordError, match="neither sent nor spilled"):
        recorder.record(playing(rich(seed=1), attempt=0), rich(seed=1))
    stuck.free.set()
    wait_for(lambda: recorder.stats().memory_bytes == 0)
    assert recorder.log("r1", "info", "after")
    recorder.record(playing(rich(seed=1), attempt=0), rich(seed=1))
    recorder.close()
    records = Records.open(tmp_path / "store")
    assert [records.result(attempt) for attempt in records.attempts()] == [rich(seed=1)]
    rows = query(records, "SELECT seq, num_dropped, text FROM logs ORDER BY seq").rows
    assert [row[0] for row in rows] == list(range(lines + 1)), "no gap in what was kept"
    assert rows[-1] == (lines, 2, "after")


def test_an_event_that_finds_memory_full_goes_to_the_outbox_at_once(tmp_path: Path, stuck: Stuck) -> None:
    recorder = Recorder.open(settings(tmp_path, memory_mb=0))
    recorder.record(playing(rich()), rich())
    stats = recorder.stats()
    assert (stats.num_spilled, stats.num_events, stats.memory_bytes) == (10, 10, 0)
    recorder.close()
    records = Records.open(tmp_path / "store")
    assert [records.result(attempt) for attempt in records.attempts()] == [rich()]


def test_logs_are_dropped_where_the_outbox_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "commit", _down)
        recorder = Recorder.open(settings(tmp_path, outbox_mb=0))
        recorder.record(playing(plain()), plain())
        wait_for(lambda: recorder.stats().outbox_events == 7)
        assert not recorder.log("r1", "info", "x")
        recorder.record(playing(plain(1)), plain(1))
    recorder.close()
    assert len(keys(tmp_path)) == 14


def test_a_full_disk_keeps_trajectories_in_memory_until_there_is_room(tmp_path: Path, stuck: Stuck) -> None:
    recorder = Recorder.open(settings(tmp_path))
    stuck.full = True
    recorder.record(playing(plain()), plain())
    wait_for(lambda: "make room" in recorder.stats().trouble)
    assert recorder.stats().memory_bytes > 0
    stuck.full = False
    wait_for(lambda: recorder.stats().memory_bytes == 0)
    recorder.close()
    assert len(keys(tmp_path)) == 7


def test_what_cannot_be_kept_at_the_end_is_told(tmp_path: Path, stuck: Stuck) -> None:
    recorder = Recorder.open(settings(tmp_path))
    stuck.full = True
    recorder.record(playing(plain()), plain())
    with pytest.raises(RecordError, match="7 records are lost with this process: no room"):
        recorder.close(wait_s=0.2)


def test_a_log_handler_records_what_is_logged_but_not_our_own(tmp_path: Path) -> None:
    logger, own = logging.getLogger("test.records"), logging.getLogger("metier.harness.record.recorder")
    with Recorder.open(settings(tmp_path)) as recorder:
        handler = LogHandler(recorder, "r1")
        for one in (logger, own):
            one.addHandler(handler)
        logger.warning("a %s", "line\ud800")
        logger.error("about", extra={"episode_id": "e"})
        own.warning("of the recorder itself")
        recorder.close()
        logger.warning("too late, and no harm done")
        for one in (logger, own):
            one.removeHandler(handler)
    rows = query(Records.open(tmp_path / "store"), "SELECT level, text, about FROM logs ORDER BY seq").rows
    assert rows == [("warning", "a line\ufffd", ""), ("error", "about", "e")]


def test_the_guides_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from metier.envs import registry
    from metier.harness.testing import ECHO

    registry.add_registry(ECHO)
    guide = (Path(__file__).parents[2] / "docs" / "records.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/records.md", "exec"), {"result": rich()})
    records = Records.open("runs/records")
    (attempt,) = records.attempts()
    assert records.result(attempt) == rich()
    (row,) = query(records, "SELECT environment_digest, image, hub_fingerprint FROM episodes").rows
    assert len(row[0]) == 64 and row[1] and row[2]


# poison


def test_what_cannot_be_stored_is_a_dead_letter_after_five_tries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder.open(settings(tmp_path))
    tries: list[int] = []
    commit = Sink.commit

    def counting(sink: Sink, batch: Any) -> Any:
        result = commit(sink, batch)
        tries.append(len(result.refused))
        return result

    monkeypatch.setattr(Sink, "commit", counting)
    event = events_of(plain(7)).events[0]
    poison = Parcel(key=event.key, trace_id=event.trace_id, data=b'{"schema_version": 99}')
    recorder._outbox.put([poison])
    recorder.record(playing(plain()), plain())
    wait_for(lambda: recorder.stats().num_buried == 1)
    assert sum(tries) == 5
    assert recorder.close().outbox_events == 0
    records = Records.open(tmp_path / "store")
    assert len(records.dead_letters()) == 1 and "written by a newer metier" in caplog.text
    assert len(keys(tmp_path)) == 7


def test_another_playing_under_the_same_attempt_is_kept_as_dead_letters(tmp_path: Path) -> None:
    with Recorder.open(settings(tmp_path)) as recorder:
        recorder.record(playing(plain(), attempt=0), plain())
        recorder.record(playing(plain(), attempt=0), plain())
    with Recorder.open(settings(tmp_path)) as recorder:
        recorder.record(playing(plain(), attempt=0), plain(said="other"))
    records = Records.open(tmp_path / "store")
    assert len(records.dead_letters()) == 7
    assert [records.result(attempt) for attempt in records.attempts()] == [plain()]


# whoever dies

RECORDING = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from record_samples import plain, playing
from metier.harness.record import ForwardSettings, Recorder, RecordSettings
folder = Path(sys.argv[1])
forward = ForwardSettings(flush_s=0.05, max_events=50)
recorder = Recorder.open(RecordSettings(store=str(folder / "store"), outbox=folder / "outbox", forward=forward))
for seed in range(100000):
    recorder.record(playing(plain(seed), run_id=sys.argv[3]), plain(seed))
    print(seed, flush=True)
    time.sleep(0.002)
"""
LEAVING = RECORDING.partition("for seed")[0] + "recorder.record(playing(plain(), run_id=sys.argv[3]), plain())\n"


def started(code: str, folder: Path, run_id: str) -> subprocess.Popen[str]:
    samples = str(Path(__file__).parents[1] / "fixtures")
    command = [sys.executable, "-c", code, str(folder), samples, run_id]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_killed_recorder_loses_at_most_its_last_moment_and_stores_nothing_twice(tmp_path: Path) -> None:
    """What a recorder had written down when it was killed comes to the store by the next one."""
    told: dict[str, int] = {}
    for round_ in range(3):
        child = started(RECORDING, tmp_path, f"r{round_}")
        assert child.stdout is not None
        until = 40 * (round_ + 1)
        last = -1
        while last < until:
            last = int(child.stdout.readline())
        time.sleep(0.5)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split()
        child.wait()
        child.stdout.close()
        told[f"r{round_}"] = int(rest[-1]) if rest and rest[-1].isdigit() else last
    Recorder.open(settings(tmp_path)).close()
    found = keys(tmp_path)
    assert len(found) == len(set(found)), "nothing twice"
    whole = {(a.run_id, a.started.seed) for a in Records.open(tmp_path / "store").attempts() if a.whole and a.started}
    for run_id, last in told.items():
        stored = {seed for run, seed in whole if run == run_id}
        assert stored >= set(range(min(last, 40))), "all that was told half a second before"
        assert stored == set(range(max(stored) + 1)), "no hole"


def test_an_interpreter_that_just_leaves_keeps_all_in_the_outbox(tmp_path: Path) -> None:
    child = started(LEAVING, tmp_path, "r1")
    child.communicate()
    assert child.returncode == 0
    Recorder.open(settings(tmp_path)).close()
    assert len(keys(tmp_path)) == 7


def test_two_recorders_of_one_store_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = Recorder.open(settings(tmp_path)), Recorder.open(settings(tmp_path))
    for seed in range(10):
        for sample, recorder in enumerate((first, second)):
            recorder.record(playing(plain(seed, sample)), plain(seed, sample))
    first.close()
    second.close()
    assert len(keys(tmp_path)) == len(set(keys(tmp_path))) == 140


def test_a_commit_whose_answer_got_lost_is_not_stored_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create, calls = FolderStore.create, [0]

    def lossy(store: FolderStore, path: str, data: bytes) -> bool:
        done = create(store, path, data)
        if path.startswith("manifests/"):
            calls[0] += 1
            if calls[0] % 2:
                raise StoreUnavailable("the answer got lost")
        return done

    monkeypatch.setattr(FolderStore, "create", lossy)
    with Recorder.open(settings(tmp_path)) as recorder:
        for seed in range(30):
            recorder.record(playing(plain(seed)), plain(seed))
            time.sleep(0.01)
    assert len(keys(tmp_path)) == len(set(keys(tmp_path))) == 210
    assert calls[0] >= 2


def test_emitting_an_event_that_is_none_is_refused_before_it_is_taken(tmp_path: Path) -> None:
    event = events_of(plain()).events[1]
    wrong = Event.model_construct(**{**dict(event), "body": event.body.model_copy(update={"index": "\ud800"})})
    with Recorder.open(settings(tmp_path)) as recorder:
        with pytest.raises(RecordError):
            recorder.emit(wrong)
        assert recorder.stats().num_events == 0
