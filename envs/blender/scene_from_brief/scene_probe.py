# pyright: basic, reportMissingImports=false, reportUndefinedVariable=false
"""Runs inside a verifier sandbox, never imported here: what stands where in a .blend scene, as plain facts.

`grading.py` sends this text as a probe. Scripts and drivers stay off. Whatever a bad file can raise is an answer. The
probe judges nothing: where each named object is, what carries it, what it runs into, what hides it from the camera.
"""

from itertools import combinations

import bpy
import numpy as np
from mathutils import Vector
from mathutils.bvhtree import BVHTree

DEEP = 0.003
"""How far faces may pass through each other before it counts."""
NEAR = 0.005


def open_file(path):
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=False, use_scripts=False)


def evaluated(item, limit=20_000):
    """Points in its own space and faces, as they come out of modifiers and shape keys; None if there are too many."""
    shown = item.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = shown.to_mesh()
    if len(mesh.vertices) > limit or len(mesh.polygons) > limit:
        return None
    points = np.empty(len(mesh.vertices) * 3)
    mesh.vertices.foreach_get("co", points)
    faces = [tuple(polygon.vertices) for polygon in mesh.polygons]
    return points.reshape(-1, 3), faces, np.array(shown.matrix_world)


def same_mesh(points, faces, wanted):
    asked = np.array(wanted["points"])
    if points.shape != asked.shape or len(faces) != len(wanted["faces"]):
        return False
    size = float(np.abs(asked).max())
    return bool(np.abs(points - asked).max() < 1e-4 * size) and {frozenset(f) for f in faces} == {
        frozenset(f) for f in wanted["faces"]
    }


def in_view(item):
    layer = bpy.context.view_layer
    in_scene = item in set(bpy.context.scene.objects) and layer.objects.get(item.name) is not None
    return bool(in_scene and item.visible_get() and not item.hide_render)


def object_facts(item, model):
    shape = evaluated(item)
    if shape is None:
        return {"same_mesh": False}, None
    points, faces, matrix = shape
    turn = matrix[:3, :3]
    lengths = np.linalg.norm(turn, axis=0)
    world = points @ turn.T + matrix[:3, 3]
    facts = {
        "same_mesh": same_mesh(points, faces, model),
        "shown": in_view(item),
        "scales": lengths.tolist(),
        "upright": float(turn[2, 2] / max(lengths[2], 1e-12)),
        "square": float(np.linalg.det(turn) / max(lengths.prod(), 1e-12)),
        "front": [float(-turn[0, 1]), float(-turn[1, 1])],
        "points": np.round(world, 6).tolist(),
    }
    if not np.isfinite(world).all() or not np.isfinite(lengths).all() or lengths.min() <= 0:
        return {"same_mesh": False}, None
    triangles = [(f[0], f[k], f[k + 1]) for f in faces for k in range(1, len(f) - 1)]
    tree = BVHTree.FromPolygons([Vector(p) for p in world], triangles)
    return facts, {"points": world, "triangles": triangles, "tree": tree}


def standing(name, solid, solids):
    """What carries a thing, and whether the middle of its foot lies between the places that are carried."""
    points = solid["points"]
    low = points[:, 2].min()
    foot = points[points[:, 2] <= low + 0.002]
    middle = (foot.min(axis=0) + foot.max(axis=0)) / 2
    if abs(low) <= NEAR:
        return ["floor"], True
    carriers, places = set(), []
    for point in foot:
        at = middle + 0.98 * (point - middle)
        for other, below in solids.items():
            if other != name:
                hit = below["tree"].ray_cast(Vector((at[0], at[1], low + NEAR)), Vector((0, 0, -1)), 2 * NEAR)
                if hit[0] is not None:
                    carriers.add(other)
                    places.append(at[:2] - middle[:2])
                    break
    return sorted(carriers), surrounded(places)


def surrounded(places):
    """Whether the origin lies within the convex hull of places."""
    angles = sorted(np.arctan2(y, x) for x, y in places if abs(x) + abs(y) > 1e-6)
    if len(angles) < 3:
        return False
    gaps = [b - a for a, b in zip(angles, [*angles[1:], angles[0] + 2 * np.pi], strict=True)]
    return bool(max(gaps) < np.pi)


def collide(one, other):
    if (one["points"].min(axis=0) > other["points"].max(axis=0) - DEEP).any():
        return False
    if (other["points"].min(axis=0) > one["points"].max(axis=0) - DEEP).any():
        return False
    for a, b in one["tree"].overlap(other["tree"])[:50_000]:
        first, second = one["points"][list(one["triangles"][a])], other["points"][list(other["triangles"][b])]
        if pierces(first, second) or pierces(second, first):
            return True
    return within(one, other) or within(other, one)


