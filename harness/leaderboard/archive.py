"""A submission on its way: a plain tar of a closed set of names, written by `packing` and read by `Intake`.

    about.json, manifest.json, results.jsonl, episodes/<key>-<round>.json.gz

The reader knows regular files of POSIX tars and nothing else, so there is no link, no device, no long name, no sparse
file and no other compression to be careful about. It is fed as bytes arrive, writes only below its folder, and stops at
the first byte that is not allowed: what is too large is never stored.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..evaluate import folder as results_folder
from ..evaluate import manifest
from ..evaluate.files import MIB, opened, read
from ..evaluate.folder import EPISODES, ROWS, Results
from .contract import About, Limits
from .faults import Reason, Refusal

ABOUT = "about.json"
CONTENT_TYPE = "application/x-tar"
EPISODE_PATTERN = r"[0-9a-f]{32}-(?:0|[1-9][0-9]{0,5})\.json\.gz"
_MOST = {ABOUT: 64 << 10, manifest.NAME: 4 * MIB, ROWS: 128 * MIB}
MOST_EPISODE = 16 * MIB
"""Packed."""
_EPISODE = re.compile(rf"{EPISODES}/{EPISODE_PATTERN}")
_BLOCK = 512
_ZEROS = bytes(_BLOCK)
_OCTAL = re.compile(rb"[0-7]{1,11}[ \0]{0,2}")


class Intake:
    """Takes an archive in, piece by piece, into an empty folder."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder = folder
        self._limits = limits
        self._held = bytearray()
        self._seen: set[str] = set()
        self._file: io.BufferedWriter | None = None
        self._left = 0
        self._padding = 0
        self._size = 0
        self._ended = False

    def feed(self, data: bytes) -> None:
        """The next bytes of the body.

        Raises:
            Refusal: these are no bytes of a submission.
        """
        self._size += len(data)
        if self._size > self._limits.upload_bytes:
            raise too_large(self._limits)
        self._held += data
        at = 0
        try:
            while (taken := self._step(at)) > 0:
                at += taken
        except OSError as error:
            self.abandon()
            raise no_room(error) from error
        del self._held[:at]

    def close(self) -> None:
        """The body is whole.

        Raises:
            Refusal: the archive is not.
        """
        if not self._ended:
            self.abandon()
            raise Refusal(
                Reason.CUT_OFF, f"the body ends after {self._size} bytes, before the archive does: send it again"
            )
        for name in (ABOUT, manifest.NAME, ROWS):
            if name not in self._seen:
                raise Refusal(
                    Reason.ABOUT if name == ABOUT else Reason.RESULTS,
                    f"the archive has no {name}: send a results folder with `metier leaderboard submit`",
                )

    def abandon(self) -> None:
        """Let go of the file that is open. Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _step(self, at: int) -> int:
        """Take what can be taken of what is held; gives how many bytes, 0 where more must come first."""
        held = len(self._held) - at
        if self._left and held:
            assert self._file is not None
            taken = min(held, self._left)
            self._file.write(memoryview(self._held)[at : at + taken])
            self._left -= taken
            if not self._left:
                self.abandon()
            return taken
        if self._padding and held:
            taken = min(held, self._padding)
            self._padding -= taken
            return taken
        if held < _BLOCK or self._left or self._padding:
            return 0
        block = bytes(memoryview(self._held)[at : at + _BLOCK])
        if block == _ZEROS:
            self._ended = True
        elif self._ended:
            raise Refusal(Reason.ARCHIVE_FORMAT, "something follows the end of the archive: send a plain tar")
        else:
            self._begin(block)
        return _BLOCK

    def _begin(self, block: bytes) -> None:
        name, size = _header(block)
        most = _MOST.get(name, MOST_EPISODE)
        if size > most:
            raise Refusal(Reason.TOO_LARGE, f"{name} has {size} bytes; it may have {most}")
        if name in self._seen:
            raise Refusal(Reason.ARCHIVE_DUPLICATE, f"{name} comes twice in the archive")
        if len(self._seen) >= self._limits.files:
            raise Refusal(Reason.TOO_MANY_FILES, f"the archive has more than {self._limits.files} files")
        self._seen.add(name)
        path = self._folder / name
        path.parent.mkdir(exist_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(fd, "wb")
        self._left, self._padding = size, -size % _BLOCK
        if not size:
            self.abandon()


def too_large(limits: Limits) -> Refusal:
    """The refusal of a body beyond the limit."""
    return Refusal(
        Reason.TOO_LARGE, f"the body has more than {limits.upload_bytes} bytes, which is the most that is taken"
    )


def no_room(error: OSError) -> Refusal:
    """What a write that failed means to whoever sent the bytes."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    words = "the server's disk is full" if full else f"the server cannot write: {error.strerror or error}"
    return Refusal(Reason.NO_ROOM, f"{words}; nothing was kept: send it again later", retry_after_s=600)


