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

from metier.envs.core import ExecResult, Json, Sandbox, VerifierError

from ..bench import Bench, Cell, ends, found
from ..certificate import Finding
from . import search

SHORTEST = 6
"""A shorter secret is no evidence: it turns up by chance."""
_SEARCH_S = 180.0
_WHOLE_S = 600.0
_WRITABLE = ("/workspace", "/tmp", "/home", "/var/tmp", "/run", "/dev/shm")
_NOT_FILES = ("--exclude-dir=proc", "--exclude-dir=sys", "--exclude-dir=dev")
_GREP = ("grep", "-rslaF", "-D", "skip", *_NOT_FILES, "-f", "-", "/")


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
    needles = [*prepared.instance.secrets, canary]
    weak = [needle for needle in needles if len(needle.strip()) < SHORTEST]
    findings = [found(cell, "secrets are distinctive", not weak, f"too short to search for: {weak}" if weak else "")]
    needles = [needle for needle in needles if needle not in weak]
    sandbox = await bench.preparer.fork(prepared, deadline=bench.deadline())
    try:
        hits = await _in_trees(sandbox, needles)
        findings.append(
            found(cell, f"{len(needles)} needles in writable trees and processes", not hits, "; ".join(hits))
        )
        if whole:
            hits = await _in_image(sandbox, needles)
            findings.append(found(cell, f"{len(needles)} needles in the image", not hits, "; ".join(hits)))
    finally:
        await sandbox.close(reuse=False)  # it has seen the needles
    return findings


async def _verifier(bench: Bench, cell: Cell) -> list[Finding]:
    """What it told its sandbox while it graded the oracle's artefacts and a mutant's."""
    prepared = await bench.prepared(cell)
    needles = [needle for needle in prepared.instance.secrets if len(needle.strip()) >= SHORTEST]
    findings: list[Finding] = []
    for name in filter(None, ("oracle", await bench.wrong_solution(cell))):
        judged, told = await bench.heard(cell, name)
        if judged.verdict is None:
            continue  # another gate's finding
        overheard = search.overheard(told.readable, [*needles, told.canary]) if told.ran_agent else []
        what = f"the verifier tells nothing while it grades {name}"
        sizes = f"{told.messages} messages; a program of the agent's {'ran' if told.ran_agent else 'never ran'}"
        findings.append(found(cell, what, not overheard, "; ".join(overheard) or sizes))
    return findings


async def _in_trees(sandbox: Sandbox, needles: Sequence[str]) -> list[str]:
    """Our search, run in the sandbox by its own Python."""
    source = inspect.getsource(search) + "\nprint(json.dumps(main(json.load(sys.stdin))))\n"
    question = json.dumps({"roots": list(_WRITABLE), "needles": list(needles)}).encode()
    result = await sandbox.exec(["python3", "-I", "-c", source], stdin=question, timeout_s=_SEARCH_S, output_kib=1024)
    if not result.ok:
        raise VerifierError(f"the leak search broke: {_tail(result)}")
    return [str(hit) for hit in cast(list[Json], json.loads(result.stdout))]


async def _in_image(sandbox: Sandbox, needles: Sequence[str]) -> list[str]:
    """Every readable file of the image, by grep for the encodings that keep to one line."""
    patterns = sorted({form for needle in needles for form in search.one_line_forms(needle)})
    result = await sandbox.exec(_GREP, stdin="\n".join(patterns).encode(), timeout_s=_WHOLE_S)
    if result.timed_out or result.oom_killed or result.signal is not None:
        raise VerifierError(f"the leak search of the image did not end: {_tail(result)}")
    return result.stdout.decode("utf-8", "replace").splitlines()


def _tail(result: ExecResult) -> str:
    return result.stderr.decode("utf-8", "replace")[-400:] or f"exit code {result.exit_code}"
