# pyright: basic, reportMissingImports=false, reportUndefinedVariable=false
"""Runs inside a verifier sandbox, never imported here: compares a repaired mesh in a .blend file with the clean one.

`grading.py` sends this text as a probe. Scripts and drivers stay off. Whatever a bad file can raise is an answer. The
same counts are taken of the broken mesh, so that the host can tell progress from nothing done.
"""

import itertools
from collections import defaultdict

import bpy
import numpy as np
from mathutils import Vector
from mathutils.bvhtree import BVHTree
from mathutils.kdtree import KDTree


def open_object(path, name, max_faces):
    """The evaluated mesh in world space; the second value says why there is none."""
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=False, use_scripts=False)
    foreign = [o.name for o in bpy.data.objects if o.name != name and o.type not in {"CAMERA", "LIGHT"}]
    item = bpy.data.objects.get(name)
    if item is None or item.type != "MESH":
        return None, f"no mesh object named {name!r}; there are {sorted(o.name for o in bpy.data.objects)[:6]}"
    if foreign:
        return None, f"objects that do not belong there: {foreign[:5]}"
    if item not in set(bpy.context.scene.objects):
        return None, f"{name!r} is not in the scene"
    if len(bpy.data.libraries) or any(o.animation_data and o.animation_data.drivers for o in bpy.data.objects):
        return None, "linked libraries or drivers"
    evaluated = item.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = evaluated.to_mesh()
    if not 0 < len(mesh.polygons) <= max_faces:
        return None, f"{len(mesh.polygons)} faces; there must be some, and at most {max_faces}"
    if len(mesh.vertices) > 4 * max_faces:
        return None, f"{len(mesh.vertices)} points"
    matrix = np.array(evaluated.matrix_world)
    points = np.empty(len(mesh.vertices) * 3)
    mesh.vertices.foreach_get("co", points)
    points = points.reshape(-1, 3) @ matrix[:3, :3].T + matrix[:3, 3]
    if not np.isfinite(points).all():
        return None, "coordinates that are not finite numbers"
    turn = -1 if np.linalg.det(matrix[:3, :3]) < 0 else 1
    faces = [list(p.vertices)[::turn] for p in mesh.polygons]
    layer = mesh.uv_layers.get("UVMap")
    slots = [slot.material.name if slot.material else "" for slot in item.material_slots]
    return {
        "points": points,
        "faces": faces,
        "edges": [tuple(edge.vertices) for edge in mesh.edges],
        "materials": [slots[p.material_index] if p.material_index < len(slots) else "" for p in mesh.polygons],
        "uvs": [[tuple(layer.uv[i].vector) for i in p.loop_indices][::turn] for p in mesh.polygons] if layer else None,
    }, ""


class Reference:
    """The clean mesh, ready to be asked."""

    def __init__(self, clean, tolerance):
        self.points = np.array(clean["points"], dtype=float)
        self.faces = clean["faces"]
        self.size = float(np.linalg.norm(self.points.max(axis=0) - self.points.min(axis=0)))
        self.reach = tolerance * self.size
        self.tree = tree_of(self.points)
        self.surface = surface_of(self.points, self.faces)
        self.normals = [newell(self.points[face]) for face in self.faces]
        self.by_corners = {frozenset(face): index for index, face in enumerate(self.faces)}

    def names(self, points):
        """For each point the clean point it is, or -1."""
        found = []
        for point in points:
            _, index, far = self.tree.find(Vector(point))
            found.append(index if far <= 1e-4 * self.size else -1)
        return found


def tree_of(points):
    tree = KDTree(len(points))
    for index, point in enumerate(points):
        tree.insert(Vector(point), index)
    tree.balance()
    return tree


def surface_of(points, faces):
    return BVHTree.FromPolygons([Vector(p) for p in points], faces)


