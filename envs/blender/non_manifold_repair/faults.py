"""The faults a mesh comes back with; each finds a free place of its own, and says whether it found one.

Plain holes lie where any patch comes close to the lost surface; shaped holes where only the mirror image tells it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

from ...parts.polyhedra import Face, Point, along, cross, dot, mean, minus, normal_of, unit
from .patient import BrokenFace, Patient

RESTORED_SHARE = 0.006
"""How far restored surface may be from the lost one, as a share of the size."""
_EVEN = 0.0025
_SHAPED = 3 * RESTORED_SHARE
_WIDE = 0.016
_TRIES = 60


def plain_hole(patient: Patient) -> bool:
    for seed in _seeds(patient):
        patch = patient.grown(seed, patient.rng.integer(1, 6))
        loop = patient.outline(patch)
        if (
            loop
            and patient.free(patch)
            and patient.unevenness(patch, loop) <= _EVEN
            and patient.clearance(patch, loop) >= _WIDE
        ):
            return _cut(patient, patch)
    return False


def shaped_hole(patient: Patient) -> bool:
    """A hole that a flat patch does not close rightly; its mirror image stays whole."""
    for seed in _seeds(patient):
        for count in (6, 10, 16, 24):
            patch = patient.grown(seed, count)
            loop = patient.outline(patch)
            twins = {patient.twins[face] for face in patch}
            if not loop or not patient.free(patch) or patient.ring(patch) & twins or not patient.free(twins):
                continue
            if patient.unevenness(patch, loop) >= _SHAPED and patient.clearance(patch, loop) >= _WIDE:
                patient.take(patch, twins=True)
                return _cut(patient, patch)
    return False


def _cut(patient: Patient, patch: list[int]) -> bool:
    patient.take(patch)
    patient.drop(patch)
    patient.patches.append(patch)
    return True


def flipped(patient: Patient) -> bool:
    """A patch and a few single faces that look inwards."""
    seed = _seeds(patient)[0]
    wanted = {*patient.grown(seed, patient.rng.integer(4, 10)), *_seeds(patient)[:4]} - patient.changed
    patient.faces = [
        BrokenFace(corners=face.corners[::-1], origin=face.origin) if face.origin in wanted else face
        for face in patient.faces
    ]
    return True


def inside_out(patient: Patient) -> bool:
    """All faces turned over, as after a mirrored export."""
    patient.faces = [BrokenFace(corners=face.corners[::-1], origin=face.origin) for face in patient.faces]
    return True


def doubled_skin(patient: Patient) -> bool:
    """A patch that lies there twice, the copy with points of its own."""
    patch = _free_patch(patient, 3, 8)
    if not patch:
        return False
    copies: dict[int, int] = {}
    for face in patch:
        corners: list[int] = []
        for corner in patient.clean.faces[face]:
            if corner not in copies:
                copies[corner] = patient.add_point(patient.clean.points[corner])
            corners.append(copies[corner])
        patient.faces.append(BrokenFace(corners=tuple(corners), origin=face))
    return True


def split_seam(patient: Patient) -> bool:
    """A patch that is no longer joined to what is around it: its outline has points of its own."""
    patch = _free_patch(patient, 5, 12)
    loop = patient.outline(patch) if patch else None
    if not patch or not loop:
        return False
    copies = {corner: patient.add_point(patient.clean.points[corner]) for corner in loop}
    patient.faces = [
        BrokenFace(corners=tuple(copies.get(corner, corner) for corner in face.corners), origin=face.origin)
        if face.origin in patch
        else face
        for face in patient.faces
    ]
    return True


def needle(patient: Patient) -> bool:
    """A point that nearly coincides with another, and the needle of a triangle between them."""
    found = _free_edge(patient)
    if not found:
        return False
    a, b, near, far = found
    reach = 2e-5 * patient.size
    m = patient.add_point(
        along(patient.clean.points[a], unit(minus(patient.clean.points[b], patient.clean.points[a])), reach)
    )
    corners = _from(patient.clean.faces[near], a)
    patient.replace_face(near, [(a, m, *corners[1:])])
    behind = _from(patient.clean.faces[far], b)
    patient.replace_face(far, [(b, m, *behind[2:]), (m, a, behind[2])])
    return True


def cap(patient: Patient) -> bool:
    """A triangle without area, its three corners on one line."""
    found = _free_edge(patient)
    if not found:
        return False
    a, b, _, far = found
    m = patient.add_point(mean([patient.clean.points[a], patient.clean.points[b]]))
    behind = _from(patient.clean.faces[far], b)
    patient.replace_face(far, [(b, m, *behind[1:]), (a, m, b)])
    return True


def inner_wall(patient: Patient) -> bool:
    """A face across the inside, on edges that have two faces already."""
    quads = _inner_quads(patient)
    for quad in patient.rng.sample(quads, len(quads))[:12]:
        beside = {face for corner in quad for face in patient.around[corner]}
        if beside & patient.taken:
            continue
        points = [patient.clean.points[corner] for corner in quad]
        middle, normal = mean(points), normal_of(points)
        reach = 0.05 * math.dist(points[0], points[2])
        if all(patient.inside(along(middle, normal, side * reach)) for side in (-1, 1)):
            patient.taken |= beside
            patient.faces.append(BrokenFace(corners=quad, origin=-1))
            return True
    return False


def strays(patient: Patient) -> bool:
    """Points and edges without a face."""
    (x0, y0, z0), (x1, y1, z1) = patient.clean.bounds()
    for _ in range(patient.rng.integer(3, 7)):
        shares = [1.3 * patient.rng.fraction() - 0.15 for _ in range(3)]
        place = (x0 + (x1 - x0) * shares[0], y0 + (y1 - y0) * shares[1], z0 + (z1 - z0) * shares[2])
        lone = patient.add_point(place)
        if patient.rng.integer(0, 1):
            other = patient.add_point(along(place, (0.3, 0.5, 0.8), 0.04 * patient.size))
            patient.edges.append((lone, other))
    return True


def debris(patient: Patient) -> bool:
    """Small closed bits beside and within the thing."""
    (_, y0, z0), (x1, y1, z1) = patient.clean.bounds()
    reach = 0.012 * patient.size
    for side in range(patient.rng.integer(2, 4)):
        out = 0.06 * patient.size
        place = (
            x1 + out * (1 + side),
            y0 + (y1 - y0) * patient.rng.fraction(),
            z0 + (z1 - z0) * patient.rng.fraction(),
        )
        tops = [(0.0, 0.0, 1.0), (0.9, 0.0, -0.4), (-0.5, 0.8, -0.4), (-0.5, -0.8, -0.4)]
        p, q, r, s = (patient.add_point(along(place, top, reach)) for top in tops)
        patient.faces += [BrokenFace(corners=face, origin=-1) for face in ((p, q, r), (p, r, s), (p, s, q), (q, s, r))]
    return True


def spike(patient: Patient) -> bool:
    """A point pushed in through the opposite wall; its mirror image stays where it is."""
    for seed in _seeds(patient):
        corner = patient.clean.faces[seed][0]
        faces = patient.around[corner]
        twins = {patient.twins[face] for face in faces}
        at = patient.clean.points[corner]
        if patient.ring(faces) & twins or not patient.free(faces) or not patient.free(twins):
            continue
        normals = [normal_of([patient.clean.points[index] for index in patient.clean.faces[face]]) for face in faces]
        inward = unit([-sum(normal[axis] for normal in normals) for axis in range(3)])
        hit = _first_hit(patient, at, inward, faces)
        if hit is None:
            continue
        far, wall = hit
        size = patient.size
        if not 0.01 * size < far < 0.35 * size or wall in patient.taken or wall in twins:
            continue
        patient.take(faces, twins=True)
        patient.take([wall])
        moved = along(at, inward, far + 0.035 * size)
        patient.points[corner] = (round(moved[0], 8), round(moved[1], 8), round(moved[2], 8))
        patient.spikes.append((patient.points[corner], at))
        patient.changed |= faces
        patient.patches.append(sorted(faces))
        return True
    return False


FAULTS: Mapping[str, Callable[[Patient], bool]] = {
    "plain hole": plain_hole,
    "shaped hole": shaped_hole,
    "flipped faces": flipped,
    "inside out": inside_out,
    "doubled skin": doubled_skin,
    "split seam": split_seam,
    "needle": needle,
    "cap": cap,
    "inner wall": inner_wall,
    "strays": strays,
    "debris": debris,
    "spike": spike,
}


def _seeds(patient: Patient) -> list[int]:
    count = len(patient.clean.faces)
    return patient.rng.sample(range(count), min(count, _TRIES))


def _free_patch(patient: Patient, low: int, high: int) -> list[int] | None:
    for seed in _seeds(patient):
        patch = patient.grown(seed, patient.rng.integer(low, high))
        if patient.free(patch) and patient.outline(patch):
            patient.take(patch)
            return patch
    return None


def _free_edge(patient: Patient) -> tuple[int, int, int, int] | None:
    """(a, b, the face that has a before b, the quad that has b before a)."""
    for near in _seeds(patient):
        corners = patient.clean.faces[near]
        a, b = corners[0], corners[1]
        for far in sorted(patient.around[a] & patient.around[b] - {near}):
            if len(patient.clean.faces[far]) == 4 and patient.free([near, far]):
                patient.take([near, far])
                return a, b, near, far
    return None


def _from(face: Face, first: int) -> Face:
    start = face.index(first)
    return face[start:] + face[:start]


def _inner_quads(patient: Patient) -> list[Face]:
    """Rings of four edges that are no face: cross-sections of legs, rails and handles."""
    beside: dict[int, set[int]] = {}
    for face in patient.clean.faces:
        for a, b in zip(face, (*face[1:], face[0]), strict=True):
            beside.setdefault(a, set()).add(b)
            beside.setdefault(b, set()).add(a)
    known = {frozenset(face) for face in patient.clean.faces}
    found: dict[frozenset[int], Face] = {}
    for a in sorted(beside):
        for b in sorted(beside[a]):
            for c in sorted(beside[b] - {a}):
                for d in sorted(beside[c] & beside[a] - {b}):
                    ring = frozenset((a, b, c, d))
                    if len(ring) == 4 and a == min(ring) and ring not in known and c not in beside[a]:
                        found.setdefault(ring, (a, b, c, d))
    return list(found.values())


def _first_hit(patient: Patient, at: Point, heading: Point, own: set[int]) -> tuple[float, int] | None:
    """How far a ray goes before it meets a face that is not its own, and which (Moeller and Trumbore, 1997)."""
    best: tuple[float, int] | None = None
    aside = cross(heading, (0.0, 0.0, 1.0) if abs(heading[2]) < 0.9 else (1.0, 0.0, 0.0))
    for index, face in enumerate(patient.clean.faces):
        if index in own:
            continue
        corners = [patient.clean.points[corner] for corner in face]
        heights = [dot(aside, minus(corner, at)) for corner in corners]
        if min(heights) > 0 or max(heights) < 0:
            continue  # all of it on one side of the ray
        for b, c in itertools.pairwise(corners[1:]):
            e1, e2 = minus(b, corners[0]), minus(c, corners[0])
            p = cross(heading, e2)
            scale = dot(e1, p)
            if abs(scale) < 1e-14:
                continue
            s = minus(at, corners[0])
            u, q = dot(s, p) / scale, cross(s, e1)
            v, far = dot(heading, q) / scale, dot(e2, q) / scale
            if u >= 0 and v >= 0 and u + v <= 1 and far > 1e-9 and (best is None or far < best[0]):
                best = (far, index)
    return best
