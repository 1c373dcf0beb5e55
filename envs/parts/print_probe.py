# pyright: basic, reportUndefinedVariable=false
"""Runs inside a verifier sandbox, never imported by others: reads an STL file and measures it for printing.

`print_check.py` sends this text as a probe. The file is parsed here, byte by byte, by no library; whatever can be wrong
with it is an answer (`error`), not a crash. Corners meet where their stored coordinates are equal.
"""

import math
import os
import struct

import numpy as np

MAX_FACETS = 30_000
THIN_MM = 0.00003
CROSSING_MM = 0.002


class NoStl(ValueError):
    """The file is no STL file that could be printed."""


def read(path):
    """(facets, 3, 3) corners and (facets, 3) stored normals."""
    if os.path.islink(path) or not os.path.isfile(path):
        raise NoStl("the file is missing")
    with open(path, "rb") as file:
        data = file.read()
    if len(data) >= 84 and len(data) == 84 + 50 * struct.unpack_from("<I", data, 80)[0]:
        kind = np.dtype([("floats", "<f4", (12,)), ("attribute", "<u2")])
        floats = np.frombuffer(data, dtype=kind, offset=84)["floats"].astype(np.float64).reshape(-1, 4, 3)
    else:
        floats = read_text(data)
    if not len(floats):
        raise NoStl("the file holds no facets")
    if len(floats) > MAX_FACETS:
        raise NoStl(f"{len(floats)} facets, more than {MAX_FACETS}")
    if not np.isfinite(floats[:, 1:]).all() or np.abs(floats[:, 1:]).max() > 1e5:
        raise NoStl("coordinates that are not finite, or absurd")
    return floats[:, 1:] + 0.0, floats[:, 0]


def read_text(data):
    try:
        words = data.decode("ascii").split()
    except UnicodeDecodeError:
        raise NoStl("neither a binary STL file of its stated length nor ASCII") from None
    if not words or words[0] != "solid":
        raise NoStl("neither a binary STL file of its stated length nor one that begins with solid")
    if len(words) > 21 * (MAX_FACETS + 1) + 200:
        raise NoStl(f"more than {MAX_FACETS} facets")
    keys = {0: "facet", 1: "normal", 5: "outer", 6: "loop", 7: "vertex", 11: "vertex", 15: "vertex", 19: "endloop"}
    keys[20] = "endfacet"
    rows, index = [], 1
    while index < len(words):
        chunk = words[index : index + 21]
        if chunk[0] != "facet":  # names, and where one solid ends and the next begins
            index += 1
            continue
        if len(chunk) < 21 or any(chunk[at] != word for at, word in keys.items()):
            raise NoStl(f"broken ASCII STL near word {index}")
        try:
            rows.append([float(word) for at, word in enumerate(chunk) if at not in keys])
        except ValueError:
            raise NoStl(f"broken ASCII STL near word {index}") from None
        index += 21
    return np.array(rows, dtype=np.float64).reshape(-1, 4, 3)


