"""Reading a store: runs, attempts with their events, blobs. Only what a manifest commits is there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from metier.envs.core import ConfigError, Json

from ..result import EpisodeResult
from .blob import BlobRef
from .errors import RecordError
from .event import LOG_PREFIX, EndedBody, Event, Kind, StartedBody, VerdictBody
from .manifest import Catalogue, Manifest
from .parcel import unpack
from .recording import result_of
from .segment import lines_of
from .sink import check_format
from .store import Store, open_store

Name = tuple[str, str, int]
"""Run, episode, attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt's events, in order."""

    run_id: str
    episode_id: str
    attempt: int
    trace_id: str
    events: tuple[Event, ...]

    @property
    def whole(self) -> bool:
        """Whether nothing is missing, from its beginning to its end."""
        gapless = [event.seq for event in self.events] == list(range(len(self.events)))
        return gapless and bool(self.events) and self.events[-1].kind is Kind.EPISODE_ENDED

    @property
    def started(self) -> StartedBody | None:
        """How it began."""
        body = self.events[0].body if self.events else None
        return body if isinstance(body, StartedBody) else None

    @property
    def ended(self) -> EndedBody | None:
        """How it ended; None where it did not, or that is not stored yet."""
        body = self.events[-1].body if self.events else None
        return body if isinstance(body, EndedBody) else None

    @property
    def verdict(self) -> VerdictBody | None:
        """Its grade."""
        return next((event.body for event in self.events if isinstance(event.body, VerdictBody)), None)


class Records:
    """A store of records, for reading.

    Example:
        >>> from metier.harness.record import Records
        >>> Records.open("nowhere")
        Traceback (most recent call last):
        metier.envs.core.errors.ConfigError: there are no records at nowhere
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._catalogue = Catalogue(store)

    @classmethod
    def open(cls, url: str | Path, options: Mapping[str, Json] | None = None) -> Records:
        """Raises ConfigError where there are no records; StoreUnavailable."""
        store = open_store(url, options)
        check_format(store)
        return cls(store)

    def runs(self) -> list[str]:
        """Their ids."""
        return self._catalogue.runs()

    def manifests(self, run_ids: Iterable[str] | None = None) -> list[Manifest]:
        """Those in force, of these runs or all. Raises ConfigError for a run that is not there."""
        known = self.runs()
        wanted = known if run_ids is None else list(run_ids)
        found: list[Manifest] = []
        for run_id in wanted:
            if run_id not in known:
                raise ConfigError(f"no run {run_id!r} at {self.store.url}; there are {', '.join(known) or 'none'}")
            self._catalogue.refresh(run_id)
            found += self._catalogue.manifests(run_id)
        return found

    def attempts(
        self, run_ids: Iterable[str] | None = None, wanted: Callable[[Name], bool] = lambda _: True
    ) -> Iterator[Attempt]:
        """The attempts that are `wanted`, each as soon as its last event is read; logs are none.

        Raises:
            ConfigError: a run that is not there.
            RecordError: a segment is damaged.
        """
        for run_id in self.runs() if run_ids is None else list(run_ids):
            yield from self._attempts(run_id, wanted)

    def _attempts(self, run_id: str, wanted: Callable[[Name], bool]) -> Iterator[Attempt]:
        manifests = self.manifests([run_id])
        left: dict[tuple[str, int], int] = {}
        for stored in self._catalogue.attempts(run_id):
            if not stored.episode_id.startswith(LOG_PREFIX) and wanted((run_id, stored.episode_id, stored.attempt)):
                left[stored.episode_id, stored.attempt] = len(stored.spans)
        open_ones: dict[tuple[str, int], list[Event]] = {}
        for manifest in manifests:
            if not any((cover.episode_id, cover.attempt) in left for cover in manifest.covers):
                continue
            touched: set[tuple[str, int]] = set()
            for event in self.events(manifest):
                name = (event.episode_id, event.attempt)
                if name in left:
                    open_ones.setdefault(name, []).append(event)
                    left[name] -= 1
                    touched.add(name)
            for name in sorted(touched):
                if left[name] <= 0:
                    yield _attempt(open_ones.pop(name))

    def events(self, manifest: Manifest) -> Iterator[Event]:
        """A commit's events. Raises RecordError where its segment is damaged."""
        for line in lines_of(self.segment(manifest)):
            yield unpack(line, self.load)

    def segment(self, manifest: Manifest) -> bytes:
        """A commit's lines, compressed. Raises RecordError where they are damaged."""
        ref = manifest.segment
        try:
            data = self.store.read(ref.path)
        except FileNotFoundError:
            raise RecordError(f"{self.store.url}/{ref.path} is missing, which {manifest.path} names") from None
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            raise RecordError(
                f"{self.store.url}/{ref.path} is damaged: it has another content than {manifest.path} says"
            )
        return data

    def load(self, ref: BlobRef) -> bytes:
        """A blob's bytes. Raises FileNotFoundError, StoreUnavailable, RecordError where it is damaged."""
        data = self.store.read(ref.path)
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            raise RecordError(f"{self.store.url}/{ref.path} is damaged: it has another content than its name says")
        return data

    def result(self, attempt: Attempt) -> EpisodeResult:
        """The episode again. Raises ValueError where it is not whole; as `load`."""
        return result_of(attempt.events, self.load)

    def dead_letters(self) -> list[str]:
        """The names of what could not be stored."""
        return self.store.names("dead")


def _attempt(events: Sequence[Event]) -> Attempt:
    ordered = sorted(events, key=lambda event: event.seq)
    first = ordered[0]
    return Attempt(
        run_id=first.run_id,
        episode_id=first.episode_id,
        attempt=first.attempt,
        trace_id=first.trace_id,
        events=tuple(ordered),
    )
