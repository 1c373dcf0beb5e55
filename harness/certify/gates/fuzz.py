"""Fuzzed artefacts: whatever an agent leaves where its work should be is graded, never a failure, and never passes."""

from __future__ import annotations

from collections.abc import Sequence

from metier.envs.core import VerifierError

from ..bench import Bench, Cell, Judged, contents, found
from ..certificate import Finding
from .rubbish import MAY_BE_RIGHT, SCRIPTS, script, spoiled

_EACH_S = 120.0


async def fuzzed_artefacts(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Put each kind of rubbish in the place of every artefact, then spoil right ones, and have it graded."""

    async def check(cell: Cell) -> list[Finding]:
        findings = [await _rubbish(bench, cell, name) for name in SCRIPTS]
        try:
            right = await bench.solution(cell, "oracle")
        except VerifierError as error:
            return [*findings, found(cell, "spoiled artefacts", True, f"none to spoil: {error}")]
        for name, wrong in spoiled(right).items():
            if contents(wrong) == contents(right):
                continue  # nothing there to spoil
            findings.append(_finding(cell, name, await bench.judge(cell, wrong)))
        return findings

    return await bench.each(cells, "fuzzed artefacts", check)


async def _rubbish(bench: Bench, cell: Cell, name: str) -> Finding:
    async with await bench.start(cell) as episode:
        artefacts = episode.prepared.instance.artefacts
        for artefact in artefacts:
            await episode.sandbox.exec(script(artefact, name), timeout_s=_EACH_S)
        collected = await episode.sandbox.collect(artefacts)
    return _finding(cell, name, await bench.judge(cell, collected))


def _finding(cell: Cell, name: str, judged: Judged) -> Finding:
    verdict = judged.verdict
    fails = verdict is not None and not verdict.passed and verdict.reward < 1.0
    return found(cell, name, fails or (verdict is not None and name in MAY_BE_RIGHT), judged.words)
