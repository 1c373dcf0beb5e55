"""What a sandbox with Open CASCADE finds that a drawing of a solid shows; sent there as source, never run on the host.

What is hidden is the verdict of the kernel's own hidden-line removal (HLRBRep). It answers with pieces of edges and
outlines in space; laid flat here, a round one keeps its centre and radius, and one seen edge-on becomes straight. Where
surfaces join tangentially there is a line only if it is an outline.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false

import math

_TANGENT_RAD = 1e-4


def lines(shape, toward, right):
    """The view from `toward`: [hidden, x0, y0, x1, y1] or, in degrees, [hidden, x, y, radius, start, sweep].

    A hidden line may lie under a visible one.
    """
    from OCP.BRepLib import BRepLib
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt
    from OCP.HLRAlgo import HLRAlgo_Projector
    from OCP.HLRBRep import HLRBRep_Algo, HLRBRep_HLRToShape, HLRBRep_TypeOfResultingEdge

    BRepLib.EncodeRegularity_s(shape, _TANGENT_RAD)  # else the kernel takes every edge for a sharp one
    frame = gp_Ax2(gp_Pnt(0, 0, 0), gp_Dir(*toward), gp_Dir(*right))
    algo = HLRBRep_Algo()
    algo.Add(shape)
    algo.Projector(HLRAlgo_Projector(frame))
    algo.Update()
    algo.Hide()
    answer, found = HLRBRep_HLRToShape(algo), []
    for kind in (HLRBRep_TypeOfResultingEdge.HLRBRep_Sharp, HLRBRep_TypeOfResultingEdge.HLRBRep_OutLine):
        for visible in (True, False):
            pieces = answer.CompoundOfEdges(kind, visible, True)
            if pieces is not None and not pieces.IsNull():
                found += [[not visible, *flat] for edge in _edges(pieces) if (flat := _flat(edge, frame))]
    return found


def _edges(compound):
    from OCP.TopAbs import TopAbs_EDGE
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    explorer = TopExp_Explorer(compound, TopAbs_EDGE)
    while explorer.More():
        yield TopoDS.Edge(explorer.Current())
        explorer.Next()


def _flat(edge, frame):
    """The edge in the view; nothing for one that shows as a point."""
    from OCP.BRepAdaptor import BRepAdaptor_Curve
    from OCP.GeomAbs import GeomAbs_Circle, GeomAbs_Line

    curve = BRepAdaptor_Curve(edge)
    first, last = curve.FirstParameter(), curve.LastParameter()
    if curve.GetType() == GeomAbs_Line:
        turns = [first, last]
    elif curve.GetType() == GeomAbs_Circle:
        circle = curve.Circle()
        facing = circle.Axis().Direction().Dot(frame.Direction())
        if abs(facing) > 1.0 - 1e-9:
            return _arc(curve, frame)
        if abs(facing) > 1e-9:
            raise ValueError("a circle that shows as an ellipse")
        turns = [first, last, *_extremes(circle, frame, first, last)]
    else:
        raise ValueError(f"an edge that is neither straight nor round: {curve.GetType()}")
    ends = sorted(_seen(curve.Value(turn), frame) for turn in turns)
    return [*ends[0], *ends[-1]] if math.dist(ends[0], ends[-1]) > 1e-6 else []


def _seen(point, frame):
    return [round(point.XYZ().Dot(axis.XYZ()), 7) + 0.0 for axis in (frame.XDirection(), frame.YDirection())]


def _arc(curve, frame):
    circle, first, last = curve.Circle(), curve.FirstParameter(), curve.LastParameter()
    centre = _seen(circle.Location(), frame)
    sweep = min(math.degrees(last - first), 360.0)
    x, y = _seen(curve.Value(first), frame)
    middle = _seen(curve.Value((first + last) / 2.0), frame)
    start = math.degrees(math.atan2(y - centre[1], x - centre[0]))
    half = math.degrees(math.atan2(middle[1] - centre[1], middle[0] - centre[0])) - start
    if abs(half % 360.0 - sweep / 2.0) > 1e-3:  # it turns clockwise as it is seen here
        start -= sweep
    return [*centre, circle.Radius(), start % 360.0, sweep]


def _extremes(circle, frame, first, last):
    """Where on a circle seen edge-on its outermost points lie."""
    place = circle.Position()
    across = frame.XDirection() if abs(circle.Axis().Direction().Dot(frame.XDirection())) < 0.5 else frame.YDirection()
    turn = math.atan2(place.YDirection().Dot(across), place.XDirection().Dot(across))
    return [at for step in range(-4, 5) if first <= (at := turn + step * math.pi) <= last]