def measure(path, points):
    try:
        corners, normals = read(path)
    except (NoStl, OSError) as error:
        return {"error": str(error)[:300]}
    _, where = np.unique(corners.reshape(-1, 3), axis=0, return_inverse=True)
    faces = np.ravel(where).reshape(-1, 3)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    size = int(faces.max()) + 1
    low, high = np.minimum(edges[:, 0], edges[:, 1]), np.maximum(edges[:, 0], edges[:, 1])
    keys, inverse, uses = np.unique(low * size + high, return_inverse=True, return_counts=True)
    forward = np.bincount(inverse, weights=edges[:, 0] < edges[:, 1])
    body = bodies(np.ravel(inverse).reshape(3, -1).T, len(keys))
    cross = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(cross, axis=1) / 2
    volumes = np.einsum("ij,ij->i", corners[:, 0] - corners.mean(axis=(0, 1)), cross) / 6
    lengths = np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2).max(axis=1)
    thin = 2 * areas < THIN_MM * np.maximum(lengths, 1e-12)
    told = np.linalg.norm(normals, axis=1)
    agreeing = np.einsum("ij,ij->i", normals, cross) > 0.9 * told * 2 * areas
    closed = bool((uses == 2).all() and (forward == 1).all())
    return {
        "facets": len(faces),
        "open_edges": int((uses != 2).sum()),
        "turned_edges": int(((uses == 2) & (forward != 1)).sum()),
        "body_volumes": np.bincount(body, weights=volumes).tolist()[:50],
        "bodies": int(body.max()) + 1,
        "volume": float(volumes.sum()),
        "area": float(areas.sum()),
        "low": corners.min(axis=(0, 1)).tolist(),
        "high": corners.max(axis=(0, 1)).tolist(),
        "thin": int(thin.sum()),
        "repeated": len(faces) - len(np.unique(np.sort(faces, axis=1), axis=0)),
        "wrong_normals": int(((told > 0) & ~thin & ~agreeing).sum() + (~np.isfinite(told)).sum()),
        "crossings": crossings(corners[~thin]) if closed else -1,
        "windings": [winding(corners, np.array(point)) for point in points] if closed else [],
    }


def bodies(facet_edges, num_edges):
    """A label for each facet: facets that share an edge have the same."""
    labels = np.arange(len(facet_edges))
    while True:
        least = np.full(num_edges, len(labels))
        np.minimum.at(least, facet_edges.reshape(-1), np.repeat(labels, 3))
        new = np.minimum(labels, least[facet_edges].min(axis=1))
        new = new[new]
        if (new == labels).all():
            return np.unique(labels, return_inverse=True)[1]
        labels = new


def winding(corners, point):
    """How often the surface goes around the point (van Oosterom and Strackee, 1983)."""
    a, b, c = (corners[:, index] - point for index in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    top = np.einsum("ij,ij->i", a, np.cross(b, c))
    dots = [np.einsum("ij,ij->i", p, q) * length for p, q, length in ((a, b, lc), (b, c, la), (c, a, lb))]
    return round(float(np.arctan2(top, la * lb * lc + sum(dots)).sum() / (2 * math.pi)), 3)


def crossings(corners):
    """Pairs of facets of which one's edge goes right through the other, by more than CROSSING_MM."""
    order = np.argsort(corners[:, :, 0].min(axis=1))
    corners = corners[order]
    low, high = corners.min(axis=1), corners.max(axis=1)
    ends = np.searchsorted(low[:, 0], high[:, 0])
    count, step = 0, 256
    for start in range(0, len(corners), step):
        stop = min(start + step, len(corners))
        last = int(ends[start:stop].max())
        near = (low[start:stop, None] < high[None, start:last]) & (high[start:stop, None] > low[None, start:last])
        first, second = np.nonzero(near.all(axis=2))
        first, second = first + start, second + start
        once = first < second
        count += int(pierced(corners[first[once]], corners[second[once]]).sum())
    return count


def pierced(one, other):
    hit = np.zeros(len(one), dtype=bool)
    for a, b in ((one, other), (other, one)):
        normal = np.cross(b[:, 1] - b[:, 0], b[:, 2] - b[:, 0])
        normal = normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
        heights = np.einsum("ijk,ik->ij", a - b[:, :1], normal)
        for i, j in ((0, 1), (1, 2), (2, 0)):
            through = (np.minimum(heights[:, i], heights[:, j]) < -CROSSING_MM) & (
                np.maximum(heights[:, i], heights[:, j]) > CROSSING_MM
            )
            share = heights[:, i] / np.where(through, heights[:, i] - heights[:, j], 1)
            at = a[:, i] + share[:, None] * (a[:, j] - a[:, i])
            inner = through.copy()
            for k in range(3):
                side = b[:, (k + 1) % 3] - b[:, k]
                away = np.einsum("ij,ij->i", np.cross(side, at - b[:, k]), normal)
                inner &= away > CROSSING_MM * np.linalg.norm(side, axis=1)
            hit |= inner
    return hit


_answer(measure(payload["path"], payload["points"]))  # noqa: F821  both come from the probe's frame
