"""Writes the part's STEP file in the preparing sandbox, with axes of the file's own."""

import re


def write(shape, path, name, right, up, origin):
    """The drawing's X is the file's `right`, its Z the file's `up`; the lower front left corner lies at `origin`."""
    from OCP.BRepBuilderAPI import BRepBuilderAPI_Transform
    from OCP.gp import gp_Trsf
    from OCP.STEPControl import STEPControl_StepModelType, STEPControl_Writer

    rear = [
        up[1] * right[2] - up[2] * right[1],
        up[2] * right[0] - up[0] * right[2],
        up[0] * right[1] - up[1] * right[0],
    ]
    move = gp_Trsf()
    move.SetValues(*(value for row in zip(right, rear, up, origin, strict=True) for value in row))
    writer = STEPControl_Writer()
    writer.Transfer(BRepBuilderAPI_Transform(shape, move, True).Shape(), STEPControl_StepModelType.STEPControl_AsIs)
    writer.Write(path)
    with open(path) as file:
        text = file.read()
    text = re.sub(r"'\d{4}-\d\d-\d\dT[\d:]+'", "'2000-01-01T00:00:00'", text)
    text = re.sub(r"'Open CASCADE (Shape Model|STEP translator [\d. ]*)'", f"'{name}'", text)
    with open(path, "w") as file:
        file.write(text)
