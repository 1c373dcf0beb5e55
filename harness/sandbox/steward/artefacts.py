"""Artefacts: what the agent hands in, checked and packed. Whatever it left there, the harness gets an answer.

The agent's processes are dead, and its rights are taken on meanwhile: what it made unreadable is refused, as is what no
verifier could be asked to open. Each artefact is gone through twice, first to check it and then to pack it, by the same
rules, so that nothing of a refused one is in the archive and no list of its files has to fit into memory.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .files import _DIR, split
from .names import shown
from .trees import END, Entry, escapes, listing, open_entry, packed

MAX_ENTRIES = 20_000
MAX_DEPTH = 64
"""Components of a path below /workspace."""
MAX_PATH_BYTES = 1024
"""Of a path below /workspace: one that a program can still open elsewhere, where paths end at 4,096."""
MAX_NAME_BYTES = 4 << 20
"""Of all paths of an artefact."""
REASON_CHARACTERS = 300


class Refused(Exception):
    """Why an artefact is not taken."""


def collected(tree: str, items: Sequence[Mapping[str, Any]], refused: dict[str, str]) -> Iterator[bytes]:
    """The tar of the artefacts in pieces, an empty one wherever nothing is to be sent yet; fills `refused`."""
    try:
        root = os.open(tree, _DIR)
    except OSError as error:
        refused.update({item["path"]: f"not readable: {error.strerror}" for item in items})
        yield END
        return
    try:
        for item in items:
            try:
                for _ in _checked(root, item):
                    yield b""
                for entry in _checked(root, item):
                    yield from packed(entry, bool(item["metadata"]))
            except Refused as reason:
                refused[item["path"]] = str(reason)[:REASON_CHARACTERS]
            except OSError as error:  # it could be opened a moment ago
                refused[item["path"]] = str(error.strerror)
        yield END
    finally:
        os.close(root)


def _checked(root: int, item: Mapping[str, Any]) -> Iterator[Entry]:
    """The entries of one artefact, one by one; raises Refused at the first that is a reason not to take it."""
    try:
        yield from _entries(root, split(item["path"]), item)
    except FileNotFoundError:
        raise Refused("missing") from None
    except PermissionError as error:
        raise Refused(f"not readable: {error.strerror}") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused("a folder on its path is a link or a file") from None
        raise Refused(str(error.strerror)) from None
    except ValueError as error:
        raise Refused(str(error)) from None


def _entries(root: int, parts: list[str], item: Mapping[str, Any]) -> Iterator[Entry]:
    most = int(item["max_mb"]) << 20
    count = size = names = 0
    for entry in listing(root, parts, "/".join(parts)):
        mode = entry.status.st_mode
        path_bytes = len(os.fsencode(entry.name))
        count, names = count + 1, names + path_bytes
        if entry.depth > MAX_DEPTH or path_bytes > MAX_PATH_BYTES:
            how = f"more than {MAX_DEPTH} deep" if entry.depth > MAX_DEPTH else f"over {MAX_PATH_BYTES} bytes of path"
            raise Refused(f"{shown(entry.name)} is {how}")
        if count > MAX_ENTRIES or names > MAX_NAME_BYTES:
            raise Refused(f"too many entries: more than {MAX_ENTRIES}, or {MAX_NAME_BYTES >> 20} MiB of paths")
        _check_kind(entry, len(parts), item)
        if stat.S_ISREG(mode):
            size += entry.status.st_size
            if size > most:
                raise Refused(f"too large: more than {most >> 20} MiB")
            os.close(open_entry(entry))
        yield entry


def _check_kind(entry: Entry, top: int, item: Mapping[str, Any]) -> None:
    mode = entry.status.st_mode
    at_top = entry.depth == top
    if stat.S_ISLNK(mode):
        if not item["links"] or at_top:
            raise Refused(f"{shown(entry.name)} is a link")
        if escapes(entry.name.split("/")[:-1], entry.link):
            raise Refused(f"{shown(entry.name)} is a link that leads out of /workspace")
    elif not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Refused(f"{shown(entry.name)} is {kind_of(mode)}")
    elif at_top and stat.S_ISDIR(mode) != item["tree"]:
        declared = "a folder" if item["tree"] else "a file"
        raise Refused(f"{shown(entry.name)} is {kind_of(mode)}, {declared} was declared")


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
