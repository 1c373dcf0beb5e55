"""A right library, and the bugs planted in it: each proven to show on drawn inputs before it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum, auto

from ...core import GenerationError, Json, Rng
from ...parts.differential import Case, Library, call_expression, expression
from ...parts.inputs import Inputs, draw_cases
from ...parts.mutation import Mutation, apply, mutations

_TRIED_CASES = 18
"""Calls of each function that a candidate is tried on."""
_SHOWN_SHARE = 0.15
"""The share of one function's calls that a bug must change, so that held-out inputs meet it."""
_SHOWN_WAYS = 3
"""Different calls that a bug must change, so that answering the shown one from a table repairs nothing."""


class Shown(StrEnum):
    """Which call shows a bug."""

    NEAR = auto()
    """One of the faulty function."""
    FAR = auto()
    """One of the last function, in the order of the modules, that the bug reaches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The right files of a library, and how to draw calls of its functions."""

    files: Mapping[str, str]
    inputs: Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """One planted mutation, with a call that shows it."""

    path: str
    mutation: Mutation
    case: Case
    expected: Json
    observed: Json

    def planted_in(self, files: Mapping[str, str]) -> dict[str, str]:
        """The files with this bug alone."""
        return {**files, self.path: apply(files[self.path], [self.mutation])}

    @property
    def call(self) -> str:
        """The showing call, as Python."""
        return call_expression(self.case)


def planted(files: Mapping[str, str], bugs: Sequence[Bug]) -> dict[str, str]:
    """The files with every bug."""
    return {path: apply(text, [bug.mutation for bug in bugs if bug.path == path]) for path, text in files.items()}


def choose_bugs(
    project: Project, rng: Rng, count: int, *, wanted: Callable[[Mutation], bool], shown: Shown = Shown.NEAR
) -> tuple[Bug, ...]:
    """`count` bugs in different files, each changing enough of some function's results.

    Raises:
        GenerationError: the library has too few.
    """
    places = [
        (path, mutation)
        for path, text in project.files.items()
        for mutation in mutations(text)
        if wanted(mutation) and "\n" not in mutation.before
    ]
    trial = _Trial(project, draw_cases(project.inputs, rng.child("cases"), _TRIED_CASES))
    chosen: list[_Candidate] = []
    for path, mutation in rng.child("mutations").shuffled(places):
        if any(candidate.path == path for candidate in chosen):
            continue
        candidate = trial.candidate(path, mutation, shown)
        if candidate is not None:
            chosen.append(candidate)
        if len(chosen) == count:
            return trial.bugs(sorted(chosen, key=lambda candidate: candidate.path))
    raise GenerationError(f"only {len(chosen)} of {count} bugs show on drawn inputs; widen the inputs or the library")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """A mutation, the calls that it changes alone, and those of them that may show it."""

    path: str
    mutation: Mutation
    changed: frozenset[int]
    showing: tuple[int, ...]


class _Trial:
    """Candidates against the right library, on the same calls."""

    def __init__(self, project: Project, cases: Sequence[Case]) -> None:
        self._files, self._cases = project.files, cases
        self._right = Library(project.files).run_all(cases)

    def candidate(self, path: str, mutation: Mutation, shown: Shown) -> _Candidate | None:
        """The mutation with what it changes, or None where that is too little."""
        wrong = Library({**self._files, path: apply(self._files[path], [mutation])}).run_all(self._cases)
        changed = [index for index, outcome in enumerate(wrong) if outcome != self._right[index]]
        if not changed or len(changed) == len(wrong):
            return None
        function = f"{_module(path)}:{mutation.function}" if shown is Shown.NEAR else self._cases[changed[-1]][0]
        showing = tuple(index for index in changed if self._cases[index][0] == function)
        ways = {call_expression(self._cases[index]) for index in showing}
        if len(showing) < _SHOWN_SHARE * _TRIED_CASES or len(ways) < _SHOWN_WAYS:
            return None
        return _Candidate(path=path, mutation=mutation, changed=frozenset(changed), showing=showing)

    def bugs(self, chosen: Sequence[_Candidate]) -> tuple[Bug, ...]:
        """The candidates planted together, each with a short call that shows it and, if possible, no other."""
        files = {**self._files, **{one.path: apply(self._files[one.path], [one.mutation]) for one in chosen}}
        seen = Library(files).run_all(self._cases)
        found: list[Bug] = []
        taken: set[int] = set()
        for one in chosen:
            others = frozenset(index for other in chosen if other is not one for index in other.changed)
            best = min(one.showing, key=lambda index: self._rank(index, seen[index], index in others or index in taken))
            taken.add(best)
            found.append(
                Bug(
                    path=one.path,
                    mutation=one.mutation,
                    case=self._cases[best],
                    expected=self._right[best],
                    observed=seen[best],
                )
            )
        return tuple(found)

    def _rank(self, index: int, observed: Json, shared: bool) -> tuple[bool, bool, bool, int, int]:
        """Calls that show nothing come last, before them shared ones and those that raise; short ones come first."""
        texts = (call_expression(self._cases[index]), expression(self._right[index]), expression(observed))
        raises = "$raises" in f"{observed}{self._right[index]}"
        return observed == self._right[index], shared, raises, sum(map(len, texts)), index


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
