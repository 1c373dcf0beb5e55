"""Drafts the views of a STEP part: hidden-line removal by the kernel, then lines, axes and dimensions by ezdxf."""

import math

import ezdxf
import numpy as np
from build123d import Plane, Pos, Shape, import_step
from ezdxf import units
from OCP.BRepLib import BRepLib
from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt
from OCP.HLRAlgo import HLRAlgo_Projector
from OCP.HLRBRep import HLRBRep_Algo, HLRBRep_HLRToShape

LOOKS = {
    "front": ((0, -1, 0), (1, 0, 0)),
    "top": ((0, 0, 1), (1, 0, 0)),
    "right": ((1, 0, 0), (0, 1, 0)),
}


def seated(path, right, up):
    """The part with `right` of the file along X and `up` along Z, its lowest corner at the origin."""
    local = Plane(origin=(0, 0, 0), x_dir=right, z_dir=up).to_local_coords(import_step(path))
    corners = np.array([tuple(vertex) for vertex in local.vertices()])
    size = np.ptp(corners, axis=0)
    return Pos(*(-corners.min(axis=0))) * local, size


def projected(shape, view):
    """(hidden, points) of every edge in a view; tangent edges are left out."""
    toward, right = LOOKS[view]
    algo = HLRBRep_Algo()
    algo.Add(shape.wrapped)
    algo.Projector(HLRAlgo_Projector(gp_Ax2(gp_Pnt(0, 0, 0), gp_Dir(*toward), gp_Dir(*right))))
    algo.Update()
    algo.Hide()
    made = HLRBRep_HLRToShape(algo)
    groups = [
        (False, made.VCompound()),
        (False, made.OutLineVCompound()),
        (True, made.HCompound()),
        (True, made.OutLineHCompound()),
    ]
    found = []
    for hidden, group in groups:
        if group is None or group.IsNull():
            continue
        BRepLib.BuildCurves3d_s(group)
        for edge in Shape.cast(group).edges():
            points = np.array([tuple(edge.position_at(share))[:2] for share in np.linspace(0, 1, 9)])
            found.append((hidden, points))
    return found


def is_straight(points):
    middle = points - points.mean(axis=0)
    return np.linalg.svd(middle, compute_uv=False)[1] < 1e-4


def circle_through(points):
    a, b, c = points[0], points[3], points[6]
    centre = np.linalg.solve(2 * np.array([b - a, c - a]), [b @ b - a @ a, c @ c - a @ a])
    return centre, float(np.linalg.norm(a - centre))


def put_curve(space, points, layer, faceted):
    """A line, arc or circle from points along it."""
    if is_straight(points):
        low, high = (points[np.lexsort(points.T[::-1])[end]] for end in (0, -1))
        if np.linalg.norm(high - low) > 1e-6:
            space.add_line(low, high, dxfattribs={"layer": layer})
        return
    centre, radius = circle_through(points)
    turns = np.unwrap(np.arctan2(*(points - centre).T[::-1]))
    if faceted:
        steps = np.linspace(turns[0], turns[-1], 49)
        corners = centre + radius * np.stack([np.cos(steps), np.sin(steps)], axis=1)
        space.add_lwpolyline(corners, dxfattribs={"layer": layer})
    elif abs(turns[-1] - turns[0]) > 2 * math.pi - 1e-3:
        space.add_circle(centre, radius, dxfattribs={"layer": layer})
    else:
        start, end = sorted((math.degrees(turns[0]), math.degrees(turns[-1])))
        space.add_arc(centre, radius, start, end, dxfattribs={"layer": layer})


def blank(layers):
    """A new drawing in millimetres; `layers` are (name, line type, weight or None)."""
    document = ezdxf.new("R2010", setup=True, units=units.MM)
    document.header["$MEASUREMENT"] = 1
    for name, linetype, weight in layers:
        document.layers.add(name, linetype=linetype, lineweight=-3 if weight is None else weight)
    return document


def put_views(space, shape, origins, scale, layers, *, hidden=True, faceted=False):
    """The edges of all views at their places."""
    for view, at in origins.items():
        for is_hidden, points in projected(shape, view):
            if hidden or not is_hidden:
                put_curve(space, points * scale + np.array(at), layers[is_hidden], faceted)


def put_strokes(space, strokes, layer):
    """Straight lines."""
    for start, end in strokes:
        space.add_line(start, end, dxfattribs={"layer": layer})


def put_dimensions(space, rows, layer, factor, *, typed_over=False):
    """Linear dimensions left of or below what they measure, diameters at an angle.

    A row is (axis, start, end, value, tolerance) or (None, centre, radius, value, None).
    """
    style = {"dimtxt": 2.5, "dimasz": 2.0, "dimexe": 1.0, "dimexo": 0.6, "dimgap": 0.6, "dimdec": 2, "dimzin": 8}
    style |= {"dimdsep": ord("."), "dimlfac": factor, "dimtad": 1}
    stacked = {}
    for row, (axis, start, end, value, tolerance) in enumerate(rows):
        text = f"{value:g}" if typed_over else "<>"
        override = dict(style)
        if tolerance:
            override |= {"dimtol": 1, "dimtp": tolerance[0], "dimtm": tolerance[1], "dimtdec": 2}
        if axis is None:
            made = space.add_diameter_dim(
                start, radius=end, angle=35 + 20 * (row % 3), text=text, override=override, dxfattribs={"layer": layer}
            )
        else:
            key = (axis, round(start[0]), round(start[1]))
            stacked[key] = stacked.get(key, 0) + 1
            away = 3 + 4.2 * stacked[key]
            base = (start[0], start[1] - away) if axis == 0 else (start[0] - away, start[1])
            made = space.add_linear_dim(
                base=base, p1=start, p2=end, angle=90 * axis, text=text, override=override, dxfattribs={"layer": layer}
            )
        made.render()
