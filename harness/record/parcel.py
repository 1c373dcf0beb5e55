"""An event as it travels and as segments keep it: one line of JSON, never more than `MAX_QUEUED_BYTES`.

A larger event leaves its body in the store, as a blob, and travels as its head with the body's hash. Lines are kept as
they were produced; `unpack` reads those of every version that ever was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pydantic
import pydantic_core

from .blob import JSON, Blob, BlobRef
from .errors import MalformedEvent, RecordError
from .event import SCHEMA_VERSION, Event, Head, Key, Kind, Stub

MAX_QUEUED_BYTES = 256 * 1024

Load = Callable[[BlobRef], bytes]
"""Fetches a blob. Raises FileNotFoundError, StoreUnavailable."""

UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Version → what makes an event of that version one of the next; they run one after another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """One event ready to travel, with the blobs that must be in the store before it."""

    key: Key
    trace_id: str
    data: bytes
    """One line, without its end."""
    blobs: tuple[Blob, ...] = ()
    droppable: bool = False

    @property
    def size_bytes(self) -> int:
        """What it takes of a queue."""
        return len(self.data) + sum(len(blob.data) for blob in self.blobs)

    @property
    def delivery_id(self) -> str:
        """What brokers recognise a redelivery by; of bounded length, whatever ids are in the key."""
        return delivery_id(self.key, self.trace_id)


def delivery_id(key: Key, trace_id: str) -> str:
    """SHA-256 of key and playing, hexadecimal."""
    return hashlib.sha256(f"{key}\0{trace_id}".encode()).hexdigest()


def pack(event: Event, blobs: Sequence[Blob] = ()) -> Parcel:
    """Ready to travel.

    Raises:
        RecordError: the event holds what JSON cannot, such as half of a character.
    """
    try:
        data = event.model_dump_json().encode()
        carried = tuple(blobs)
        if len(data) > MAX_QUEUED_BYTES:
            body = Blob.of(event.body.model_dump_json().encode(), JSON)
            head = event.model_dump(include=set(Head.model_fields))
            data = Stub(**head, body_blob=body.ref).model_dump_json().encode()
            carried = (*carried, body)
    except (pydantic_core.PydanticSerializationError, UnicodeEncodeError) as error:
        raise RecordError(f"event {event.key}: {error}; record texts by `recorded_turn` and `recorded_call`") from error
    return Parcel(key=event.key, trace_id=event.trace_id, data=data, blobs=carried, droppable=event.kind is Kind.LOG)


def unpack(data: bytes, load: Load) -> Event:
    """The event of a line.

    Raises:
        MalformedEvent: it is none, or of a newer version than this one knows.
        StoreUnavailable: its body is a blob, and the store cannot be reached.
    """
    try:
        raw: Any = pydantic_core.from_json(data)
        if not isinstance(raw, dict):
            raise MalformedEvent(f"no event but JSON of type {type(raw).__name__}")
        fields: dict[str, Any] = raw
        if "body_blob" in fields:
            fields["body"] = pydantic_core.from_json(_whole(BlobRef.model_validate(fields.pop("body_blob")), load))
        return Event.model_validate(_upgraded(fields))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise MalformedEvent(f"no event of version {SCHEMA_VERSION}: {place}: {first['msg']}") from error
    except ValueError as error:
        raise MalformedEvent(f"no JSON: {error}") from error


def _whole(ref: BlobRef, load: Load) -> bytes:
    try:
        data = load(ref)
    except FileNotFoundError as error:
        raise MalformedEvent(f"its body, blob {ref.sha256[:12]}, is not in the store") from error
    if hashlib.sha256(data).hexdigest() != ref.sha256:
        raise MalformedEvent(f"its body, blob {ref.sha256[:12]}, has another content than its name says")
    return data


def _upgraded(fields: dict[str, Any]) -> dict[str, Any]:
    version = fields.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise MalformedEvent(f"no event: schema_version is {version!r:.40}")
    if version > SCHEMA_VERSION:
        raise MalformedEvent(f"an event of version {version}, written by a newer metier: update this one to read it")
    while version < SCHEMA_VERSION:
        fields = UPGRADES[version](fields)
        version += 1
    return fields
