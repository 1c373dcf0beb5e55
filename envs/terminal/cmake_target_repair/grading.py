"""What the seen facts are held to: those that no fault spoils are a gate, the others make one check for each fault."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...core import Check, Rng, Verdict
from .downstream import expected
from .faults import Fault
from .measuring import Seen
from .project import Project


def draw_inputs(hidden: Rng) -> list[int]:
    """Arguments for the consumers; held out."""
    return [hidden.integer(11, 9999) for _ in range(3)]


def grade(project: Project, faults: Sequence[Fault], inputs: Sequence[int], seen: Seen) -> Verdict:
    """One gate for what was right, one check for each fault."""
    wanted = expected(project, inputs)
    patterns = [re.compile(project.fill(fault.spoils)) for fault in faults]
    blamed = {name: [number for number, one in enumerate(patterns) if one.match(name)] for name in wanted}
    problems = "; ".join(f"{way}: {words[0]}" for way, words in seen.problems.items() if words)
    kept = [name for name, numbers in blamed.items() if not numbers]
    # what every fault spoils has no gate before; once all is mended it must be right like the rest
    checks = [_check("kept", kept, wanted, seen.facts, problems, gate=True)] if kept else []
    for number in range(len(faults)):
        names = [name for name, numbers in blamed.items() if number in numbers]
        checks.append(_check(f"fault_{number + 1}", names, wanted, seen.facts, problems))
    return Verdict.of(*checks)


def _check(
    name: str,
    names: Sequence[str],
    wanted: Mapping[str, str],
    seen: Mapping[str, str],
    problems: str,
    *,
    gate: bool = False,
) -> Check:
    wrong = [one for one in names if seen.get(one) != wanted[one]]
    evidence = f"{len(names) - len(wrong)} of {len(names)} facts right"
    if wrong:
        told = [f"{one} is {seen.get(one, 'unknown')}, not {wanted[one]}" for one in wrong[:3]]
        evidence += f"; {'; '.join(told)}" + (f"; {problems[:500]}" if problems else "")
    return Check(name=name, score=0.0 if wrong else 1.0, gate=gate, evidence=evidence)
