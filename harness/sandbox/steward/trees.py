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
from .files import _DIR, PART, memory_file, split, walk, write_all
from .rights import environment

if TYPE_CHECKING:
    from .main import Steward

MAX_NESTED = 256
"""Folders in folders; each on the way down is held open."""
LATEST = 2**33
"""Seconds from 1970, either way: times beyond are brought here, for not everything can set them."""
END = b"\0" * 1024


class Entry(NamedTuple):
    """One member to pack: its name in the archive, where it lies, and its status."""

    name: str
    depth: int
    """Components below the root of the listing."""
    folder: int
    """A descriptor of the folder it lies in, open until the next entry is asked for."""
    base: str
    """Its name in there."""
    status: os.stat_result
    link: str


def listing(root: int, parts: list[str], name: str) -> Iterator[Entry]:
    """The entry `parts` below `root` and all below it, sorted, folders before what they hold."""
    folder = walk(root, parts[:-1])
    try:
        top = _entry(folder, parts[-1] if parts else ".", name, len(parts))
        yield top
        if stat.S_ISDIR(top.status.st_mode):
            yield from _below(os.open(top.base, _DIR, dir_fd=folder), name, len(parts))
    finally:
        os.close(folder)


def _entry(folder: int, base: str, name: str, depth: int) -> Entry:
    status = os.stat(base, dir_fd=folder, follow_symlinks=False)
    link = os.readlink(base, dir_fd=folder) if stat.S_ISLNK(status.st_mode) else ""
    return Entry(name, depth, folder, base, status, link)


class _Folder(NamedTuple):
    fd: int
    name: str
    left: list[str]
    """The folders in it that are still to be listed, the next one last."""


def _below(fd: int, name: str, depth: int) -> Iterator[Entry]:
    """All below an open folder, which is closed in the end; each folder is opened once, from the one that holds it."""
    way = [_Folder(fd, name, [])]
    try:
        yield from _inside(way[-1], depth + 1)
        while way:
            here = way[-1]
            if not here.left:
                os.close(way.pop().fd)
                continue
            if len(way) >= MAX_NESTED:
                raise OSError(errno.ENAMETOOLONG, f"folders are nested more than {MAX_NESTED} deep")
            base = here.left.pop()
            inner = os.open(base, _DIR, dir_fd=here.fd)
            way.append(_Folder(inner, _joined(here.name, base), []))
            yield from _inside(way[-1], depth + len(way))
    finally:
        for folder in way:
            os.close(folder.fd)


def _inside(folder: _Folder, depth: int) -> Iterator[Entry]:
    for base in sorted(os.listdir(folder.fd)):
        entry = _entry(folder.fd, base, _joined(folder.name, base), depth)
        if stat.S_ISDIR(entry.status.st_mode):
            folder.left.append(base)
        yield entry
    folder.left.reverse()


def _joined(folder: str, base: str) -> str:
    return f"{folder}/{base}" if folder else base


def header(entry: Entry, exact: bool) -> bytes:
    """The tar header of an entry; without `exact` only whether it may be executed is kept of its mode and owner."""
    info = tarfile.TarInfo(entry.name)
    mode = entry.status.st_mode
    info.mtime = max(-LATEST, min(int(entry.status.st_mtime), LATEST))
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


def packed(entry: Entry, exact: bool) -> Iterator[bytes]:
    """Header, content and padding of one entry. Raises OSError before the header, if the file cannot be opened."""
    if not stat.S_ISREG(entry.status.st_mode):
        yield header(entry, exact)
        return
    left = entry.status.st_size
    fd = _open_own(entry)
    try:
        yield header(entry, exact)
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


def open_entry(entry: Entry) -> int:
    """Opens a file for reading, following nothing."""
    return os.open(entry.base, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=entry.folder)


def _open_own(entry: Entry) -> int:
    """Opens a file for reading; one that its owner locked away from itself is read all the same."""
    try:
        return open_entry(entry)
    except PermissionError:
        if entry.status.st_uid != os.geteuid():
            raise
    os.chmod(entry.base, 0o400, dir_fd=entry.folder)
    fd = open_entry(entry)
    os.fchmod(fd, stat.S_IMODE(entry.status.st_mode))
    return fd


def snapshot_entries(root: int, prefix: str) -> Iterator[Entry]:
    """What a snapshot keeps of one tree: files, folders and links below it. The tree itself belongs to the sandbox."""
    for entry in listing(root, [], prefix):
        mode = entry.status.st_mode
        if entry.depth and (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            yield entry


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

    def run(self, archive: bytes) -> Iterator[None]:
        """Stops after each member, so that other things can be done meanwhile.

        Raises ValueError for a bad archive or member, OSError when the tree is full or not writable.
        """
        try:
            with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
                for member in tar:
                    self._member(tar, member)
                    yield
            for parts, mode, mtime in reversed(self._modes):
                fd = self._folder(parts)
                os.fchmod(fd, mode)
                os.utime(fd, (mtime, mtime))
                yield
        except tarfile.TarError as error:
            raise ValueError(f"not a tar archive: {error}") from None
        finally:
            for fd in self._folders.values():
                os.close(fd)

    def _folder(self, parts: list[str]) -> int:
        """An open folder, made if it is not there: found from the one that holds it, where that was used lately."""
        key = tuple(parts)
        fd = self._folders.pop(key, None)
        if fd is None:
            above = self._folders.pop(key[:-1], None) if key else None
            if above is not None:
                self._folders[key[:-1]] = above
                fd = walk(above, parts[-1:], make=True)
            else:
                fd = walk(self._root, parts, make=True)
            if len(self._folders) > 100:
                os.close(self._folders.pop(next(iter(self._folders))))
        self._folders[key] = fd
        return fd

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


def unpacked(to: str, archive: bytes, make: bool, any_links: bool, exact: bool) -> Iterator[bytes]:
    """Brings an archive into a folder; an empty piece after each member. Raises as `Unpacker.run`."""
    root = open_tree(to, make)
    try:
        for _ in Unpacker(root, any_links, exact).run(archive):
            yield b""
    finally:
        os.close(root)


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
