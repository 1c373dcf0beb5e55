"""Records over real NATS and Redis servers, all of which are killed in mid-stream: nothing is lost, nothing doubled."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from metier.harness.record import ForwardSettings, Recorder, Records, RecordSettings
from metier.harness.record.outbox import Held
from metier.harness.record.parcel import pack
from metier.harness.record.query import query
from metier.harness.record.sink import Sink
from metier.harness.record.store import FolderStore
from metier.harness.record.transport import Consumer, Publisher, open_consumer, open_publisher
from metier.harness.record.writer import Writer, WriterSettings
from record_samples import events_of, plain, playing, rich
from servers import Server, nats_server, redis_server, running

FIXTURES = Path(__file__).parents[1] / "fixtures"
QUICK = WriterSettings(flush_s=0.2, max_events=300, touch_s=0.5, retry_s=0.2)


class Broker:
    """A broker's server and its address."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.server: Server = (nats_server if kind == "nats" else redis_server)(folder / kind)

    @property
    def url(self) -> str:
        return f"{self.kind}://127.0.0.1:{self.server.port}"


@pytest.fixture(params=["nats", "redis"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    made = Broker(request.param, tmp_path)
    with running(made.server):
        yield made


@contextlib.asynccontextmanager
async def ends(broker: Broker, *, idle_s: float = 2.0, name: str = "w") -> AsyncIterator[tuple[Publisher, Consumer]]:
    publisher, consumer = open_publisher(broker.url), open_consumer(broker.url, name=name, idle_s=idle_s)
    try:
        yield publisher, consumer
    finally:
        await publisher.close()
        await consumer.close()


@functools.cache
def held(seed: int = 0) -> list[Held]:
    packed = [pack(event) for event in events_of(plain(seed), attempt=0).events]
    return [Held(id=i, key=p.key, trace_id=p.trace_id, data=p.data, put_at=0.0) for i, p in enumerate(packed)]


async def drained(consumer: Consumer, count: int, seconds: float = 20) -> list[Any]:
    got: list[Any] = []
    until = time.monotonic() + seconds
    while len(got) < count and time.monotonic() < until:
        got += await consumer.fetch(1000, 0.3)
    return got


# the contract of a transport


async def test_what_is_published_is_delivered_and_gone_once_acknowledged(broker: Broker) -> None:
    async with ends(broker) as (publisher, consumer):
        await publisher.publish(held())
        got = await drained(consumer, 7)
        assert [one.data for one in got] == [one.data for one in held()]
        assert {one.tries for one in got} == {1}
        await consumer.ack(got)
        await asyncio.sleep(2.5)
        assert await consumer.fetch(10, 0.3) == []


async def test_what_is_not_acknowledged_comes_again_and_is_counted(broker: Broker) -> None:
    async with ends(broker) as (publisher, consumer):
        await publisher.publish(held())
        first = await drained(consumer, 7)
        await consumer.ack(first[:4])
        again = await drained(consumer, 3)
        assert sorted(one.data for one in again) == sorted(one.data for one in first[4:])
        assert {one.tries for one in again} == {2}
        await consumer.again(again, 0.1)
        third = await drained(consumer, 3)
        assert {one.tries for one in third} == {3} and len(third) == 3
        await consumer.ack(third)


async def test_what_is_touched_stays_with_its_writer(broker: Broker) -> None:
    async with ends(broker) as (publisher, consumer), ends(broker, name="other") as (_, other):
        await publisher.publish(held())
        mine = await drained(consumer, 7)
        for _ in range(8):
            await asyncio.sleep(0.5)
            await consumer.touch(mine)
            assert await other.fetch(10, 0.1) == []
        theirs = await drained(other, 7)
        assert sorted(one.data for one in theirs) == sorted(one.data for one in mine)
        await other.ack(theirs)


async def test_a_writer_of_the_same_name_gets_its_own_back_and_another_one_in_time(broker: Broker) -> None:
    async with ends(broker) as (publisher, consumer):
        await publisher.publish(held())
        assert len(await drained(consumer, 7)) == 7
    async with ends(broker) as (_, consumer):
        got = await drained(consumer, 7)
        assert len(got) == 7 and {one.tries for one in got} == {2}
    async with ends(broker, name="other") as (_, consumer):
        assert len(await drained(consumer, 7)) == 7


async def test_the_broker_drops_what_is_sent_twice_or_the_sink_does(broker: Broker, tmp_path: Path) -> None:
    async with ends(broker) as (publisher, consumer):
        for _ in range(3):
            await publisher.publish(held())
        writer = Writer(consumer, Sink(FolderStore(tmp_path / "store")), QUICK)
        written = await writer.run(idle_s=1.5)
        assert written.stored == 7
        assert written.known == {"nats": 0, "redis": 14}[broker.kind]


async def test_poison_is_a_dead_letter_after_five_deliveries(broker: Broker, tmp_path: Path) -> None:
    events = held()
    poison = Held(id=9, key=events[0].key._replace(seq=99), trace_id=events[0].trace_id, data=b"rubbish", put_at=0.0)
    async with ends(broker) as (publisher, consumer):
        await publisher.publish([poison, *events])
        written = await Writer(consumer, Sink(FolderStore(tmp_path / "store")), QUICK).run(idle_s=4)
        assert (written.stored, written.buried, written.refused) == (7, 1, 5)
        assert await consumer.fetch(10, 2.5) == []
    assert len(Records.open(tmp_path / "store").dead_letters()) == 1


async def test_a_broker_that_is_down_is_told_and_back_again_it_works(broker: Broker) -> None:
    from metier.harness.record import StoreUnavailable

    async with ends(broker) as (publisher, consumer):
        await publisher.publish(held(0))
        broker.server.kill()
        with pytest.raises(StoreUnavailable, match=r"is it up"):
            await publisher.publish(held(1))
        with pytest.raises(StoreUnavailable, match=r"is it up"):
            await _fetched(consumer, times=3)
        broker.server.start()
        await publisher.publish(held(1))
        got = await drained(consumer, 14, 30)
        assert {one.data for one in got} == {one.data for one in [*held(0), *held(1)]}


async def _fetched(consumer: Consumer, times: int) -> None:
    """One attempt may still be answered from what the client had heard before."""
    for _ in range(times):
        await consumer.fetch(10, 0.2)


# from end to end


def test_over_a_broker_the_outbox_empties_once_the_store_has_it(broker: Broker, tmp_path: Path) -> None:
    settings = RecordSettings(
        store=str(tmp_path / "store"),
        outbox=tmp_path / "outbox",
        transport=broker.url,
        forward=ForwardSettings(confirm_s=0.1),
    )
    recorder = Recorder.open(settings)
    recorder.record(playing(rich()), rich())
    time.sleep(1.5)
    assert recorder.stats().outbox_events == 10, "at the broker, but not stored"
    with writing(broker, tmp_path, "w0"):
        assert recorder.close(wait_s=60).outbox_events == 0
    records = Records.open(tmp_path / "store")
    assert [records.result(attempt) for attempt in records.attempts()] == [rich()]


def test_a_broker_that_forgets_what_it_took_loses_nothing(tmp_path: Path) -> None:
    """As after a power cut: it comes back without its data."""
    first = Broker("redis", tmp_path)
    settings = RecordSettings(
        store=str(tmp_path / "store"),
        outbox=tmp_path / "outbox",
        transport=first.url,
        forward=ForwardSettings(confirm_s=0.1, resend_s=1.0),
    )
    with running(first.server):
        recorder = Recorder.open(settings)
        for seed in range(10):
            recorder.record(playing(plain(seed)), plain(seed))
        wait_for(lambda: recorder.stats().outbox_events == 70)
        time.sleep(0.5)
        first.server.kill()
        shutil.rmtree(tmp_path / "redis" / "appendonlydir")
        first.server.start()
        with writing(first, tmp_path, "w0"):
            assert recorder.close(wait_s=60).outbox_events == 0
    assert len(list(Records.open(tmp_path / "store").attempts())) == 10


def wait_for(what: Any, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "in time"
        time.sleep(0.05)


@contextlib.contextmanager
def writing(broker: Broker, folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    process = writer(broker, folder, name)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def writer(broker: Broker, folder: Path, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "metier.cli", "records", "write", broker.url, "--records", str(folder / "store")]
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--name", name, "--flush-s", "0.3", "--takeover-s", "3"], stdout=log, stderr=log
        )


def producer(broker: Broker, folder: Path, run_id: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, str(FIXTURES / "record_stream.py")]
    arguments = [str(folder / "store"), str(folder / "outbox"), broker.url, run_id, "0", str(count)]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_killed_brokers_writers_and_producers_lose_nothing_and_double_nothing(broker: Broker, tmp_path: Path) -> None:
    """Two writers and two producers; the broker and a writer are killed again and again, one producer once."""
    count, dice = 250, random.Random(1)
    processes = {name: writer(broker, tmp_path, name) for name in ("w0", "w1")}
    doomed, steady = (producer(broker, tmp_path, run_id, count) for run_id in ("doomed", "steady"))
    try:
        assert doomed.stdout and steady.stdout
        while doomed.stdout.readline() != "told 60\n":
            pass
        doomed.kill()
        doomed.communicate()
        doomed = producer(broker, tmp_path, "doomed", count)
        kills = Counter[str]()
        until = time.monotonic() + 40
        while time.monotonic() < until:
            time.sleep(dice.uniform(1.5, 4.0))
            victim = dice.choice(["broker", "w0", "w1"])
            kills[victim] += 1
            if victim == "broker":
                broker.server.restart()
            else:
                processes[victim].send_signal(signal.SIGKILL)
                processes[victim].wait()
                processes[victim] = writer(broker, tmp_path, victim)
        for made in (doomed, steady):
            said = made.communicate(timeout=300)[0].splitlines()[-1]
            assert said.startswith("done 0 0 0"), said
    finally:
        for process in (*processes.values(), doomed, steady):
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
    assert min(kills["broker"], kills["w0"] + kills["w1"]) >= 2, kills
    assert list((tmp_path / "outbox").iterdir()) == []
    writers = {manifest.writer for manifest in Records.open(tmp_path / "store").manifests()}
    assert len(writers) > 2, "others went on where one was killed"
    check(tmp_path / "store", ("doomed", "steady"), count)


def check(store: Path, run_ids: tuple[str, ...], count: int) -> None:
    """Loss 0, duplicates 0, in the segments and in the tables."""
    records = Records.open(store)
    assert records.dead_letters() == []
    keys = Counter(event.key for manifest in records.manifests() for event in records.events(manifest))
    assert [key for key, times in keys.items() if times > 1] == []
    found = {(a.run_id, a.started.seed): a for a in records.attempts() if a.started}
    assert set(found) == {(run_id, seed) for run_id in run_ids for seed in range(count)}
    for (_, seed), attempt in found.items():
        assert records.result(attempt) == (rich(seed=seed) if seed % 10 == 0 else plain(seed, turns=3))
    doubled = "SELECT count(*), count(DISTINCT (run_id, episode_id, attempt, seq)) FROM {}"
    for table in ("started", "turns", "steps", "verdicts", "ended"):
        rows, distinct = query(records, doubled.format(table)).rows[0]
        assert rows == distinct > 0, table
