"""Verifier determinism: a verdict is a function of the artefacts, not of the hour or the load."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from metier.envs.core import ToolCall, Verdict, VerifierError

from ..bench import Bench, Cell, found
from ..certificate import Finding

_AT_ONCE = 3


async def verifier_repeats(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """The oracle's artefacts and one mutant's: graded alone, then several times at once."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        solutions: dict[str, Sequence[ToolCall]] = {"oracle": prepared.family.oracle(prepared.instance)}
        solutions.update(list(prepared.family.mutants(prepared.instance).items())[:1])
        findings: list[Finding] = []
        for name, calls in solutions.items():
            collected = await bench.collect(cell, list(calls))
            try:
                first = await bench.grade(cell, collected)
                again = await asyncio.gather(*(bench.grade(cell, collected) for _ in range(_AT_ONCE)))
            except VerifierError as error:
                findings.append(found(cell, f"{name} graded again", False, f"VerifierError: {error}"))
                continue
            differing = [verdict for verdict in again if _scores(verdict) != _scores(first)]
            evidence = (
                f"{_scores(first)}, then {_scores(differing[0])}" if differing else f"reward {first.reward:g} each time"
            )
            findings.append(found(cell, f"{name} graded {1 + _AT_ONCE} times", not differing, evidence))
        return findings

    return await bench.each(cells, "verifier repeats", check)


def _scores(verdict: Verdict) -> tuple[bool, tuple[tuple[str, float], ...]]:
    return verdict.passed, tuple((check.name, check.score) for check in verdict.checks)
