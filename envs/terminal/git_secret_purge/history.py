"""A repository as a plan: contents, commits, refs, notes and stashes by number; then its objects, and how git makes
them.

Bytes are Latin-1 text here, so that a plan is JSON. `@7@` in a message stands for the id of commit 7, which comes
before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ...core import Json
from .objects import Repository, add, add_tree

NOTES = "refs/notes/commits"
_CITED = re.compile(r"@(\d+)@")
_NOTED = "Notes by a script"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One commit; `files` is its whole tree."""

    files: Mapping[str, int]
    """Path → index of a content."""
    parents: tuple[int, ...]
    message: str
    author: str
    """Name <address>."""
    authored: str
    """Seconds and zone."""
    committer: str
    committed: str
    encoding: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A tag; without a message it is a plain ref."""

    name: str
    commit: int
    message: str = ""
    tagger: str = ""
    """Name <address> seconds zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A whole repository."""

    contents: tuple[str, ...]
    commits: tuple[Commit, ...]
    heads: Mapping[str, int]
    head: str
    """Of `heads`: the one that is checked out."""
    tags: tuple[Tag, ...] = ()
    notes: Mapping[str, str]
    """Number of a commit, as text → its note."""
    stashes: tuple[tuple[int, str], ...] = ()
    """(commit, message), oldest first."""
    lost: tuple[int, ...] = ()
    """Commits that no ref reaches."""
    reflog: tuple[tuple[int, int, str], ...] = ()
    """(from, to, words) of HEAD; -1 for nothing."""

    def to_json(self) -> dict[str, Json]:
        """For an instance's truth."""
        return cast("dict[str, Json]", asdict(self))

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> History:
        """Back from it."""
        commits = [Commit(**{**one, "parents": tuple(one["parents"])}) for one in data["commits"]]
        return History(
            **{
                **data,
                "contents": tuple(data["contents"]),
                "commits": tuple(commits),
                "tags": tuple(Tag(**one) for one in data["tags"]),
                "stashes": tuple((one[0], one[1]) for one in data["stashes"]),
                "lost": tuple(data["lost"]),
                "reflog": tuple((one[0], one[1], one[2]) for one in data["reflog"]),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The objects of a history."""

    repository: Repository
    ids: tuple[str, ...]
    """Of the commits, by number."""


def build(history: History) -> Built:
    """Every object that the history has, named as git names them."""
    objects: dict[str, tuple[str, bytes]] = {}
    blobs = [add(objects, "blob", content.encode("latin-1")) for content in history.contents]
    ids: list[str] = []
    for commit in history.commits:
        tree = add_tree(objects, {path: blobs[content] for path, content in commit.files.items()})
        ids.append(add(objects, "commit", _commit_bytes(commit, tree, ids)))
    refs = {f"refs/heads/{name}": ids[number] for name, number in history.heads.items()}
    for tag in history.tags:
        target = ids[tag.commit]
        if tag.message:
            text = f"object {target}\ntype commit\ntag {tag.name}\ntagger {tag.tagger}\n\n{tag.message}"
            target = add(objects, "tag", text.encode("latin-1"))
        refs[f"refs/tags/{tag.name}"] = target
    if history.notes:
        notes = {
            ids[int(number)]: add(objects, "blob", text.encode("latin-1")) for number, text in history.notes.items()
        }
        last = history.commits[-1]
        commit = Commit(
            files={},
            parents=(),
            message=_NOTED + "\n",
            author=last.author,
            authored=last.authored,
            committer=last.committer,
            committed=last.committed,
        )
        refs[NOTES] = add(objects, "commit", _commit_bytes(commit, add_tree(objects, notes), ids))
    if history.stashes:
        refs["refs/stash"] = ids[history.stashes[-1][0]]
    repository = Repository(
        objects=objects,
        refs=refs,
        head=f"refs/heads/{history.head}",
        stash=tuple(ids[number] for number, _ in history.stashes),
    )
    return Built(repository=repository, ids=tuple(ids))


def _commit_bytes(commit: Commit, tree: str, ids: Sequence[str]) -> bytes:
    lines = [
        f"tree {tree}",
        *(f"parent {ids[parent]}" for parent in commit.parents),
        f"author {commit.author} {commit.authored}",
        f"committer {commit.committer} {commit.committed}",
        *([f"encoding {commit.encoding}"] if commit.encoding else []),
    ]
    return ("\n".join(lines) + "\n\n" + _cited(commit.message, ids)).encode("latin-1")


def _cited(message: str, ids: Sequence[str]) -> str:
    return _CITED.sub(lambda match: ids[int(match[1])], message)


def import_stream(history: History, ids: Sequence[str]) -> bytes:
    """The history for `git fast-import`: every commit under refs/setup/, then the refs that stay."""
    parts: list[str] = []
    for number, content in enumerate(history.contents):
        parts.append(f"blob\nmark :{number + 1}\n{_data(content)}")
    first = len(history.contents) + 1
    for number, commit in enumerate(history.commits):
        parents = [f"{'from' if not index else 'merge'} :{first + one}\n" for index, one in enumerate(commit.parents)]
        files = [f"M {100644} :{content + 1} {path}\n" for path, content in commit.files.items()]
        parts.append(
            f"commit refs/setup/{number}\nmark :{first + number}\n"
            f"author {commit.author} {commit.authored}\ncommitter {commit.committer} {commit.committed}\n"
            + (f"encoding {commit.encoding}\n" if commit.encoding else "")
            + _data(_cited(commit.message, ids))
            + "".join([*parents, "deleteall\n", *files, "\n"])
        )
    if history.notes:
        last = history.commits[-1]
        notes = [f"M 100644 inline {ids[int(number)]}\n{_data(text)}" for number, text in history.notes.items()]
        parts.append(
            f"commit {NOTES}\nauthor {last.author} {last.authored}\ncommitter {last.committer} {last.committed}\n"
            + _data(_NOTED + "\n")
            + "".join(notes)
            + "\n"
        )
    for name, number in history.heads.items():
        parts.append(f"reset refs/heads/{name}\nfrom :{first + number}\n\n")
    for tag in history.tags:
        where = f"from :{first + tag.commit}\n"
        if tag.message:
            parts.append(f"tag {tag.name}\n{where}tagger {tag.tagger}\n{_data(tag.message)}")
        else:
            parts.append(f"reset refs/tags/{tag.name}\n{where}\n")
    if history.stashes:
        parts.append(f"reset refs/stash\nfrom :{first + history.stashes[-1][0]}\n\n")
    return "".join(parts).encode("latin-1")


def _data(text: str) -> str:
    return f"data {len(text)}\n{text}\n"


def reflogs(history: History, ids: Sequence[str]) -> dict[str, bytes]:
    """The log files of HEAD and of the stash."""
    nothing = "0" * 40

    def line(old: int, new: int, words: str) -> str:
        commit = history.commits[new]
        before = ids[old] if old >= 0 else nothing
        return f"{before} {ids[new]} {commit.committer} {commit.committed}\t{words}\n"

    head = "".join(line(old, new, words) for old, new, words in history.reflog)
    logs = {"HEAD": head, f"refs/heads/{history.head}": head}
    if history.stashes:
        olds = [-1, *(number for number, _ in history.stashes)]
        logs["refs/stash"] = "".join(
            line(old, number, words) for old, (number, words) in zip(olds, history.stashes, strict=False)
        )
    return {name: text.encode("latin-1") for name, text in logs.items()}
