"""The producer's end: takes events without ever making a rollout wait, and loses no trajectory.

    emit ─▶ memory (64 MiB) ─▶ outbox (SQLite) ─▶ store, or broker ─▶ writer ─▶ store

One thread moves memory into the outbox, another one the outbox onwards, so that neither a slow disk nor a store that is
down reaches `emit`. Where memory is full all the same, lines of a log are dropped and counted, and the event of a
trajectory goes into the outbox at once; only where that fails too, `emit` raises, and has taken nothing.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from metier.envs.core import Json

from ..result import EpisodeResult
from ..telemetry import names, signals
from ..tools.truncate import valid_text
from .blob import Blob
from .errors import RecordError
from .event import LOG_PREFIX, Event, Kind, LogBody
from .forwarder import Forwarder, ForwardSettings
from .outbox import Outbox
from .parcel import Parcel, pack
from .recording import EpisodeRecording, Playing, record
from .sink import Sink
from .store import open_store
from .transport import open_publisher

_log = logging.getLogger(__name__)
_CHUNK_BYTES = 4 << 20
_CHUNK_EVENTS = 2000
_GATHER_S = 0.01
"""How long the first event waits in memory for others to go with."""
_SPILL_WAIT_S = 0.5
"""The most that `emit` waits, and only where memory is full."""
_RETRY_S = 0.5
_EXIT_WAIT_S = 10.0
_LAST_ROUND_S = 5.0
"""What a round that is under way may take longer than `close` waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings:
    """Where to, over what, and how much may wait.

    Example:
        >>> RecordSettings(store="runs/records").memory_mb
        64
    """

    store: str
    """A folder, or a URL that fsspec knows."""
    store_options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    transport: str = ""
    """`nats://…` or `redis://…`; empty: this process writes to the store itself."""
    outbox: Path | None = None
    """A folder on a local disk; None: in the store's folder, or `records-outbox` in the working folder."""
    memory_mb: int = 64
    outbox_mb: int = 4096
    """Above which lines of logs are dropped; trajectories are kept as long as the disk has room."""
    forward: ForwardSettings = field(default_factory=ForwardSettings)

    @property
    def outbox_folder(self) -> Path:
        """Where the outbox is."""
        if self.outbox is not None:
            return self.outbox
        return Path("records-outbox") if "://" in self.store else Path(self.store) / "outbox"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStats:
    """How a recorder stands; the counts are since it was opened."""

    num_events: int
    num_logs_dropped: int
    num_spilled: int
    """Events that found memory full and went to the outbox at once."""
    memory_bytes: int
    outbox_events: int
    outbox_bytes: int
    outbox_oldest_s: float
    num_failures: int
    """Times that outbox, broker or store could not be written."""
    num_buried: int
    trouble: str
    """What is wrong now; empty where nothing is."""


