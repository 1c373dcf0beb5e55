"""What a repository says once its secrets are out of it, whatever its ids are.

Every commit becomes a signature of its redacted files, message, people, dates and its parents' signatures. So the
original, a half-purged and a purged repository have the same signatures exactly when nothing but the secrets differs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .history import NOTES
from .objects import CommitData, Repository, read_commit, read_tree
from .secret import Leak, redacted

_HEX = re.compile(r"\b[0-9a-f]{7,40}\b")
_STASH_PART = re.compile(r"^(index|untracked files) on ([^:]+): [0-9a-f]{7,40} ")
_DEEPEST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A commit without its ids."""

    files: Mapping[str, str]
    """Path → mode and a hash of the redacted content."""
    message: str
    people: str
    """Author and committer with their dates."""
    parents: tuple[str, ...]
    """Signatures."""

    @property
    def signature(self) -> str:
        """Equal for equal commits of equal histories."""
        text = json.dumps([sorted(self.files.items()), self.message, self.people, self.parents])
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(slots=True, kw_only=True)
class Canonical:
    """A repository's commits by signature, and where its refs point."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    """Signature → commit."""
    refs: dict[str, str] = field(default_factory=dict[str, str])
    """Name → signature; of an annotated tag with its own text before it."""
    stash: tuple[str, ...] = ()
    notes: dict[str, str] = field(default_factory=dict[str, str])
    """Signature of a commit → a hash of its redacted note."""


class Reader:
    """Reads one repository; a missing or malformed object raises KeyError or ValueError."""

    def __init__(self, repository: Repository, leak: Leak) -> None:
        self._repository = repository
        self._secrets = list(leak.secrets.values())
        self._paths = frozenset(leak.paths)
        self._signatures: dict[str, str] = {}
        self._blobs: dict[str, str] = {}
        self._found = Canonical()
        self._commits = sorted(oid for oid, (kind, _) in repository.objects.items() if kind == "commit")

    def canonical(self) -> Canonical:
        """All that the refs and the stash list reach."""
        for name, oid in self._repository.refs.items():
            if name == NOTES:
                self._found.notes.update(self._notes(oid))
            else:
                self._found.refs[name] = self._target(oid)
        self._found.stash = tuple(self._signature(oid) for oid in self._repository.stash)
        return self._found

    def _object(self, oid: str, kind: str) -> bytes:
        found, data = self._repository.objects[oid]
        if found != kind:
            raise ValueError(f"{oid} is a {found}, not a {kind}")
        return data

    def _target(self, oid: str) -> str:
        if self._repository.objects[oid][0] != "tag":
            return self._signature(oid)
        tag = read_commit(self._object(oid, "tag"))
        of = self._signature(tag.headers[b"object"].decode("ascii"))
        facts = [
            self._redact(tag.text),
            *(tag.headers.get(name, b"").decode("latin-1") for name in (b"tag", b"tagger")),
        ]
        return f"{json.dumps(facts)} on {of}"

    def _signature(self, tip: str) -> str:
        """Parents first, without recursion: a history may be long."""
        waiting = [tip]
        while waiting:
            oid = waiting[-1]
            commit = read_commit(self._object(oid, "commit"))
            left = [parent for parent in commit.parents if parent not in self._signatures]
            if left and oid not in self._signatures:
                waiting += left
                continue
            waiting.pop()
            if oid not in self._signatures:
                node = self._node(commit)
                self._signatures[oid] = node.signature
                self._found.nodes[node.signature] = node
        return self._signatures[tip]

    def _node(self, commit: CommitData) -> Node:
        people = b"\n".join(commit.headers[name] for name in (b"author", b"committer"))
        return Node(
            files=self._files(commit.headers[b"tree"].decode("ascii"), "", 0),
            message=_HEX.sub(self._cited, _STASH_PART.sub(r"\1 on \2: ", self._redact(commit.text))),
            people=people.decode("utf-8", "surrogateescape"),
            parents=tuple(self._signatures[parent] for parent in commit.parents),
        )

    def _cited(self, match: re.Match[str]) -> str:
        """The signature of the one commit that a message cites, where there is one."""
        named = [oid for oid in self._commits if oid.startswith(match[0])]
        return f"<{self._signatures[named[0]]}>" if len(named) == 1 and named[0] in self._signatures else match[0]

    def _redact(self, text: str) -> str:
        return redacted(text.encode(), self._secrets).decode("utf-8", "replace")

    def _files(self, tree: str, folder: str, depth: int) -> dict[str, str]:
        if depth > _DEEPEST:
            raise ValueError("folders lie too deep")
        found: dict[str, str] = {}
        for entry in read_tree(self._object(tree, "tree")):
            path = folder + entry.name.decode("utf-8", "surrogateescape")
            if entry.mode in ("40000", "040000"):
                found |= self._files(entry.oid, path + "/", depth + 1)
            elif path not in self._paths:
                found[path] = f"{entry.mode} {self._blob(entry.oid)}"
        return found

    def _blob(self, oid: str) -> str:
        if oid not in self._blobs:
            self._blobs[oid] = hashlib.sha256(redacted(self._object(oid, "blob"), self._secrets)).hexdigest()
        return self._blobs[oid]

    def _notes(self, oid: str) -> dict[str, str]:
        """The notes that the tip has; how it came to them does not matter."""
        commit = read_commit(self._object(oid, "commit"))
        found: dict[str, str] = {}
        for path, content in self._files(commit.headers[b"tree"].decode("ascii"), "", 0).items():
            of = path.replace("/", "")
            known = self._repository.objects.get(of, ("", b""))[0] == "commit"
            found[self._signature(of) if known else f"{of}, which is no commit"] = content.partition(" ")[2]
        return found


def difference(actual: Canonical, wanted: Canonical, names: Sequence[str]) -> str:
    """The first place where the histories of the refs differ, in words; empty where none does."""
    for name in names:
        here, there = actual.refs.get(name, ""), wanted.refs[name]
        if here == there:
            continue
        words, other = here.rpartition(" on ")[0], there.rpartition(" on ")[0]
        if words != other:
            return f"{name}: {words[:120]!r} instead of {other[:120]!r}"
        return f"{name}: {_unlike(actual, wanted, here.rpartition(' ')[2], there.rpartition(' ')[2])}"
    return ""


def _unlike(actual: Canonical, wanted: Canonical, here: str, there: str) -> str:
    """Down the first differing parents, to the oldest commit that differs by itself."""
    while True:
        a, b = actual.nodes[here], wanted.nodes[there]
        subject = b.message.partition("\n")[0][:60]
        if len(a.parents) != len(b.parents):
            return f"commit {subject!r} has {len(a.parents)} parents instead of {len(b.parents)}"
        pairs = [(one, two) for one, two in zip(a.parents, b.parents, strict=True) if one != two]
        if not pairs:
            break
        here, there = pairs[0]
    if a.message != b.message:
        return f"a commit has the message {a.message[:80]!r} instead of {b.message[:80]!r}"
    if a.people != b.people:
        return f"commit {subject!r} is by {a.people[:100]!r} instead of {b.people[:100]!r}"
    paths = sorted(path for path in a.files.keys() | b.files.keys() if a.files.get(path) != b.files.get(path))
    return f"commit {subject!r} differs in {', '.join(paths[:3])}"
