"""How a repair is judged; every rule here is stated in `instruction.md`.

What was right before is a gate: the sound faces, their materials and UVs, and every kind of fault that the broken mesh
did not have. A kind that it had counts 1 once none is left, and up to a half for fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from ...core import Check, Rng, Sandbox
from ...parts.polyhedra import Point, PolyMesh, mean, normal_of
from ...parts.probe import run_probe
from .faults import RESTORED_SHARE

MAX_FACES = 20_000
KEPT_SHARE = 0.98
VOLUME_SHARE = 0.01
_COUNTS = {
    "open": ("closed", "edges with one face"),
    "fused": ("two faces an edge", "edges with more than two faces, or points where surfaces only touch"),
    "doubled": ("welded", "points of faces that lie on one another"),
    "turned": ("turned outwards", "edges or faces turned the wrong way"),
    "slivers": ("no slivers", "faces without width"),
    "loose": ("nothing loose", "points or edges without faces, or loose bits"),
    "crossings": ("no crossings", "pairs of faces that pass through each other"),
    "astray": ("nothing astray", "points or faces off the true surface"),
}


def uvs_of(clean: PolyMesh) -> list[list[tuple[float, float]]]:
    """The texture coordinates of every face's corners: its plane's, the zones side by side."""
    scale = 0.8 / clean.size()
    return [_uv(clean, face, scale) for face in range(len(clean.faces))]


def _uv(clean: PolyMesh, face: int, scale: float) -> list[tuple[float, float]]:
    corners = [clean.points[index] for index in clean.faces[face]]
    normal = normal_of(corners)
    axis = max(range(3), key=lambda k: abs(normal[k]))
    u, v = (k for k in range(3) if k != axis)
    shift = 0.37 * clean.zones[face] + 0.11 * axis
    return [(round(p[u] * scale + shift, 5), round(p[v] * scale + shift, 5)) for p in corners]


def samples(clean: PolyMesh, patches: Sequence[Sequence[int]], hidden: Rng) -> list[list[Point]]:
    """Points of the lost surface, a list for each place: middles, and hidden ones all over its faces."""
    result: list[list[Point]] = []
    for patch in patches:
        points: list[Point] = []
        for face in patch:
            corners = [clean.points[index] for index in clean.faces[face]]
            points.append(mean(corners))
            for _ in range(2):
                weights = [hidden.fraction() for _ in corners]
                total = sum(weights)
                x, y, z = (
                    sum(w * corner[axis] for w, corner in zip(weights, corners, strict=True)) / total
                    for axis in range(3)
                )
                points.append((x, y, z))
        result.append(points)
    return result


async def measure(sandbox: Sandbox, question: Mapping[str, Any]) -> dict[str, Any]:
    """What the probe found, or {"failure": why}."""
    source = files(__package__ or "").joinpath("repair_probe.py").read_text(encoding="utf-8")
    fixed = {"max_faces": MAX_FACES, "tolerance": RESTORED_SHARE}
    result = await run_probe(sandbox, source, {**question, **fixed}, timeout_s=240)
    answer: Any = result.value
    return {"failure": result.failure} if answer is None else answer


def judge(found: Mapping[str, Any], num_kept: int, *, with_materials: bool) -> list[Check]:
    """The checks on a measured mesh."""
    before, after, clean = found["before"], found["after"], found["clean"]
    checks = [_kept("sound faces kept", found["kept"], num_kept, "sound faces are there as they were")]
    if with_materials:
        checks.append(_kept("materials kept", found["materials"], found["kept"], "sound faces have their material"))
        checks.append(_kept("UVs kept", found["uvs"], found["kept"], "sound faces have their UVs in UVMap"))
    for kind, (name, words) in _COUNTS.items():
        checks.append(_count(name, words, before[kind], after[kind]))
    restored = [gap <= RESTORED_SHARE for gap in found["gaps"]]
    worst = max(found["gaps"], default=0.0)
    checks.append(
        Check(
            name="lost surface restored",
            score=sum(restored) / len(restored),
            weight=2.0,
            evidence=f"{sum(restored)} of {len(restored)} places; the worst is {worst:.2%} of the size away",
        )
    )
    return [*checks, _whole(after, clean)]


def _kept(name: str, count: int, total: int, words: str) -> Check:
    right = total > 0 and count >= KEPT_SHARE * total
    return Check(name=name, score=float(right), gate=True, evidence=f"{count} of {total} {words}")


def _count(name: str, words: str, before: int, after: int) -> Check:
    evidence = f"{after} {words}; {before} before"
    if before == 0:
        return Check(name=name, score=float(after == 0), gate=True, evidence=evidence)
    score = 1.0 if after == 0 else max(0.0, 0.5 * (1 - after / before))
    return Check(name=name, score=score, evidence=evidence)


def _whole(after: Mapping[str, Any], clean: Mapping[str, Any]) -> Check:
    """The same solid as it was: surfaces, tunnels and volume."""
    closed = not (after["open"] or after["fused"] or after["turned"])
    same = after["shells"] == clean["shells"] and after["euler"] == clean["euler"]
    share = abs(after["volume"] - clean["volume"]) / abs(clean["volume"])
    evidence = (
        f"{after['shells']} surfaces with Euler number {after['euler']}, not {clean['shells']} with {clean['euler']}; "
        f"volume off by {share:.2%}"
    )
    if closed and same and share <= VOLUME_SHARE:
        evidence = f"{after['shells']} closed surfaces, volume off by {share:.2%}"
        return Check(name="one sound solid", score=1.0, evidence=evidence)
    return Check(name="one sound solid", score=0.0, evidence=evidence)
