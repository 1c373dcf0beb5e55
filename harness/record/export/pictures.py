"""Pictures of an export: files beside it, each once, named by their content."""

from __future__ import annotations

from pathlib import Path

from ..blob import BlobRef
from ..parcel import Load

_SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


class Pictures:
    """A folder `images` beside the export, made when the first picture comes."""

    def __init__(self, folder: Path, load: Load) -> None:
        self._folder, self._load = folder / "images", load

    def path(self, ref: BlobRef) -> str:
        """The picture's path as the export names it, relative to its own folder. Raises as `Load`."""
        name = f"{ref.sha256}{_SUFFIXES.get(ref.media_type, '')}"
        target = self._folder / name
        if not target.exists():
            data = self._load(ref)
            self._folder.mkdir(parents=True, exist_ok=True)
            partial = target.with_suffix(".partial")
            partial.write_bytes(data)
            partial.rename(target)
        return f"{self._folder.name}/{name}"
