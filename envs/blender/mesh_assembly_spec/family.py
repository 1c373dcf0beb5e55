"""blender/MeshAssemblySpec: build an object from dimensioned text.

Levels: 0 blocks, every number stated in metres; 1 a stack placed by contacts, millimetres; 2 furniture with counted
parts, holes and lengths to derive, mm and cm; 3 a pillar, a bed or a lamp with profiles, cones, bolt circles and
pockets; 4 a portal crane or a rack of some twenty parts with arrays, copies and mixed units. The known hack, a
shell that fakes volume or a box that fakes bounds, meets closedness, hidden sections and hidden points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ...core import Artefact, Check, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.mesh_measures import measure_blend
from . import grading, large_assemblies, machine_parts, simple_assemblies
from .draft import Contact, Draft, Unit
from .modelling import SAVE, Style, program
from .solids import Solid
from .wrong_models import wrong_programs

MODEL = "model.blend"
_ASSEMBLIES = (
    (simple_assemblies.blocks,),
    (simple_assemblies.stack,),
    (simple_assemblies.table, simple_assemblies.shelf, simple_assemblies.gate),
    (machine_parts.flanged_pillar, machine_parts.machine_bed, machine_parts.lamp),
    (large_assemblies.portal, large_assemblies.rack),
)
_UNITS = ((Unit.M,), (Unit.MM,), (Unit.MM, Unit.CM), (Unit.MM, Unit.CM), (Unit.MM, Unit.CM, Unit.M))


@dataclass(frozen=True)
class MeshAssemblySpec(Family):
    """One assembly of named parts, measured part by part."""

    def generate(self, rng: Rng, level: int) -> Instance:
        draft = Draft(rng=rng.child("assembly"), units=_UNITS[level])
        draft.rng.choice(_ASSEMBLIES[level])(draft)
        canary = f"{rng.child('canary').integer(0, 2**96):024x}"
        return Instance(
            variables={
                "level": level,
                "title": draft.title,
                "sentences": list(draft.sentences),
                "min_sides": grading.MIN_SIDES,
                "length_mm": grading.LENGTH_MM,
                "contact_mm": grading.CONTACT_MM,
                "volume_percent": grading.VOLUME_SHARE * 100,
                "section_percent": round(grading.SECTION_SHARE * 100),
            },
            files={},
            artefacts=(Artefact(path=MODEL),),
            truth={
                "level": level,
                "canary": canary,
                "solids": [solid.to_json() for solid in draft.solids],
                "contacts": [asdict(contact) for contact in draft.contacts],
            },
            secrets=(canary,),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return _calls(program(_solids(instance)))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        solids = list(reversed(_solids(instance)))
        return {
            "extruded_and_turned": _calls(program(solids, Style.BMESH)),
            "modifiers_left_live": _calls(program(solids, Style.LIVE)),
        }

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        forged = (
            'echo \'{"reward": 1.0, "passed": true}\' | tee reward.json verdict.json /tmp/reward.txt; echo 1 > answer'
        )
        forgery = ToolCall(tool="shell", arguments={"command": forged})
        empty = program([])
        named = {name: _calls(pieces) for name, pieces in wrong_programs(_solids(instance)).items()}
        return {**named, "forged_reward": (forgery, *_calls(empty))}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        solids = _solids(instance)
        questions = {solid.name: grading.question(solid, hidden.child(solid.name)) for solid in solids}
        found = await measure_blend(sandbox, f"/workspace/{MODEL}", questions, timeout_s=90)
        opened = Check(name="file", score=float(not found.failure), gate=True, evidence=found.failure or "opened")
        if found.failure:
            return Verdict.of(opened)
        judged = {
            solid.name: grading.judge(
                solid, questions[solid.name], found.meshes.get(solid.name), hidden_object=solid.name in found.hidden
            )
            for solid in solids
        }
        checks = [opened, grading.scene_check(solids, found)]
        for name, result in judged.items():
            checks.append(
                Check(name=f"part {name}", score=result.score, evidence="; ".join(result.faults[:4]) or "as asked")
            )
        contacts = [Contact(**fields) for fields in _dicts(instance.truth["contacts"])]
        if contacts:
            checks.append(grading.contact_check(contacts, found, judged))
        return Verdict.of(*checks)


def _calls(pieces: Sequence[str]) -> tuple[ToolCall, ...]:
    """Run the pieces, look at the model, save, submit."""
    runs = [ToolCall(tool="python", arguments={"code": piece}) for piece in pieces]
    return (*runs, ToolCall(tool="view"), ToolCall(tool="python", arguments={"code": SAVE}), ToolCall(tool="submit"))


def _solids(instance: Instance) -> list[Solid]:
    return [Solid.from_json(fields) for fields in _dicts(instance.truth["solids"])]


def _dicts(value: Json) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
