"""Where records come to rest: a local folder, or whatever fsspec has a filesystem for (`s3://bucket/folder`).

Every object is written once, under a name that says what it holds, and appears whole or not at all: so nothing here
overwrites. `create` tells whether it was the first; on this rests that of two writers one commits (`manifest`). It is
exclusive in local folders, S3 and Google's storage; a filesystem without exclusive creation bears one writer at a time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from metier.envs.core import ConfigError, Json

from .errors import StoreUnavailable
from .extras import need


class Store(Protocol):
    """Objects by their paths, such as `blobs/ab/abcd…`. Every method may raise StoreUnavailable."""

    url: str

    def create(self, path: str, data: bytes) -> bool:
        """Store `data`, durably; False if there is an object of that name already, which stays as it is."""
        ...

    def read(self, path: str) -> bytes:
        """The object. Raises FileNotFoundError."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is an object of that name."""
        ...

    def names(self, folder: str) -> list[str]:
        """What lies directly below, objects and folders, sorted; none for a folder that is not there."""
        ...

    def age_s(self, path: str) -> float:
        """Seconds since it was stored. Raises FileNotFoundError."""
        ...

    def remove(self, path: str) -> None:
        """An object, if it is there."""
        ...

    def arrow(self) -> tuple[Any, str]:
        """A filesystem that pyarrow takes, and what to put before paths."""
        ...


def open_store(url: str | Path, options: Mapping[str, Json] | None = None) -> Store:
    """The store at a path or URL; `options` go to its fsspec filesystem.

    Raises:
        ConfigError: no such kind of store, or what it needs is not installed.
    """
    text = str(url)
    if text.startswith("file://"):
        text = text.removeprefix("file://")
    if "://" not in text:
        return FolderStore(Path(text))
    return FsspecStore(text, options or {})


class FolderStore:
    """A local folder. A file is written without a name, made durable, and then named."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self.url = str(folder)

    def create(self, path: str, data: bytes) -> bool:
        with self._unavailable(path):
            try:
                return self._create(self._folder / path, data)
            except FileNotFoundError:  # somebody took the folder away as we began, since it was empty
                return self._create(self._folder / path, data)

    def _create(self, path: Path, data: bytes) -> bool:
        if path.exists():
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, named = _nameless(path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                try:
                    if named:
                        os.link(named, path)
                    else:  # given a folder's descriptor, Python asks for the link to be followed
                        source = f"/proc/self/fd/{file.fileno()}"
                        os.link(source, path, src_dir_fd=file.fileno(), follow_symlinks=True)
                except FileExistsError:
                    return False
        finally:
            if named:
                os.unlink(named)
        _sync_folder(path.parent)
        return True

    def read(self, path: str) -> bytes:
        with self._unavailable(path):
            return (self._folder / path).read_bytes()

    def exists(self, path: str) -> bool:
        return (self._folder / path).exists()

    def names(self, folder: str) -> list[str]:
        with self._unavailable(folder):
            try:
                return sorted(os.listdir(self._folder / folder))
            except FileNotFoundError:
                return []

    def age_s(self, path: str) -> float:
        with self._unavailable(path):
            return time.time() - (self._folder / path).stat().st_mtime

    def remove(self, path: str) -> None:
        with self._unavailable(path):
            (self._folder / path).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # a run without a manifest is none
                (self._folder / path).parent.rmdir()

    def arrow(self) -> tuple[Any, str]:
        return need("pyarrow.fs", "reading records").LocalFileSystem(), f"{self._folder}/"

    @contextlib.contextmanager
    def _unavailable(self, path: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            remedy = "make room on its disk" if full else "name a folder that you may write"
            raise StoreUnavailable(f"records: {self._folder / path}: {error.strerror or error}; {remedy}") from error


def _nameless(folder: Path) -> tuple[int, str]:
    """An open file without a name, or with one where the file system has no such files."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o644), ""
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        return tempfile.mkstemp(dir=folder, prefix=".", suffix=".partial")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FsspecStore:
    """Whatever fsspec reaches; S3 by s3fs, whose credentials and endpoint come from the environment (AWS_…)."""

    def __init__(self, url: str, options: Mapping[str, Json]) -> None:
        self.url = url
        what = f"a store at {url.partition('://')[0]}://"
        if url.startswith("s3://"):
            need("s3fs", what)
        fsspec = need("fsspec", what)
        try:
            self._fs, root = fsspec.url_to_fs(url, **options)
        except (ImportError, ValueError, TypeError) as error:
            raise ConfigError(
                f"{what}: {error}; name a folder or a URL that fsspec knows, such as s3://bucket"
            ) from error
        self._root = root.rstrip("/")

    def create(self, path: str, data: bytes) -> bool:
        with self._unavailable(path):
            where = self._at(path)
            try:
                self._fs.pipe_file(where, data, mode="create")
            except FileExistsError:
                return False
            except FileNotFoundError:  # a filesystem with real folders
                self._fs.makedirs(where.rpartition("/")[0], exist_ok=True)
                self._fs.pipe_file(where, data, mode="create")
        return True

    def read(self, path: str) -> bytes:
        with self._unavailable(path):
            return bytes(self._fs.cat_file(self._at(path)))

    def exists(self, path: str) -> bool:
        with self._unavailable(path):
            self._fs.invalidate_cache()
            return bool(self._fs.exists(self._at(path)))

    def names(self, folder: str) -> list[str]:
        with self._unavailable(folder):
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(self._at(folder), detail=False)
            except FileNotFoundError:
                return []
        return sorted({name for path in found if (name := str(path).rstrip("/").rpartition("/")[2])})

    def age_s(self, path: str) -> float:
        with self._unavailable(path):
            return time.time() - self._fs.modified(self._at(path)).timestamp()

    def remove(self, path: str) -> None:
        with self._unavailable(path), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._at(path))

    def arrow(self) -> tuple[Any, str]:
        arrow = need("pyarrow.fs", "reading records")
        return arrow.PyFileSystem(arrow.FSSpecHandler(self._fs)), f"{self._root}/"

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    @contextlib.contextmanager
    def _unavailable(self, path: str) -> Iterator[None]:
        """Filesystems raise whatever their clients raise."""
        try:
            yield
        except FileNotFoundError:
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise StoreUnavailable(f"records: {self.url}/{path}: {said}; is it up, and are you allowed in?") from error


__all__ = ["FolderStore", "FsspecStore", "Store", "open_store"]
