"""game/BulletColliderFit: few primitive colliders for a fine mesh, so that it falls and rests like the mesh.

Levels: 0 two or three upright blocks, each an object of the mesh, one box each; 1 furniture of boxes and cylinders,
still one object per part; 2 tools, lamps and robots with spheres and slanted parts, turned at random, in one mesh
without groups; 3 hollow things, whose walls need a ring of boxes; 4 prisms, tapers and tapered walls, turned at random,
which primitives only approach. The cap leaves one collider more than a good fit needs.

The true body is the union of the convex pieces that the mesh was made from. The known hack, one giant box, meets the
overshoot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.drop_test import LEAST_OVERLAP, Demand, check_collider
from . import attempts
from .attempts import COLLIDER_PATH, MESH_PATH
from .solids import obj_text
from .things import draw

_MEASURE_S = 85.0


@dataclass(frozen=True)
class BulletColliderFit(Family):
    """One mesh, one collider file."""

    def generate(self, rng: Rng, level: int) -> Instance:
        thing = draw(rng, level)
        assembly, demand = thing.assembly, thing.demand
        primitives: list[Json] = [primitive.to_json() for primitive in assembly.primitives]
        text = obj_text(assembly.meshes, grouped=thing.grouped)
        return Instance(
            variables={
                "thing": thing.name,
                "grouped": thing.grouped,
                "boxes_only": level == 0,
                "cap": thing.cap,
                "coverage": round(demand.coverage * 100),
                "overshoot": round(demand.overshoot * 100),
                "bounds": f"{demand.bounds * 100:g}",
                "height": f"{demand.height * 100:g}",
                "tilt_deg": f"{demand.tilt_deg:g}",
                "overlap": f"{LEAST_OVERLAP:g}",
            },
            files={MESH_PATH.removeprefix("/workspace/"): text.encode()},
            artefacts=(Artefact(path=COLLIDER_PATH.removeprefix("/workspace/"), max_mb=1),),
            truth={
                "level": level,
                "cap": thing.cap,
                "demand": cast("dict[str, Json]", asdict(demand)),
                "pieces": [dict(piece) for piece in assembly.truth()],
                "primitives": primitives,
            },
            secrets=tuple(json.dumps(primitive) for primitive in primitives[:2]),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(_rows(instance, "primitives"), boxes_only=instance.truth["level"] == 0)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(_rows(instance, "primitives"))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        vertices = [
            vertex for piece in _rows(instance, "pieces") for vertex in cast("list[list[float]]", piece["vertices"])
        ]
        low, high = ([end(vertex[axis] for vertex in vertices) for axis in range(3)] for end in (min, max))
        return attempts.mutants(_rows(instance, "primitives"), low, high, cap=_cap(instance))

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        demand = Demand(**cast("dict[str, Any]", instance.truth["demand"]))
        checks = await check_collider(
            sandbox,
            COLLIDER_PATH,
            _rows(instance, "pieces"),
            demand,
            hidden.child("drops"),
            cap=_cap(instance),
            timeout_s=_MEASURE_S,
        )
        return Verdict.of(*checks)


def _rows(instance: Instance, name: str) -> list[dict[str, Json]]:
    return cast("list[dict[str, Json]]", instance.truth[name])


def _cap(instance: Instance) -> int:
    return cast("int", instance.truth["cap"])