def newell(corners):
    after = np.roll(corners, -1, axis=0)
    return np.array(
        [((corners[:, i] - after[:, i]) * (corners[:, j] + after[:, j])).sum() / 2 for i, j in ((1, 2), (2, 0), (0, 1))]
    )


def corner_pairs(face):
    return zip(face, face[1:] + face[:1], strict=True)


def counts(reference, mesh):
    """How many places are wrong, by kind, and which clean faces are there again."""
    points, faces = np.asarray(mesh["points"], dtype=float), [list(face) for face in mesh["faces"]]
    beside = defaultdict(list)
    for index, face in enumerate(faces):
        for a, b in corner_pairs(face):
            beside[min(a, b), max(a, b)].append((index, a < b))
    used = {corner for face in faces for corner in face}
    names = reference.names(points)
    kept, wrong_way = {}, 0
    for index, face in enumerate(faces):
        clean = reference.by_corners.get(frozenset(names[corner] for corner in face))
        if clean is not None and len(face) == len(reference.faces[clean]):
            kept.setdefault(clean, index)
            wrong_way += bool(newell(points[face]) @ reference.normals[clean] < 0)
    two = [sides for sides in beside.values() if len(sides) == 2]
    pieces = components(len(points), faces)
    bits = sum(all(names[point] < 0 for point in piece) for piece in pieces)
    wires = sum((min(a, b), max(a, b)) not in beside for a, b in mesh["edges"])
    used_points = sorted(used)
    astray = sum(
        (reference.surface.find_nearest(Vector(points[index]))[3] or 0) > reference.reach for index in used_points
    )
    astray += sum(
        reference.surface.find_nearest(Vector(points[face].mean(axis=0)))[3] > reference.reach for face in faces
    )
    return {
        "open": sum(len(sides) == 1 for sides in beside.values()),
        "fused": sum(len(sides) > 2 for sides in beside.values()) + pinched(faces, beside),
        "doubled": doubled(points, used_points, reference.size),
        "turned": sum(sides[0][1] == sides[1][1] for sides in two) + wrong_way,
        "slivers": sum(sliver(points[face], reference.size) for face in faces),
        "loose": wires + len(points) - len(used) + bits,
        "crossings": crossings(points, faces, reference.size),
        "astray": astray,
        "shells": len(pieces),
        "euler": len(used) - len(beside) + len(faces),
        "volume": volume(points, faces),
    }, kept


def components(num_points, faces):
    parent = list(range(num_points))

    def root(point):
        while parent[point] != point:
            parent[point] = parent[parent[point]]
            point = parent[point]
        return point

    for face in faces:
        for corner in face[1:]:
            parent[root(corner)] = root(face[0])
    pieces = defaultdict(set)
    for face in faces:
        pieces[root(face[0])].update(face)
    return list(pieces.values())


def pinched(faces, beside):
    """Points where two fans of faces meet in nothing but the point."""
    around = defaultdict(list)
    for index, face in enumerate(faces):
        for corner in face:
            around[corner].append(index)
    found = 0
    for point, fan in around.items():
        reached, waiting = set(), [fan[0]]
        while waiting:
            index = waiting.pop()
            if index in reached:
                continue
            reached.add(index)
            for a, b in corner_pairs(faces[index]):
                if point in (a, b):
                    waiting += [other for other, _ in beside[min(a, b), max(a, b)]]
        found += len(reached) < len(set(fan))
    return found


def doubled(points, used, size):
    """Points of faces that lie on one another."""
    if not used:
        return 0
    tree = tree_of(points[used])
    return sum(len(tree.find_range(Vector(points[index]), 5e-6 * size)) > 1 for index in used)


def sliver(corners, size):
    lengths = np.linalg.norm(corners - np.roll(corners, -1, axis=0), axis=1)
    return bool(lengths.min() < 1e-4 * size or np.linalg.norm(newell(corners)) < 1e-4 * size * lengths.max())


