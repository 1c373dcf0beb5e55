"""Breaks a clean mesh the ways that exporters, scanners and careless modelling do; no information is lost.

Facets that go missing leave every corner in place, and no two gaps touch, so that each can be closed as it was.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...core import Rng
from ...parts.prism_mesh import Corner, Facet, Region, mesh, walk

_JITTER_MM = 0.003
_SINK_MM = (0.3, 0.5, 0.8)
Edge = tuple[Corner, Corner]


@dataclass(slots=True)
class Broken:
    """Facets under treatment; `touched` are the corners on the rim of a gap."""

    facets: list[Facet]
    touched: set[Corner] = field(default_factory=set[Corner])

    def by_edge(self) -> dict[Edge, int]:
        """Directed edge → index of its facet."""
        return {edge: index for index, facet in enumerate(self.facets) for edge in _edges(facet)}

    def remove(self, indices: Iterable[int]) -> bool:
        """Leave a gap, if no corner would vanish and no other gap is touched."""
        gone = set(indices)
        corners = {corner for index in gone for corner in self.facets[index].corners}
        kept = {corner for i, facet in enumerate(self.facets) if i not in gone for corner in facet.corners}
        if not corners <= kept or corners & self.touched:
            return False
        self.facets = [facet for index, facet in enumerate(self.facets) if index not in gone]
        self.touched |= corners
        return True


def _edges(facet: Facet) -> list[Edge]:
    a, b, c = facet.corners
    return [(a, b), (b, c), (c, a)]


def _tries(rng: Rng, count: int, attempt: Callable[[], bool]) -> None:
    done = 0
    for _ in range(60):
        done += attempt()
        if done == count:
            return


def flat_gaps(broken: Broken, rng: Rng, count: int) -> None:
    """One or two facets of a level face, not of the underside, are missing."""

    def attempt() -> bool:
        level = [i for i, facet in enumerate(broken.facets) if facet.cap and facet.corners[0][2] > 0.0]
        first = rng.choice(level)
        if rng.integer(0, 1):
            return broken.remove([first])
        edges = broken.by_edge()
        others = [edges.get((b, a)) for a, b in _edges(broken.facets[first])]
        beside = [index for index in others if index is not None and broken.facets[index].cap]
        return bool(beside) and broken.remove([first, rng.choice(beside)])

    _tries(rng, count, attempt)


def edge_gaps(broken: Broken, rng: Rng, count: int) -> None:
    """A facet of the outer wall and its neighbour around a sharp edge are missing."""

    def attempt() -> bool:
        edges = broken.by_edge()
        index = rng.choice([i for i, facet in enumerate(broken.facets) if not facet.cap])
        facet = broken.facets[index]
        for a, b in _edges(facet):
            other = edges.get((b, a))
            if a[2] == b[2] and other is not None and broken.facets[other].cap and _long(a, b):
                return broken.remove([index, other])
        return False

    _tries(rng, count, attempt)


def _long(a: Corner, b: Corner) -> bool:
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) > 5.0


def lidless(broken: Broken, bodies: Sequence[Region], rng: Rng, count: int) -> None:
    """The whole upper face of a post, rib or letter is missing."""
    plain = [r for r, _ in walk(bodies) if r.kind in ("post", "rib", "letter") and not r.inside]
    for region in rng.sample(plain, min(count, len(plain))):
        top = region.solid[-1][1]
        broken.remove(
            index
            for index, facet in enumerate(broken.facets)
            if facet.region == region.name and facet.cap and all(corner[2] == top for corner in facet.corners)
        )


def lost_bores(broken: Broken, bodies: Sequence[Region], rng: Rng, count: int) -> None:
    """The whole wall of a hole is missing: two mouths are left, which must not be capped."""
    through = [region for region, _ in walk(bodies) if not region.solid and region.kind in ("screw hole", "slot")]
    for region in rng.sample(through, min(count, len(through))):
        broken.remove(i for i, facet in enumerate(broken.facets) if facet.region == region.name and not facet.cap)


def needles(broken: Broken, rng: Rng, count: int) -> None:
    """An edge is split on one side only, and a facet without area closes the seam."""
    for _ in range(count):
        index = rng.choice([i for i, facet in enumerate(broken.facets) if facet.cap])
        facet = broken.facets[index]
        a, b, c = facet.corners
        if {a, b, c} & broken.touched:
            continue
        m = ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2, (a[2] + b[2]) / 2)
        broken.facets[index] = replace_corners(facet, (a, m, c))
        broken.facets += [replace_corners(facet, (m, b, c)), replace_corners(facet, (a, b, m))]
        broken.touched |= {a, b, c, m}


def replace_corners(facet: Facet, corners: tuple[Corner, Corner, Corner]) -> Facet:
    """The facet elsewhere."""
    return Facet(corners, facet.region, facet.cap)


def flips(broken: Broken, rng: Rng, per_cent: int) -> None:
    """Some facets, or all, face inwards."""
    broken.facets = [
        replace_corners(f, (f.corners[0], f.corners[2], f.corners[1])) if rng.integer(1, 100) <= per_cent else f
        for f in broken.facets
    ]


def repeats(broken: Broken, rng: Rng, count: int) -> None:
    """Some facets are there twice, and some have two corners in one place."""
    for facet in rng.sample(broken.facets, count):
        broken.facets.append(facet)
    for facet in rng.sample(broken.facets, count):
        a, b, _ = facet.corners
        broken.facets.append(replace_corners(facet, (a, b, b)))


def crumbs(broken: Broken, rng: Rng, count: int) -> None:
    """Small closed bodies that belong to nothing float above the part."""
    top = max(corner[2] for facet in broken.facets for corner in facet.corners)
    spots = [corner for facet in broken.facets for corner in facet.corners]
    for index in range(count):
        x, y, _ = rng.choice(spots)
        size, z = rng.integer(6, 16) / 10.0, top + 1.0 + 2.0 * index
        ring = ((x, y), (x + size, y), (x + size, y + size), (x, y + size))
        broken.facets += mesh([Region(name="crumb", ring=ring, solid=((z, z + size),))])


def sheets(broken: Broken, bodies: Sequence[Region]) -> None:
    """An open sheet inside of the material of every body, along its front side."""
    for body in bodies:
        xs, ys = [x for x, _ in body.ring], [y for _, y in body.ring]
        low, high, y, z = min(xs) + 5.0, max(xs) - 5.0, min(ys) + 0.35, 0.4
        a, b, c, d = (low, y, z), (high, y, z), (high, y + 0.3, z), (low, y + 0.3, z)
        broken.facets += [Facet((a, b, c), "sheet", False), Facet((a, c, d), "sheet", False)]


def doubled(broken: Broken, names: set[str], *, inward: bool) -> None:
    """A body is there twice, in the same place."""
    for facet in [facet for facet in broken.facets if facet.region in names]:
        a, b, c = facet.corners
        broken.facets.append(replace_corners(facet, (a, c, b) if inward else (a, b, c)))


def loosened(bodies: Sequence[Region], rng: Rng) -> tuple[Region, ...]:
    """Letters, ribs and posts as bodies of their own, sunk a little into the plate instead of joined to it."""
    loose: list[Region] = []

    def without(region: Region) -> Region:
        kept: list[Region] = []
        for inner in region.inside:
            if inner.kind not in ("letter", "rib", "post"):
                kept.append(without(inner))
                continue
            bottom = round(region.solid[0][1] - rng.choice(_SINK_MM), 2)
            counters = tuple(replace(counter, solid=()) for counter in inner.inside)
            loose.append(replace(inner, solid=((bottom, inner.solid[0][1]),), inside=counters))
        return replace(region, inside=tuple(kept))

    joined = [without(body) for body in bodies]
    return (*joined, *loose)


def jittered(soup: np.ndarray, rng: Rng) -> np.ndarray:
    """Every corner of every facet moved by up to 3 µm, so that nothing meets exactly."""
    flat = soup.reshape(-1)
    noise = [_JITTER_MM * (2.0 * rng.fraction() - 1.0) for _ in range(len(flat))]
    return (flat + np.array(noise)).reshape(soup.shape)


def stl(soup: np.ndarray, rng: Rng, *, text: bool) -> bytes:
    """The facets in random order, as binary or ASCII STL."""
    order = rng.shuffled(range(len(soup)))
    corners = soup[order].astype(np.float32)
    sides = corners[:, 1:] - corners[:, :1]
    normals = np.cross(sides[:, 0].astype(np.float64), sides[:, 1].astype(np.float64))
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)
    if not text:
        records = np.zeros(len(corners), dtype=[("floats", "<f4", (12,)), ("attribute", "<u2")])
        records["floats"] = np.concatenate([normals[:, None, :].astype(np.float32), corners], axis=1).reshape(-1, 12)
        return b"exported".ljust(80) + struct.pack("<I", len(corners)) + records.tobytes()
    lines = ["solid export"]
    for normal, triangle in zip(normals.tolist(), corners.tolist(), strict=True):
        lines += ["facet normal " + " ".join(f"{value:.6g}" for value in normal), " outer loop"]
        lines += ["  vertex " + " ".join(f"{value:.9g}" for value in corner) for corner in triangle]
        lines += [" endloop", "endfacet"]
    return "\n".join([*lines, "endsolid export", ""]).encode()
