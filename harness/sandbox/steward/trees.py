"""Trees as tar: what a snapshot and the artefacts are made of, and how they come back.

Packing yields the archive piece by piece, so that a large tree is never in memory; the agent's processes must be dead,
for sizes are read before contents. Nothing is followed: a link is a link, and kept only where links are allowed.
Unpacking walks by descriptor and follows nothing either, so that no member can leave the tree.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from . import processes
from .files import _DIR, PART, memory_file, open_below, split, walk, write_all
from .rights import environment

if TYPE_CHECKING:
    from .main import Steward

MAX_ENTRIES = 200_000
END = b"\0" * 1024


class Entry(NamedTuple):
    """One member to pack: its name in the archive, where it lies, and its status."""

    name: str
    parts: list[str]
    status: os.stat_result
    link: str


class Refused(Exception):
    """Why an artefact is not taken."""


def kind_of(mode: int) -> str:
    """The kind of a file in words."""
    for test, word in (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return word
    return "a file"


def listing(root: int, parts: list[str], name: str) -> Iterator[Entry]:
    """The entry `parts` below `root` and all below it, sorted, folders before what they hold."""
    folder = walk(root, parts[:-1]) if parts else os.dup(root)
    try:
        last = parts[-1] if parts else "."
        status = os.stat(last, dir_fd=folder, follow_symlinks=False)
        link = os.readlink(last, dir_fd=folder) if stat.S_ISLNK(status.st_mode) else ""
    finally:
        os.close(folder)
    yield Entry(name, parts, status, link)
    if stat.S_ISDIR(status.st_mode):
        yield from _below(root, parts, name)


def _below(root: int, parts: list[str], name: str) -> Iterator[Entry]:
    """Depth first without recursion: a tree may be deeper than Python's stack."""
    waiting = [(parts, name)]
    while waiting:
        at, prefix = waiting.pop()
        folder = walk(root, at)
        try:
            names = sorted(os.listdir(folder))
            found = []
            for entry in names:
                status = os.stat(entry, dir_fd=folder, follow_symlinks=False)
                link = os.readlink(entry, dir_fd=folder) if stat.S_ISLNK(status.st_mode) else ""
                found.append(Entry(prefix + "/" + entry if prefix else entry, [*at, entry], status, link))
        finally:
            os.close(folder)
        yield from found
        waiting += [(e.parts, e.name) for e in reversed(found) if stat.S_ISDIR(e.status.st_mode)]


def header(entry: Entry, exact: bool) -> bytes:
    """The tar header of an entry; without `exact` only whether it may be executed is kept of its mode and owner."""
    info = tarfile.TarInfo(entry.name)
    mode = entry.status.st_mode
    info.mtime = int(entry.status.st_mtime)
    if stat.S_ISLNK(mode):
        info.type, info.linkname = tarfile.SYMTYPE, entry.link
    elif stat.S_ISDIR(mode):
        info.type = tarfile.DIRTYPE
    else:
        info.size = entry.status.st_size
    if exact:
        info.mode, info.uid, info.gid = stat.S_IMODE(mode), entry.status.st_uid, entry.status.st_gid
    else:
        info.mode = 0o755 if stat.S_ISDIR(mode) or mode & 0o100 else 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def packed(root: int, entry: Entry, exact: bool) -> Iterator[bytes]:
    """Header, content and padding of one entry."""
    yield header(entry, exact)
    if not stat.S_ISREG(entry.status.st_mode):
        return
    left = entry.status.st_size
    fd = _open_own(root, entry)
    try:
        while left > 0:
            data = os.read(fd, min(PART, left))
            if not data:
                data = b"\0" * min(PART, left)  # it shrank: the announced size must still be met
            left -= len(data)
            yield data
    finally:
        os.close(fd)
    if entry.status.st_size % 512:
        yield b"\0" * (512 - entry.status.st_size % 512)


def _open_own(root: int, entry: Entry) -> int:
    """Opens a file for reading; one that its owner locked away from itself is read all the same."""
    try:
        return open_below(root, entry.parts, os.O_RDONLY)
    except PermissionError:
        if entry.status.st_uid != os.geteuid():
            raise
    folder = walk(root, entry.parts[:-1])
    try:
        os.chmod(entry.parts[-1], 0o400, dir_fd=folder)
        fd = open_below(root, entry.parts, os.O_RDONLY)
        os.fchmod(fd, stat.S_IMODE(entry.status.st_mode))
        return fd
    finally:
        os.close(folder)


