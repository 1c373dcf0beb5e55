"""How a sandbox with Open CASCADE builds a prismatic part; sent there as source, never run on the host.

A part comes as rows of [sign, kind, fields] in the order of the work, the fields being those of `prismatic`'s elements.
The solid has no seams: coplanar faces and collinear edges are merged.
"""
# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false


def solid(rows):
    """The part of these rows as a shape of the kernel."""
    from OCP.BRepAlgoAPI import BRepAlgoAPI_Cut, BRepAlgoAPI_Fuse
    from OCP.ShapeUpgrade import ShapeUpgrade_UnifySameDomain

    makers = {"Block": _block, "Bore": _bore, "Wedge": _wedge}
    whole = None
    for sign, kind, fields in rows:
        element = makers[kind](**fields)
        if whole is None:
            whole = element
        else:
            whole = (BRepAlgoAPI_Fuse if sign > 0 else BRepAlgoAPI_Cut)(whole, element).Shape()
    merged = ShapeUpgrade_UnifySameDomain(whole, True, True, False)
    merged.Build()
    return merged.Shape()


def _block(low, high):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeBox
    from OCP.gp import gp_Pnt

    return BRepPrimAPI_MakeBox(gp_Pnt(*low), gp_Pnt(*high)).Shape()


def _bore(axis, centre, radii, span):
    from OCP.BRepPrimAPI import BRepPrimAPI_MakeCylinder
    from OCP.gp import gp_Ax2, gp_Dir, gp_Pnt

    if radii[0] != radii[1]:
        raise ValueError("cones are not built here")
    foot, along = list(centre), [0.0, 0.0, 0.0]
    foot.insert(axis, span[0])
    along[axis] = 1.0
    frame = gp_Ax2(gp_Pnt(*foot), gp_Dir(*along))
    return BRepPrimAPI_MakeCylinder(frame, radii[0], span[1] - span[0]).Shape()


def _wedge(axis, corner, signs, legs, span):
    from OCP.BRepBuilderAPI import BRepBuilderAPI_MakeFace, BRepBuilderAPI_MakePolygon
    from OCP.BRepPrimAPI import BRepPrimAPI_MakePrism
    from OCP.gp import gp_Pnt, gp_Vec

    (u, v), (su, sv), (lu, lv) = corner, signs, legs
    outline = BRepBuilderAPI_MakePolygon()
    for point in ([u, v], [u + su * lu, v], [u, v + sv * lv]):
        point.insert(axis, span[0])
        outline.Add(gp_Pnt(*point))
    outline.Close()
    along = [0.0, 0.0, 0.0]
    along[axis] = span[1] - span[0]
    return BRepPrimAPI_MakePrism(BRepBuilderAPI_MakeFace(outline.Wire()).Face(), gp_Vec(*along)).Shape()
