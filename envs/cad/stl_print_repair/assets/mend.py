"""Mends an STL step by step: weld, drop what is not the part, close the gaps, turn outwards, unite, seat."""

from collections import defaultdict

import manifold3d
import numpy as np
import trimesh
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree


def labels(count, pairs):
    """Which group each of `count` things is in, where `pairs` belong together."""
    pairs = np.asarray(pairs, dtype=int).reshape(-1, 2)
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1]


def weld(soup, reach):
    """Corners within `reach` of each other become one."""
    points, where = np.unique(soup.reshape(-1, 3), axis=0, return_inverse=True)
    group = labels(len(points), cKDTree(points).query_pairs(reach, output_type="ndarray"))
    count = np.bincount(group)[:, None]
    middle = np.stack([np.bincount(group, points[:, axis]) for axis in range(3)], axis=1) / count
    return middle, group[np.ravel(where)].reshape(-1, 3)


def tidy(points, faces, thin):
    """No facet twice, none with a corner twice, no needles: a needle's middle corner joins an end of its long edge."""
    for _ in range(3):
        faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])]
        _, first = np.unique(np.sort(faces, axis=1), axis=0, return_index=True)
        faces = faces[np.sort(first)]
        corners = points[faces]
        lengths = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)
        areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        needles = np.flatnonzero(areas / lengths.max(axis=1) < thin)
        if not len(needles):
            return faces
        for needle in needles:
            longest = int(lengths[needle].argmax())
            middle, end = faces[needle][(longest + 2) % 3], faces[needle][longest]
            if middle != end:
                faces[faces == middle] = end
    return faces


def shells(faces):
    """The facets in groups that hang together by edges."""
    users = defaultdict(list)
    for index, face in enumerate(faces):
        for a, b in zip(face, np.roll(face, -1), strict=True):
            users[min(a, b), max(a, b)].append(index)
    group = labels(len(faces), [(using[0], other) for using in users.values() for other in using[1:]])
    return [faces[group == number] for number in range(group.max() + 1)], users


def aligned(faces):
    """Neighbouring facets turned alike."""
    users = shells(faces)[1]
    faces, seen = faces.copy(), np.zeros(len(faces), dtype=bool)
    for start in range(len(faces)):
        stack = [] if seen[start] else [start]
        seen[start] = True
        while stack:
            index = stack.pop()
            for a, b in zip(faces[index], np.roll(faces[index], -1), strict=True):
                for other in users[min(a, b), max(a, b)]:
                    if not seen[other]:
                        seen[other] = True
                        if (a, b) in set(zip(faces[other], np.roll(faces[other], -1), strict=True)):
                            faces[other] = faces[other][::-1]
                        stack.append(other)
    return faces


def gaps(faces):
    """The rims of the gaps, in the direction that the missing facets need."""
    directed = {(int(a), int(b)) for face in faces for a, b in zip(face, np.roll(face, -1), strict=True)}
    after = {b: a for a, b in sorted(directed) if (b, a) not in directed}
    loops = []
    while after:
        loop = [next(iter(after))]
        while after[loop[-1]] != loop[0]:
            loop.append(after[loop[-1]])
        for corner in loop:
            del after[corner]
        loops.append(loop)
    return loops


def normal_of(rim):
    vector = np.cross(rim, np.roll(rim, -1, axis=0)).sum(axis=0)
    return vector / np.linalg.norm(vector)


def is_flat(rim):
    middle = rim - rim.mean(axis=0)
    return np.linalg.svd(middle, compute_uv=False)[2] < 0.02 if len(rim) > 2 else True


def flat_fill(points, loop):
    """Triangles of a flat rim."""
    rim = points[loop] - points[loop[0]]
    normal = normal_of(rim)
    across = rim[np.argmax(np.linalg.norm(rim, axis=1))]
    across = across / np.linalg.norm(across)
    flat = np.stack([rim @ across, rim @ np.cross(normal, across)], axis=1)
    return [[loop[i] for i in three] for three in manifold3d.triangulate([flat])]