def snapshot_entries(root: int, prefix: str) -> Iterator[Entry]:
    """What a snapshot keeps of one tree: files, folders and links below it. The tree itself belongs to the sandbox."""
    for entry in listing(root, [], prefix):
        mode = entry.status.st_mode
        if entry.parts and (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            yield entry


def artefact_entries(root: int, parts: list[str], tree: bool, links: bool, max_bytes: int) -> list[Entry]:
    """All entries of one artefact, or Refused with the reason."""
    name = "/".join(parts)
    try:
        entries = []
        total = 0
        for entry in listing(root, parts, name):
            mode = entry.status.st_mode
            at_top = len(entry.parts) == len(parts)
            if stat.S_ISLNK(mode):
                _check_link(entry, links, at_top)
            elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise Refused(f"{entry.name} is {kind_of(mode)}")
            elif at_top and stat.S_ISDIR(mode) != tree:
                raise Refused(f"{name} is {kind_of(mode)}, {'a folder' if tree else 'a file'} was declared")
            total += entry.status.st_size if stat.S_ISREG(mode) else 0
            if total > max_bytes:
                raise Refused(f"too large: more than {max_bytes >> 20} MiB")
            entries.append(entry)
            if len(entries) > MAX_ENTRIES:
                raise Refused(f"too many entries: more than {MAX_ENTRIES}")
            if stat.S_ISREG(mode):
                os.close(open_below(root, entry.parts, os.O_RDONLY))
        return entries
    except FileNotFoundError:
        raise Refused("missing") from None
    except PermissionError as error:
        raise Refused(f"not readable: {error.strerror}") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused("a folder on its path is a link or a file") from None
        raise Refused(str(error.strerror)) from None


def _check_link(entry: Entry, links: bool, at_top: bool) -> None:
    if not links or at_top:
        raise Refused(f"{entry.name} is a link")
    if escapes(entry.parts[:-1], entry.link):
        raise Refused(f"{entry.name} is a link that leads out of /workspace")


def escapes(folder: list[str], target: str) -> bool:
    """Whether a link in `folder` (components below the root) leaves the root."""
    if target.startswith("/"):
        return True
    depth = len(folder)
    for part in target.split("/"):
        if part == "..":
            depth -= 1
            if depth < 0:
                return True
        elif part not in ("", "."):
            depth += 1
    return False


class Unpacker:
    """Brings the members of an archive into a folder, following nothing on the way."""

    def __init__(self, root: int, any_links: bool, exact: bool) -> None:
        self._root = root
        self._any_links = any_links
        self._exact = exact
        self._folders: dict[tuple[str, ...], int] = {}
        self._modes: list[tuple[list[str], int, int]] = []

    def run(self, archive: bytes) -> None:
        """Raises ValueError for a bad archive or member, OSError when the tree is full or not writable."""
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
                for member in tar:
                    self._member(tar, member)
            for parts, mode, mtime in reversed(self._modes):
                fd = walk(self._root, parts)
                try:
                    os.fchmod(fd, mode)
                    os.utime(fd, (mtime, mtime))
                finally:
                    os.close(fd)
        except tarfile.TarError as error:
            raise ValueError(f"not a tar archive: {error}") from None
        finally:
            for fd in self._folders.values():
                os.close(fd)

    def _folder(self, parts: list[str]) -> int:
        key = tuple(parts)
        if key not in self._folders:
            if len(self._folders) > 100:
                os.close(self._folders.pop(next(iter(self._folders))))
            self._folders[key] = walk(self._root, parts, make=True)
        return self._folders[key]

    def _member(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        if member.name.startswith("/"):
            raise ValueError(f"{member.name!r}: an absolute path in an archive")
        parts = split(member.name)
        # setuid and setgid bits are never brought in
        mode = member.mode & 0o1777 if self._exact else (0o755 if member.mode & 0o100 or member.isdir() else 0o644)
        if member.isdir():
            self._folder(parts)
            self._modes.append((parts, mode, int(member.mtime)))
            return
        if not parts:
            raise ValueError(f"{member.name!r}: no name in an archive")
        folder = self._folder(parts[:-1])
        if member.issym():
            if not self._any_links and escapes(parts[:-1], member.linkname):
                raise ValueError(f"{member.name!r}: a link that leads out of the tree")
            self._replace(folder, parts[-1], lambda: os.symlink(member.linkname, parts[-1], dir_fd=folder))
            return
        if not member.isreg():
            raise ValueError(f"{member.name!r}: neither a file, a folder nor a symbolic link")
        self._file(tar, member, folder, parts[-1], mode)

    def _file(self, tar: tarfile.TarFile, member: tarfile.TarInfo, folder: int, name: str, mode: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = self._replace(folder, name, lambda: os.open(name, flags, mode, dir_fd=folder))
        try:
            source = tar.extractfile(member)
            while source is not None:
                data = source.read(PART)
                if not data:
                    break
                write_all(fd, memoryview(data))
            os.fchmod(fd, mode)
            os.utime(fd, (member.mtime, member.mtime))
        finally:
            os.close(fd)

    @staticmethod
    def _replace(folder: int, name: str, make: Callable[[], int | None]) -> int:
        try:
            return make() or -1
        except FileExistsError:
            os.unlink(name, dir_fd=folder)
            return make() or -1


def unpack_by_tar(steward: Steward, archive: bytes, done: Callable[[str], None]) -> bool:
    """Starts the image's `tar`, as the agent, on an archive of our own making; False where there is no `tar`.

    `done` gets what it complained of, or nothing.
    """
    if shutil.which("tar") is None:
        return False
    source, complaints = memory_file(archive), memory_file(b"")
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def ended(status: int) -> None:
        said = os.pread(complaints, 4096, 0).decode("utf-8", "replace").strip()
        os.close(complaints)
        done("" if status == 0 else f"the snapshot does not fit or is damaged: {said}")

    try:
        pid = steward.spawner.start(
            ["tar", "-xp", "--delay-directory-restore", "-C", "/"],
            uid=steward.settings.agent,
            cwd="/",
            environ=environment(steward.settings, {}, "restore"),
            fds={0: source, 1: null, 2: complaints},
        )
    except processes.NotStarted as error:
        os.close(complaints)
        raise OSError(errno.EAGAIN, error.text) from None
    finally:
        os.close(source)
        os.close(null)
    steward.running[pid] = ended
    return True


def open_tree(path: str, make: bool = False) -> int:
    """A descriptor of an absolute folder, following no link on the way."""
    start = os.open("/", _DIR)
    try:
        return walk(start, split(path), make)
    finally:
        os.close(start)
