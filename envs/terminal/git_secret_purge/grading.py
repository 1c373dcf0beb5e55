"""Is every secret out of every object, and is everything else as it was?

What was right before is a gate: the refs, the histories, the stash list, the notes. Each secret is a check, whose
score is the share of the kinds of places where it was found at first and is not any more.
"""

from __future__ import annotations

import base64
import inspect
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from ...core import Check, Sandbox, Verdict
from ...parts.probe import run_probe
from . import repo_probe
from .canonical import Canonical, Reader, difference
from .history import NOTES
from .objects import Repository, reachable, read_tree
from .secret import Leak, holds

FOLDER = "/workspace/repo/.git"
_PROBE_S = 90.0
_STREAMS = 400
_SOURCE = inspect.getsource(repo_probe) + "\n_answer(gather(payload))\n"


async def read_repository(sandbox: Sandbox) -> Repository | str:
    """What the artefact holds, or why it cannot be told.

    Raises:
        VerifierError: the probe broke.
    """
    result = await run_probe(sandbox, _SOURCE, FOLDER, timeout_s=_PROBE_S)
    if result.failure or not isinstance(result.value, dict):
        return result.failure or "the repository could not be read"
    if "error" in result.value:
        return str(result.value["error"])
    return unpacked(str(result.value["packed"]))


def unpacked(packed: str) -> Repository:
    """The probe's answer."""
    raw = json.loads(zlib.decompress(base64.b64decode(packed)))
    return Repository(
        objects={oid: (kind, base64.b64decode(data)) for oid, (kind, data) in raw["objects"].items()},
        refs=raw["refs"],
        head=raw["head"],
        stash=tuple(raw["stash"]),
        others={name: base64.b64decode(data) for name, data in raw["others"].items()},
    )


def judge(repository: Repository | str, original: Repository, leak: Leak) -> Verdict:
    """All checks on a repository."""
    if isinstance(repository, str):
        return Verdict.of(_gate("repository", repository))
    wrong = _refs(repository, original)
    if wrong:
        return Verdict.of(_gate("refs", wrong))
    wanted = Reader(original, leak).canonical()
    try:
        _, missing = reachable(repository, [*repository.refs.values(), *repository.stash])
        if missing:
            return Verdict.of(_gate("objects", f"{len(missing)} objects are missing, {min(missing)} for one"))
        actual = Reader(repository, leak).canonical()
    except (KeyError, ValueError, RecursionError) as error:
        return Verdict.of(_gate("objects", f"malformed: {error}"))
    checks = [_gate("history", difference(actual, wanted, [name for name in wanted.refs if name != "refs/stash"]))]
    if wanted.stash:
        checks.append(_gate("stash", _stash(actual, wanted)))
    if wanted.notes:
        checks.append(_gate("notes", _notes(actual, wanted)))
    return Verdict.of(*checks, *_purged(repository, original, leak))


def _gate(name: str, wrong: str) -> Check:
    return Check(name=name, score=0.0 if wrong else 1.0, gate=True, evidence=wrong or "as before")


def _refs(repository: Repository, original: Repository) -> str:
    gone, new = (
        sorted(original.refs.keys() - repository.refs.keys()),
        sorted(repository.refs.keys() - original.refs.keys()),
    )
    if gone or new:
        return f"refs gone: {', '.join(gone[:4]) or 'none'}; new: {', '.join(new[:4]) or 'none'}"
    if repository.head != original.head:
        return f"HEAD is {repository.head[:80]!r}, not {original.head!r}"
    kinds = [name for name in original.refs if _kind(repository, name) != _kind(original, name)]
    return f"{kinds[0]} is a {_kind(repository, kinds[0])}, not a {_kind(original, kinds[0])}" if kinds else ""


def _kind(repository: Repository, name: str) -> str:
    return repository.objects.get(repository.refs[name], ("missing object", b""))[0]


