"""The outbox: what was recorded and is not yet in the store, in a SQLite file that survives whoever wrote it.

A folder holds one outbox a process; each is held by a lock that ends with its process. Opening one in a folder takes
over those whose process has gone, with all that they still hold. WAL without an fsync a write: a killed process loses
nothing, a machine that loses power may lose the last moments. An outbox leaves no file once it is empty and closed.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .blob import Blob, BlobRef
from .errors import RecordError
from .event import Key
from .parcel import Parcel

_log = logging.getLogger(__name__)
_SUFFIX = ".outbox"
_BUSY_S = 5.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, episode_id TEXT NOT NULL, attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL, trace_id TEXT NOT NULL, data BLOB NOT NULL, put_at REAL NOT NULL,
    sent_at REAL, tries INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run_id, episode_id, attempt, seq, trace_id));
CREATE INDEX IF NOT EXISTS unsent ON events (id) WHERE sent_at IS NULL;
CREATE TABLE IF NOT EXISTS blobs (
    sha256 TEXT PRIMARY KEY, media_type TEXT NOT NULL, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    run_id TEXT NOT NULL, episode_id TEXT NOT NULL, attempt INTEGER NOT NULL,
    PRIMARY KEY (run_id, episode_id)) WITHOUT ROWID;
"""
_COLUMNS = "run_id, episode_id, attempt, seq, trace_id, data, put_at, tries"
_LATER = "ON CONFLICT DO UPDATE SET attempt = max(attempt, excluded.attempt)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One event that an outbox holds."""

    id: int
    """Its place; those put later have a larger one."""
    key: Key
    trace_id: str
    data: bytes
    put_at: float
    """Of `time.time()`, like `sent_at`."""
    tries: int = 0
    """How often it was refused."""
    sent_at: float | None = None


