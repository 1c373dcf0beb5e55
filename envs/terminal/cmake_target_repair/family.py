"""terminal/CMakeTargetRepair: repair the targets, usage requirements, install rules and package of a C++ project.

Invariants: only CMake files are graded, and the verifier lays them over its own sources, builds from scratch, installs,
moves the installed tree away from sources and build, and uses it from hidden projects; what consumers must see and
compute is known to the host alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.c_program import read_sources
from ...parts.hunks import context
from . import attempts
from .faults import FAULTS, Fault, apply, planted
from .grading import draw_inputs, grade
from .levels import LEVELS, build
from .measuring import measure
from .project import Project

_LARGEST = 32_768
"""Bytes of a CMake file that are read."""


@dataclass(frozen=True)
class CMakeTargetRepair(Family):
    """Make a package what its manual promises.

    Levels turn what is promised (0 one static library, 1 a dependency, 2 shared libraries, 3 components and both
    configurations, 4 both installed side by side, and use as a subfolder), the number of faults, and what is told: 0
    what is at fault, 1 to 3 what was seen, 4 nothing.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        knobs = LEVELS[level]
        project, faults = build(knobs, rng)
        faulty = planted(project, faults)
        files = {"BUILDING.md": project.manual, **project.sources, **faulty}
        reports = [
            project.fill(fault.report + (f" (look at {fault.hint})" if knobs.hint else ""))
            for fault in (faults if knobs.symptoms else ())
        ]
        return Instance(
            variables={
                "project": project.names["P"],
                "count": len(faults),
                "reports": cast(Json, reports),
                "files": cast(Json, list(faulty)),
                "shape": cast(Json, asdict(project.shape)),
                "largest": _LARGEST // 1024,
            },
            files={path: text.encode() for path, text in files.items()},
            artefacts=tuple(Artefact(path=path, max_mb=1) for path in faulty),
            truth={
                "level": level,
                "names": dict(project.names),
                "numbers": dict(project.numbers),
                "faults": [fault.name for fault in faults],
            },
            secrets=_secrets(project, faults, faulty),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(*_made(instance))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(*_made(instance))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(*_made(instance))

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        project, faults = _made(instance)
        read = await read_sources(sandbox, list(project.cmake), max_bytes=_LARGEST)
        if isinstance(read, str):
            return Verdict.of(Check(name="kept", score=0.0, gate=True, evidence=read))
        inputs = draw_inputs(hidden.child("inputs"))
        moved = f"moved-{hidden.child('moved').integer(10**8, 10**9)}"
        return grade(project, faults, inputs, await measure(sandbox, project, read, inputs, moved))


def _made(instance: Instance) -> tuple[Project, tuple[Fault, ...]]:
    truth: Mapping[str, Any] = instance.truth
    known = {fault.name: fault for fault in FAULTS}
    project = Project(shape=LEVELS[truth["level"]].shape, names=truth["names"], numbers=truth["numbers"])
    return project, tuple(known[name] for name in truth["faults"])


def _secrets(project: Project, faults: Sequence[Fault], faulty: Mapping[str, str]) -> tuple[str, ...]:
    """The right text about the first place of each fault, which the agent has only with the fault."""
    shown = "\n".join(faulty.values())
    found: list[str] = []
    for fault in faults:
        path = project.fill(fault.changes[0].path)
        wrong = apply(project, project.cmake, fault.changes)[path]
        found.append(context(wrong, project.cmake[path], 1))
    return tuple(text for text in dict.fromkeys(found) if text not in shown)
