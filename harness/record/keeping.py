"""Keeping a store in shape: few large files instead of many small ones (`compact`), and nothing for ever (`prune`).

Both may run beside writers and readers. What goes is first no longer named by a manifest in force, and its files stay
for another day, for readers that had begun and for writers whose files come before their manifest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from .manifest import Manifest
from .parcel import unpack
from .reader import Records
from .segment import Line, lines_of
from .sink import Sink
from .store import Store

GRACE_S = 24 * 3600.0
_MOST_EVENTS = 50_000
_MOST_BYTES = 16 << 20
"""Of a segment, zstd; in memory it is some ten times as large."""


def compact(records: Records, run_id: str, *, min_commits: int = 8) -> int:
    """Take a run's small commits together, in their order; returns how many were replaced.

    Raises:
        ConfigError: a run that is not there.
        RecordError: a segment is damaged, or the store cannot be reached.
    """
    sink = Sink(records.store)
    replaced = 0
    for group in _groups(records.manifests([run_id]), min_commits):
        lines = [line for manifest in group for line in _lines(records, manifest)]
        if not sink.replace(run_id, lines, group):
            break  # another one compacts this run
        replaced += len(group)
    return replaced


def _groups(manifests: list[Manifest], min_commits: int) -> Iterator[list[Manifest]]:
    group: list[Manifest] = []
    for manifest in manifests:
        events = sum(one.num_events for one in group) + manifest.num_events
        size = sum(one.segment.size_bytes for one in group) + manifest.segment.size_bytes
        if group and (events > _MOST_EVENTS or size > _MOST_BYTES):
            if len(group) >= min_commits:
                yield group
            group = []
        group.append(manifest)
    if len(group) >= min_commits:
        yield group


def _lines(records: Records, manifest: Manifest) -> Iterator[Line]:
    for data in lines_of(records.segment(manifest)):
        yield Line(event=unpack(data, records.load), data=data)


@dataclass(slots=True, kw_only=True)
class Pruned:
    """What goes, or would go."""

    runs: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    """Files that nothing in force names, and manifests of those runs."""


def prune(
    records: Records, *, older_than_s: float | None, run_ids: frozenset[str] | None = None, remove: bool = False
) -> Pruned:
    """Runs whose last commit is older than `older_than_s`, and what nothing names any more.

    `older_than_s` None keeps all runs; `run_ids` limits which runs may go. Without `remove` it only tells.

    Raises:
        RecordError: the store cannot be reached, or a manifest cannot be read.
    """
    store, now = records.store, time.time()
    pruned = Pruned()
    named: set[str] = set()
    for run_id in records.runs():
        manifests = records.manifests([run_id])
        last = max((datetime.fromisoformat(one.written_at).timestamp() for one in manifests), default=0.0)
        chosen = run_ids is None or run_id in run_ids
        if older_than_s is not None and chosen and now - last > older_than_s:
            pruned.runs.append(run_id)
            pruned.paths += [f"manifests/{run_id}/{name}" for name in store.names(f"manifests/{run_id}")]
        else:
            named |= {file.path for one in manifests for file in (one.segment, *one.tables.values())}
            named |= {f"blobs/{sha256[:2]}/{sha256}" for one in manifests for sha256 in one.blobs}
    # manifests first: a reader that comes in between finds less, and nothing that is broken
    gone = set(pruned.runs)
    pruned.paths += [path for path in _files(store) if path not in named and _may_go(store, path, gone)]
    if remove:
        for path in pruned.paths:
            store.remove(path)
    return pruned


def _may_go(store: Store, path: str, gone: set[str]) -> bool:
    run = path.partition("/run_id=")[2].partition("/")[0]
    try:
        return run in gone or store.age_s(path) > GRACE_S
    except FileNotFoundError:
        return False


def _files(store: Store) -> Iterator[str]:
    folders = ["segments", *(f"tables/{table}" for table in store.names("tables"))]
    for folder in folders:
        for run in store.names(folder):
            yield from (f"{folder}/{run}/{name}" for name in store.names(f"{folder}/{run}"))
    for start in store.names("blobs"):
        yield from (f"blobs/{start}/{name}" for name in store.names(f"blobs/{start}"))


__all__ = ["GRACE_S", "Pruned", "compact", "prune"]
