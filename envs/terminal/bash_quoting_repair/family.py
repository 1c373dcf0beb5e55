"""terminal/BashQuotingRepair: make a maintenance script safe for any file name, failure and signal.

The script does a few duties on two folders (`steps`); some of its functions, and its head, hold faults that plain
names never show. The verifier runs the script as it was and as it is on hidden trees, and compares trees, output and
exit status with what the host's model of the duties expects (`model`); nothing of that enters the sandbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from . import attempts
from .grading import examine
from .hostile import LEVELS as CATEGORIES
from .hostile import draw
from .levels import LEVELS, draw_plan
from .script import Plan, function, written


@dataclass(frozen=True)
class BashQuotingRepair(Family):
    """Repair a script in place, without changing what it does.

    Levels turn what file names may hold, the number of duties, and what else may go wrong: 0 spaces and glob characters
    in one function; 1 dashes, quotes, backslashes and blanks; 2 newlines, hidden files, missing folders; 3 a failing
    pipeline, a temporary folder, paths with spaces; 4 signals, a lock, paths that begin with a dash.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        plan, forms = draw_plan(LEVELS[level], rng)
        old, new = written(plan, forms), written(plan, {})
        files = {plan.path: old.encode()}
        sample = draw(plan, "spaces" if level else "plain", rng.child("sample"))
        files |= {f"sample/in/{path.decode()}": data for path, data in sample.world.source.items()}
        files |= {f"sample/out/{path.decode()}": data for path, data in sample.world.target.items()}
        executable = {plan.path}
        if plan.works:
            lines = "".join(f"{line.decode()}\n" for line in sample.world.tool_lines)
            files[f"bin/{plan.words['TOOL']}"] = f"#!/bin/sh\ncat <<'END'\n{lines}END\n".encode()
            executable.add(f"bin/{plan.words['TOOL']}")
        return Instance(
            variables={
                "script": plan.path,
                "duties": [plan.filled(step.duty) for step in plan.steps],
                "words": dict(plan.words),
                "works": plan.works,
                "locks": plan.locks,
                "counts": "count" in plan.names,
                "categories": list(CATEGORIES[level]),
            },
            files=files,
            executable=frozenset(executable),
            artefacts=(Artefact(path=plan.path, max_mb=1),),
            truth={
                "level": level,
                "old": old,
                "names": list(plan.names),
                "words": dict(plan.words),
                "works": plan.works,
                "locks": plan.locks,
                "forms": cast(Json, dict(forms)),
            },
            secrets=tuple(function(plan, step, "right") for step in plan.steps if step.name in forms) or (new,),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(plan_of(instance))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth = cast("Mapping[str, Any]", instance.truth)
        return attempts.mutants(plan_of(instance), truth["old"], truth["forms"], sorted(instance.files))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(plan_of(instance))

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        truth = cast("Mapping[str, Any]", instance.truth)
        return await examine(sandbox, plan_of(instance), truth["old"], truth["level"], hidden)


def plan_of(instance: Instance) -> Plan:
    """What the script must do."""
    truth = cast("Mapping[str, Any]", instance.truth)
    return Plan(names=tuple(truth["names"]), words=truth["words"], works=truth["works"], locks=truth["locks"])