def volume(points, faces):
    total = 0.0
    for face in faces:
        for b, c in itertools.pairwise(face[1:]):
            total += float(points[face[0]] @ np.cross(points[b], points[c])) / 6
    return total


def crossings(points, faces, size):
    """Pairs of triangles that truly pass through each other: an edge of one pierces the inside of the other."""
    triangles = triangulated(points, faces)
    tree = BVHTree.FromPolygons([Vector(p) for p in points], triangles)
    places = [frozenset(tuple(np.round(points[c] / (5e-6 * size)).astype(int)) for c in t) for t in triangles]
    found = 0
    for a, b in tree.overlap(tree)[:200_000]:
        if a < b and not places[a] & places[b]:
            one, other = points[triangles[a]], points[triangles[b]]
            found += pierces(one, other, size) or pierces(other, one, size)
    return found


def triangulated(points, faces):
    from mathutils.geometry import tessellate_polygon

    triangles = []
    for face in faces:
        if len(face) <= 4:
            triangles += [[face[0], face[k], face[k + 1]] for k in range(1, len(face) - 1)]
        else:
            triangles += [[face[k] for k in t] for t in tessellate_polygon([[Vector(points[c]) for c in face]])]
    return triangles


def pierces(one, other, size):
    normal = np.cross(other[1] - other[0], other[2] - other[0])
    length = np.linalg.norm(normal)
    if length < 1e-12 * size * size:
        return False
    heights = (one - other[0]) @ (normal / length)
    slack = 2e-4 * size
    for i, j in ((0, 1), (1, 2), (2, 0)):
        if (heights[i] > slack and heights[j] < -slack) or (heights[i] < -slack and heights[j] > slack):
            share = heights[i] / (heights[i] - heights[j])
            hit = one[i] + share * (one[j] - one[i])
            sides = [np.cross(other[(k + 1) % 3] - other[k], hit - other[k]) @ normal / length**2 for k in range(3)]
            if min(sides) > 1e-3:
                return True
    return False


def same_material(wanted, mesh, kept):
    return sum(mesh["materials"][index] == wanted[clean] for clean, index in kept.items())


def same_uvs(wanted, names, reference, mesh, kept):
    found = 0
    for clean, index in kept.items():
        asked = dict(zip(reference.faces[clean], wanted[clean], strict=True))
        corners = zip(mesh["faces"][index], mesh["uvs"][index], strict=True)
        found += all(
            abs(asked[names[corner]][0] - u) < 2e-3 and abs(asked[names[corner]][1] - v) < 2e-3
            for corner, (u, v) in corners
        )
    return found


def main(question):
    try:
        mesh, why = open_object(question["path"], question["name"], question["max_faces"])
        if mesh is None:
            return {"failure": why}
        reference = Reference(question["clean"], question["tolerance"])
        before, _ = counts(reference, question["broken"])
        after, kept = counts(reference, mesh)
        wanted = set(question["kept"])
        kept = {clean: index for clean, index in kept.items() if clean in wanted}
        surface = surface_of(mesh["points"], mesh["faces"])
        gaps = [
            max((surface.find_nearest(Vector(point))[3] for point in points), default=0.0) / reference.size
            for points in question["samples"]
        ]
        answer = {"before": before, "after": after, "kept": len(kept), "gaps": gaps, "materials": None, "uvs": None}
        clean = {**question["clean"], "edges": []}
        answer["clean"] = counts(reference, clean)[0]
        if question["materials"]:
            answer["materials"] = same_material(question["materials"], mesh, kept)
            names = reference.names(mesh["points"])
            answer["uvs"] = same_uvs(question["uvs"], names, reference, mesh, kept) if mesh["uvs"] else 0
        return answer
    except (RuntimeError, ValueError, MemoryError, UnicodeDecodeError, IndexError, TypeError) as error:
        return {"failure": f"{type(error).__name__}: {str(error).strip()[:300]}"}


_answer(main(payload))  # noqa: F821  both come from the probe's frame
