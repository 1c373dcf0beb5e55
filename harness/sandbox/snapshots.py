"""Snapshots on the host: tar files by the hash of their bytes, in a folder that only its owner can open.

The folder is bounded: those that nobody has used for longest are removed, whoever took them. No lock guards a fork
against that: a file that is open stays whole until it is read, and a fork that comes too late raises `SnapshotGone`,
upon which it is prepared once more (`Preparer`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from metier.envs.core import ConfigError, SandboxSpec, Snapshot
from metier.images import making_room

MOST_MB = 4096
"""Far more than one batch's instances: the certified families' snapshots take 0.03 to 2.8 MiB."""
_TRIM_SHARE = 16
"""A store looks at the folder again once it has added this part of what may lie there."""
_KILLED_S = 3600.0
"""No snapshot takes so long to be written."""


class SnapshotGone(ConfigError):
    """The snapshot was taken elsewhere, or removed to make room for others."""


class SnapshotStore:
    """Snapshots below one folder. Identical trees share one file; a file appears whole or not at all."""

    def __init__(self, folder: Path, *, most_mb: int = MOST_MB) -> None:
        """`most_mb`: beyond it, and a sixteenth more for each process that adds to it, the longest unused go."""
        self._folder = folder
        self._most_bytes = most_mb << 20
        self._added_bytes = self._most_bytes  # an earlier process may have left more than there may be

    def use(self, snapshot: Snapshot) -> Path:
        """The tar of a snapshot that is about to be forked. Raises SnapshotGone."""
        path = self._folder / f"{snapshot.digest}.tar"
        try:
            os.utime(path)
        except FileNotFoundError:
            raise SnapshotGone(
                f"snapshot {snapshot.digest[:12]} is not in {self._folder}; prepare it on this machine, "
                "or share METIER_HOME between the machines"
            ) from None
        except OSError:  # a folder that may only be read
            pass
        return path

    def read(self, snapshot: Snapshot) -> bytes:
        """The bytes of a snapshot. Raises SnapshotGone."""
        try:
            return self.use(snapshot).read_bytes()
        except FileNotFoundError:
            raise SnapshotGone(f"snapshot {snapshot.digest[:12]} was removed just now; prepare it again") from None

    def added(self, snapshot: Snapshot) -> None:
        """Makes room where so much was added that there may be too much; never at the cost of `snapshot`."""
        self._added_bytes += snapshot.size_bytes
        if self._added_bytes >= self._most_bytes // _TRIM_SHARE:
            self._added_bytes = 0
            self._trim(spare=f"{snapshot.digest}.tar")

    def _trim(self, spare: str) -> None:
        """Removes the longest unused until the rest fits, and what a killed writer left unfinished."""
        left = self._most_bytes
        now = time.time()
        for used_at, size, path in sorted(self._files(), reverse=True):
            finished = path.suffix == ".tar"
            left -= size if finished else 0
            removable = left < 0 and path.name != spare if finished else now - used_at > _KILLED_S
            if removable:
                with contextlib.suppress(OSError):  # gone by another hand, or not ours to remove
                    path.unlink()

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """When each was last used, its bytes, and where it is."""
        with os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    stat = entry.stat(follow_symlinks=False)
                    if entry.name.endswith((".tar", ".partial")):
                        yield stat.st_mtime, stat.st_size, Path(entry.path)

    def writer(self, spec: SandboxSpec) -> SnapshotWriter:
        """Takes the bytes of a new snapshot; a context manager. Raises SandboxUnavailable for a folder without room."""
        with making_room(self._folder, "a snapshot"):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return SnapshotWriter(self._folder, spec)


class SnapshotWriter:
    """Bytes come by `add`; `finish` names the file by its content. Left without `finish`, nothing stays.

    Until then the file has no name, so that a writer that is killed leaves none either. Where the file system has no
    such files (NFS), a `.partial` of a killed writer stays for an hour.
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
            while not self._linked(path):
                # an identical tree was taken before
                with contextlib.suppress(FileNotFoundError):  # and made room just now
                    os.utime(path)
                    break
        return Snapshot(digest=digest, spec=self._spec, size_bytes=self._size)

    def _linked(self, path: Path) -> bool:
        """Gives the file its name, unless there is one of that name."""
        descriptor = self._file.fileno()
        try:
            # the descriptor of a folder is not used for an absolute path, but makes Python follow the link
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)
        except FileExistsError:
            return False
        return True

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
