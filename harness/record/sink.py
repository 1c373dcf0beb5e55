"""The idempotent end: whatever is delivered, however often and to however many writers, is stored once."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

from metier.envs.core import ConfigError

from .blob import Blob, BlobRef
from .errors import MalformedEvent, StoreUnavailable
from .event import Key
from .extras import need
from .manifest import Catalogue, Manifest
from .parcel import unpack
from .segment import Line, Segment, segment
from .store import Store

_RIVALS = 50
"""Other writers' commits between reading and writing, before we leave it to a redelivery."""
_FORMAT_PATH = "format.json"
FORMAT, FORMAT_VERSION = "metier-records", 1


class Delivered(Protocol):
    """Something that carries a line."""

    @property
    def data(self) -> bytes:
        """The line."""
        ...


D = TypeVar("D", bound=Delivered)


@dataclass(slots=True, kw_only=True)
class Committed(Generic[D]):
    """What became of a batch; each delivery is in exactly one of these."""

    stored: list[D] = field(default_factory=list)
    """In the store now by this commit."""
    known: list[D] = field(default_factory=list)
    """In the store before, or twice in the batch."""
    refused: list[tuple[D, str]] = field(default_factory=list)
    """Cannot be read; it might be next time, if its blob comes."""
    rivals: list[tuple[D, str]] = field(default_factory=list)
    """Of another playing than the one that has this attempt's number: it will never be stored under it."""

    @property
    def done(self) -> list[D]:
        """Those that are in the store."""
        return [*self.stored, *self.known]


