"""The Blender programs of this family: the set-up's, the oracle's, other right ways and wrong ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

SETUP = """\
import json
import bpy

case = json.load(open("/workspace/.setup/mesh.json"))
bpy.ops.wm.read_factory_settings(use_empty=True)
mesh = bpy.data.meshes.new(case["thing"])
mesh.from_pydata(case["points"], case["edges"], case["faces"])
for name, colour in zip(case["materials"], ((0.5, 0.35, 0.2, 1), (0.2, 0.3, 0.5, 1))):
    material = bpy.data.materials.new(name)
    material.diffuse_color = colour
    mesh.materials.append(material)
layer = mesh.uv_layers.new(name="UVMap")
for polygon, zone, corners in zip(mesh.polygons, case["zones"], case["uvs"]):
    polygon.material_index = zone
    for index, corner in zip(polygon.loop_indices, corners):
        layer.uv[index].vector = corner
bpy.context.collection.objects.link(bpy.data.objects.new(case["thing"], mesh))
bpy.ops.wm.save_as_mainfile(filepath="/workspace/broken.blend")
"""

_OPEN_BLEND = 'bpy.ops.wm.open_mainfile(filepath="/workspace/broken.blend", use_scripts=False)\n'
_OPEN_PLY = """\
bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.wm.ply_import(filepath="/workspace/broken.ply")
bpy.context.object.name = {thing!r}
"""
SAVE = 'bpy.ops.wm.save_as_mainfile(filepath="/workspace/repaired.blend")\n'
_START = '''\
item = bpy.data.objects[{thing!r}]
bm = bmesh.new()
bm.from_mesh(item.data)
low = [min(v.co[k] for v in bm.verts if v.link_faces) for k in range(3)]
high = [max(v.co[k] for v in bm.verts if v.link_faces) for k in range(3)]
size = (Vector(high) - Vector(low)).length

def report():
    print(len(bm.verts), "points", len(bm.faces), "faces;",
          sum(len(e.link_faces) == 1 for e in bm.edges), "border edges,",
          sum(len(e.link_faces) > 2 for e in bm.edges), "edges with more than two faces,",
          sum(not e.link_faces for e in bm.edges), "wire edges,",
          sum(not v.link_faces for v in bm.verts), "stray points,",
          sum(f.calc_area() < 1e-8 * size ** 2 for f in bm.faces), "faces without area")

def islands():
    """Connected sets of faces."""
    seen, found = set(), []
    for first in bm.faces:
        if first in seen:
            continue
        piece, waiting = [], [first]
        while waiting:
            face = waiting.pop()
            if face not in seen:
                seen.add(face)
                piece.append(face)
                waiting += [f for v in face.verts for f in v.link_faces if f not in seen]
        found.append(piece)
    return found

def reach(piece):
    corners = [v.co for f in piece for v in f.verts]
    return (Vector([max(c[k] for c in corners) for k in range(3)])
            - Vector([min(c[k] for c in corners) for k in range(3)])).length

report()
'''
_CLEAN = """\
bmesh.ops.delete(bm, geom=[v for v in bm.verts if not v.link_faces], context="VERTS")
bmesh.ops.delete(bm, geom=[e for e in bm.edges if not e.link_faces], context="EDGES")
bmesh.ops.remove_doubles(bm, verts=bm.verts[:], dist=4e-5 * size)
bmesh.ops.dissolve_degenerate(bm, dist=4e-5 * size, edges=bm.edges[:])
seen, twice = set(), []
for face in bm.faces:
    key = frozenset(face.verts)
    twice += [face] if key in seen else []
    seen.add(key)
bmesh.ops.delete(bm, geom=twice, context="FACES_ONLY")
inner = [f for f in bm.faces if all(len(e.link_faces) > 2 for e in f.edges)]
bmesh.ops.delete(bm, geom=inner, context="FACES_ONLY")
bits = [f for piece in islands() if reach(piece) < 0.05 * size for f in piece]
bmesh.ops.delete(bm, geom=bits, context="FACES")
report()
"""
_MIRROR = """\
from mathutils.bvhtree import BVHTree
from mathutils.kdtree import KDTree

def mirrored(point, axis={mirror}):
    return Vector([-c if k == axis else c for k, c in enumerate(point)])

def tree(points):
    result = KDTree(len(points))
    for index, point in enumerate(points):
        result.insert(point, index)
    result.balance()
    return result

# points without an image across the plane, though the rest of their faces have one, were pushed away
for place, belongs in {spikes}:
    points = [v.co.copy() for v in bm.verts]
    _, index, _ = tree(points).find(place)
    bm.verts.ensure_lookup_table()
    image, _, far = tree(points).find(mirrored(belongs))
    print("pushed point", bm.verts[index].co[:], "goes back to the image of", image[:], round(far, 5))
    bm.verts[index].co = mirrored(image)

surface = BVHTree.FromBMesh(bm)
uv, corners = bm.loops.layers.uv.active, {{}}
for face in bm.faces[:]:
    if surface.find_nearest(mirrored(face.calc_center_median()))[3] < 1e-3 * size:
        continue  # its image is there
    new = []
    for v in reversed(face.verts):
        key = tuple(round(c / (1e-5 * size)) for c in mirrored(v.co))
        corners.setdefault(key, None)
        if corners[key] is None:
            corners[key] = bm.verts.new(mirrored(v.co))
        new.append(corners[key])
    copy = bm.faces.new(new)
    copy.material_index = face.material_index
    if uv:
        for loop, old in zip(copy.loops, reversed(face.loops)):
            loop[uv].uv = old[uv].uv