class Recorder:
    """Takes events from any thread; made by `open`. Use it as a context manager, async or not, or `close` it."""

    def __init__(self, outbox: Outbox, sink: Sink, forwarder: Forwarder, settings: RecordSettings) -> None:
        self._outbox, self._sink, self._forwarder, self._settings = outbox, sink, forwarder, settings
        self._changed = threading.Condition()
        self._waiting: deque[Parcel] = deque()
        self._bytes = self._num_events = self._num_dropped = self._num_spilled = self._spool_failures = 0
        self._closing = self._closed = self._spooled = False
        self._give_up_at = float("inf")
        self._spool_trouble = ""
        self._attempts = outbox.attempts()
        self._runs_seen: set[str] = set()
        self._logs: dict[str, _LogStream] = {}
        self._threads = [
            threading.Thread(target=self._spool, name="metier-records-spool", daemon=True),
            threading.Thread(target=self._forward, name="metier-records-forward", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        # an interpreter that leaves without `close` still empties memory into the outbox
        atexit.register(self._end_spool)
        signals.register(self)

    @classmethod
    def open(cls, settings: RecordSettings) -> Recorder:
        """A recorder; what earlier processes left in this outbox is sent too.

        Raises:
            ConfigError: a store or transport of no known kind, or not installed.
            RecordError: the outbox cannot be written.
        """
        sink = Sink(open_store(settings.store, settings.store_options))
        publisher = open_publisher(settings.transport) if settings.transport else None
        outbox = Outbox.open(settings.outbox_folder)
        return cls(outbox, sink, Forwarder(outbox, sink, publisher, settings.forward), settings)

    def begin(self, playing: Playing) -> EpisodeRecording:
        """The recording of an episode that begins. Raises RecordError."""
        return EpisodeRecording(self, playing)

    def record(self, playing: Playing, result: EpisodeResult) -> EpisodeRecording:
        """All of an episode that is over. Raises ConfigError for another episode's result; RecordError."""
        return record(self, playing, result)

    def emit(self, event: Event, blobs: Sequence[Blob] = ()) -> None:
        """Take an event; never waits for a disk or a network while memory has room.

        Raises:
            RecordError: neither memory nor outbox has room, or the recorder is closed; nothing was taken.
        """
        parcel = pack(event, blobs)
        with self._changed:
            self._check_open()
            if self._fits(parcel.size_bytes):
                self._add(parcel)
                return
        try:
            self._outbox.put([parcel], wait_s=_SPILL_WAIT_S)
        except RecordError as error:
            raise RecordError(
                f"{event.key}: {self._settings.memory_mb} MiB of records wait, and this one can be neither sent nor "
                f"spilled: {error}"
            ) from error
        with self._changed:
            self._num_events += 1
            self._num_spilled += 1

    def log(self, run_id: str, level: str, text: str, *, episode_id: str = "") -> bool:
        """Take a line of a log; False where it was dropped for want of room. Raises RecordError once closed."""
        with self._changed:
            self._check_open()
            stream = self._logs.setdefault(run_id, _LogStream())
            event = stream.next(run_id, LogBody(level=level, text=valid_text(text), episode_id=episode_id))
            parcel = pack(event)
            full = self._outbox.size_bytes + self._bytes > self._settings.outbox_mb << 20
            if full or not self._fits(parcel.size_bytes):
                stream.num_dropped += 1
                self._num_dropped += 1
                return False
            stream.seq += 1
            stream.num_dropped = 0
            self._add(parcel)
        return True

    def next_attempt(self, run_id: str, episode: str) -> int:
        """A number under which the episode has no attempt: not in the store, not here.

        Looks into the store the first time it hears of a run, and only then.
        """
        if run_id not in self._runs_seen:
            self._runs_seen.add(run_id)
            try:
                self._sink.refresh(run_id)
            except RecordError as error:
                _log.warning("attempts of run %s are numbered without the store's: %s", run_id, error)
        with self._changed:
            last = self._attempts.get((run_id, episode), -1)
            number = max(last + 1, self._sink.next_attempt(run_id, episode))
            self._attempts[run_id, episode] = number
        return number

    def stats(self) -> RecorderStats:
        """How it stands."""
        forwarder = self._forwarder
        oldest_s = 0.0 if self._spooled else self._outbox.oldest_s()  # it may wait for the disk, which `emit` must not
        with self._changed:
            return RecorderStats(
                num_events=self._num_events,
                num_logs_dropped=self._num_dropped,
                num_spilled=self._num_spilled,
                memory_bytes=self._bytes,
                outbox_events=self._outbox.num_events,
                outbox_bytes=self._outbox.size_bytes,
                outbox_oldest_s=oldest_s,
                num_failures=self._spool_failures + forwarder.num_failures,
                num_buried=forwarder.num_buried,
                trouble=self._spool_trouble or forwarder.trouble,
            )

    def readings(self) -> Iterable[signals.Reading]:
        """Its standing as metrics."""
        stats = self.stats()
        return (
            signals.Reading(names.QUEUE_LAG, stats.outbox_events + len(self._waiting)),
            signals.Reading(names.QUEUE_OLDEST, stats.outbox_oldest_s),
            signals.Reading(names.OUTBOX_BYTES, stats.outbox_bytes),
            signals.Reading(names.UPLOADS_FAILED, stats.num_failures),
            signals.Reading(names.DROPPED_LOGS, stats.num_logs_dropped),
            signals.Reading(names.DEAD_LETTERS, stats.num_buried),
        )

    def close(self, wait_s: float = 60.0) -> RecorderStats:
        """Store what waits, for at most `wait_s`; idempotent.

        What is not stored by then stays in the outbox, and is sent by the next recorder that opens it.

        Raises:
            RecordError: memory could not be emptied into the outbox: the stats say how much was lost.
        """
        if not self._closed:
            self._closed = True
            atexit.unregister(self._end_spool)
            self._end_spool(wait_s)
            self._threads[1].join(max(0.0, self._give_up_at - time.monotonic()) + _LAST_ROUND_S)
        stats = self.stats()
        if self._threads[1].is_alive():
            _log.warning("the store does not answer: %s stays open until this process ends", self._outbox.path)
        else:
            self._outbox.close()
        if self._bytes:
            raise RecordError(f"{len(self._waiting)} records are lost with this process: {stats.trouble}")
        return stats

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(self.close))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closing:
            raise RecordError("the recorder is closed; open another one")

    def _fits(self, size_bytes: int) -> bool:
        return self._bytes + size_bytes <= self._settings.memory_mb << 20

    def _add(self, parcel: Parcel) -> None:
        self._waiting.append(parcel)
        self._bytes += parcel.size_bytes
        self._num_events += 1
        if len(self._waiting) == 1:
            self._changed.notify_all()

    def _end_spool(self, wait_s: float = _EXIT_WAIT_S) -> None:
        with self._changed:
            self._give_up_at = time.monotonic() + wait_s
            self._closing = True
            self._changed.notify_all()
        self._threads[0].join()

    def _spool(self) -> None:
        """Memory into the outbox, until closing and empty."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    break
                closing = self._closing
            if not closing:
                time.sleep(_GATHER_S)
            chunk = self._chunk()
            try:
                self._outbox.put(chunk)
            except RecordError as error:
                self._spool_failures += 1
                self._spool_trouble = str(error)
                if time.monotonic() > self._give_up_at:
                    break
                time.sleep(_RETRY_S)
            else:
                self._spool_trouble = ""
                with self._changed:
                    for parcel in chunk:
                        self._waiting.popleft()
                        self._bytes -= parcel.size_bytes
        self._spooled = True

    def _chunk(self) -> list[Parcel]:
        found: list[Parcel] = []
        size = 0
        with self._changed:
            for parcel in self._waiting:
                found.append(parcel)
                size += parcel.size_bytes
                if size >= _CHUNK_BYTES or len(found) >= _CHUNK_EVENTS:
                    break
        return found

    def _forward(self) -> None:
        with contextlib.suppress(RuntimeError):  # the interpreter is leaving
            asyncio.run(
                self._forwarder.run(ending=lambda: self._spooled, until=lambda: time.monotonic() > self._give_up_at)
            )


class _LogStream:
    """A recorder's lines about one run: a stream of events of its own, without gaps in what was kept."""

    def __init__(self) -> None:
        self._trace_id = uuid.uuid4().hex
        self.seq = 0
        self.num_dropped = 0

    def next(self, run_id: str, body: LogBody) -> Event:
        return Event(
            kind=Kind.LOG,
            run_id=run_id,
            episode_id=f"{LOG_PREFIX}{self._trace_id}",
            attempt=0,
            seq=self.seq,
            at_ns=time.time_ns(),
            trace_id=self._trace_id,
            body=body.model_copy(update={"num_dropped": self.num_dropped}),
        )
