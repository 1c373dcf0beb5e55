"""Blender programs that build the parts of a spec: the oracle's way, other right ways, and wrong ones.

A program is a list of pieces of Python, one per `python` call. Lengths become metres. `Style` chooses how bodies
are made: `OPERATORS` by primitive operators, `BMESH` by extruded faces with object transforms, `LIVE` by flat faces
under Solidify modifiers that stay unapplied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum, auto

from .solids import Body, Cut, Point3, Prism, Round, Solid

SIDES = 64
START = """\
import bpy

bpy.ops.object.select_all(action="SELECT")
bpy.ops.object.delete()
"""
SAVE = 'bpy.ops.wm.save_as_mainfile(filepath="/workspace/model.blend")\n'
_PRISM = '''\
def prism(name, axis, outline, low, high):
    """Push an outline, counter-clockwise in the plane after `axis`, from low to high along it."""
    count = len(outline)
    corners = [(u, v, w) for w in (low, high) for u, v in outline]
    corners = [tuple(corner[(i - axis - 1) % 3] for i in range(3)) for corner in corners]
    faces = [tuple(range(count))[::-1], tuple(range(count, 2 * count))]
    faces += [(i, (i + 1) % count, count + (i + 1) % count, count + i) for i in range(count)]
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(corners, [], faces)
    part = bpy.data.objects.new(name, mesh)
    bpy.context.collection.objects.link(part)
    bpy.context.view_layer.objects.active = part
'''
_CUT = '''\
def cut(name):
    """Take the active object out of the named part, and remove it."""
    cutter, part = bpy.context.view_layer.objects.active, bpy.data.objects[name]
    step = part.modifiers.new("cut", "BOOLEAN")
    step.operation, step.solver, step.object = "DIFFERENCE", "MANIFOLD", cutter
    bpy.context.view_layer.objects.active = part
    bpy.ops.object.modifier_apply(modifier=step.name)
    bpy.data.objects.remove(cutter, do_unlink=True)
'''
_EXTRUDED = '''\
import bmesh
from mathutils import Matrix, Vector

def extruded(name, axis, outline, low, high, taper=1.0, live=False):
    """An object at the middle of its lower face, whose local Z is the world's `axis`."""
    work = bmesh.new()
    face = work.faces.new([work.verts.new((u, v, 0)) for u, v in outline])
    if not live:
        top = bmesh.ops.extrude_face_region(work, geom=[face])["geom"]
        for point in [item for item in top if isinstance(item, bmesh.types.BMVert)]:
            point.co = Vector((point.co.x * taper, point.co.y * taper, high - low))
        bmesh.ops.recalc_face_normals(work, faces=work.faces)
    mesh = bpy.data.meshes.new(name)
    work.to_mesh(mesh)
    work.free()
    part = bpy.data.objects.new(name, mesh)
    bpy.context.collection.objects.link(part)
    if live:
        thick = part.modifiers.new("thick", "SOLIDIFY")
        thick.thickness, thick.offset = high - low, 1.0
    turn = Matrix([[1.0 if (axis + 1 + column) % 3 == row else 0.0 for column in range(3)] for row in range(3)])
    part.matrix_world = Matrix.Translation([low if i == axis else 0.0 for i in range(3)]) @ turn.to_4x4()
    bpy.context.view_layer.objects.active = part
    return part

def circle(u, v, radius, sides=96):
    import math
    turns = [2 * math.pi * k / sides for k in range(sides)]
    return [(u + radius * math.cos(turn), v + radius * math.sin(turn)) for turn in turns]
