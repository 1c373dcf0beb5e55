"""Files of a results folder: whatever lies there, reading them follows no link, hangs on nothing and is bounded."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .faults import ResultsError, ResultsNotKept

MIB = 1 << 20


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """A regular file, for reading.

    Raises:
        FileNotFoundError: there is none.
        ResultsError: it is a link, a device, a pipe or a folder, or cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ResultsError(f"{path} is no plain file that can be read ({error.strerror}): restore it") from error
    with os.fdopen(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ResultsError(f"{path} is no plain file: restore it")
        yield file


def read(path: Path, most_bytes: int) -> bytes:
    """The bytes of a file. Raises as `opened`, and ResultsError where there are more of them."""
    with opened(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ResultsError(f"{path} has more than {most_bytes >> 20} MiB: it is no file of this folder")
    return data


def replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, and durably.

    Raises:
        ResultsNotKept: it could not be written.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(fd)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise not_kept(path, error) from error


def not_kept(path: Path, error: OSError) -> ResultsNotKept:
    """The error of a write that failed."""
    why = error.strerror or str(error)
    return ResultsNotKept(
        f"{path} could not be written: {why}; all results before it are kept: make room, and run the same command again"
    )


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def packed(data: bytes) -> bytes:
    """Compressed, the same bytes for the same data."""
    return gzip.compress(data, compresslevel=6, mtime=0)


def unpacked(data: bytes, most_bytes: int, what: str) -> bytes:
    """Raises ResultsError: no such data, or more of it than anything of ours has."""
    stream = zlib.decompressobj(wbits=31)
    try:
        plain = stream.decompress(data, most_bytes)
    except zlib.error as error:
        raise ResultsError(f"{what} is damaged ({error}): restore it") from error
    if not stream.eof or stream.unused_data:
        raise ResultsError(f"{what} is damaged, or holds more than {most_bytes >> 20} MiB: restore it")
    return plain
