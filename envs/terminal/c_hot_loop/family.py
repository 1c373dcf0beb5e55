"""terminal/CHotLoop: cut the instruction count of a C kernel under Callgrind while its results stay exact.

Invariants: all arithmetic is unsigned and wraps, so a result is exact or wrong; expected results come from the host's
model; the count is that of a whole process with one call on a fresh input, less what the driver alone costs, so nothing
done before, after or beside the call is free; the marks are counts of our own kernels from the same probe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, cast

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.c_program import measure, read_sources
from . import attempts, driver
from .grading import KERNELS, counted_programs, economy, exact_programs, exactness, examine, verdict

_LEVELS = (
    ("in set", "row hash"),
    ("moving sum", "range sums"),
    ("pair count", "window max"),
    ("box sum", "rows apart"),
    ("common subsequence", "life"),
)
_SLACK = (1.35, 1.35, 1.4, 1.5, 1.6)
_EXACT_S, _COUNTED_S = 50.0, 100.0
"""For a probe; where one does not end, a control takes half as long again."""


@dataclass(frozen=True)
class CHotLoop(Family):
    """One kernel, right and slow.

    Levels turn what a faster kernel takes: 0 work taken out of an inner loop, 1 sums that are carried on, 2 another
    data structure, 3 a table or image turned round, 4 many cells in one machine word.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        kernel = KERNELS[rng.choice(_LEVELS[level])]
        constants = {**kernel.constants(rng.child("constants")), "fn": rng.choice(kernel.functions)}
        large = kernel.shape(rng.child("large"), constants)
        small = kernel.edges(rng.child("small"), constants)
        files: dict[str, bytes] = {
            "kernel.c": kernel.source(kernel.naive, constants).encode(),
            "kernel.h": driver.header(kernel, constants).encode(),
            "main.c": driver.main(kernel, constants).encode(),
            "Makefile": driver.makefile().encode(),
        }
        for name, given in {"large": large, **{f"small-{number}": one for number, one in enumerate(small[:4])}}.items():
            files[f"data/{name}.in"] = kernel.encode(given)
            files[f"data/{name}.out"] = kernel.expected(constants, given)
        fast = kernel.source(kernel.fast, constants)
        return Instance(
            variables={
                "function": constants["fn"],
                "work": kernel.work,
                "gain": kernel.gain,
                "slack": f"{_SLACK[level]:g}",
                "flags": " ".join(driver.FLAGS),
            },
            files=files,
            artefacts=(Artefact(path=attempts.PATH, max_mb=1),),
            truth={"kernel": kernel.name, "constants": cast(Json, constants), "level": level},
            secrets=(fast.partition("{\n")[2].strip(), Template(kernel.other).substitute(constants).strip("-\n ")),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(instance)

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(instance)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(instance)

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        read = await read_sources(sandbox, [attempts.PATH], max_bytes=200_000)
        if isinstance(read, str):
            return Verdict.of(Check(name="exact", score=0.0, gate=True, evidence=read))
        exam = examine(cast(Mapping[str, Any], instance.truth), hidden)
        ours, plain = await measure(sandbox, exact_programs(exam, read[attempts.PATH]), timeout_s=_EXACT_S)
        exact = exactness(exam, ours, plain)
        if exact.score < 1.0:
            return Verdict.of(exact)
        counts = await measure(sandbox, counted_programs(exam, read[attempts.PATH]), timeout_s=_COUNTED_S)
        if not counts[0].runs:  # what was measured took the probe down with it
            return Verdict.of(Check(name="exact", score=0.0, gate=True, evidence=counts[-1].failure))
        slack = _SLACK[cast(int, instance.truth["level"])]
        return verdict(exact, economy(exam, counts, slack))
