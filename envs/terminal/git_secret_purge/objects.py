"""Git objects as bytes: made, named and read on the host, without git.

A repository is its objects by id, its refs, its stash list, and what else lies in its folder. An object's id is the
SHA-1 of its kind, size and bytes, as git names it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

FILE_MODE = "100644"
FOLDER_MODE = "40000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """What is in a `.git` folder."""

    objects: Mapping[str, tuple[str, bytes]]
    """Id → (kind, bytes)."""
    refs: Mapping[str, str]
    """Full name → id."""
    head: str
    """The branch that HEAD names, by its full name, or an id."""
    stash: tuple[str, ...] = ()
    """Ids of the stash list, oldest first."""
    others: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that are no objects: logs, configuration, whatever."""


class CommitData(NamedTuple):
    """A commit or a tag, read."""

    headers: dict[bytes, bytes]
    parents: tuple[str, ...]
    message: bytes

    @property
    def text(self) -> str:
        """The message as people read it."""
        encoding = self.headers.get(b"encoding", b"utf-8").decode("latin-1")
        try:
            return self.message.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            return self.message.decode("latin-1")


class Entry(NamedTuple):
    """A line of a tree."""

    mode: str
    name: bytes
    oid: str


def object_id(kind: str, data: bytes) -> str:
    """The name git gives it."""
    return hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data).hexdigest()


def add(objects: dict[str, tuple[str, bytes]], kind: str, data: bytes) -> str:
    """Store an object; its id."""
    oid = object_id(kind, data)
    objects[oid] = (kind, data)
    return oid


def add_tree(objects: dict[str, tuple[str, bytes]], files: Mapping[str, str]) -> str:
    """Store the trees of path → blob id; the top one's id."""
    below: dict[str, dict[str, str]] = {}
    lines: list[tuple[bytes, bytes]] = []
    for path, oid in files.items():
        first, slash, rest = path.partition("/")
        if slash:
            below.setdefault(first, {})[rest] = oid
        else:
            lines.append((first.encode(), _line(FILE_MODE, first, oid)))
    for name, inner in below.items():
        # git sorts a folder as if its name ended in a slash
        lines.append((name.encode() + b"/", _line(FOLDER_MODE, name, add_tree(objects, inner))))
    return add(objects, "tree", b"".join(line for _, line in sorted(lines)))


def _line(mode: str, name: str, oid: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(oid)


def read_tree(data: bytes) -> Iterator[Entry]:
    """The lines of a tree.

    Raises:
        ValueError: it is cut.
    """
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        oid = data[end + 1 : end + 21]
        if len(oid) < 20:
            raise ValueError("a tree is cut")
        yield Entry(mode.decode("ascii", "replace"), name, oid.hex())
        at = end + 21


def read_commit(data: bytes) -> CommitData:
    """A commit or a tag; of repeated headers other than `parent` the last counts."""
    head, _, message = data.partition(b"\n\n")
    headers: dict[bytes, bytes] = {}
    parents: list[str] = []
    for line in head.split(b"\n"):
        name, _, value = line.partition(b" ")
        if name == b"parent":
            parents.append(value.decode("ascii", "replace"))
        elif name:  # a line that begins with a blank goes on with a header that nobody compares
            headers[name] = value
    return CommitData(headers, tuple(parents), message)


def links(kind: str, data: bytes) -> list[str]:
    """What an object names."""
    if kind == "tree":
        return [entry.oid for entry in read_tree(data) if entry.mode != "160000"]
    if kind == "blob":
        return []
    commit = read_commit(data)
    first = commit.headers.get(b"tree" if kind == "commit" else b"object", b"").decode("ascii", "replace")
    return [first, *commit.parents]


def reachable(repository: Repository, tips: list[str]) -> tuple[set[str], set[str]]:
    """The objects that `tips` lead to, and those that are missing on the way."""
    found: set[str] = set()
    missing: set[str] = set()
    waiting = list(tips)
    while waiting:
        oid = waiting.pop()
        if oid in found or oid in missing:
            continue
        if oid not in repository.objects:
            missing.add(oid)
            continue
        found.add(oid)
        waiting += links(*repository.objects[oid])
    return found, missing
