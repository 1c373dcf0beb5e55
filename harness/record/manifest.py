"""What is in a store: each run's manifests, numbered from 0, of which each commits some events once and for all.

A writer stores the files of a batch first and then the manifest that names them, under the next number, by exclusive
creation: of two writers with the same events one commits, and the other reads what it missed and leaves out what is
there. So events that are delivered again, to whomever, are stored once, and a file that no manifest names is nothing.
A manifest that `replaces` others took their events into fewer files (`compact`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from .errors import RecordError
from .event import RUN_ID, Key, Part
from .spans import Span, Spans
from .store import Store

_NUMBER = re.compile(r"^(\d{10})\.json$")


class FileRef(Part):
    """A file that a manifest commits."""

    path: Annotated[str, Field(pattern=r"^(segments|tables)/[A-Za-z0-9_=][A-Za-z0-9._=/-]*$")]
    size_bytes: int
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    rows: int

    @pydantic.field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        if ".." in path.split("/"):
            raise ValueError("leads out of the store")
        return path


class Cover(Part):
    """Which of an attempt's events are in a commit."""

    episode_id: str
    attempt: int
    trace_id: str
    spans: tuple[Span, ...]


class Manifest(Part):
    """One commit."""

    manifest_version: Literal[1] = 1
    run_id: Annotated[str, Field(pattern=RUN_ID)]
    number: int = Field(ge=0)
    name: str
    """Of its files; a hash of the events."""
    num_events: int
    segment: FileRef
    """The events as they came, zstd JSON Lines."""
    tables: dict[str, FileRef]
    """The same as Parquet, by table."""
    covers: tuple[Cover, ...]
    blobs: tuple[str, ...] = ()
    """SHA-256 of those that its events refer to."""
    written_at: str = ""
    writer: str = ""
    replaces: tuple[int, ...] = ()

    @property
    def path(self) -> str:
        """Its own."""
        return manifest_path(self.run_id, self.number)


def manifest_path(run_id: str, number: int) -> str:
    """Zero-padded, so that listings are in order."""
    return f"manifests/{run_id}/{number:010d}.json"


class Catalogue:
    """What is known of a store's runs; `refresh` learns what was committed since. One thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._runs: dict[str, _Run] = {}

    def runs(self) -> list[str]:
        """Those that the store has."""
        return self._store.names("manifests")

    def refresh(self, run_id: str) -> None:
        """Reads the manifests since the last time.

        Raises:
            StoreUnavailable: the store cannot be reached.
            RecordError: a manifest cannot be read.
        """
        run = self._runs.get(run_id)
        if run is None:
            run = _Run()
            found = [_NUMBER.match(name) for name in self._store.names(f"manifests/{run_id}")]
            for number in sorted(int(match[1]) for match in found if match):
                self._take(run, run_id, number)
            self._runs[run_id] = run
        while self._take(run, run_id, run.next):
            pass

    def _take(self, run: _Run, run_id: str, number: int) -> bool:
        path = manifest_path(run_id, number)
        try:
            data = self._store.read(path)
        except FileNotFoundError:
            return False
        try:
            manifest = Manifest.model_validate_json(data)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            raise RecordError(
                f"{self._store.url}/{path} is no manifest that this version of metier reads: "
                f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            ) from error
        if (manifest.run_id, manifest.number) != (run_id, number):
            raise RecordError(f"{self._store.url}/{path} is another run's or number's manifest: put it back")
        run.add(manifest)
        return True

    def next_number(self, run_id: str) -> int:
        """Under which the run's next manifest goes, as far as is known."""
        return self._runs[run_id].next if run_id in self._runs else 0

    def trace(self, run_id: str, episode_id: str, attempt: int) -> str | None:
        """The playing that is stored under this attempt, None where there is none."""
        found = self._attempt(run_id, episode_id, attempt)
        return found.trace_id if found else None

    def has(self, key: Key) -> bool:
        """Whether this event is stored."""
        found = self._attempt(key.run_id, key.episode_id, key.attempt)
        return found is not None and key.seq in found.spans

    def manifests(self, run_id: str) -> list[Manifest]:
        """Those in force, in order."""
        run = self._runs.get(run_id)
        return [run.manifests[number] for number in sorted(run.manifests)] if run else []

    def attempts(self, run_id: str) -> list[Stored]:
        """What the run has."""
        run = self._runs.get(run_id)
        return list(run.attempts.values()) if run else []

    def last_attempt(self, run_id: str, episode_id: str) -> int | None:
        """The largest number under which the episode is stored."""
        run = self._runs.get(run_id)
        return run.last.get(episode_id) if run else None

    def _attempt(self, run_id: str, episode_id: str, attempt: int) -> Stored | None:
        run = self._runs.get(run_id)
        return run.attempts.get((episode_id, attempt)) if run else None


class Stored:
    """An attempt, as far as it is stored."""

    __slots__ = ("attempt", "episode_id", "spans", "trace_id")

    def __init__(self, cover: Cover) -> None:
        self.episode_id, self.attempt, self.trace_id = cover.episode_id, cover.attempt, cover.trace_id
        self.spans = Spans()


class _Run:
    def __init__(self) -> None:
        self.next = 0
        self.manifests: dict[int, Manifest] = {}
        self.attempts: dict[tuple[str, int], Stored] = {}
        self.last: dict[str, int] = {}

    def add(self, manifest: Manifest) -> None:
        self.next = manifest.number + 1
        for number in manifest.replaces:
            self.manifests.pop(number, None)
        self.manifests[manifest.number] = manifest
        for cover in manifest.covers:
            stored = self.attempts.setdefault((cover.episode_id, cover.attempt), Stored(cover))
            stored.spans.update(cover.spans)
            self.last[cover.episode_id] = max(cover.attempt, self.last.get(cover.episode_id, 0))


def covers(keys: Iterable[tuple[Key, str]]) -> tuple[Cover, ...]:
    """Of these keys and the playings that they are of."""
    found: dict[tuple[str, int, str], Spans] = {}
    for key, trace_id in keys:
        found.setdefault((key.episode_id, key.attempt, trace_id), Spans()).add(key.seq)
    return tuple(
        Cover(episode_id=episode, attempt=attempt, trace_id=trace_id, spans=spans.whole)
        for (episode, attempt, trace_id), spans in sorted(found.items(), key=lambda item: item[0])
    )


def in_force(manifests: Sequence[Manifest]) -> int:
    """How many events these commit."""
    return sum(manifest.num_events for manifest in manifests)
