"""What recording costs: events a second at each stage, and how much longer an episode takes.

    python benchmarks/records.py [--events 20000] [--pairs 40] [--backend bubblewrap] [--env ID] [--only NAME] [--json]

The overhead is paired: the same episode with its recorder and without one, in turn, beside a recorder that is storing;
a pair's value is the one's time over the other's. Events are turns and steps of about 4 KiB, half of each.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import Row, parser, report

from metier.envs.core import Deadline, Outcome, ToolCall
from metier.envs.registry import get
from metier.harness.policy.contract import AssistantTurn, Message, Role
from metier.harness.policy.scripted import oracle_policy
from metier.harness.prepare import Preparer, Task
from metier.harness.record import ForwardSettings, Playing, Recorder, RecordSettings
from metier.harness.record.outbox import Outbox
from metier.harness.record.parcel import Parcel, pack
from metier.harness.record.provenance import provenance
from metier.harness.record.recording import record
from metier.harness.record.sink import Sink
from metier.harness.record.store import FolderStore
from metier.harness.result import EpisodeResult
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend

TURNS = 24
"""Of an episode; it has twice as many events, and three more."""


def episode(seed: int) -> EpisodeResult:
    """One whose every text is its own."""
    words = random.Random(seed)
    text = ["".join(words.choices("abcdefgh \n", k=3700)) for _ in range(2 * TURNS)]
    call = ToolCall(tool="shell", arguments={"command": "ls"})
    said = [
        (AssistantTurn(text=text[2 * at], calls=(call,)), Message(role=Role.TOOL, text=text[2 * at + 1]))
        for at in range(TURNS)
    ]
    return EpisodeResult(
        env_id="test/Echo-v0",
        seed=seed,
        level=0,
        sample=0,
        outcome=Outcome.COMPLETED,
        reward=1.0,
        passed=True,
        conversation=tuple(itertools.chain.from_iterable(said)),
        steps=(call,) * TURNS,
    )


def playing(result: EpisodeResult, run_id: str = "bench") -> Playing:
    return Playing.of(result, run_id)


class Packing:
    """Takes events as the recorder does, and keeps them."""

    def __init__(self) -> None:
        self.parcels: list[Parcel] = []

    def emit(self, event: object, blobs: object = ()) -> None:
        self.parcels.append(pack(event))  # type: ignore[arg-type]

    def next_attempt(self, run_id: str, episode: str) -> int:
        return 0


def timed(what: str, way: str, count: int, work: Callable[[], object]) -> Row:
    began = time.perf_counter()
    work()
    return Row(what=what, way=way, values=[count / (time.perf_counter() - began)], unit="events per s")


def stages(count: int, folder: Path) -> Iterator[Row]:
    """Each stage by itself, and all together."""
    results = [episode(seed) for seed in range(count // (2 * TURNS + 3))]
    packing = Packing()

    def make() -> None:
        for result in results:
            record(packing, playing(result), result)

    yield timed("one stage", "events made and packed", count, make)
    parcels = packing.parcels
    outbox = Outbox.open(folder / "alone")

    def put() -> None:
        for at in range(0, len(parcels), 1000):
            outbox.put(parcels[at : at + 1000])

    yield timed("one stage", "into the outbox", len(parcels), put)
    outbox.close()
    sink = Sink(FolderStore(folder / "sink"))

    def commit() -> None:
        for at in range(0, len(parcels), 5000):
            sink.commit(parcels[at : at + 5000])

    yield timed("one stage", "committed to a folder", len(parcels), commit)
    yield timed("one stage", "committed again (all known)", len(parcels), commit)

    settings = RecordSettings(store=str(folder / "whole"), forward=ForwardSettings(flush_s=1.0))
    recorder = Recorder.open(settings)
    took: list[float] = []

    def emit() -> None:
        for result in results:
            began = time.perf_counter()
            recorder.record(playing(result), result)
            took.append((time.perf_counter() - began) * 1e3 / (2 * TURNS + 3))

    def whole() -> None:
        emit()
        recorder.close(wait_s=600)

    yield timed("from end to end", "emitted until stored", len(parcels), whole)
    stats = recorder.stats()
    yield Row(what="from end to end", way="emit, each event", values=took, unit="ms")
    assert stats.outbox_events == 0 and stats.num_buried == 0, stats


def over_broker(count: int, folder: Path, kind: str) -> Iterator[Row]:
    """Emitted here, written by a writer in another thread, over a real broker on this machine."""
    import sys
    import threading

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fixtures"))
    import servers
    from metier.harness.record.transport import open_consumer
    from metier.harness.record.writer import Writer, WriterSettings

    results = [episode(seed) for seed in range(count // (2 * TURNS + 3))]
    with servers.running(getattr(servers, f"{kind}_server")(folder / kind)) as server:
        url = f"{kind}://127.0.0.1:{server.port}"
        store = folder / f"over-{kind}"

        async def write() -> None:
            consumer = open_consumer(url, name="bench")
            writer = Writer(consumer, Sink(FolderStore(store)), WriterSettings(flush_s=1.0))
            await writer.run(idle_s=8.0)
            await consumer.close()

        thread = threading.Thread(target=asyncio.run, args=(write(),))
        thread.start()
        forward = ForwardSettings(confirm_s=0.5)
        recorder = Recorder.open(RecordSettings(store=str(store), transport=url, forward=forward))

        def whole() -> None:
            for result in results:
                recorder.record(playing(result), result)
            recorder.close(wait_s=600)

        yield timed("from end to end", f"over {kind}, confirmed", len(results) * (2 * TURNS + 3), whole)
        thread.join()


async def overhead(pairs: int, folder: Path, backend_name: str, env_id: str) -> list[Row]:
    """Percent that recording adds to an episode, and the milliseconds of it that the rollout itself waits."""
    task = Task(env_id=env_id, seed=1)
    policy = oracle_policy(env_id, 1)
    made_of = provenance(env_id, backend=backend_name)
    recorder = Recorder.open(RecordSettings(store=str(folder / "overhead")))
    in_line: list[float] = []
    played: list[EpisodeResult] = []
    each: list[dict[bool, float]] = []
    async with open_backend(backend_name) as backend, recorder:
        preparer = Preparer(backend)

        async def play(recorded: bool) -> float:
            began = time.perf_counter()
            deadline = Deadline.after(600, limit="episode_s", set_by="benchmark")
            live = Playing(run_id="bench", env_id=env_id, seed=1, policy="oracle", provenance=made_of)
            recording = recorder.begin(live) if recorded else None
            waited = time.perf_counter() - began
            result = await run_episode(task, policy, backend, preparer, deadline=deadline)
            assert result.reward == 1.0, result.failure
            if recording is not None:
                ending = time.perf_counter()
                recording.end(result)
                in_line.append(1e3 * (waited + time.perf_counter() - ending))
                played.append(result)
            return time.perf_counter() - began

        for _ in range(3):
            await play(recorded=False)
        for pair in range(pairs):
            order = (True, False) if pair % 2 else (False, True)
            each.append({recorded: await play(recorded) for recorded in order})
    spent = time.process_time()
    with Recorder.open(RecordSettings(store=str(folder / "again"))) as again:
        for result in played:
            again.record(Playing(run_id="bench", env_id=env_id, seed=1, provenance=made_of), result)
    spent = 1e3 * (time.process_time() - spent) / len(played)
    what, of_all = "recording an episode", [sum(took[recorded] for took in each) for recorded in (True, False)]
    return [
        Row(
            what=what, way="each pair", values=[100 * (took[True] / took[False] - 1) for took in each], unit="% longer"
        ),
        Row(what=what, way="all of them", values=[100 * (of_all[0] / of_all[1] - 1)], unit="% longer"),
        Row(what=what, way="while it waits", values=in_line, unit="ms"),
        Row(what=what, way="until it is stored", values=[spent], unit="ms of processor"),
        Row(what=what, way=f"for comparison: {env_id}", values=[1e3 * took[False] for took in each], unit="ms"),
    ]


def main() -> None:
    options = parser("What recording costs.")
    options.add_argument("--events", type=int, default=20_000)
    options.add_argument("--pairs", type=int, default=40)
    options.add_argument("--backend", default="bubblewrap")
    options.add_argument("--env", default="finance/CovenantTest-v0")
    given = options.parse_args()
    get(given.env)
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metier-records-")))
        if given.only in "stages":
            rows += stages(given.events, folder)
        for kind in ("nats", "redis"):
            if given.only in kind and (kind == "nats" or shutil.which("redis-check-rdb")):
                rows += over_broker(given.events, folder, kind)
        if given.only in "overhead":
            rows += asyncio.run(overhead(given.pairs, folder, given.backend, given.env))
    report("Records", rows, as_json=given.json)


if __name__ == "__main__":
    main()
