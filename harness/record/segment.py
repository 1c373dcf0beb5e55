"""A batch of events as files: its lines as zstd JSON Lines, and its rows as Parquet, all named by what they hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic_core

from .blob import BlobRef
from .event import EndedBody, Event, StepBody, TurnBody
from .extras import need
from .manifest import Cover, FileRef, covers
from .tables import Row, parquet, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An event beside the bytes that it came as."""

    event: Event
    data: bytes

    @property
    def blobs(self) -> Iterator[BlobRef]:
        """The blobs that it refers to."""
        yield from pictures(self.event)
        if b'"body_blob"' in self.data and (stub := pydantic_core.from_json(self.data).get("body_blob")):
            yield BlobRef.model_validate(stub)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The files of a batch, ready to be stored."""

    name: str
    files: tuple[tuple[FileRef, bytes], ...]
    """The first one is the lines."""
    tables: tuple[str, ...]
    """Of the files after it."""
    covers: tuple[Cover, ...]
    blobs: tuple[str, ...]
    num_events: int


def segment(run_id: str, lines: Sequence[Line]) -> Segment:
    """The files of a run's events: the same for the same events, in whatever order they came."""
    ordered = sorted(lines, key=lambda line: line.event.key)
    text = b"".join(line.data + b"\n" for line in ordered)
    name = hashlib.sha256(text).hexdigest()[:32]
    found: dict[str, list[Row]] = {}
    for line in ordered:
        for table, row in rows(line.event):
            found.setdefault(table, []).append(row)
    files = [_file(f"segments/run_id={run_id}/{name}", "jsonl.zst", compressed(text), len(ordered))]
    for table, all_rows in sorted(found.items()):
        path = f"tables/{table}/run_id={run_id}/{name}"
        files.append(_file(path, "parquet", parquet(table, all_rows), len(all_rows)))
    return Segment(
        name=name,
        files=tuple(files),
        tables=tuple(sorted(found)),
        covers=covers((line.event.key, line.event.trace_id) for line in ordered),
        blobs=tuple(sorted({ref.sha256 for line in ordered for ref in line.blobs})),
        num_events=len(ordered),
    )


def _file(path: str, suffix: str, data: bytes, num_rows: int) -> tuple[FileRef, bytes]:
    """Its own hash is in the name too: other versions of a library may write the same rows in other bytes."""
    digest = hashlib.sha256(data).hexdigest()
    ref = FileRef(path=f"{path}-{digest[:8]}.{suffix}", size_bytes=len(data), sha256=digest, rows=num_rows)
    return ref, data


def pictures(event: Event) -> Iterator[BlobRef]:
    """The blobs that an event's body refers to."""
    body = event.body
    if isinstance(body, StepBody):
        yield from body.images
    if isinstance(body, TurnBody | StepBody | EndedBody):
        for told in body.told:
            yield from told.images


def compressed(data: bytes) -> bytes:
    """One zstd frame."""
    pa = need("pyarrow", "segments of records")
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def lines_of(data: bytes) -> Iterable[bytes]:
    """The lines of a segment. Raises OSError for one that is no zstd."""
    pa: Any = need("pyarrow", "segments of records")
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        text = stream.read()
    return text.splitlines()
