"""What a verifier sandbox with ezdxf finds in a DXF file; sent there as source, never run on the host.

`drawing_check.py` sends this text as a probe. The file is only parsed, in a process with limits on memory and time;
whatever a bad file can raise is an answer (`error`), not a crash. Angles are degrees, lengths drawing units.
"""
# pyright: basic, reportMissingImports=false, reportUndefinedVariable=false

import math
import os
import re
import resource

MAX_ENTITIES = 4000
MAX_PIECES = 3000
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


class NoDrawing(ValueError):
    """The file is no DXF drawing that could be measured."""


def measure(path):
    resource.setrlimit(resource.RLIMIT_AS, (900 << 20, 900 << 20))
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
    if os.path.islink(path) or not os.path.isfile(path):
        return {"error": "the file is missing"}
    try:
        return _measure(path)
    except Exception as error:  # a bad file is the agent's, and is graded
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def _measure(path):
    import ezdxf

    document = ezdxf.readfile(path)
    space = list(document.modelspace())
    if len(space) > MAX_ENTITIES:
        raise NoDrawing(f"{len(space)} entities, more than {MAX_ENTITIES}")
    pieces, dimensions, texts, strange, styled = [], [], 0, {}, 0
    for entity in space:
        kind = entity.dxftype()
        if kind in ("LINE", "CIRCLE", "ARC", "LWPOLYLINE"):
            styled += not by_layer(entity)
            flat = [piece for part in parts(entity) for piece in one(part)]
            if flat and None not in flat:
                pieces += flat
            else:
                strange[f"{kind} off the plane"] = strange.get(f"{kind} off the plane", 0) + 1
        elif kind == "DIMENSION":
            dimensions.append(dimension(document, entity))
        elif kind in ("TEXT", "MTEXT"):
            texts += 1
        else:
            strange[kind] = strange.get(kind, 0) + 1
        if len(pieces) > MAX_PIECES:
            raise NoDrawing(f"more than {MAX_PIECES} lines and arcs")
    layers = {str(layer.dxf.name): about(document, layer) for layer in list(document.layers)[:200]}
    return {
        "version": document.dxfversion,
        "units": int(document.header.get("$INSUNITS", 0)),
        "metric": int(document.header.get("$MEASUREMENT", 0)),
        "layers": layers,
        "pieces": pieces,
        "dimensions": dimensions,
        "texts": texts,
        "strange": strange,
        "styled": styled,
    }


def by_layer(entity):
    dxf = entity.dxf
    plain = str(dxf.get("linetype", "BYLAYER")).upper() == "BYLAYER" and int(dxf.get("color", 256)) == 256
    return plain and not dxf.hasattr("true_color") and int(dxf.get("lineweight", -1)) == -1


def about(document, layer):
    name = str(layer.dxf.get("linetype", "Continuous"))
    pattern = ()
    if document.linetypes.has_entry(name):
        pattern = document.linetypes.get(name).simplified_line_pattern()
    return {
        "linetype": name,
        "dashes": len(pattern) if all(math.isfinite(part) for part in pattern) and sum(pattern) > 0 else 0,
        "weight": int(layer.dxf.get("lineweight", -3)),
        "colour": int(layer.dxf.get("color", 7)),
        "shown": not (layer.is_off() or layer.is_frozen()),
    }


def parts(entity):
    return list(entity.virtual_entities()) if entity.dxftype() == "LWPOLYLINE" else [entity]


def one(entity):
    """Lines as [layer, x0, y0, x1, y1], arcs as [layer, x, y, radius, start, sweep]; None for what is not flat."""
    dxf, layer = entity.dxf, str(entity.dxf.layer)
    if entity.dxftype() == "LINE":
        numbers = [dxf.start.x, dxf.start.y, dxf.end.x, dxf.end.y]
        level = abs(dxf.start.z) + abs(dxf.end.z)
    else:
        start = float(dxf.start_angle) if entity.dxftype() == "ARC" else 0.0
        sweep = (float(dxf.end_angle) - start) % 360.0 or 360.0 if entity.dxftype() == "ARC" else 360.0
        numbers = [dxf.center.x, dxf.center.y, float(dxf.radius), start, sweep]
        level = abs(dxf.center.z) + (0.0 if tuple(dxf.extrusion) == (0.0, 0.0, 1.0) else 1.0)
    flat = level < 1e-6 and all(math.isfinite(number) and abs(number) < 1e5 for number in numbers)
    yield [layer, *numbers] if flat else None


def dimension(document, entity):
    dxf, style = entity.dxf, entity.override()
    kind = int(dxf.dimtype) & 7
    points = {
        name: [getattr(dxf, name).x, getattr(dxf, name).y]
        for name in ("defpoint", "defpoint2", "defpoint3", "defpoint4")
    }
    shown, drawn = [], 0
    name = str(dxf.get("geometry", ""))
    if name in document.blocks:
        for part in list(document.blocks.get(name))[:200]:
            if part.dxftype() in ("TEXT", "MTEXT"):
                shown.append(str(part.plain_text())[:200])
            elif part.dxftype() == "LINE":
                drawn += 1
    numbers = [float(match.replace(",", ".")) for text in shown for match in _NUMBER.findall(text)][:20]
    tolerances = [float(style.get("dimtp", 0.0)), float(style.get("dimtm", 0.0))] if style.get("dimtol", 0) else []
    factor = float(style.get("dimlfac", 1.0))
    values = [value for point in points.values() for value in point] + [factor, *tolerances, *numbers]
    if not all(math.isfinite(value) for value in values):
        raise NoDrawing("a dimension with numbers that are not finite")
    return {
        "layer": str(dxf.layer),
        "kind": kind,
        "angle": float(dxf.get("angle", 0.0)) if kind == 0 else None,
        "points": points,
        "factor": factor,
        "text": str(dxf.get("text", ""))[:200],
        "numbers": numbers,
        "lines": drawn,
        "tolerances": tolerances,
    }


_answer(measure(payload["path"]))  # noqa: F821  both come from the probe's frame