bmesh.ops.remove_doubles(bm, verts=bm.verts[:], dist=1e-4 * size)
report()
"""
_FILL = """\
bmesh.ops.holes_fill(bm, edges=[e for e in bm.edges if len(e.link_faces) == 1], sides=0)
bmesh.ops.recalc_face_normals(bm, faces=bm.faces[:])
pieces = sorted(islands(), key=reach)
for piece in pieces[:{voids}]:
    bmesh.ops.reverse_faces(bm, faces=piece)  # the void's surface looks into the void
bm.normal_update()
report()
print("volume", bm.calc_volume(signed=True), "in", len(pieces), "surfaces")
bm.to_mesh(item.data)
item.data.update()
"""
_REBUILD = """\
good = json.loads({clean!r})
item = bpy.data.objects[{thing!r}]
old = item.data
fresh = bpy.data.meshes.new({thing!r})
fresh.from_pydata(good["points"], [], good["faces"])
for material in old.materials:
    fresh.materials.append(material)
layer = fresh.uv_layers.new(name="UVMap")
for polygon, zone, corners in zip(fresh.polygons, good["zones"], good["uvs"]):
    polygon.material_index = zone if len(fresh.materials) else 0
    for index, corner in zip(polygon.loop_indices, corners):
        layer.uv[index].vector = corner
item.data = fresh
bpy.data.meshes.remove(old)
item.location = (0.4, -0.2, 0.1)
fresh.transform(item.matrix_basis.inverted())
"""
_REMESH = """\
item = bpy.data.objects[{thing!r}]
step = item.modifiers.new("remesh", "REMESH")
step.mode, step.voxel_size = "VOXEL", {voxel}
bpy.context.view_layer.objects.active = item
bpy.ops.object.modifier_apply(modifier="remesh")
"""
_HULL = """\
bmesh.ops.delete(bm, geom=[v for v in bm.verts if not v.link_faces], context="VERTS")
hull = bmesh.ops.convex_hull(bm, input=bm.verts[:])
bmesh.ops.delete(bm, geom=[f for f in bm.faces if f not in set(hull["geom"])], context="FACES")
bmesh.ops.delete(bm, geom=[v for v in bm.verts if not v.link_faces], context="VERTS")
bmesh.ops.recalc_face_normals(bm, faces=bm.faces[:])
bm.to_mesh(item.data)
"""
_CUT_AWAY = """\
# everything above a plane goes, and the opening is closed: manifold, but not the thing any more
level = low[2] + 0.6 * (high[2] - low[2])
everything = bm.verts[:] + bm.edges[:] + bm.faces[:]
bmesh.ops.bisect_plane(bm, geom=everything, plane_co=(0, 0, level), plane_no=(0, 0, 1), clear_outer=True)
"""
_INWARDS = """\
for polygon in item.data.polygons:
    polygon.flip()
"""
_COARSE = """\
bmesh.ops.remove_doubles(bm, verts=bm.verts[:], dist=0.04 * size)
"""
_STRIPPED = """\
item.data.materials.clear()
while item.data.uv_layers:
    item.data.uv_layers.remove(item.data.uv_layers[0])
"""


def load(thing: str, *, blend: bool) -> str:
    opened = _OPEN_BLEND if blend else _OPEN_PLY.format(thing=thing)
    return "import bpy, bmesh, json\nfrom mathutils import Vector\n" + opened + _START.format(thing=thing)


def repair(truth: Mapping[str, Any], *, voids: int, skip: Sequence[str] = ()) -> list[str]:
    """The oracle's pieces after loading; `skip` leaves out "clean" or "mirror"."""
    pieces: list[str] = []
    if "clean" not in skip:
        pieces.append(_CLEAN)
    if truth["mirror"] >= 0 and "mirror" not in skip:
        spikes = [([round(c, 4) for c in at], [round(c, 3) for c in home]) for at, home in truth["spikes"]]
        pieces.append(_MIRROR.format(mirror=truth["mirror"], spikes=spikes))
    return [*pieces, _FILL.format(voids=voids)]


def rebuilt(thing: str, clean: Mapping[str, Any]) -> list[str]:
    """Every face anew, as known from elsewhere, the object moved and its mesh moved back."""
    return [_REBUILD.format(thing=thing, clean=json.dumps(clean, separators=(",", ":")))]


def wrong(thing: str, truth: Mapping[str, Any], *, voids: int, size: float) -> Mapping[str, list[str]]:
    """Name → pieces after loading; the broken mesh itself is the family's forger."""
    right = repair(truth, voids=voids)
    found = {
        "convex_hull": [_HULL],
        "voxel_remesh": [*right, _REMESH.format(thing=thing, voxel=round(size / 90, 5))],
        "upper_part_cut_away": [_CLEAN, _CUT_AWAY, _FILL.format(voids=0)],
        "turned_inwards": [*right, _INWARDS],
        "welded_too_far": [_COARSE, *right],
    }
    if voids:
        found["void_turned_outwards"] = repair(truth, voids=0)
    if truth["mirror"] >= 0:
        found["lost_shape_filled_flat"] = repair({**truth, "spikes": []}, voids=voids, skip=("mirror",))
    if truth["materials"]:
        found["materials_dropped"] = [*right, _STRIPPED]
    return found
