"""What a verifier sandbox with Open CASCADE measures on a STEP file; sent there as source, never run on the host.

`measure` answers with JSON and catches whatever a bad file can raise: a file that cannot be measured is an answer too.
Lengths are millimetres whatever unit the file declares, since the reader converts. A cylinder split into several faces
is one surface here, and so are coplanar faces with the same outward normal.
"""
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

import math
import os
from typing import Any

_MAX_FACES = 500


def measure(path: str, points: list[list[float]], margin: float) -> dict[str, Any]:
    """Validity, mass properties, surfaces by kind, and which of `points` lie inside the one solid."""
    try:
        return _measure(path, points, margin)
    except Exception as error:  # a bad file is the agent's, and is graded
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def _measure(path: str, points: list[list[float]], margin: float) -> dict[str, Any]:
    if not os.path.isfile(path) or os.path.islink(path):
        return {"error": "the file is missing"}
    with open(path, "rb") as file:
        if b"ISO-10303-21" not in file.read(4096):
            return {"error": "the file is not a STEP file"}
    from OCP.BRepCheck import BRepCheck_Analyzer
    from OCP.TopAbs import TopAbs_FACE, TopAbs_SHELL, TopAbs_SOLID

    shape = _read(path)
    if shape is None:
        return {"error": "the file is not a STEP file with a shape in it"}
    solids, faces = _parts(shape, TopAbs_SOLID), _parts(shape, TopAbs_FACE)
    answer: dict[str, Any] = {"solids": len(solids), "faces": len(faces), "shells": len(_parts(shape, TopAbs_SHELL))}
    if len(solids) != 1 or len(faces) > _MAX_FACES:
        return answer
    solid = solids[0]
    answer["loose_faces"] = len(faces) - len(_parts(solid, TopAbs_FACE))
    answer["valid"] = bool(BRepCheck_Analyzer(solid).IsValid())
    answer.update(_mass(solid))
    answer.update(_surfaces(solid))
    if answer["valid"] and answer["volume"] > 0:
        answer["inside"] = _inside(solid, points, margin)
    return answer


def _read(path: str) -> Any:
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.STEPControl import STEPControl_Reader

    reader = STEPControl_Reader()
    if reader.ReadFile(path) != IFSelect_RetDone or reader.TransferRoots() < 1:
        return None
    shape = reader.OneShape()
    return None if shape.IsNull() else shape


def _parts(shape: Any, kind: Any) -> list[Any]:
    from OCP.TopAbs import TopAbs_FACE
    from OCP.TopExp import TopExp_Explorer
    from OCP.TopoDS import TopoDS

    explorer, found = TopExp_Explorer(shape, kind), []
    while explorer.More():
        found.append(TopoDS.Face(explorer.Current()) if kind == TopAbs_FACE else explorer.Current())
        explorer.Next()
    return found


def _mass(solid: Any) -> dict[str, Any]:
    from OCP.Bnd import Bnd_Box
    from OCP.BRepBndLib import BRepBndLib
    from OCP.BRepGProp import BRepGProp
    from OCP.GProp import GProp_GProps

    properties, box = GProp_GProps(), Bnd_Box()
    BRepGProp.VolumeProperties_s(solid, properties)
    BRepBndLib.AddOptimal_s(solid, box, False, False)
    centre, low, high = properties.CentreOfMass(), box.CornerMin(), box.CornerMax()
    return {
        "volume": properties.Mass(),
        "centroid": _xyz(centre),
        "low": _xyz(low),
        "high": _xyz(high),
    }


def _xyz(point: Any) -> list[float]:
    return [point.X(), point.Y(), point.Z()]


def _surfaces(solid: Any) -> dict[str, Any]:
    from OCP.BRepAdaptor import BRepAdaptor_Surface
    from OCP.GeomAbs import GeomAbs_Cone, GeomAbs_Cylinder, GeomAbs_Plane
    from OCP.TopAbs import TopAbs_FACE

    planes: list[dict[str, Any]] = []
    turned: list[dict[str, Any]] = []
    other = 0
    for face in _parts(solid, TopAbs_FACE):
        surface = BRepAdaptor_Surface(face)
        kind = surface.GetType()
        if kind == GeomAbs_Plane:
            _add_plane(planes, face, surface)
        elif kind in (GeomAbs_Cylinder, GeomAbs_Cone):
            _add_turned(turned, face, surface, kind == GeomAbs_Cone)
        else:
            other += 1
    return {"planes": planes, "turned": turned, "other_faces": other}


