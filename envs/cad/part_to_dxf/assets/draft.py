"""Drafts the views of a STEP part: hidden-line removal by the kernel, then lines, axes and dimensions by ezdxf."""

import ezdxf
import numpy as np
from build123d import GeomType, Plane, Pos, Shape, import_step
from ezdxf import units
from OCP.BRepLib import BRepLib
from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt
from OCP.HLRAlgo import HLRAlgo_Projector
from OCP.HLRBRep import HLRBRep_Algo, HLRBRep_HLRToShape
from OCP.HLRBRep import HLRBRep_TypeOfResultingEdge as Kind

LOOKS = {
    "front": ((0, -1, 0), (1, 0, 0), (0, 0, 1)),
    "top": ((0, 0, 1), (1, 0, 0), (0, 1, 0)),
    "right": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
}


def seated(path, right, up):
    """The part with `right` of the file along X and `up` along Z, its lowest corner at the origin, and its size."""
    local = Plane(origin=(0, 0, 0), x_dir=right, z_dir=up).to_local_coords(import_step(path))
    corners = np.array([tuple(vertex) for vertex in local.vertices()])
    return Pos(*(-corners.min(axis=0))) * local, np.ptp(corners, axis=0)


def projected(shape, view, smooth=False):
    """(hidden, edge in space) of all that a view shows; tangent edges only if `smooth`."""
    toward, right, _ = LOOKS[view]
    BRepLib.EncodeRegularity_s(shape.wrapped, 1e-4)
    algo = HLRBRep_Algo()
    algo.Add(shape.wrapped)
    algo.Projector(HLRAlgo_Projector(gp_Ax2(gp_Pnt(0, 0, 0), gp_Dir(*toward), gp_Dir(*right))))
    algo.Update()
    algo.Hide()
    made = HLRBRep_HLRToShape(algo)
    kinds = [Kind.HLRBRep_Sharp, Kind.HLRBRep_OutLine] + [Kind.HLRBRep_Rg1Line] * smooth
    for kind in kinds:
        for visible in (True, False):
            group = made.CompoundOfEdges(kind, visible, True)
            if group is not None and not group.IsNull():
                yield from ((not visible, edge) for edge in Shape.cast(group).edges())


def put_edge(space, edge, view, scale, at, layer, faceted=False):
    """A line, arc or circle for an edge, where it shows in the view."""
    toward, *across = (np.array(axis, dtype=float) for axis in LOOKS[view])

    def flat(point):
        return np.array([np.dot(tuple(point), axis) for axis in across]) * scale + at

    style = {"layer": layer}
    points = np.array([flat(edge.position_at(share)) for share in np.linspace(0, 1, 49)])
    if edge.geom_type == GeomType.CIRCLE and abs(np.dot(tuple(edge.normal()), toward)) > 0.5:
        centre, radius = flat(edge.arc_center), edge.radius * scale
        turns = np.degrees(np.unwrap(np.arctan2(*(points - centre).T[::-1])))
        if faceted:
            space.add_lwpolyline(points, dxfattribs=style)
        elif abs(turns[-1] - turns[0]) > 359.9:
            space.add_circle(centre, radius, dxfattribs=style)
        else:
            space.add_arc(centre, radius, *sorted((turns[0], turns[-1])), dxfattribs=style)
        return
    if edge.geom_type == GeomType.CIRCLE:  # edge-on: as long as it is wide
        box = edge.bounding_box(optimal=True)
        points = np.array([flat(box.min), flat(box.max)])
    start, end = points[0], points[-1]
    if np.linalg.norm(end - start) > 1e-4:
        space.add_line(start, end, dxfattribs=style)


def blank(layers):
    """A new drawing in millimetres; `layers` are (name, line type, weight or None)."""
    document = ezdxf.new("R2010", setup=True, units=units.MM)
    document.header["$MEASUREMENT"] = 1
    document.linetypes.add("HIDDEN", pattern=[2.5, 1.75, -0.75], description="Hidden __ __ __")
    for name, linetype, weight in layers:
        document.layers.add(name, linetype=linetype, lineweight=-3 if weight is None else weight)
    return document


def put_views(space, shape, origins, scale, layers, *, hidden=True, faceted=False, smooth=False):
    """The edges of all views at their places; `layers` are that of visible lines and that of hidden ones."""
    for view, at in origins.items():
        for is_hidden, edge in projected(shape, view, smooth):
            if hidden or not is_hidden:
                put_edge(space, edge, view, scale, at, layers[is_hidden], faceted)


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
        text, override = f"{value:g}" if typed_over else "<>", dict(style)
        if tolerance:
            override |= {"dimtol": 1, "dimtp": tolerance[0], "dimtm": tolerance[1], "dimtdec": 2}
        given = {"text": text, "override": override, "dxfattribs": {"layer": layer}}
        if axis is None:
            made = space.add_diameter_dim(start, radius=end, angle=35 + 20 * (row % 3), **given)
        else:
            key = (axis, round(start[0]), round(start[1]))
            stacked[key] = stacked.get(key, 0) + 1
            away = 3 + 5 * stacked[key]
            base = (start[0], start[1] - away) if axis == 0 else (start[0] - away, start[1])
            made = space.add_linear_dim(base=base, p1=start, p2=end, angle=90 * axis, **given)
        made.render()
