"""terminal/PyMutationRepair: repair injected bugs in a generated Python library from a bug report.

Invariants: every bug shows on drawn inputs before it is used; the library's public results are compared on held-out
inputs, as equal Python values (floats to a relative 1e-9); tests, hooks and anything outside the library's own files
never reach the verifier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.differential import Observed, expression, is_same_program, run_in_sandbox
from . import attempts
from .grading import examine, grade
from .levels import LEVELS, build, visible_tests
from .project import Bug, planted

_PROBE_S = 30.0


@dataclass(frozen=True)
class PyMutationRepair(Family):
    """Find the bugs behind a report and repair them without breaking the rest.

    Levels turn the size of the library, the number of bugs and what the report tells: 0 names the rule that the line
    must follow, 1 and 2 give a failing call of each faulty function, 3 and 4 only symptoms seen further up.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        project, bugs, miss = build(LEVELS[level], rng)
        buggy = planted(project.files, bugs)
        facts = [attempts.facts(bug, project.files, buggy) for bug in bugs]
        tests, tested = visible_tests(rng.child("tests"), project, buggy) if level else ({}, [])
        paths = sorted({path.partition("/")[0] for path in project.files})
        return Instance(
            variables={"level": level, "files": list(paths), "bugs": [describe(bug) for bug in bugs]},
            files={path: text.encode() for path, text in {**buggy, **tests}.items()},
            artefacts=tuple(Artefact(path=path, tree=not path.endswith(".py"), max_mb=1) for path in paths),
            truth={
                "right": dict(project.files),
                "buggy": {path: text for path, text in buggy.items() if text != project.files[path]},
                "singles": [{bug.path: bug.planted_in(project.files)[bug.path]} for bug in bugs],
                "bugs": cast(Json, facts),
                "near_miss": attempts.near_miss(bugs, project.files, miss),
                "shown": [[path, arguments] for path, arguments in [*(bug.case for bug in bugs), *tested]],
                "inputs": cast(Json, {path: list(specs) for path, specs in project.inputs.items()}),
            },
            secrets=tuple(dict.fromkeys(attempts.secret(bug, project.files) for bug in bugs)),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(instance)

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(instance)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(instance)

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        exam = examine(instance.truth, hidden)
        right = cast(Mapping[str, str], instance.truth["right"])
        if await is_same_program(sandbox, right):
            observed = Observed(outcomes=exam.expected)
        else:
            observed = await run_in_sandbox(sandbox, exam.cases, timeout_s=_PROBE_S)
        return grade(exam, observed)


def describe(bug: Bug) -> dict[str, Json]:
    """What a report may say of a bug, as Python."""
    return {
        "function": bug.mutation.function,
        "rule": bug.mutation.rule,
        "call": bug.call,
        "module": bug.case[0].partition(":")[0],
        "raises": isinstance(bug.observed, dict) and "$raises" in bug.observed,
        "observed": expression(bug.observed),
        "expected": expression(bug.expected),
    }
