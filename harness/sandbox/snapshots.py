"""Snapshots on the host: tar files by the hash of their bytes, in a folder that only its owner can open."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from metier.envs.core import ConfigError, SandboxSpec, Snapshot
from metier.images import making_room


class SnapshotStore:
    """Snapshots below one folder. Identical trees share one file; a file appears whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, snapshot: Snapshot) -> Path:
        """The tar of a snapshot. Raises ConfigError if it was taken elsewhere, or removed."""
        path = self._folder / f"{snapshot.digest}.tar"
        if not path.is_file():
            raise ConfigError(
                f"snapshot {snapshot.digest[:12]} is not in {self._folder}; prepare it on this machine, "
                "or share METIER_HOME between the machines"
            )
        return path

    def writer(self, spec: SandboxSpec) -> SnapshotWriter:
        """Takes the bytes of a new snapshot; a context manager. Raises SandboxUnavailable for a folder without room."""
        with making_room(self._folder, "a snapshot"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return SnapshotWriter(self._folder, spec)


class SnapshotWriter:
    """Bytes come by `add`; `finish` names the file by its content. Left without `finish`, nothing stays.

    Until then the file has no name, so that a writer that is killed leaves none either. Where the file system has no
    such files (NFS), a `.partial` of a killed writer stays.
    """

    def __init__(self, folder: Path, spec: SandboxSpec) -> None:
        self._folder = folder
        self._spec = spec
        self._hash = hashlib.sha256()
        self._size = 0
        self._name = ""
        self._full: OSError | None = None
        try:
            descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        except OSError:
            descriptor, self._name = tempfile.mkstemp(dir=folder, suffix=".partial")
        self._file = os.fdopen(descriptor, "wb")

    def add(self, data: bytes) -> None:
        """Takes the next bytes. Never fails, since whoever brings them has no part in a full disk; `finish` does."""
        self._hash.update(data)
        self._size += len(data)
        if self._full is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._full = error

    def finish(self) -> Snapshot:
        """The snapshot, now in the store. Raises SandboxUnavailable for want of room."""
        with making_room(self._folder, f"a snapshot of {self._size >> 20} MiB"):
            if self._full is not None:
                raise self._full
            return self._finish()

    def _finish(self) -> Snapshot:
        self._file.flush()
        digest = self._hash.hexdigest()
        path = self._folder / f"{digest}.tar"
        if self._name:
            os.replace(self._name, path)
        else:
            descriptor = self._file.fileno()
            with contextlib.suppress(FileExistsError):  # an identical tree was taken before
                # the descriptor of a folder is not used for an absolute path, but makes Python follow the link
                os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
        return Snapshot(digest=digest, spec=self._spec, size_bytes=self._size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):  # what could not be written before cannot now
            self._file.close()
        if self._name:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._name)
