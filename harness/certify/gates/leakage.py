"""No leakage: nothing that tells the answer is where the agent, or a program that it leaves behind, can read it.

The needles are the instance's declared secrets and a canary planted in its truth. They are looked for as the agent: in
every writable tree, in the commands and environments of processes, in names of files, inside archives and compressed
streams at any offset, in every object of a git store, and, once at each end of the levels, in every other file of the
image. There too, a verifier is listened to while it grades: no secret may reach a program of the agent's, or a file
that one could read.
"""

from __future__ import annotations

import inspect
import json
import secrets
from collections.abc import Sequence
from typing import cast

from metier.envs.core import ExecResult, Sandbox, VerifierError

from ...prepare import Prepared
from ..bench import Bench, Cell, ends, found
from ..certificate import Finding
from . import search

SHORTEST = 6
"""A shorter secret is no evidence: it turns up by chance."""
_SEARCH_S = 180.0
_WHOLE_S = 600.0
_WRITABLE = ("/workspace", "/tmp", "/home", "/var/tmp", "/run", "/dev/shm")
_NOT_FILES = ("--exclude-dir=proc", "--exclude-dir=sys", "--exclude-dir=dev")
_GREP = ("grep", "-rsoaFZ", "-m", "1", "-D", "skip", *_NOT_FILES, "-f", "-", "/")
_PLACES = 4
"""Of one secret that are named."""

Hit = tuple[int, str]
"""Which needle, and how and where it was found."""


async def leakage(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Search the agent's sandbox as it is before the first call, and what its verifier says."""
    whole = set(ends(cells))

    async def check(cell: Cell) -> list[Finding]:
        findings = await _cell(bench, cell, whole=cell in whole)
        if cell in whole:
            findings += await _verifier(bench, cell)
        return findings

    return await bench.each(cells, "leakage", check)


async def _cell(bench: Bench, cell: Cell, *, whole: bool) -> list[Finding]:
    canary = f"canary-{secrets.token_hex(12)}"
    prepared = bench.with_canary(await bench.prepared(cell), canary)
    weak = [naming(prepared, secret) for secret in prepared.instance.secrets if not _distinctive(secret)]
    findings = [
        found(cell, "secrets are distinctive", not weak, f"too short to search for: {', '.join(weak)}" if weak else "")
    ]
    needles = _needles(prepared, canary)
    names = [naming(prepared, needle) for needle in needles]
    sandbox = await bench.preparer.fork(prepared, deadline=bench.deadline())
    try:
        hits = await _in_trees(sandbox, needles)
        what = f"{len(needles)} needles in writable trees and processes"
        findings.append(found(cell, what, not hits, told_of(hits, names)))
        if whole:
            known = {index for index, _ in hits}
            more = [
                (index, f"{how} in {path}")
                for index, how, path in await _in_image(sandbox, needles)
                if index not in known or not path.startswith(tuple(f"{root}/" for root in _WRITABLE))
            ]
            findings.append(found(cell, f"{len(needles)} needles in the image", not more, told_of(more, names)))
    finally:
        await sandbox.close(reuse=False)  # it has seen the needles
    return findings


async def _verifier(bench: Bench, cell: Cell) -> list[Finding]:
    """What it told its sandbox while it graded the oracle's artefacts and a mutant's."""
    prepared = await bench.prepared(cell)
    findings: list[Finding] = []
    for name in filter(None, ("oracle", await bench.wrong_solution(cell))):
        judged, told = await bench.heard(cell, name)
        if judged.verdict is None:
            continue  # another gate's finding
        needles = _needles(prepared, told.canary)
        overheard = search.overheard(told.readable, needles) if told.ran_agent else []
        what = f"the verifier tells nothing while it grades {name}"
        sizes = f"{told.messages} messages; a program of the agent's {'ran' if told.ran_agent else 'never ran'}"
        heard = told_of(overheard, [naming(prepared, needle) for needle in needles])
        seen = f"where a program of the agent's could read it: {heard}" if heard else sizes
        findings.append(found(cell, what, not overheard, seen))
    return findings


def _needles(prepared: Prepared, canary: str) -> list[str]:
    return [*filter(_distinctive, prepared.instance.secrets), canary]


def _distinctive(secret: str) -> bool:
    return len(secret.strip()) >= SHORTEST


def naming(prepared: Prepared, needle: str) -> str:
    """Which of the instance's secrets it is, in words that do not tell it: a certificate is public."""
    declared = prepared.instance.secrets
    if needle not in declared:
        return "the truth as a whole"
    return f"secret {declared.index(needle)} ({needle[: min(3, len(needle) // 2)]!r}…, {len(needle)} characters)"


def told_of(hits: Sequence[Hit], names: Sequence[str]) -> str:
    """Each needle once, with the first places that it was found in."""
    places: dict[int, list[str]] = {}
    for index, place in hits:
        places.setdefault(index, []).append(place)
    return "; ".join(
        f"{names[index]} {', '.join(each[:_PLACES])}"
        + (f" and {more} more" if (more := len(each) - _PLACES) > 0 else "")
        for index, each in sorted(places.items())
    )


async def _in_trees(sandbox: Sandbox, needles: Sequence[str]) -> list[Hit]:
    """Our search, run in the sandbox by its own Python."""
    source = inspect.getsource(search) + "\nprint(json.dumps(main(json.load(sys.stdin))))\n"
    question = json.dumps({"roots": list(_WRITABLE), "needles": list(needles)}).encode()
    result = await sandbox.exec(["python3", "-I", "-c", source], stdin=question, timeout_s=_SEARCH_S, output_kib=1024)
    if not result.ok:
        raise VerifierError(f"the leak search broke: {_tail(result)}")
    return [
        (index, f"{how} in {where}")
        for index, how, where in cast(list[tuple[int, str, str]], json.loads(result.stdout))
    ]


async def _in_image(sandbox: Sandbox, needles: Sequence[str]) -> list[tuple[int, str, str]]:
    """Every readable file of the image, by grep for the encodings that keep to one line: needle, how, path."""
    patterns = {form: index for index, needle in enumerate(needles) for form in search.one_line_forms(needle)}
    result = await sandbox.exec(_GREP, stdin="\n".join(sorted(patterns)).encode(), timeout_s=_WHOLE_S)
    if result.timed_out or result.oom_killed or result.signal is not None:
        raise VerifierError(f"the leak search of the image did not end: {_tail(result)}")
    lines = (line.partition("\0") for line in result.stdout.decode("utf-8", "replace").split("\n"))
    found = {
        (patterns[form], "plain" if form == needles[patterns[form]] else "encoded", path)
        for path, _, form in lines
        if form in patterns
    }
    return sorted(found)


def _tail(result: ExecResult) -> str:
    return result.stderr.decode("utf-8", "replace")[-400:] or f"exit code {result.exit_code}"