class Sink:
    """Commits events to a store. Threads may share one."""

    def __init__(self, store: Store) -> None:
        need("pyarrow", "storing records")
        self.store = store
        self.catalogue = Catalogue(store)
        self._mutex = threading.Lock()
        self._writer = f"{socket.gethostname()}:{os.getpid()}"
        self._formatted = False

    def put_blobs(self, blobs: Iterable[Blob]) -> None:
        """Store these; those that are there already cost a look. Raises StoreUnavailable."""
        for blob in blobs:
            self.store.create(blob.ref.path, blob.data)

    def load(self, ref: BlobRef) -> bytes:
        """A blob. Raises FileNotFoundError, StoreUnavailable."""
        return self.store.read(ref.path)

    def commit(self, deliveries: Sequence[D]) -> Committed[D]:
        """Store a batch of lines. When it returns, what is `done` is durable and readers see it.

        Raises:
            StoreUnavailable: nothing is lost: some may be stored, and all may be delivered again.
        """
        result: Committed[D] = Committed()
        runs: dict[str, list[tuple[D, Line]]] = {}
        for delivery in deliveries:
            try:
                line = Line(event=unpack(delivery.data, self.load), data=delivery.data)
            except MalformedEvent as error:
                result.refused.append((delivery, str(error)))
            else:
                runs.setdefault(line.event.run_id, []).append((delivery, line))
        with self._mutex:
            self._mark()
            for run_id, lines in runs.items():
                self._commit_run(run_id, lines, result)
        return result

    def _commit_run(self, run_id: str, lines: Sequence[tuple[D, Line]], result: Committed[D]) -> None:
        for _ in range(_RIVALS):
            self.catalogue.refresh(run_id)
            sorted_out, new = self._sorted_out(lines)
            if not new or self._written(run_id, segment(run_id, new)):
                break
        else:
            raise StoreUnavailable(f"run {run_id}: {_RIVALS} commits of others came first; again later")
        result.stored += sorted_out.stored
        result.known += sorted_out.known
        result.rivals += sorted_out.rivals

    def _sorted_out(self, lines: Sequence[tuple[D, Line]]) -> tuple[Committed[D], list[Line]]:
        found: Committed[D] = Committed()
        new: dict[Key, Line] = {}
        traces: dict[tuple[str, int], str] = {}
        for delivery, line in lines:
            key, trace = line.event.key, line.event.trace_id
            stored = self.catalogue.trace(key.run_id, key.episode_id, key.attempt)
            owner = stored or traces.setdefault((key.episode_id, key.attempt), trace)
            if owner != trace:
                why = f"attempt {key.attempt} of {key.episode_id} is taken by another playing, {owner}: number attempts"
                found.rivals.append((delivery, why))
            elif key in new or self.catalogue.has(key):
                found.known.append(delivery)
            else:
                new[key] = line
                found.stored.append(delivery)
        return found, list(new.values())

    def replace(self, run_id: str, lines: Sequence[Line], replaced: Sequence[Manifest]) -> bool:
        """Commit in one what these manifests committed; False if somebody else was faster. Raises StoreUnavailable."""
        with self._mutex:
            self.catalogue.refresh(run_id)
            in_force = {manifest.number for manifest in self.catalogue.manifests(run_id)}
            numbers = tuple(manifest.number for manifest in replaced)
            return in_force.issuperset(numbers) and self._written(run_id, segment(run_id, lines), numbers)

    def _written(self, run_id: str, made: Segment, replaces: tuple[int, ...] = ()) -> bool:
        """Whether ours is the run's next manifest; files of one that is not are nothing."""
        number = self.catalogue.next_number(run_id)
        for ref, data in made.files:
            self.store.create(ref.path, data)
        lines, *tables = [ref for ref, _ in made.files]
        manifest = Manifest(
            run_id=run_id,
            number=number,
            name=made.name,
            num_events=made.num_events,
            segment=lines,
            tables=dict(zip(made.tables, tables, strict=True)),
            covers=made.covers,
            blobs=made.blobs,
            written_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            writer=self._writer,
            replaces=replaces,
        )
        if not self.store.create(manifest.path, manifest.model_dump_json().encode()):
            return False
        self.catalogue.refresh(run_id)
        return True

    def refresh(self, run_id: str) -> None:
        """Learn what others committed. Raises StoreUnavailable, RecordError."""
        with self._mutex:
            self.catalogue.refresh(run_id)

    def stored(self, key: Key, trace_id: str) -> bool:
        """Whether this very event is in the store, as of the last `refresh`."""
        with self._mutex:
            owner = self.catalogue.trace(key.run_id, key.episode_id, key.attempt)
            return owner == trace_id and self.catalogue.has(key)

    def next_attempt(self, run_id: str, episode_id: str) -> int:
        """One more than the last that is stored, as of the last `refresh`."""
        with self._mutex:
            last = self.catalogue.last_attempt(run_id, episode_id)
        return 0 if last is None else last + 1

    def buried(self, data: bytes) -> bool:
        """Whether this line is a dead letter. Raises StoreUnavailable."""
        return self.store.exists(dead_letter_path(data))

    def _mark(self) -> None:
        """The store says what it is. Raises RecordError for one of a newer format."""
        if self._formatted:
            return
        if not self.store.create(_FORMAT_PATH, json.dumps({"format": FORMAT, "version": FORMAT_VERSION}).encode()):
            check_format(self.store)
        self._formatted = True

    def bury(self, data: bytes, why: str, tries: int) -> str:
        """Keep what cannot be stored as a dead letter, durably; returns its path. Raises StoreUnavailable."""
        path = dead_letter_path(data)
        try:
            text, coded = data.decode(), ""
        except UnicodeDecodeError:
            text, coded = "", base64.b64encode(data).decode()
        letter = {"why": why, "tries": tries, "at": time.time(), "writer": self._writer, "text": text, "base64": coded}
        self.store.create(path, json.dumps(letter).encode())
        return path


def dead_letter_path(data: bytes) -> str:
    """By the line's content, so that its producer finds it too."""
    return f"dead/{hashlib.sha256(data).hexdigest()}.json"


def check_format(store: Store) -> None:
    """Raises ConfigError where this is no store of records, or one of a newer metier."""
    try:
        said = json.loads(store.read(_FORMAT_PATH))
        name, version = said["format"], said["version"]
    except FileNotFoundError:
        raise ConfigError(f"there are no records at {store.url}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{store.url}/{_FORMAT_PATH} is not what a store of records has") from error
    if name != FORMAT or version != FORMAT_VERSION:
        raise ConfigError(f"{store.url} is {name} {version}; this metier reads {FORMAT} {FORMAT_VERSION}: update it")