class Outbox:
    """One process's outbox. Any thread may use it; each call is one transaction."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._descriptor = lock
        self._mutex = threading.Lock()
        self._db = _opened(path)
        self.num_events, self._event_bytes = self._counted()
        self._blob_bytes = self._counted_blobs()

    @classmethod
    def open(cls, folder: Path) -> Outbox:
        """An outbox in `folder`, with all that processes which have gone left in theirs.

        Raises:
            RecordError: the folder cannot be written.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            outbox = cls(*_new(folder))
            for path, lock in _free(folder):
                try:
                    outbox._take_over(path)
                finally:
                    os.close(lock)
        except (OSError, sqlite3.Error) as error:
            raise RecordError(f"no outbox in {folder}: {error}; name a folder on a local disk with room") from error
        return outbox

    @property
    def size_bytes(self) -> int:
        """Of what it holds; the file may be larger."""
        return self._event_bytes + self._blob_bytes

    def put(self, parcels: Sequence[Parcel], *, wait_s: float = _BUSY_S) -> None:
        """Keep these; those that are there already are left as they are.

        Raises:
            RecordError: the disk is full, or the file was not free in time.
        """
        with self._write(wait_s) as db:
            now = time.time()
            rows = [(*parcel.key, parcel.trace_id, parcel.data, now, 0) for parcel in parcels]
            blobs = [(b.ref.sha256, b.ref.media_type, b.data) for parcel in parcels for b in parcel.blobs]
            new = db.executemany(
                f"INSERT INTO events ({_COLUMNS}) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING",
                rows,
            ).rowcount
            db.executemany("INSERT INTO blobs VALUES (?,?,?) ON CONFLICT DO NOTHING", blobs)
            started = {(p.key.run_id, p.key.episode_id, p.key.attempt) for p in parcels if p.key.seq == 0}
            db.executemany(f"INSERT INTO attempts VALUES (?,?,?) {_LATER}", started)
            self.num_events += new
            self._event_bytes += sum(len(parcel.data) for parcel in parcels)
            self._blob_bytes += sum(len(data) for _, _, data in blobs)

    @property
    def last_id(self) -> int:
        """Of the event that was put last; its blobs, and those of all before it, are here or stored."""
        with self._read() as db:
            return int(db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])

    def attempts(self) -> dict[tuple[str, str], int]:
        """(run, episode) → the last attempt that was put here."""
        with self._read() as db:
            rows = db.execute("SELECT run_id, episode_id, attempt FROM attempts")
            return {(run, episode): attempt for run, episode, attempt in rows}

    def unsent(self, *, after: int = 0, up_to: int, max_events: int, max_bytes: int) -> list[Held]:
        """The oldest events between two ids that were not sent yet, at least one if there is any."""
        return self._select("sent_at IS NULL AND id > ? AND id <= ?", (after, up_to), max_events, max_bytes)

    def sent_since(self, after: int, *, before: float, max_events: int) -> list[Held]:
        """Events with an id above `after` that were sent before the moment `before` and are still here."""
        return self._select("id > ? AND sent_at < ?", (after, before), max_events, 1 << 62)

    def sent(self, held: Sequence[Held]) -> None:
        """These went to the broker just now. Raises RecordError."""
        with self._write() as db:
            now = time.time()
            db.executemany("UPDATE events SET sent_at = ? WHERE id = ?", [(now, one.id) for one in held])

    def resend(self, held: Sequence[Held]) -> None:
        """These are to be sent again. Raises RecordError."""
        with self._write() as db:
            db.executemany("UPDATE events SET sent_at = NULL WHERE id = ?", [(one.id,) for one in held])

    def refused(self, held: Sequence[Held]) -> None:
        """Counts one more try of these. Raises RecordError."""
        with self._write() as db:
            db.executemany("UPDATE events SET tries = tries + 1 WHERE id = ?", [(one.id,) for one in held])

    def remove(self, held: Sequence[Held]) -> None:
        """These are in the store. Raises RecordError."""
        with self._write() as db:
            self.num_events -= db.executemany("DELETE FROM events WHERE id = ?", [(one.id,) for one in held]).rowcount
            self._event_bytes -= sum(len(one.data) for one in held)
            if not self.num_events:
                self._event_bytes = 0  # bytes of what was put twice were counted twice

    def blobs(self, max_bytes: int) -> list[Blob]:
        """Some blobs that are not in the store yet, at least one if there is any."""
        found: list[Blob] = []
        size = 0
        with self._read() as db:
            for sha256, media_type, data in db.execute("SELECT sha256, media_type, data FROM blobs"):
                ref = BlobRef(sha256=sha256, size_bytes=len(data), media_type=media_type)
                found.append(Blob(ref=ref, data=data))
                size += len(data)
                if size >= max_bytes:
                    break
        return found

    def remove_blobs(self, blobs: Sequence[Blob]) -> None:
        """These are in the store. Raises RecordError."""
        with self._write() as db:
            db.executemany("DELETE FROM blobs WHERE sha256 = ?", [(blob.ref.sha256,) for blob in blobs])
            self._blob_bytes = self._counted_blobs()

    def oldest_s(self) -> float:
        """Age of the oldest event in seconds; 0 where there is none."""
        with self._read() as db:
            oldest = db.execute("SELECT min(put_at) FROM events").fetchone()[0]
        return max(0.0, time.time() - oldest) if oldest is not None else 0.0

    def runs(self) -> list[str]:
        """The runs whose events are here."""
        with self._read() as db:
            return [run for (run,) in db.execute("SELECT DISTINCT run_id FROM events")]

    def close(self) -> None:
        """Idempotent. What is left stays for the next process that opens the folder."""
        with self._mutex:
            if self._descriptor < 0:
                return
            with contextlib.suppress(sqlite3.Error):
                (events,) = self._db.execute("SELECT count(*) FROM events").fetchone()
                (blobs,) = self._db.execute("SELECT count(*) FROM blobs").fetchone()
                self._db.close()
                if not events and not blobs:
                    _unlink(self.path)
            os.close(self._descriptor)
            self._descriptor = -1

    def _take_over(self, other: Path) -> None:
        try:
            _opened(other).close()  # recovers its log first
            with self._write() as db:
                db.execute("ATTACH ? AS other", (str(other),))
        except (RecordError, sqlite3.Error) as error:
            aside = other.with_suffix(".unreadable")
            _log.warning("%s is no outbox (%s): kept as %s", other, error, aside.name)
            other.rename(aside)
            return
        try:
            with self._write() as db:
                db.execute(f"INSERT OR IGNORE INTO events ({_COLUMNS}) SELECT {_COLUMNS} FROM other.events ORDER BY id")
                db.execute("INSERT OR IGNORE INTO blobs SELECT * FROM other.blobs")
                db.execute(f"INSERT INTO attempts SELECT * FROM other.attempts WHERE true {_LATER}")
                self.num_events, self._event_bytes = self._counted()
                self._blob_bytes = self._counted_blobs()
        finally:
            self._db.execute("DETACH other")
        _unlink(other)

    def _counted(self) -> tuple[int, int]:
        count, size = self._db.execute("SELECT count(*), coalesce(sum(length(data)), 0) FROM events").fetchone()
        return int(count), int(size)

    def _counted_blobs(self) -> int:
        return int(self._db.execute("SELECT coalesce(sum(length(data)), 0) FROM blobs").fetchone()[0])

    def _select(self, where: str, values: tuple[float, ...], max_events: int, max_bytes: int) -> list[Held]:
        found: list[Held] = []
        size = 0
        with self._read() as db:
            rows = db.execute(
                "SELECT id, run_id, episode_id, attempt, seq, trace_id, data, put_at, tries, sent_at FROM events "
                f"WHERE {where} ORDER BY id LIMIT ?",
                (*values, max_events),
            )
            for one, run, episode, attempt, seq, trace, data, put_at, tries, sent_at in rows:
                key = Key(run, episode, attempt, seq)
                found.append(
                    Held(id=one, key=key, trace_id=trace, data=data, put_at=put_at, tries=tries, sent_at=sent_at)
                )
                size += len(data)
                if size >= max_bytes:
                    break
        return found

    @contextlib.contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._mutex:
            yield self._db

    @contextlib.contextmanager
    def _write(self, wait_s: float = _BUSY_S) -> Iterator[sqlite3.Connection]:
        if not self._mutex.acquire(timeout=wait_s):
            raise RecordError(f"the outbox {self.path} was not free within {wait_s:g} s; is its disk slow?")
        try:
            with self._db as db:
                yield db
        except sqlite3.Error as error:
            raise RecordError(f"the outbox {self.path} cannot be written: {error}; make room on its disk") from error
        finally:
            self._mutex.release()


def _opened(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, check_same_thread=False, timeout=_BUSY_S)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA journal_size_limit = 16777216")
        db.executescript(_SCHEMA)
    except BaseException:
        db.close()
        raise
    return db


def _new(folder: Path) -> tuple[Path, int]:
    path = folder / f"{uuid.uuid4().hex}{_SUFFIX}"
    lock = _locked(path)
    assert lock is not None, "nobody else knows the name"
    return path, lock


def _free(folder: Path) -> Iterator[tuple[Path, int]]:
    """The outboxes that nobody holds, locked for us."""
    for path in sorted(folder.glob(f"*{_SUFFIX}")):
        lock = _locked(path)
        if lock is not None:
            if path.exists():
                yield path, lock
            else:  # its process left it empty in the meantime
                os.close(lock)
                path.with_suffix(".lock").unlink(missing_ok=True)


def _locked(path: Path) -> int | None:
    """The lock is a file of its own: closing any other descriptor of a database would drop SQLite's own locks."""
    descriptor = os.open(path.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _unlink(path: Path) -> None:
    for name in (
        path,
        path.with_name(f"{path.name}-wal"),
        path.with_name(f"{path.name}-shm"),
        path.with_suffix(".lock"),
    ):
        name.unlink(missing_ok=True)
