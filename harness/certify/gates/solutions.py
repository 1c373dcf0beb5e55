"""Right and wrong solutions by the family's author: oracle, no-op, mutants, alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metier.envs.core import ToolCall

from ..bench import Bench, Cell, found
from ..certificate import Finding

FEWEST_MUTANTS = 3


async def oracle(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """The oracle scores 1 and passes, by its own submit."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        calls = list(prepared.family.oracle(prepared.instance))
        played = await bench.play(cell, calls, kind="oracle")
        return [found(cell, f"oracle of {len(calls)} calls", played.solved, played.words)]

    return await bench.each(cells, "oracle", check)


async def noop(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Submitting at once scores the floor, which is 0."""

    async def check(cell: Cell) -> list[Finding]:
        played = await bench.play(cell, [ToolCall(tool="submit")], kind="noop")
        floor = played.verdict is not None and played.reward == 0.0 and not played.verdict.passed
        return [found(cell, "no-op", floor, played.words)]

    return await bench.each(cells, "noop", check)


async def mutants(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Each wrong solution runs to its end and does not pass; one that cannot even run proves nothing."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        wrong = prepared.family.mutants(prepared.instance)
        enough = len(wrong) >= FEWEST_MUTANTS
        findings = [found(cell, f"{len(wrong)} mutants", enough, f"there must be {FEWEST_MUTANTS} or more")]
        earned: list[str] = []
        best = 0.0
        for name, calls in wrong.items():
            played = await bench.play(cell, list(calls))
            earned.append(f"{name} {'no verdict' if played.reward is None else format(played.reward, '.3g')}")
            if played.reward and played.reward > best:
                best, bench.partial[cell] = played.reward, name
            fails = played.verdict is not None and not played.verdict.passed
            findings.append(found(cell, f"mutant {name}", fails, played.words))
        bench.say(f"mutants: level {cell.level} seed {cell.seed}: earned {', '.join(earned)}")
        return findings

    return await bench.each(cells, "mutants", check)


async def alternatives(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Each other right solution scores 1 and passes."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        others: Mapping[str, Sequence[ToolCall]] = prepared.family.alternatives(prepared.instance)
        findings: list[Finding] = []
        for name, calls in others.items():
            played = await bench.play(cell, list(calls))
            findings.append(found(cell, f"alternative {name}", played.solved, played.words))
        return findings

    return await bench.each(cells, "alternatives", check)
