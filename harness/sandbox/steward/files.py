"""Opening files with the named user's rights. Root never follows a link that the agent could have made.

Inside the writable trees root walks from the tree's own root, one component at a time, following nothing; elsewhere the
file system is read-only and its links are the image's own. The agent may follow its own links: they give it nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator

from .rights import acting_as

PART = 256 * 1024
_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def split(path: str) -> list[str]:
    """The components of a path. Raises ValueError for `..`, which no honest path needs."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or "\0" in path:
        raise ValueError(f"{path!r}: a path may not hold '..' or NUL")
    return parts


def tree_of(path: str, trees: list[str]) -> str | None:
    """The writable tree that holds `path`."""
    for tree in trees:
        if path == tree or path.startswith(tree + "/"):
            return tree
    return None


def walk(start: int, parts: list[str], make: bool = False) -> int:
    """A descriptor of the folder `parts` below `start`, following no link; the caller closes it."""
    fd = os.dup(start)
    try:
        for part in parts:
            try:
                below = os.open(part, _DIR, dir_fd=fd)
            except FileNotFoundError:
                if not make:
                    raise
                os.mkdir(part, 0o755, dir_fd=fd)
                below = os.open(part, _DIR, dir_fd=fd)
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        raise
    return fd


def open_below(start: int, parts: list[str], flags: int, mode: int = 0o600, make: bool = False) -> int:
    """Opens the file `parts` below `start`, following no link."""
    if not parts:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    folder = walk(start, parts[:-1], make)
    try:
        return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode, dir_fd=folder)
    finally:
        os.close(folder)


def _open(path: str, flags: int, uid: int | None, trees: list[str], mode: int = 0o600, make: bool = False) -> int:
    if not path.startswith("/"):
        raise ValueError(f"{path!r}: not an absolute path")
    parts = split(path)
    tree = tree_of("/" + "/".join(parts), trees)
    if tree is not None and (uid == 0 or make):
        root = os.open(tree, _DIR)
        try:
            return open_below(root, parts[len(split(tree)) :], flags, mode, make)
        finally:
            os.close(root)
    return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode)


def regular(fd: int, path: str) -> os.stat_result:
    """The status of a regular file. Raises IsADirectoryError, or OSError for pipes, sockets and devices."""
    status = os.fstat(fd)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder", path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", path)
    return status


def read(path: str, max_bytes: int, uid: int | None, trees: list[str]) -> tuple[int, int]:
    """An open descriptor of a regular file of at most `max_bytes`, and its size now. The caller closes it."""
    with acting_as(uid):
        fd = _open(path, os.O_RDONLY, uid, trees)
    try:
        status = regular(fd, path)
        if status.st_size > max_bytes:
            raise ValueError(f"{path}: {status.st_size} bytes, more than max_bytes={max_bytes}")
    except BaseException:
        os.close(fd)
        raise
    return fd, status.st_size


def parts_of(fd: int, max_bytes: int) -> Iterator[bytes]:
    """The file's bytes, up to `max_bytes`; closes the descriptor at the end."""
    try:
        left = max_bytes
        while left > 0:
            data = os.read(fd, min(PART, left))
            if not data:
                return
            left -= len(data)
            yield data
    finally:
        os.close(fd)


def write_all(fd: int, data: memoryview) -> None:
    """Writes everything. Raises OSError(ENOSPC) if the tree is full."""
    while len(data):
        data = data[os.write(fd, data) :]


def memory_file(data: bytes) -> int:
    """An unnamed file in memory that holds `data`, ready to be read or inherited; the caller closes it."""
    fd = os.memfd_create("metier", os.MFD_CLOEXEC)
    write_all(fd, memoryview(data))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def write(path: str, data: bytes, mode: int, uid: int | None, trees: list[str]) -> None:
    """Makes or replaces a regular file and its parents. On a full tree nothing half-written stays."""
    with acting_as(uid):
        flags = os.O_WRONLY | os.O_CREAT
        try:
            fd = _open(path, flags, uid, trees, mode, make=True)
        except OSError as error:
            # the agent's own link, which it may write through with its own rights
            if error.errno not in (errno.ELOOP, errno.ENOTDIR) or uid == 0:
                raise
            fd = _open(path, flags, uid, [], mode)
        try:
            regular(fd, path)
            os.ftruncate(fd, 0)
            write_all(fd, memoryview(data))
            os.fchmod(fd, mode)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                os.ftruncate(fd, 0)
            raise
        finally:
            os.close(fd)