def pierces(one, other):
    normal = np.cross(other[1] - other[0], other[2] - other[0])
    length = np.linalg.norm(normal)
    if length < 1e-14:
        return False
    heights = (one - other[0]) @ (normal / length)
    for i, j in ((0, 1), (1, 2), (2, 0)):
        if (heights[i] > DEEP and heights[j] < -DEEP) or (heights[i] < -DEEP and heights[j] > DEEP):
            hit = one[i] + heights[i] / (heights[i] - heights[j]) * (one[j] - one[i])
            sides = [np.cross(other[(k + 1) % 3] - other[k], hit - other[k]) @ normal / length**2 for k in range(3)]
            if min(sides) > 1e-6:
                return True
    return False


def within(one, other):
    """Whether corners of one lie well inside the other: rays from there cross its surface an odd number of times."""
    for point in one["points"][:: max(1, len(one["points"]) // 12)]:
        at, heading, crossed = Vector(point), Vector((0.0123, 0.0371, 1.0)).normalized(), 0
        if other["tree"].find_nearest(at)[3] <= DEEP:
            continue
        while crossed < 100:
            place, _, _, _ = other["tree"].ray_cast(at, heading)
            if place is None:
                break
            crossed += 1
            at = place + heading * 1e-5
        if crossed % 2:
            return True
    return False


def visible(name, solid, solids, eye):
    """The share of its corners that no other thing hides."""
    start, free = Vector(eye), 0
    for point in solid["points"]:
        way = Vector(point) - start
        reach = way.length - 1e-3
        free += not any(
            other["tree"].ray_cast(start, way.normalized(), reach)[0] is not None
            for key, other in solids.items()
            if key != name
        )
    return free / len(solid["points"])


def stage_facts(question):
    """The room and the camera as they are now, and what else is in the file."""
    camera = bpy.data.objects.get("Camera")
    scene = bpy.context.scene
    rooms = {}
    for name in question["room"]:
        item = bpy.data.objects.get(name)
        if item is None or item.type != "MESH":
            rooms[name] = False
            continue
        shape = evaluated(item)
        rooms[name] = bool(
            shape is not None
            and same_mesh(shape[0], shape[1], question["room"][name])
            and np.abs(shape[2] - np.eye(4)).max() < 1e-5
        )
    view = None
    if camera is not None and camera.type == "CAMERA" and scene.camera == camera:
        matrix = np.array(camera.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world)
        view = {
            "place": matrix[:3, 3].tolist(),
            "ahead": (-matrix[:3, 2]).tolist(),
            "right": matrix[:3, 0].tolist(),
            "angle": float(np.degrees(camera.data.angle)),
            "plain": camera.data.type == "PERSP" and camera.data.shift_x == 0 and camera.data.shift_y == 0,
        }
    allowed = {*question["room"], "Camera", *question["things"]}
    depsgraph = bpy.context.evaluated_depsgraph_get()
    return {
        "room": rooms,
        "view": view,
        "foreign": [o.name for o in bpy.data.objects if o.name not in allowed and o.type != "LIGHT"],
        "scenes": len(bpy.data.scenes),
        "instances": sum(1 for instance in depsgraph.object_instances if instance.is_instance),
        "libraries": len(bpy.data.libraries),
        "drivers": [o.name for o in bpy.data.objects if o.animation_data and o.animation_data.drivers],
    }


def main(question):
    try:
        open_file(question["path"])
        answer, solids = {"stage": stage_facts(question), "things": {}}, {}
        for name, model in question["things"].items():
            item = bpy.data.objects.get(name)
            if item is None or item.type != "MESH":
                continue
            facts, solid = object_facts(item, question["models"][model])
            answer["things"][name] = facts
            if solid is not None:
                solids[name] = solid
        for name, solid in solids.items():
            facts = answer["things"][name]
            facts["standing_on"], facts["steady"] = standing(name, solid, solids)
            facts["visible"] = visible(name, solid, solids, question["eye"])
        answer["collisions"] = [[a, b] for a, b in combinations(solids, 2) if collide(solids[a], solids[b])]
        return answer
    except (RuntimeError, ValueError, MemoryError, UnicodeDecodeError, IndexError, TypeError) as error:
        return {"failure": f"{type(error).__name__}: {str(error).strip()[:300]}"}


_answer(main(payload))  # noqa: F821  both come from the probe's frame
