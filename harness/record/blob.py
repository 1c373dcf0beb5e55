"""Blobs: bytes that are named by their hash, stored once, and referred to by events."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated

import pydantic
from pydantic import Field

PNG = "image/png"
JSON = "application/json"


class BlobRef(pydantic.BaseModel, frozen=True, extra="forbid"):
    """A blob's name, as events carry it."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size_bytes: int = Field(ge=0)
    media_type: str = "application/octet-stream"

    @property
    def path(self) -> str:
        """Where it lies in a store."""
        return blob_path(self.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """A blob on its way to the store.

    Example:
        >>> Blob.of(b"abc", "text/plain").ref.size_bytes
        3
    """

    ref: BlobRef
    data: bytes

    @classmethod
    def of(cls, data: bytes, media_type: str) -> Blob:
        """Names `data` by its hash."""
        digest = hashlib.sha256(data).hexdigest()
        return cls(ref=BlobRef(sha256=digest, size_bytes=len(data), media_type=media_type), data=data)


def blob_path(sha256: str) -> str:
    """Two hundred and fifty-six folders, so that none grows too long to list."""
    return f"blobs/{sha256[:2]}/{sha256}"
