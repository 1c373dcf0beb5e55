"""Records in an S3: exclusive creation, a store that goes away in mid-stream, writers that are killed."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metier.harness.record import ForwardSettings, Recorder, Records, RecordSettings, StoreUnavailable
from metier.harness.record.blob import Blob
from metier.harness.record.parcel import pack
from metier.harness.record.query import query
from metier.harness.record.sink import Sink
from metier.harness.record.store import open_store
from record_samples import events_of, plain, playing, rich
from servers import Server, door, redis_server, running, s3_server

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The door to an S3 that has an empty bucket `records`."""
    server = s3_server(tmp_path / "s3")
    with running(server), running(door(server, tmp_path)) as way:
        environment = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{way.port}",
            "AWS_MAX_ATTEMPTS": "1",
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("records")
        yield way
        s3fs.S3FileSystem.clear_instance_cache()


URL = "s3://records/here"


class Line:
    def __init__(self, data: bytes) -> None:
        self.data = data


def lines(seeds: range) -> list[Line]:
    return [Line(pack(event).data) for seed in seeds for event in events_of(plain(seed), attempt=0).events]


def test_creation_is_exclusive(s3: Server) -> None:
    store = open_store(URL)
    assert store.create("a/b", b"1") and not store.create("a/b", b"2")
    assert (store.read("a/b"), store.exists("a/b"), store.exists("a/c")) == (b"1", True, False)
    assert (store.names("a"), store.names("nowhere")) == (["b"], [])
    with pytest.raises(FileNotFoundError):
        store.read("a/c")
    store.remove("a/b")
    store.remove("a/b")
    assert store.names("a") == []


def test_of_writers_at_once_each_event_is_stored_by_one(s3: Server) -> None:
    batch = lines(range(12))
    done: list[int] = []

    def write(seed: int) -> None:
        chosen = random.Random(seed).sample(batch, len(batch))
        sink = Sink(open_store(URL))
        done.append(sum(len(sink.commit(chosen[at : at + 20]).stored) for at in range(0, len(chosen), 20)))

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sum(done) == len(batch) == 84
    check(["r1"], {seed: plain(seed) for seed in range(12)})


def test_what_is_recorded_comes_back_with_its_pictures_and_can_be_queried(s3: Server, tmp_path: Path) -> None:
    with Recorder.open(RecordSettings(store=URL, outbox=tmp_path / "outbox")) as recorder:
        recorder.record(playing(rich()), rich())
    records = Records.open(URL)
    assert [records.result(attempt) for attempt in records.attempts()] == [rich()]
    assert query(records, "SELECT sum(len(images)) FROM steps").rows == [(2,)]


def test_an_s3_that_is_down_is_told(s3: Server) -> None:
    store = open_store(URL)
    store.create("a", b"1")
    s3.kill()
    for use in (
        lambda: store.create("b", b""),
        lambda: store.read("a"),
        lambda: store.exists("a"),
        lambda: store.names(""),
    ):
        with pytest.raises(StoreUnavailable, match="is it up"):
            use()
    s3.start()
    assert store.read("a") == b"1"


@pytest.mark.slow
def test_an_s3_that_goes_away_again_and_again_loses_nothing_and_doubles_nothing(s3: Server, tmp_path: Path) -> None:
    forward = ForwardSettings(flush_s=0.1, max_events=40)
    settings = RecordSettings(store=URL, outbox=tmp_path / "outbox", forward=forward)
    recorder = Recorder.open(settings)
    over = threading.Event()

    def disturb() -> None:
        dice = random.Random(2)
        for _ in range(6):
            time.sleep(dice.uniform(0.5, 1.5))
            s3.kill()
            time.sleep(dice.uniform(0.1, 1.0))
            s3.start()
        over.set()

    disturber = threading.Thread(target=disturb)
    disturber.start()
    results: dict[int, Any] = {}
    seed = 0
    while not over.is_set() or seed < 100:
        result = rich(seed=seed) if seed % 10 == 0 else plain(seed)
        recorder.record(playing(result, attempt=0), result)
        results[seed] = result
        seed += 1
        time.sleep(0.02)
    disturber.join()
    stats = recorder.close(wait_s=120)
    assert (stats.outbox_events, stats.num_buried) == (0, 0)
    assert stats.num_failures > 0, "it was away while it was needed"
    check(["r1"], results)


@pytest.mark.slow
def test_writers_of_an_s3_are_killed_and_lose_nothing(s3: Server, tmp_path: Path) -> None:
    """Redis between, so that broker, store and writers are each killed in one stream."""
    count = 80
    redis = redis_server(tmp_path / "redis")
    with running(redis):
        url = f"redis://127.0.0.1:{redis.port}"
        stream = [
            sys.executable,
            str(FIXTURES / "record_stream.py"),
            URL,
            str(tmp_path / "outbox"),
            url,
            "r1",
            "0",
            str(count),
        ]
        producer = subprocess.Popen(stream, stdout=subprocess.PIPE, text=True)
        writer = _writer(url, tmp_path)
        try:
            dice = random.Random(3)
            for _ in range(8):
                time.sleep(dice.uniform(1, 3))
                victim = dice.choice(["writer", "redis", "s3"])
                if victim == "writer":
                    writer.kill()
                    writer.wait()
                    writer = _writer(url, tmp_path)
                else:
                    {"redis": redis, "s3": s3}[victim].restart()
            said = producer.communicate(timeout=300)[0].splitlines()[-1]
        finally:
            for process in (producer, writer):
                process.kill()
                process.wait()
            assert producer.stdout
            producer.stdout.close()
    assert said.startswith("done 0 0 0"), said
    check(["r1"], {seed: rich(seed=seed) if seed % 10 == 0 else plain(seed, turns=3) for seed in range(count)})


def _writer(url: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "metier.cli", "records", "write", url, "--records", URL, "--name", "w0"]
    with (folder / "writer.log").open("ab") as log:
        return subprocess.Popen([*command, "--flush-s", "0.3", "--takeover-s", "3"], stdout=log, stderr=log)


def check(run_ids: list[str], results: dict[int, Any]) -> None:
    """Loss 0, duplicates 0."""
    records = Records.open(URL)
    assert records.dead_letters() == []
    keys = Counter(event.key for manifest in records.manifests() for event in records.events(manifest))
    assert max(keys.values()) == 1
    for run_id in run_ids:
        found = {a.started.seed: records.result(a) for a in records.attempts([run_id]) if a.started}
        assert found == results


def test_a_blob_is_stored_once(s3: Server) -> None:
    sink = Sink(open_store(URL))
    blob = Blob.of(b"picture", "image/png")
    sink.put_blobs([blob, blob])
    assert sink.load(blob.ref) == b"picture"