def _header(block: bytes) -> tuple[str, int]:
    """The name and size of a regular file. Raises Refusal."""
    if block[257:263] != b"ustar\0":
        raise Refusal(
            Reason.ARCHIVE_FORMAT,
            "the body is no plain POSIX tar (not compressed, no extensions): send it with `metier leaderboard submit`",
        )
    checksum = _octal(block[148:156])
    if checksum != sum(block[:148]) + 8 * 32 + sum(block[156:]):
        raise Refusal(Reason.ARCHIVE_FORMAT, "a header of the archive is damaged: send it again")
    if block[156:157] not in b"0\0":
        raise Refusal(
            Reason.ARCHIVE_MEMBER,
            "the archive holds something else than regular files (a link, a folder, a device, an extended header)",
        )
    raw = block[345:500].split(b"\0")[0] + block[:100].split(b"\0")[0]
    try:
        name = raw.decode("ascii")
    except UnicodeDecodeError:
        name = ""
    if name not in _MOST and not _EPISODE.fullmatch(name):
        raise Refusal(Reason.ARCHIVE_PATH, f"{raw[:100]!r} is no file of a submission: send a results folder")
    return name, _octal(block[124:136])


def _octal(field: bytes) -> int:
    if not _OCTAL.fullmatch(field):
        raise Refusal(Reason.ARCHIVE_FORMAT, "a header of the archive is damaged: send it again")
    return int(field.rstrip(b" \0"), 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """An archive to send; its pieces are read from the folder as they are sent."""

    size: int
    about: bytes
    plan: bytes
    rows: bytes
    episodes: tuple[tuple[str, Path, int], ...]

    def pieces(self) -> Iterator[bytes]:
        """The bytes, in order.

        Raises:
            ResultsError: a file of the folder changed meanwhile.
        """
        for name, data in ((ABOUT, self.about), (manifest.NAME, self.plan), (ROWS, self.rows)):
            yield _written(name, len(data))
            for start in range(0, len(data), MIB):
                yield data[start : start + MIB]
            yield bytes(-len(data) % _BLOCK)
        for name, path, size in self.episodes:
            data = read(path, MOST_EPISODE)
            if len(data) != size:
                raise results_folder.ResultsError(f"{path} changed while it was sent: send the folder again")
            yield _written(name, size)
            yield data
            yield bytes(-size % _BLOCK)
        yield _ZEROS * 2


def packing(results: Results, about: About) -> Packed:
    """The archive of a folder: only the rows that count and their episodes; the same bytes for the same results.

    Raises:
        ResultsError: a file is missing or no plain file.
    """
    found = manifest.load(results.path)
    sessions = tuple(one.model_copy(update={"host": ""}) for one in found.sessions)
    plan = found.model_copy(update={"earlier": (), "sessions": sessions}).written()
    lines: list[bytes] = []
    episodes: list[tuple[str, Path, int]] = []
    for line in _lines(results.path / ROWS):
        said = json.loads(line)
        if said["key"] not in results.rows:
            continue
        lines.append(line)
        if said["file"] is not None:
            name = f"{EPISODES}/{said['key']}-{said['round']}.json.gz"
            path = results.path / name
            with opened(path) as file:
                episodes.append((name, path, os.fstat(file.fileno()).st_size))
    rows = b"".join(lines)
    said_about = (about.model_dump_json(indent=1) + "\n").encode()
    sizes = [len(said_about), len(plan), len(rows), *(size for _, _, size in episodes)]
    whole = sum(_BLOCK + size + -size % _BLOCK for size in sizes) + 2 * _BLOCK
    return Packed(size=whole, about=said_about, plan=plan, rows=rows, episodes=tuple(episodes))


def _lines(path: Path) -> Iterator[bytes]:
    """Whole rows; of a folder that was read already, so that a last line without an end is whole, or torn."""
    with opened(path) as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line
                continue
            with contextlib.suppress(ValueError):
                json.loads(line)
                yield line + b"\n"


def _written(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o644
    return info.tobuf(tarfile.USTAR_FORMAT)
