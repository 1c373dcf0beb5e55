"""What each level asks: how large the library, how many bugs, and how much the report tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...core import Json, Rng
from ...parts.differential import Case, Library, call_expression, expression, same
from ...parts.inputs import draw_cases
from ...parts.mutation import Mutation, MutationKind
from .libraries import library
from .project import Bug, Project, Shown, choose_bugs
from .snippets import small_project

_TESTS_PER_FUNCTION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level's knobs."""

    bugs: int
    shown: Shown
    modules: int
    """Of the package; 0: one small module without tests, and the report names the rule."""


LEVELS = (
    Level(bugs=1, shown=Shown.NEAR, modules=0),
    Level(bugs=1, shown=Shown.NEAR, modules=1),
    Level(bugs=2, shown=Shown.NEAR, modules=3),
    Level(bugs=3, shown=Shown.FAR, modules=5),
    Level(bugs=4, shown=Shown.FAR, modules=6),
)

_PLAIN = frozenset(MutationKind) - {MutationKind.LOGIC, MutationKind.FLAG, MutationKind.ORDER}


def build(level: Level, rng: Rng) -> tuple[Project, tuple[Bug, ...], Bug]:
    """A library, its bugs, and one more bug for a near miss."""
    books = rng.child("library")
    project = library(books, level.modules) if level.modules else small_project(books)

    def wanted(mutation: Mutation) -> bool:
        return level.modules > 0 or (mutation.simple and mutation.kind in _PLAIN)

    bugs = choose_bugs(project, rng.child("bugs"), level.bugs, wanted=wanted, shown=level.shown)
    places = {(bug.mutation.start, bug.mutation.after) for bug in bugs}
    (miss,) = choose_bugs(
        project, rng.child("near miss"), 1, wanted=lambda mutation: (mutation.start, mutation.after) not in places
    )
    return project, bugs, miss


def visible_tests(rng: Rng, project: Project, buggy: Mapping[str, str]) -> tuple[dict[str, str], list[Case]]:
    """A suite that the buggy library passes, and its calls, which must stay right."""
    library_now, right = Library(buggy), Library(project.files)
    kept: dict[str, dict[str, tuple[Case, Json]]] = {}
    for case in draw_cases(project.inputs, rng, _TESTS_PER_FUNCTION * 6):
        wanted, module = right.run(case), case[0].partition(":")[0]
        if not same(library_now.run(case), wanted) or "$raises" in str(wanted) or len(_claim(case, wanted)) > 100:
            continue
        known = kept.setdefault(module, {})
        if sum(one[0] == case[0] for one, _ in known.values()) < _TESTS_PER_FUNCTION:
            known.setdefault(call_expression(case), (case, wanted))
    files = {f"tests/test_{module.rpartition('.')[2]}.py": _suite(module, calls) for module, calls in kept.items()}
    return files, [case for calls in kept.values() for case, _ in calls.values()]


def _suite(module: str, calls: Mapping[str, tuple[Case, Json]]) -> str:
    names = sorted({case[0].partition(":")[2] for case, _ in calls.values()})
    built = sorted({path for case, _ in calls.values() for path in _constructors(case[1])})
    imports = [f"from {path.partition(':')[0]} import {path.partition(':')[2]}" for path in built]
    imports.append(f"from {module} import {', '.join(names)}")
    tests = []
    for name in names:
        lines = [f"    assert {_claim(case, want)}" for case, want in calls.values() if case[0].endswith(f":{name}")]
        tests.append("\n".join([f"def test_{name}():", *lines]) + "\n")
    return "\n".join(sorted(imports)) + "\n\n\n" + "\n\n".join(tests)


def _claim(case: Case, wanted: Json) -> str:
    return f"{call_expression(case)} {'is' if isinstance(wanted, bool) else '=='} {expression(wanted)}"


def _constructors(value: Json) -> list[str]:
    if isinstance(value, list):
        return [path for item in value for path in _constructors(item)]
    if isinstance(value, dict):
        inner = [path for item in value.values() for path in _constructors(item)]
        if isinstance(new := value.get("$new"), list):
            inner.append(str(new[0]))
        return inner
    return []
