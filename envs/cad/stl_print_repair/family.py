"""cad/StlPrintRepair: make a broken STL file printable, without losing what it shows.

Levels: 0 a few facets of flat faces are missing, perhaps all are inside out; 1 gaps around sharp edges, a post or
letter without its top, facets flipped, repeated, without area; 2 nothing meets exactly any more, crumbs float about,
the part lies turned and off the plate; 3 lettering and ribs are bodies of their own that cross the plate, bores have
lost their walls, the unit is not the millimetre and the part lies on its side; 4 two bodies, one there twice, sheets
inside of the material, and all of the above.

The clean bodies are known exactly, so volume, surface and hidden points on both sides of every face are expected values
of the host. The known hacks, a hull and a voxel remesh, meet the gate on the share of the bounding box and the points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Rng, Sandbox, ToolCall, Verdict
from ...parts import print_check
from ...parts.print_check import check_print, hidden_probes
from ...parts.prism_mesh import Region, bounds, surface, volume
from . import attempts
from .attempts import BROKEN_PATH, PRINT_PATH
from .gadget import draw
from .spoiling import Pose, spoil

_MEASURE_S = 85.0
_ANYWHERE = 80


@dataclass(frozen=True)
class StlPrintRepair(Family):
    """One broken file, one that prints."""

    def generate(self, rng: Rng, level: int) -> Instance:
        gadget = draw(rng.child("gadget"), level)
        corner = (rng.integer(10, 60) + 0.0, rng.integer(10, 60) + 0.0)
        spoiled = spoil(gadget, corner, rng.child("spoil"), level)
        exact = f"{volume(gadget.bodies):.6f}", f"{surface(gadget.bodies):.6f}"
        _, high = bounds(gadget.bodies)
        return Instance(
            variables={
                "level": level,
                "title": gadget.title,
                "text": gadget.text,
                "lines": list(gadget.lines),
                "bodies": len(gadget.bodies),
                "corner": [f"{value:g}" for value in corner],
                "size": [f"{value:g}" for value in high],
                "thin": f"{gadget.thin_mm:g}",
                "place": f"{print_check.PLACE_MM:g}",
                "near": f"{print_check.NEAR_MM:g}",
                "volume": f"{print_check.VOLUME_SHARE * 100:g}",
                "surface": f"{print_check.SURFACE_SHARE * 100:g}",
                "fill": f"{print_check.FILL_SHARE * 100:g}",
            },
            files={BROKEN_PATH.removeprefix("/workspace/"): spoiled.data},
            artefacts=(Artefact(path=PRINT_PATH.removeprefix("/workspace/"), max_mb=8),),
            truth={
                "level": level,
                "bodies": [body.to_json() for body in gadget.bodies],
                "corner": list(corner),
                "pose": spoiled.pose.to_json(),
                "faults": list(spoiled.faults),
                "volume_mm3": exact[0],
                "surface_mm2": exact[1],
            },
            secrets=exact,
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(_pose(instance), _corner(instance))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(_bodies(instance), _corner(instance))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        level = cast("int", instance.truth["level"])
        return attempts.mutants(_pose(instance), _corner(instance), _bodies(instance), level)

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        bodies = _bodies(instance)
        probes = hidden_probes(bodies, hidden.child("points"), anywhere=_ANYWHERE)
        return Verdict.of(
            *await check_print(sandbox, PRINT_PATH, bodies, probes, _corner(instance), timeout_s=_MEASURE_S)
        )


def _bodies(instance: Instance) -> list[Region]:
    return [Region.from_json(row) for row in cast("list[dict[str, Any]]", instance.truth["bodies"])]


def _pose(instance: Instance) -> Pose:
    return Pose.from_json(cast("dict[str, Any]", instance.truth["pose"]))


def _corner(instance: Instance) -> tuple[float, float]:
    x, y = cast("list[float]", instance.truth["corner"])
    return x, y
