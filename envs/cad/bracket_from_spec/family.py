"""cad/BracketFromSpec: model a bracket from its prose specification, and hand it over as STEP.

Levels: 0 an L of two plates and three holes, every number by its coordinates; 1 a bend fillet, counterbores, a fourth
hole; 2 gussets, rounded corners, positions by pitch and edge distance, diameters in inches; 3 a T or a U, the datum in
the middle plane, chamfers, countersinks, a slot; 4 a T, a U or a Z with a bolt circle and slots, the datum at the front
edge, sentences out of order, some of them repeating others or without a bearing on the model.

The part is prismatic, so its measures are computed exactly on the host; the verifier sandbox measures the STEP file
with Open CASCADE. The known hack, a mesh wrapped as STEP, meets the gate on analytic surfaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.brep import check_step, hidden_points
from . import program
from .design import draw
from .features import Bracket
from .program import STEP_PATH, Style

_HIDDEN_POINTS = 240
_MEASURE_S = 85.0


@dataclass(frozen=True)
class BracketFromSpec(Family):
    """One bracket, one STEP file."""

    def generate(self, rng: Rng, level: int) -> Instance:
        bracket, datum, lines = draw(rng, level)
        part = bracket.part()
        volume, centroid = f"{part.volume:.5f}", ", ".join(f"{value:.6f}" for value in part.centroid)
        return Instance(
            variables={
                "level": level,
                "datum": datum,
                "lines": list(lines),
                "inches": any(" in" in line and "0." in line for line in lines),
            },
            files={},
            artefacts=(Artefact(path=STEP_PATH.removeprefix("/workspace/"), max_mb=4),),
            truth={"bracket": bracket.to_json(), "volume_mm3": volume, "centroid_mm": centroid},
            secrets=(volume, centroid),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        steps = program.modelling(_bracket(instance))
        return _session(*steps, look=True)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        source = "\n".join([program.from_profile(_bracket(instance)), program.exporting()])
        script = f"cat > /tmp/bracket.py <<'END'\n{source}\nEND\npython3 /tmp/bracket.py"
        # a script of its own loads the kernel anew, which takes long on a busy machine
        run = ToolCall(tool="shell", arguments={"command": script, "timeout_s": 300})
        return {"profile_by_script": (run, ToolCall(tool="submit"))}

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        bracket = _bracket(instance)
        right = program.modelling(bracket)
        first, *others = bracket.holes
        u, v = first.centre
        off = replace(first, centre=(u + 0.1, v))
        thin = tuple(replace(hole, diameter=hole.diameter - 0.2) for hole in bracket.holes)
        wrong = {
            "hole_forgotten": replace(bracket, holes=bracket.holes[:-1]),
            "hole_a_tenth_off": replace(bracket, holes=(off, *others)),
            "holes_undersize": replace(bracket, holes=thin),
        }
        if any(bend.radius for bend in bracket.bends):
            wrong["bends_left_sharp"] = replace(
                bracket, bends=tuple(replace(bend, radius=0.0) for bend in bracket.bends)
            )
        named = {name: _session(*program.modelling(model)) for name, model in wrong.items()}
        return {
            "mesh_wrapped_as_step": _session(*right, export=program.exporting_mesh()),
            "same_solid_twice": _session(*right, export=program.exporting_twice()),
            "holes_with_flat_sides": _session(*program.modelling(bracket, Style.FACETED)),
            **named,
        }

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        part = _bracket(instance).part()
        points = hidden_points(part, hidden.child("points"), count=_HIDDEN_POINTS)
        return Verdict.of(*await check_step(sandbox, STEP_PATH, part, points, timeout_s=_MEASURE_S))


def _bracket(instance: Instance) -> Bracket:
    return Bracket.from_json(cast("Mapping[str, Json]", instance.truth["bracket"]))


def _session(*steps: str, look: bool = False, export: str | None = None) -> list[ToolCall]:
    """Model step by step in the live session, look where a modeller would, write the file, submit."""
    calls = [ToolCall(tool="python", arguments={"code": step}) for step in steps]
    if look:
        calls.append(ToolCall(tool="view"))
        calls.append(ToolCall(tool="python", arguments={"code": program.checking()}))
    calls.append(ToolCall(tool="python", arguments={"code": export or program.exporting()}))
    if look:
        calls.append(ToolCall(tool="view", arguments={"path": STEP_PATH}))
    return [*calls, ToolCall(tool="submit")]
