"""blender/NonManifoldRepair: mend a broken mesh of a known thing without remeshing it.

Levels: 0 holes in flat places and strays; 1 more holes, skins doubled, split or turned; 2 faces inside, needles and
caps, with materials and UVs to keep; 3 lost shape that only symmetry tells, and points pushed through walls; 4 all of
it in a hollow casting. Hull, remesh and cutting away make any mesh manifold: the sound faces are a gate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Artefact, Check, Family, Instance, Rng, Sandbox, ToolCall, Verdict
from ...parts.polyhedra import PolyMesh
from . import grading, tools
from .cases import Case, admit
from .faults import RESTORED_SHARE

RESULT = "repaired.blend"
_SHOT = ToolCall(tool="view")
_WORDS = {
    "plain hole": "holes",
    "doubled skin": "patches that lie there twice",
    "split seam": "patches no longer joined to what is round them",
    "inner wall": "faces across the inside",
    "needle": "needle-thin triangles",
    "cap": "triangles without area",
    "strays": "stray points and edges",
    "debris": "loose bits",
    "flipped faces": "faces turned the wrong way",
    "inside out": "everything turned inside out",
}
"""What the brief of the lower levels calls the faults."""


@dataclass(frozen=True)
class NonManifoldRepair(Family):
    """One broken mesh, measured against the clean one it was made from."""

    def generate(self, rng: Rng, level: int) -> Instance:
        case = admit(rng.child("case"), level)
        canary = f"{rng.child('canary').integer(0, 2**96):024x}"
        truth = {**case.patient.to_json(), "thing": case.thing, "materials": list(case.materials), "canary": canary}
        blend = level >= 2
        files = {".setup/mesh.json": _scene_json(case), ".setup/build.py": tools.SETUP.encode()}
        return Instance(
            variables={
                "level": level,
                "thing": case.thing.replace("_", " "),
                "name": case.thing,
                "source": "broken.blend" if blend else "broken.ply",
                "notes": list(case.notes),
                "faults": [words for kind, words in _WORDS.items() if kind in case.patient.kinds],
                "materials": list(case.materials),
                "num_shells": case.num_shells,
                "kept_percent": round(grading.KEPT_SHARE * 100),
                "restored_percent": round(RESTORED_SHARE * 100, 2),
                "volume_percent": round(grading.VOLUME_SHARE * 100),
                "max_faces": grading.MAX_FACES,
            },
            files=files if blend else {"broken.ply": _ply(case)},
            setup=("python3 .setup/build.py && rm -rf .setup broken.blend1",) if blend else (),
            artefacts=(Artefact(path=RESULT),),
            truth=json.loads(json.dumps(truth)),
            secrets=(canary,),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        truth: Any = instance.truth
        return _calls(truth, tools.repair(truth, voids=_voids(truth)))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Any = instance.truth
        clean = _clean(truth)
        known = {
            "points": clean.points,
            "faces": clean.faces,
            "zones": clean.zones,
            "uvs": grading.uvs_of(clean),
        }
        return {"rebuilt_and_moved": _calls(truth, tools.rebuilt(truth["thing"], known))}

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        truth: Any = instance.truth
        wrong = tools.wrong(truth["thing"], truth, voids=_voids(truth), size=_clean(truth).size())
        forged = 'echo \'{"reward": 1.0, "passed": true}\' | tee reward.json verdict.json; echo 1 > answer'
        forgery = ToolCall(tool="shell", arguments={"command": forged})
        named = {name: _calls(truth, pieces, look=False) for name, pieces in wrong.items()}
        return {**named, "saved_as_it_came_with_a_forged_reward": (forgery, *_calls(truth, [], look=False))}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        truth: Any = instance.truth
        clean = _clean(truth)
        materials = truth["materials"]
        question = {
            "path": f"/workspace/{RESULT}",
            "name": truth["thing"],
            "clean": truth["clean"],
            "broken": truth["broken"],
            "kept": truth["kept"],
            "samples": grading.samples(clean, truth["patches"], hidden.child("samples")),
            "materials": [materials[zone] for zone in clean.zones] if materials else None,
            "uvs": grading.uvs_of(clean) if materials else None,
        }
        found = await grading.measure(sandbox, question)
        failure = found.get("failure", "")
        opened = Check(name="file", score=float(not failure), gate=True, evidence=failure or "opened")
        if failure:
            return Verdict.of(opened)
        return Verdict.of(opened, *grading.judge(found, len(truth["kept"]), with_materials=bool(materials)))


def _calls(truth: Mapping[str, Any], pieces: Sequence[str], *, look: bool = True) -> tuple[ToolCall, ...]:
    """Load, look, run the pieces, look again, save, submit."""
    load = tools.load(truth["thing"], blend=bool(truth["materials"]))
    shots = [_SHOT] if look else []
    runs = [_python(load), *shots, *(_python(piece) for piece in pieces), *shots]
    return (*runs, _python(tools.SAVE), ToolCall(tool="submit"))


def _python(code: str) -> ToolCall:
    return ToolCall(tool="python", arguments={"code": code})


def _clean(truth: Mapping[str, Any]) -> PolyMesh:
    clean = truth["clean"]
    return PolyMesh(
        points=tuple((x, y, z) for x, y, z in clean["points"]),
        faces=tuple(tuple(face) for face in clean["faces"]),
        zones=tuple(clean["zones"]),
    )


def _voids(truth: Mapping[str, Any]) -> int:
    """Surfaces of the clean mesh that look into a void."""
    return 1 if "shaped hole" in truth["kinds"] and truth["kinds"].count("shaped hole") > 1 else 0


def _scene_json(case: Case) -> bytes:
    patient, clean = case.patient, case.patient.clean
    wanted = grading.uvs_of(clean)
    uvs: list[list[tuple[float, float]]] = []
    for face in patient.faces:
        known: dict[int, tuple[float, float]] = {}
        if face.origin >= 0:
            known = dict(zip(clean.faces[face.origin], wanted[face.origin], strict=True))
        places = {clean.points[corner]: uv for corner, uv in known.items()}
        uvs.append([known.get(c, places.get(patient.points[c], (0.0, 0.0))) for c in face.corners])
    scene = {
        "thing": case.thing,
        "points": patient.points,
        "faces": [face.corners for face in patient.faces],
        "edges": patient.edges,
        "zones": [clean.zones[face.origin] if face.origin >= 0 else 0 for face in patient.faces],
        "uvs": uvs,
        "materials": list(case.materials),
    }
    return json.dumps(scene, separators=(",", ":")).encode()


def _ply(case: Case) -> bytes:
    patient = case.patient
    lines = ["ply", "format ascii 1.0", "comment metres, Z up", f"element vertex {len(patient.points)}"]
    lines += [f"property float {axis}" for axis in "xyz"]
    lines += [f"element face {len(patient.faces)}", "property list uchar int vertex_indices"]
    if patient.edges:
        lines += [f"element edge {len(patient.edges)}", "property int vertex1", "property int vertex2"]
    lines.append("end_header")
    lines += [" ".join(f"{value:.8g}" for value in point) for point in patient.points]
    lines += [" ".join(map(str, (len(face.corners), *face.corners))) for face in patient.faces]
    lines += [f"{a} {b}" for a, b in patient.edges]
    return ("\n".join(lines) + "\n").encode()
