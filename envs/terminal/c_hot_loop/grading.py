"""How a kernel is judged: exact on small and awkward inputs first, then instructions on large ones, between two marks.

The marks come from the same probe: the naive kernel's count and the fast one's, each less what the driver costs. With
the agent's count n between them, progress = log(naive / n) / log(naive / (slack · fast)), cut to [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Check, Rng, Verdict, VerifierError
from ...parts.c_program import FUNCTIONS, Ended, Measured, Program, Rules, Run
from ...parts.callgrind import Counted, counted, counting
from . import driver, kernels
from .kernel import Input, Kernel

KERNELS = {kernel.name: kernel for kernel in kernels.ALL}
SHAPES = 2
"""Large inputs that are counted."""
_LEAST_GAIN = 1.05
"""A smaller gain is noise of the compiler, and none."""
_ALLOWED = tuple(name for name in FUNCTIONS if not name.startswith("str") and name not in ("abort", "atoi"))
_SMALL_S, _LARGE_S = 10.0, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """Inputs and the bytes that each must give; the first `small` ones are not counted."""

    kernel: Kernel
    constants: Mapping[str, int | str]
    inputs: tuple[Input, ...]
    expected: tuple[bytes, ...]
    small: int


def examine(truth: Mapping[str, Any], hidden: Rng) -> Exam:
    """Draw held-out inputs."""
    kernel, constants = KERNELS[truth["kernel"]], truth["constants"]
    edges = kernel.edges(hidden.child("edges"), constants)
    large = [kernel.shape(hidden.child(f"large {number}"), constants) for number in range(SHAPES)]
    inputs = (*edges, *large)
    expected = tuple(kernel.expected(constants, given) for given in inputs)
    return Exam(kernel=kernel, constants=constants, inputs=inputs, expected=expected, small=len(edges))


def _program(exam: Exam, source: str, runs: Sequence[Run], *, trusted: bool) -> Program:
    constants = exam.constants
    pristine = {"main.c": driver.main(exam.kernel, constants), "kernel.h": driver.header(exam.kernel, constants)}
    rules = None if trusted else Rules(functions=_ALLOWED, ours=("main",))
    return Program(
        files={**pristine, "kernel.c": source},
        flags=driver.FLAGS,
        runs=tuple(runs),
        rules=rules,
        pristine=() if trusted else ("main.c",),
        give_up=1,
    )


def exact_programs(exam: Exam, source: str) -> list[Program]:
    """The naive kernel, as a control of the time, and the agent's on every input, not counted."""
    inputs = [exam.kernel.encode(given) for given in exam.inputs]
    naive = exam.kernel.source(exam.kernel.naive, exam.constants)
    ours, theirs = ([Run(stdin=data, seconds=limit) for data in inputs] for limit in (_SMALL_S / 2, _SMALL_S))
    return [_program(exam, naive, ours, trusted=True), _program(exam, source, theirs, trusted=False)]


def counted_programs(exam: Exam, source: str) -> list[Program]:
    """Stub, naive and fast kernel, and the agent's, on the large inputs."""
    kernel, constants = exam.kernel, exam.constants
    inputs = [kernel.encode(given) for given in exam.inputs[exam.small :]]
    ours, theirs = ([counting(data, seconds=limit) for data in inputs] for limit in (_LARGE_S / 2, _LARGE_S))
    naive, fast = (kernel.source(text, constants) for text in (kernel.naive, kernel.fast))
    marks = [(driver.stub(kernel, constants), ours[:1]), (naive, ours), (fast, ours)]
    trusted = [_program(exam, text, some, trusted=True) for text, some in marks]
    return [*trusted, _program(exam, source, theirs, trusted=False)]


def exactness(exam: Exam, ours: Measured, measured: Measured) -> Check:
    """The gate: every input exact.

    Raises:
        VerifierError: the naive kernel is not exact, or not within half the time: the machine is overloaded.
    """
    for run, wanted in zip(ours.runs, exam.expected, strict=False):
        if wrong := _wrong(run, wanted, _SMALL_S / 2):
            raise VerifierError(f"the naive kernel {wrong}")
    if measured.failure:
        return Check(name="exact", score=0.0, gate=True, evidence=measured.failure)
    for given, run, wanted in zip(exam.inputs, measured.runs, exam.expected, strict=True):
        if wrong := _wrong(run, wanted, _SMALL_S):
            scalars = ", ".join(
                f"{name} = {value}" for name, value in zip(exam.kernel.scalars, given.scalars, strict=True)
            )
            return Check(name="exact", score=0.0, gate=True, evidence=f"with {scalars} it {wrong}")
    return Check(name="exact", score=1.0, gate=True, evidence=f"{len(exam.inputs)} inputs right")


def _wrong(run: Ended | None, wanted: bytes, seconds: float) -> str:
    if run is None:
        return "was not run, since an earlier run did not end"
    if run.late:
        return f"did not end within {seconds:g} s"
    if run.code != 0:
        return f"ended with {f'signal {-run.code}' if run.code < 0 else f'exit code {run.code}'}"
    if run.stdout != wanted:
        at = next((i for i, (a, b) in enumerate(zip(run.stdout, wanted, strict=False)) if a != b), -1)
        return f"gives other bytes than it must, the first at {at}" if at >= 0 else "gives too few or too many bytes"
    return ""


def economy(exam: Exam, measured: Sequence[Measured], slack: float) -> list[Check]:
    """One check for each large input.

    Raises:
        VerifierError: our own kernels could not be counted.
    """
    stub, *marks = [[_sure(counted(run)) for run in one.runs] for one in measured[:3]]
    checks: list[Check] = []
    for number, run in enumerate(measured[3].runs or (None,) * SHAPES):
        naive, fast = (mark[number] - stub[0] for mark in marks)
        seen = counted(run)
        if seen.instructions is None or seen.stdout != exam.expected[exam.small + number]:
            why = measured[3].failure or seen.failure or "gave another result under Callgrind"
            checks.append(Check(name=f"large_{number + 1}", score=0.0, evidence=why))
            continue
        score = progress(naive, fast, seen.instructions - stub[0], slack)
        evidence = f"{seen.instructions - stub[0]} instructions; before {naive}, full marks at {round(slack * fast)}"
        checks.append(Check(name=f"large_{number + 1}", score=score, evidence=evidence))
    return checks


def _sure(one: Counted) -> int:
    if one.instructions is None:
        raise VerifierError(f"a kernel of our own {one.failure}")
    return one.instructions


def progress(naive: int, fast: int, count: int, slack: float) -> float:
    """How far the count is on its way from `naive` to `slack · fast`, by its logarithm.

    Example:
        >>> progress(1000, 10, 1000, 1.0), progress(1000, 10, 100, 1.0), progress(1000, 10, 5, 1.0)
        (0.0, 0.5, 1.0)
    """
    if count <= slack * fast:
        return 1.0
    if count * _LEAST_GAIN >= naive:
        return 0.0
    return round(min(0.99, math.log(naive / count) / math.log(naive / (slack * fast))), 3)


def verdict(exact: Check, economy_checks: Sequence[Check]) -> Verdict:
    """Nothing counts unless every result is exact."""
    return Verdict.of(exact, *economy_checks)
