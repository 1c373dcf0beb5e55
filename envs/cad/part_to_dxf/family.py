"""cad/PartToDxf: draw the front, top and right view of a part that came as STEP, as a DXF that a shop can work from.

Levels: 0 an L or a stepped block at 1:1 with two bores, overall dimensions; 1 first or third angle, centre lines, holes
dimensioned; 2 a counterbore, a slot, a T; a scale, so that dimensions need their factor; line weights; 3 grooves, blind
holes and chamfers, and a file whose axes are not the drawing's; 4 a pocket, T or U, a toleranced dimension.

What a view shows, and what of it is hidden, the CAD kernel tells in the verifier sandbox, by its hidden-line removal on
a part of its own; the DXF is only parsed. The known hacks (text for lines, typed-over dimensions, one layer) meet the
comparison of geometry by layer, and of what a dimension measures with what it shows.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Rng, Sandbox, ToolCall, Verdict
from ...parts import drawing_check
from ...parts.drawing_check import check_drawing
from ...parts.drawing_views import views
from . import drafting, sheet, workpiece
from .drafting import DXF_PATH
from .sheet import Sheet
from .workpiece import Workpiece

_MEASURE_S = 70.0


@dataclass(frozen=True)
class PartToDxf(Family):
    """One STEP part, one drawing."""

    def generate(self, rng: Rng, level: int) -> Instance:
        piece, paper = workpiece.draw(rng.child("part"), level), sheet.draw(rng.child("sheet"), level)
        place = rng.child("place")
        x, y, z = (place.integer(-80, 80) / 2.0 if level >= 3 else 0.0 for _ in range(3))
        return Instance(
            variables={
                "level": level,
                "title": piece.title,
                "third": paper.third_angle,
                "ratio": {0.5: "1:2", 1.0: "1:1", 2.0: "2:1"}[paper.scale],
                "factor": f"{1.0 / paper.scale:g}",
                "gap": f"{paper.gap:g}",
                "visible": paper.visible,
                "hidden": paper.hidden,
                "centre": paper.centre,
                "dimensions": paper.dimensions,
                "hidden_type": paper.hidden_type,
                "weights": [f"{weight / 100:.2f}" for weight in paper.weights or ()],
                "positions": paper.positions,
                "tolerance": [f"{value:g}" for value in paper.tolerance or ()],
                "right": _signed(paper.right),
                "up": _signed(paper.up),
                "counterbores": any(hole.head for hole in piece.holes),
                "slots": piece.slotted,
                "overshoot": f"{sheet.OVERSHOOT_MM:g}",
                "line": f"{drawing_check.LINE_MM:g}",
                "value": f"{drawing_check.VALUE_MM:g}",
                "least": f"{drawing_check.LEAST_SHARE * 100:g}",
            },
            files={},
            setup=(f"python3 -c {shlex.quote(drafting.step_program(piece, paper, (x, y, z)))}",),
            artefacts=(Artefact(path=DXF_PATH.removeprefix("/workspace/"), max_mb=4),),
            truth={"part": piece.to_json(), "sheet": paper.to_json()},
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return drafting.oracle(*_truth(instance))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return drafting.alternatives(*_truth(instance))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return drafting.mutants(*_truth(instance))

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        piece, paper = _truth(instance)
        seen = await views(sandbox, piece.rows, timeout_s=_MEASURE_S)
        expected = sheet.expected(paper, piece, seen)
        return Verdict.of(*await check_drawing(sandbox, DXF_PATH, expected, timeout_s=_MEASURE_S))


def _signed(direction: str) -> str:
    return direction.replace("-", "−")


def _truth(instance: Instance) -> tuple[Workpiece, Sheet]:
    part, paper = (cast("dict[str, Any]", instance.truth[name]) for name in ("part", "sheet"))
    return Workpiece.from_json(part), Sheet.from_json(paper)