def _outward(face: Any, surface: Any, u: float, v: float) -> tuple[Any, Any]:
    from OCP.gp import gp_Pnt, gp_Vec
    from OCP.TopAbs import TopAbs_REVERSED

    point, du, dv = gp_Pnt(), gp_Vec(), gp_Vec()
    surface.D1(u, v, point, du, dv)
    normal = du.Crossed(dv)
    normal.Normalize()
    if face.Orientation() == TopAbs_REVERSED:
        normal.Reverse()
    return point, normal


def _add_plane(planes: list[dict[str, Any]], face: Any, surface: Any) -> None:
    point, normal = _outward(face, surface, surface.FirstUParameter(), surface.FirstVParameter())
    offset = sum(a * b for a, b in zip(_xyz(normal), _xyz(point), strict=True))
    for plane in planes:
        same = sum(a * b for a, b in zip(plane["normal"], _xyz(normal), strict=True)) > 1.0 - 1e-9
        if same and abs(plane["offset"] - offset) < 1e-4:
            return
    planes.append({"normal": _xyz(normal), "offset": offset})


def _add_turned(turned: list[dict[str, Any]], face: Any, surface: Any, is_cone: bool) -> None:
    from OCP.BRepTools import BRepTools

    u0, u1, v0, v1 = BRepTools.UVBounds_s(face)
    shape = surface.Cone() if is_cone else surface.Cylinder()
    axis, half_angle = shape.Axis(), abs(shape.SemiAngle()) if is_cone else 0.0
    direction, origin = _xyz(axis.Direction()), _xyz(axis.Location())
    if next(value for value in direction if abs(value) > 1e-6) < 0:
        direction = [-value for value in direction]
    point, normal = _outward(face, surface, (u0 + u1) / 2.0, (v0 + v1) / 2.0)
    _, radial = _along_and_radial(_xyz(point), origin, direction)
    ends = [_along_and_radial(_xyz(surface.Value(u0, v)), origin, direction) for v in (v0, v1)]
    at_zero = sum(o * d for o, d in zip(origin, direction, strict=True))
    piece = {
        "direction": direction,
        "point": [o - at_zero * d for o, d in zip(origin, direction, strict=True)],
        "radius": max(math.hypot(*r) for _, r in ends),
        "half_angle_deg": math.degrees(half_angle),
        "concave": sum(n * r for n, r in zip(_xyz(normal), radial, strict=True)) < 0,
        "low": min(a for a, _ in ends) + at_zero,
        "high": max(a for a, _ in ends) + at_zero,
    }
    for known in turned:
        if _same_surface(known, piece):
            known["low"], known["high"] = min(known["low"], piece["low"]), max(known["high"], piece["high"])
            return
    turned.append(piece)


def _along_and_radial(point: list[float], origin: list[float], direction: list[float]) -> tuple[float, list[float]]:
    relative = [p - o for p, o in zip(point, origin, strict=True)]
    along = sum(r * d for r, d in zip(relative, direction, strict=True))
    return along, [r - along * d for r, d in zip(relative, direction, strict=True)]


def _same_surface(a: dict[str, Any], b: dict[str, Any]) -> bool:
    parallel = sum(x * y for x, y in zip(a["direction"], b["direction"], strict=True)) > 1.0 - 1e-9
    near = math.dist(a["point"], b["point"]) < 1e-4 and abs(a["radius"] - b["radius"]) < 1e-4
    return parallel and near and a["concave"] == b["concave"] and abs(a["half_angle_deg"] - b["half_angle_deg"]) < 1e-4


def _inside(solid: Any, points: list[list[float]], margin: float) -> list[bool | None]:
    from OCP.BRepClass3d import BRepClass3d_SolidClassifier
    from OCP.gp import gp_Pnt
    from OCP.TopAbs import TopAbs_IN, TopAbs_OUT

    classifier = BRepClass3d_SolidClassifier(solid)
    answers: list[bool | None] = []
    for point in points:
        classifier.Perform(gp_Pnt(*point), margin)
        state = classifier.State()
        answers.append(True if state == TopAbs_IN else False if state == TopAbs_OUT else None)
    return answers
