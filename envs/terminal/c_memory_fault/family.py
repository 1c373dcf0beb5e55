"""terminal/CMemoryFault: mend memory faults in a generated C library and its program.

Invariants: every planted fault is brought out by drawn commands that the right program obeys cleanly; expected output
comes from the host's model of the program; the verifier compiles the agent's sources itself, each build from the same
preprocessed text, and runs them under the address and undefined-behaviour sanitizers and under Valgrind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, cast

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.c_program import measure, read_sources
from ...parts.hunks import context
from . import attempts
from .grading import CHECKED, FLAGS, PLAIN, examine, grade, programs
from .project import LEVELS, Level, Project, build, planted

_MEASURE_S = 100.0
_SOURCE_BYTES = 200_000

_MAKEFILE = """\
CC = gcc
SOURCES = $(wildcard src/*.c)
HEADERS = $(wildcard src/*.h)

all: memory checked

memory: $(SOURCES) $(HEADERS)
\t$(CC) {flags} {plain} -Wall -Isrc $(SOURCES) -o $@

checked: $(SOURCES) $(HEADERS)
\t$(CC) {flags} {checked} -Wall -Isrc $(SOURCES) -o $@

clean:
\trm -f memory checked

.PHONY: all clean
"""


@dataclass(frozen=True)
class CMemoryFault(Family):
    """Find memory faults and mend them without changing what the program does.

    Levels turn the number of faults, how far the damage shows from its cause, and what the report tells: 0 names the
    function and the kind, 1 the kind, both with an input; 2 gives inputs only; 3 what users noticed; 4 nothing.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        knobs = LEVELS[level]
        project = build(knobs, rng)
        faulty = project.faulty
        cases = _cases(project, knobs, rng.child("cases"))
        manual = Template(project.theme.manual).substitute(project.names)
        makefile = _MAKEFILE.format(flags=" ".join(FLAGS), plain=" ".join(PLAIN), checked=" ".join(CHECKED))
        files = {"README.md": manual, "Makefile": makefile, **cases}
        files |= {f"src/{path}": text for path, text in faulty.items()}
        fills = project.names
        reports = [
            {
                "function": Template(fault.function).substitute(fills) if knobs.place else "",
                "kind": fault.kind if knobs.kind else "",
                "case": f"cases/report-{number}.in" if knobs.script else "",
                "symptom": Template(fault.symptom).substitute(fills) if knobs.symptom else "",
            }
            for number, fault in enumerate(project.faults, start=1)
        ]
        return Instance(
            variables={
                "what": Template(project.theme.what).substitute(fills),
                "count": len(project.faults),
                "reports": cast(Json, reports if level < 4 else []),
                "sources": [f"src/{path}" for path in project.right],
                "flags": " ".join(FLAGS),
                "plain": " ".join(PLAIN),
            },
            files={path: text.encode() for path, text in files.items()},
            artefacts=tuple(Artefact(path=f"src/{path}", max_mb=1) for path in project.right),
            truth={
                "theme": project.theme.name,
                "names": dict(project.names),
                "faults": [fault.name for fault in project.faults],
                "right": dict(project.right),
                "faulty": dict(faulty),
            },
            secrets=_secrets(project),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(instance)

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(instance)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(instance)

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        right = cast(Mapping[str, str], instance.truth["right"])
        read = await read_sources(sandbox, [f"src/{path}" for path in right], max_bytes=_SOURCE_BYTES)
        if isinstance(read, str):
            return Verdict.of(Check(name="builds", score=0.0, gate=True, evidence=read))
        sources = {path.removeprefix("src/"): text for path, text in read.items()}
        exam = examine(cast(Mapping[str, Any], instance.truth), hidden)
        ours, theirs = await measure(sandbox, programs(exam, right, sources), timeout_s=_MEASURE_S)
        if not ours.runs:  # what was measured took the probe down with it
            return Verdict.of(Check(name="builds", score=0.0, gate=True, evidence=theirs.failure))
        return grade(exam, ours, theirs)


def _cases(project: Project, knobs: Level, rng: Rng) -> dict[str, str]:
    """Inputs and what they must print: an everyday one, and one for each reported fault."""
    theme, names = project.theme, project.names
    inputs = {"everyday": theme.quiet(rng.child("everyday"), names)}
    for number, fault in enumerate(project.faults, start=1):
        if knobs.script:
            inputs[f"report-{number}"] = fault.lines(rng.child(f"report {number}"), names)
    found: dict[str, str] = {}
    for name, lines in inputs.items():
        found[f"cases/{name}.in"] = "".join(f"{line}\n" for line in lines)
        found[f"cases/{name}.out"] = theme.answer(lines, names)
    return found


def _secrets(project: Project) -> tuple[str, ...]:
    """The right text about the first place of each fault, which the agent has only with the fault."""
    shown = "\n".join(project.faulty.values())
    found: list[str] = []
    for fault in project.faults:
        path = fault.changes[0].path
        wrong = planted(project.right, [fault], project.names)[path]
        found.append(context(wrong, project.right[path], 2))
    return tuple(text for text in dict.fromkeys(found) if text not in shown)
