"""What a repaired library is held to: what was right stays right, and what each bug changed is right again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Check, Json, Rng, Verdict
from ...parts.differential import Case, Library, Observed, call_expression, same
from ...parts.inputs import draw_cases

_PER_FUNCTION = 8
_WANTED_PER_BUG = 6
"""Held-out calls that a bug must change, drawn in batches until there are so many."""
_BATCHES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """The calls, what is right, and which bugs change each (none: it was right before)."""

    cases: tuple[Case, ...]
    expected: tuple[Json, ...]
    blame: tuple[frozenset[int], ...]
    num_bugs: int


def examine(truth: Mapping[str, Json], hidden: Rng) -> Exam:
    """Draw held-out calls, and find what each bug changes by running it alone."""
    facts = cast(Mapping[str, Any], truth)
    right = Library(facts["right"])
    singles = [Library({**facts["right"], **changed}) for changed in facts["singles"]]
    buggy = Library({**facts["right"], **facts["buggy"]})
    cases: list[Case] = [(path, arguments) for path, arguments in facts["shown"]]
    expected = right.run_all(cases)
    blame = [_blame(case, want, singles, buggy) for case, want in zip(cases, expected, strict=True)]
    for batch in range(_BATCHES):
        fresh = draw_cases(facts["inputs"], hidden.child(f"batch {batch}"), _PER_FUNCTION)
        wanted = right.run_all(fresh)
        found = [_blame(case, want, singles, buggy) for case, want in zip(fresh, wanted, strict=True)]
        cases, expected, blame = cases + fresh, expected + wanted, blame + found
        counts = [sum(bug in bugs for bugs in blame) for bug in range(len(singles))]
        if min(counts) >= _WANTED_PER_BUG:
            break
    return Exam(cases=tuple(cases), expected=tuple(expected), blame=tuple(blame), num_bugs=len(singles))


def _blame(case: Case, expected: Json, singles: Sequence[Library], buggy: Library) -> frozenset[int]:
    alone = frozenset(bug for bug, library in enumerate(singles) if not same(library.run(case), expected))
    # bugs may also hide one another, or show only together: then none or all of them answer for the call
    if same(buggy.run(case), expected):
        return frozenset()
    return alone or frozenset(range(len(singles)))


def grade(exam: Exam, observed: Observed) -> Verdict:
    """One gate for what was right, one check for each bug, one for what only all repairs make right."""
    if observed.outcomes is None:
        return Verdict.of(Check(name="library_runs", score=0.0, evidence=observed.failure))
    right = [same(seen, want) for seen, want in zip(observed.outcomes, exam.expected, strict=True)]
    groups: dict[str, list[int]] = {
        "kept": [],
        **{f"bug_{bug + 1}": [] for bug in range(exam.num_bugs)},
        "together": [],
    }
    for index, bugs in enumerate(exam.blame):
        name = "kept" if not bugs else f"bug_{min(bugs) + 1}" if len(bugs) == 1 else "together"
        groups[name].append(index)
    checks = [_check(name, indices, exam, observed.outcomes, right) for name, indices in groups.items() if indices]
    return Verdict.of(*checks)


def _check(name: str, indices: Sequence[int], exam: Exam, outcomes: Sequence[Json], right: Sequence[bool]) -> Check:
    wrong = [index for index in indices if not right[index]]
    evidence = f"{len(indices) - len(wrong)} of {len(indices)} calls right"
    if wrong:
        first = wrong[0]
        evidence += f"; {call_expression(exam.cases[first])} gave {str(outcomes[first])[:120]}"
        evidence += f", not {str(exam.expected[first])[:120]}"
    return Check(name=name, score=0.0 if wrong else 1.0, gate=name == "kept", evidence=evidence)
