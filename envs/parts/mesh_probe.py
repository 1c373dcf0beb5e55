# pyright: basic, reportMissingImports=false, reportUndefinedVariable=false
"""Runs inside a verifier sandbox, never imported here: opens a .blend file with bpy and measures its objects.

`mesh_measures.py` sends this text as a probe. Scripts and drivers stay off. Whatever a bad file can raise is an answer
(`error`), not a crash. Lengths are millimetres of world space, one Blender unit being one metre.
"""

import bpy
import numpy as np

MAX_FACES = 200_000


def open_file(path):
    bpy.context.preferences.filepaths.use_scripts_auto_execute = False
    bpy.ops.wm.open_mainfile(filepath=path, load_ui=False, use_scripts=False)


def scene_facts():
    """Everything the file holds that could be geometry, or bring some in."""
    layer = bpy.context.view_layer
    depsgraph = bpy.context.evaluated_depsgraph_get()
    in_scene = set(bpy.context.scene.objects)
    objects = []
    for item in bpy.data.objects:
        shown = item in in_scene and layer.objects.get(item.name) is not None
        shown = shown and item.visible_get() and not item.hide_render
        objects.append({"name": item.name, "type": item.type, "shown": bool(shown)})
    animated = [item.name for item in bpy.data.objects if item.animation_data and item.animation_data.drivers]
    return {
        "objects": objects,
        "num_scenes": len(bpy.data.scenes),
        "num_instances": sum(1 for instance in depsgraph.object_instances if instance.is_instance),
        "libraries": [library.filepath for library in bpy.data.libraries],
        "drivers": animated,
    }


def measure_object(name, wanted):
    item = bpy.data.objects.get(name)
    if item is None or item.type != "MESH":
        return None
    evaluated = item.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = evaluated.to_mesh()
    if len(mesh.polygons) > MAX_FACES:
        return {"error": f"has {len(mesh.polygons)} faces, more than {MAX_FACES}"}
    if len(mesh.polygons) == 0:
        return {"error": "has no faces"}
    mesh.calc_loop_triangles()
    points = array(mesh.vertices, "co", 3, np.float64)
    matrix = np.array(evaluated.matrix_world, dtype=np.float64)
    points = (points @ matrix[:3, :3].T + matrix[:3, 3]) * 1000.0
    if not np.isfinite(points).all():
        return {"error": "has coordinates that are not finite numbers"}
    triangles = array(mesh.loop_triangles, "vertices", 3, np.int64)
    if np.linalg.det(matrix[:3, :3]) < 0:
        triangles = triangles[:, ::-1]
    facts = topology(mesh)
    evaluated.to_mesh_clear()
    low, high = points.min(axis=0), points.max(axis=0)
    shift = (low + high) / 2 - np.array(wanted["centre"])
    corners = points[triangles] - shift
    volume = float(np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6)
    return {
        **facts,
        "low": low.tolist(),
        "high": high.tolist(),
        "volume": volume,
        "sections": [section(corners, axis, at) for axis, at in wanted["sections"]],
        "windings": [winding(corners, np.array(point)) for point in wanted["points"]],
    }


def array(items, field, width, kind) -> np.ndarray:
    """One attribute of all `items`, a row each; flat where `width` is 1."""
    values = np.empty(len(items) * width, dtype=np.float32 if kind is np.float64 else np.int32)
    items.foreach_get(field, values)
    return values.astype(kind).reshape((-1, width) if width > 1 else -1)


def topology(mesh):
    """How far the mesh is from one closed, consistently turned surface; Euler's characteristic V - E + F."""
    edges = array(mesh.edges, "vertices", 2, np.int64)
    loop_edges = array(mesh.loops, "edge_index", 1, np.int64)
    loop_points = array(mesh.loops, "vertex_index", 1, np.int64)
    uses = np.bincount(loop_edges, minlength=len(edges))
    forward = np.bincount(loop_edges[loop_points == edges[loop_edges, 0]], minlength=len(edges))
    used_points = np.unique(loop_points)
    return {
        "open_edges": int((uses != 2).sum()),
        "turned_edges": int(((uses == 2) & (forward != 1)).sum()),
        "loose_points": len(mesh.vertices) - len(used_points),
        "shells": shells(len(mesh.vertices), edges, used_points),
        "euler": len(used_points) - int((uses > 0).sum()) + len(mesh.polygons),
        "num_faces": len(mesh.polygons),
    }


def shells(num_points, edges, used_points):
    """Connected components: every point takes the least label in reach."""
    labels = np.arange(num_points)
    while True:
        least = np.minimum(labels[edges[:, 0]], labels[edges[:, 1]])
        before = labels.copy()
        np.minimum.at(labels, edges[:, 0], least)
        np.minimum.at(labels, edges[:, 1], least)
        labels = labels[labels]
        if (labels == before).all():
            return len(np.unique(labels[used_points]))


def section(corners, axis, at):
    """Signed area of the cut by a plane: every triangle that crosses it gives one directed piece of the outline."""
    heights = corners[:, :, axis] - at
    above = heights > 0
    crossing = above.any(axis=1) & ~above.all(axis=1)
    corners, heights, above = corners[crossing], heights[crossing], above[crossing]
    plane = corners[:, :, [(axis + 1) % 3, (axis + 2) % 3]]
    ends = {True: np.zeros((len(plane), 2)), False: np.zeros((len(plane), 2))}
    for this, following in ((0, 1), (1, 2), (2, 0)):
        share = heights[:, this] / np.where(
            above[:, this] != above[:, following], heights[:, this] - heights[:, following], 1
        )
        hit = plane[:, this] + share[:, None] * (plane[:, following] - plane[:, this])
        for rising in (True, False):
            here = (above[:, this] != above[:, following]) & (above[:, following] == rising)
            ends[rising][here] = hit[here]
    start, end = ends[False], ends[True]
    return float((start[:, 0] * end[:, 1] - start[:, 1] * end[:, 0]).sum() / 2)


def winding(corners, point):
    """How often the surface winds around `point`: 1 in a proper solid, 0 outside (van Oosterom and Strackee, 1983)."""
    a, b, c = (corners[:, index] - point for index in range(3))
    la, lb, lc = (np.linalg.norm(side, axis=1) for side in (a, b, c))
    top = np.einsum("ij,ij->i", a, np.cross(b, c))
    dots = [np.einsum("ij,ij->i", p, q) * length for p, q, length in ((a, b, lc), (b, c, la), (c, a, lb))]
    return float(np.arctan2(top, la * lb * lc + dots[0] + dots[1] + dots[2]).sum() / (2 * np.pi))


def main(wanted):
    try:
        open_file(wanted["path"])
        answer = {"scene": scene_facts(), "objects": {}}
        for name, request in wanted["objects"].items():
            answer["objects"][name] = measure_object(name, request)
        return answer
    except (RuntimeError, ValueError, MemoryError, UnicodeDecodeError) as error:
        return {"error": f"{type(error).__name__}: {str(error).strip()[:300]}"}


_answer(main(payload))  # noqa: F821  both come from the probe's frame