def _stash(actual: Canonical, wanted: Canonical) -> str:
    if len(actual.stash) != len(wanted.stash):
        return f"{len(actual.stash)} stashes instead of {len(wanted.stash)}"
    wrong = [index for index, pair in enumerate(zip(actual.stash, wanted.stash, strict=True)) if pair[0] != pair[1]]
    return f"stash number {len(wanted.stash) - 1 - wrong[-1]} differs" if wrong else ""


def _notes(actual: Canonical, wanted: Canonical) -> str:
    lost = len(wanted.notes.keys() - actual.notes.keys())
    if lost or actual.notes.keys() - wanted.notes.keys():
        return f"{lost} of {len(wanted.notes)} commits lost their note"
    return "a note's text differs" if actual.notes != wanted.notes else ""


def _purged(repository: Repository, original: Repository, leak: Leak) -> list[Check]:
    def secret_in(secret: str) -> Callable[[str, bytes], bool]:
        return lambda kind, data: holds(data, secret)

    def file_in(kind: str, data: bytes) -> bool:
        return leak.marker.encode("latin-1") in data

    tests: dict[str, Callable[[str, bytes], bool]] = {name: secret_in(one) for name, one in leak.secrets.items()}
    if leak.paths:
        tests["file"] = file_in
    checks: list[Check] = []
    before, after = places(original), places(repository)
    for name, test in tests.items():
        had = {place for place, items in before.items() if any(test(*item) for item in items)}
        has = {place for place, items in after.items() if any(test(*item) for item in items)}
        if name == "file" and _named(repository, leak):
            has.add("trees")
        every = had | has
        left = ", ".join(sorted(has)) or "nowhere"
        checks.append(
            Check(
                name=f"purged: {name}",
                score=(len(every) - len(has)) / len(every),
                evidence=f"was in {', '.join(sorted(had))}; is in {left}",
            )
        )
    return checks


def _named(repository: Repository, leak: Leak) -> bool:
    """Whether a commit that a branch or tag reaches still has the file, even with other bytes."""
    last = {path.rpartition("/")[2].encode() for path in leak.paths}
    trees = (data for kind, data in repository.objects.values() if kind == "tree")
    return any(entry.name in last for data in trees for entry in read_tree(data))


def places(repository: Repository) -> dict[str, list[tuple[str, bytes]]]:
    """The objects and files of a repository by the kind of place where a person would look for them."""
    objects = repository.objects
    named = [oid for name, oid in repository.refs.items() if name.startswith(("refs/heads/", "refs/tags/"))]
    main, _ = reachable(repository, named)
    notes, _ = reachable(repository, [repository.refs[NOTES]] if NOTES in repository.refs else [])
    stash, _ = reachable(repository, list(repository.stash))
    found: dict[str, list[tuple[str, bytes]]] = {}
    for oid, (kind, data) in objects.items():
        if oid in main:
            place = {"commit": "messages", "tag": "tag messages"}.get(kind, "files")
        else:
            place = "notes" if oid in notes else "stashes" if oid in stash else "unreachable objects"
        found.setdefault(place, []).append((kind, data))
    found["other files of .git"] = [
        (name, part) for name, data in repository.others.items() for part in _unzipped(data)
    ]
    return found


def _unzipped(data: bytes) -> Iterator[bytes]:
    """A file, and what compressed streams in it hold."""
    yield data
    at = -1
    for _ in range(_STREAMS):
        at = data.find(b"\x78", at + 1)
        if at < 0:
            return
        if data[at + 1 : at + 2] in (b"\x01", b"\x5e", b"\x9c", b"\xda"):
            try:
                yield zlib.decompressobj().decompress(data[at:], 1 << 20)
            except zlib.error:
                continue  # no stream begins here


async def examine(sandbox: Sandbox, original: Repository, leak: Leak) -> Verdict:
    """Read the artefact and judge it.

    Raises:
        VerifierError: the probe broke.
    """
    return judge(await read_repository(sandbox), original, leak)


def leak_of(truth: Mapping[str, Any]) -> Leak:
    """From an instance's truth."""
    return Leak(
        secrets=cast("Mapping[str, str]", truth["secrets"]), paths=tuple(truth["paths"]), marker=str(truth["marker"])
    )
