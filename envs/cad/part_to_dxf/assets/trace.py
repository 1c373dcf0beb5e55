"""Finds what the views of a part show without hidden-line removal: every edge and outline is looked at from the eye.

Where a ray to the eye, from a hair beside the line, meets no material, the line is visible there.
"""

from functools import partial
from itertools import pairwise

import numpy as np
from build123d import GeomType
from OCP.gp import gp_Dir, gp_Lin, gp_Pnt
from OCP.IntCurvesFace import IntCurvesFace_ShapeIntersector

HAIR, STEP, FINE = 1e-3, 0.2, 1e-4


def vec(point):
    return np.array(tuple(point), dtype=float)


def on_edge(edge, share):
    return vec(edge.position_at(share))


def between(low, high, share):
    return low + share * (high - low)


def lines_in_space(part, toward):
    """(point at a share, length) of every sharp edge, and of the outlines of round faces."""
    faces, beside = part.faces(), {}
    for face in faces:
        for edge in face.edges():
            beside.setdefault(edge, []).append(face)
    for edge, pair in beside.items():
        normals = [vec(face.normal_at(edge.position_at(0.5))) for face in pair]
        if len(pair) == 2 and abs(np.dot(*normals)) < 0.999:
            yield partial(on_edge, edge), edge.length
    for face in faces:
        if face.geom_type != GeomType.CYLINDER or abs(vec(face.axis_of_rotation.direction) @ toward) > 0.5:
            continue
        axis, foot = vec(face.axis_of_rotation.direction), vec(face.axis_of_rotation.position)
        ends = [vec(vertex) @ axis for vertex in face.vertices()]
        for side in (-face.radius, face.radius):
            place = foot - (foot @ axis) * axis + side * np.cross(axis, toward)
            low, high = place + min(ends) * axis, place + max(ends) * axis
            if face.distance_to(tuple((low + high) / 2)) < 1e-6:
                yield partial(between, low, high), max(ends) - min(ends)


class Eye:
    """Looks at a part from one side."""

    def __init__(self, part, toward):
        self.toward = toward
        self.rays = IntCurvesFace_ShapeIntersector()
        self.rays.Load(part.wrapped, 1e-7)

    def is_free(self, point):
        self.rays.Perform(gp_Lin(gp_Pnt(*point), gp_Dir(*self.toward)), 2 * HAIR, 1e4)
        return self.rays.NbPnt() == 0

    def sees(self, place, share):
        """Whether the line shows there; None where it runs straight to the eye."""
        ahead = place(min(share + 1e-4, 1.0)) - place(max(share - 1e-4, 0.0))
        side = np.cross(ahead, self.toward)
        if np.linalg.norm(side) < 1e-6 * np.linalg.norm(ahead):
            return None
        side *= HAIR / np.linalg.norm(side)
        return self.is_free(place(share) + side) or self.is_free(place(share) - side)

    def runs(self, place, length):
        """(seen, from, to) in shares of a line."""
        shares = (np.arange(max(4, int(length / STEP))) + 0.5) / max(4, int(length / STEP))
        marks = [self.sees(place, share) for share in shares]
        begin = 0.0
        for (low, high), (before, after) in zip(pairwise(shares), pairwise(marks), strict=True):
            if before == after:
                continue
            while (high - low) * length > FINE:
                middle = (low + high) / 2
                low, high = (middle, high) if self.sees(place, middle) == before else (low, middle)
            yield before, begin, (low + high) / 2
            begin = (low + high) / 2
        yield marks[-1], begin, 1.0


def traced(part, toward, right, up):
    """(hidden, points in the view) of every run of a line that is hidden, or seen, as a whole."""
    toward, flat = vec(toward), np.stack([right, up], axis=1).astype(float)
    eye = Eye(part, toward)
    for place, length in lines_in_space(part, toward):
        for seen, low, high in eye.runs(place, length):
            if seen is not None:
                yield not seen, np.array([place(share) for share in np.linspace(low, high, 129)]) @ flat


def put_run(space, points, layer):
    """A polyline for what is straight, else two arcs for a piece of a circle."""
    middle = points - points.mean(axis=0)
    along = np.linalg.svd(middle)[2][0]
    if np.abs(middle - np.outer(middle @ along, along)).max() < 1e-4:
        order = np.argsort(middle @ along)
        space.add_lwpolyline([points[order[0]], points[order[64]], points[order[-1]]], dxfattribs={"layer": layer})
        return
    a, b, c = points[0], points[43], points[86]
    centre = np.linalg.solve(2 * np.array([b - a, c - a]), [b @ b - a @ a, c @ c - a @ a])
    turns = np.degrees(np.unwrap(np.arctan2(*(points - centre).T[::-1])))
    for start, end in pairwise(sorted([turns[0], turns[64], turns[-1]])):
        space.add_arc(centre, float(np.linalg.norm(a - centre)), start, end, dxfattribs={"layer": layer})