'''


class Style(StrEnum):
    """How bodies are made."""

    OPERATORS = auto()
    BMESH = auto()
    LIVE = auto()


def program(solids: Sequence[Solid], style: Style = Style.OPERATORS, *, per_call: int = 8) -> list[str]:
    """Clear the default scene, then make the parts, up to `per_call` in one piece."""
    lines = [build_solid(solid, style) for solid in solids]
    code = START + _definitions(solids, style)
    return [code, *("".join(lines[first : first + per_call]) for first in range(0, len(lines), per_call))]


def build_solid(solid: Solid, style: Style = Style.OPERATORS) -> str:
    """Make one part: its base, then every cut, stretched at its open ends so that faces never coincide."""
    live = style is Style.LIVE and not solid.cuts
    code = _body_code(solid.name, solid.base, style, live=live)
    if style is Style.OPERATORS and not _uses_prism(solid.base):
        code += f"bpy.context.object.name = {solid.name!r}\n"
    for cut in solid.cuts:
        code += _body_code("cutter", stretched(cut), style, live=False) + f"cut({solid.name!r})\n"
    return code


def stretched(cut: Cut) -> Body:
    """The cut's body, longer at its open ends."""
    more = (cut.body.high - cut.body.low) * 0.25
    return cut.body.stretched(more if cut.open_low else 0.0, more if cut.open_high else 0.0)


def _definitions(solids: Sequence[Solid], style: Style) -> str:
    bodies = [body for solid in solids for body in (solid.base, *(cut.body for cut in solid.cuts))]
    code = ""
    if style is not Style.OPERATORS:
        code += "\n" + _EXTRUDED
    elif any(_uses_prism(body) for body in bodies):
        code += "\n" + _PRISM
    return code + ("\n" + _CUT if any(solid.cuts for solid in solids) else "")


def _body_code(name: str, body: Body, style: Style, *, live: bool) -> str:
    if style is Style.OPERATORS:
        return _operator(name, body)
    low, high = _m(body.low), _m(body.high)
    if isinstance(body, Prism):
        return f"extruded({name!r}, {body.axis}, {_points(body)}, {low}, {high}, live={live})\n"
    u, v = body.centre
    if body.radius_low == body.radius_high:
        outline = f"circle({_m(u)}, {_m(v)}, {_m(body.radius_low)})"
        return f"extruded({name!r}, {body.axis}, {outline}, {low}, {high}, live={live})\n"
    outline, taper = f"circle(0, 0, {_m(body.radius_low)})", f"{body.radius_high / body.radius_low!r}"
    centre = _vector(tuple(_world(body.axis, (u, v, body.low))))
    return (
        f"part = extruded({name!r}, {body.axis}, {outline}, {low}, {high}, taper={taper})\n"
        f"part.location = {centre}\nbpy.context.view_layer.update()\n"
    )


def _operator(name: str, body: Body) -> str:
    if isinstance(body, Round):
        centre = _vector(_world(body.axis, (*body.centre, (body.low + body.high) / 2)))
        turn = ("", f", rotation=({-math.pi / 2!r}, 0, 0)", f", rotation=(0, {math.pi / 2!r}, 0)")[(2 - body.axis) % 3]
        where = f"depth={_m(body.high - body.low)}, location={centre}{turn})\n"
        if body.radius_low == body.radius_high:
            return f"bpy.ops.mesh.primitive_cylinder_add(vertices={SIDES}, radius={_m(body.radius_low)}, {where}"
        radii = f"radius1={_m(body.radius_low)}, radius2={_m(body.radius_high)}"
        return f"bpy.ops.mesh.primitive_cone_add(vertices={SIDES}, {radii}, {where}"
    if _uses_prism(body):
        return f"prism({name!r}, {body.axis}, {_points(body)}, {_m(body.low)}, {_m(body.high)})\n"
    low, high = body.bounds()
    centre = _vector(tuple((a + b) / 2 for a, b in zip(low, high, strict=True)))
    size = _vector(tuple(b - a for a, b in zip(low, high, strict=True)))
    return f"bpy.ops.mesh.primitive_cube_add(size=1, location={centre}, scale={size})\n"


def _uses_prism(body: Body) -> bool:
    if isinstance(body, Round):
        return False
    edges = zip(body.points, (*body.points[1:], body.points[0]), strict=True)
    return len(body.points) != 4 or any(p[0] != q[0] and p[1] != q[1] for p, q in edges)


def _world(axis: int, local: Point3) -> Point3:
    x, y, z = (local[(i - axis - 1) % 3] for i in range(3))
    return (x, y, z)


def _points(prism: Prism) -> str:
    return "[" + ", ".join(f"({_m(u)}, {_m(v)})" for u, v in prism.points) + "]"


def _vector(point: Sequence[float]) -> str:
    return "(" + ", ".join(_m(value) for value in point) + ")"


def _m(millimetres: float) -> str:
    return f"{round(millimetres / 1000, 9) + 0.0:.9g}"