def bent_fill(points, loop):
    """Triangles of a rim around a sharp edge: cut in two flat rims, one level and one upright."""
    best = 0.1, None
    for i in range(len(loop)):
        for j in range(i + 2, len(loop) - (i == 0)):
            halves = [loop[i : j + 1], loop[j:] + loop[: i + 1]]
            tilts = sorted(abs(normal_of(points[half] - points[half[0]])[2]) for half in halves)
            if all(is_flat(points[half]) for half in halves):
                best = min(best, (tilts[0] + 1.0 - tilts[1], halves), key=lambda pair: pair[0])
    if best[1] is None:
        raise ValueError(f"a gap with {len(loop)} corners has no simple filling")
    return [face for half in best[1] for face in flat_fill(points, half)]


def mouths(points, loops):
    """Pairs of rims straight above one another: a bore that lost its wall."""
    pairs = []
    for index, one in enumerate(loops):
        for other in loops[index + 1 :]:
            if len(one) == len(other):
                apart = np.linalg.norm(points[one][:, None, :2] - points[other][None, :, :2], axis=2)
                if apart.min(axis=0).max() < 0.05:
                    pairs.append((one, other))
    return pairs


def bore_fill(points, pair):
    """The wall between two mouths."""
    one, other = pair
    partner = {a: min(other, key=lambda b: np.hypot(*(points[a] - points[b])[:2])) for a in one}
    faces = []
    for a, b in zip(one, one[1:] + one[:1], strict=True):
        faces += [[a, b, partner[a]], [b, partner[b], partner[a]]]
    return faces


def closed(points, faces, *, bridge_bores=True):
    """Every gap filled as it was."""
    loops = gaps(faces)
    pairs = mouths(points, loops) if bridge_bores else []
    taken = {corner for pair in pairs for loop in pair for corner in loop}
    new = [face for pair in pairs for face in bore_fill(points, pair)]
    for loop in loops:
        if loop[0] not in taken:
            new += flat_fill(points, loop) if is_flat(points[loop]) else bent_fill(points, loop)
    return np.array([*faces.tolist(), *new], dtype=int)


def outward(points, faces):
    corners = points[faces]
    volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum()
    return faces if volume > 0 else faces[:, ::-1]


def mend(path, unit_mm, axes, signs, corner, *, bridge_bores=True, unite=True):
    """The mended mesh, in millimetres, seated with its lowest corner at `corner` on the plate.

    Axis `axes[i]` of the part is `signs[i]` times axis i of the file.
    """
    raw = trimesh.load_mesh(path, process=False).triangles * unit_mm
    soup = np.empty_like(raw)
    for here, (axis, sign) in enumerate(zip(axes, signs, strict=True)):
        soup[:, :, axis] = raw[:, :, here] * sign
    points, faces = weld(soup, 0.03)
    faces = tidy(points, faces, 0.0005)
    kept = []
    for shell in shells(faces)[0]:
        size = np.ptp(points[np.unique(shell)], axis=0)
        if np.linalg.norm(size) < 3.0 or size.min() < 0.05:
            print("left out: a crumb or sheet of", len(shell), "facets,", np.round(size, 2), "mm")
            continue
        shell = closed(points, aligned(shell), bridge_bores=bridge_bores)
        kept.append(outward(points, shell))
    used = np.unique(np.concatenate(kept))
    points = np.round(points - points[used].min(axis=0), 2) + np.array([*corner, 0.0])
    if not unite or len(kept) == 1:
        return trimesh.Trimesh(points, np.concatenate(kept), process=False)
    solids = []
    for shell in kept:
        corners, where = np.unique(shell, return_inverse=True)
        part = manifold3d.Mesh64(points[corners], where.reshape(-1, 3).astype(np.uint64))
        solids.append(manifold3d.Manifold(part))
    whole = manifold3d.Manifold.batch_boolean(solids, manifold3d.OpType.Add).to_mesh64()
    return trimesh.Trimesh(whole.vert_properties[:, :3], whole.tri_verts.astype(int), process=False)
