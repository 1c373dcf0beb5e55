"""Mending as sessions: what a careful maker types, another right way, and what lazy or cheating ones hand in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from ...core import Json, ToolCall
from ...parts.prism_mesh import Region, walk
from .spoiling import Pose

BROKEN_PATH = "/workspace/broken.stl"
PRINT_PATH = "/workspace/print.stl"
_EXPORT = f'whole.export("{PRINT_PATH}")\n'

Calls = Sequence[ToolCall]


def oracle(pose: Pose, at: tuple[float, float]) -> Calls:
    """Look, take stock, mend step by step, look again."""
    stock = (
        f'import trimesh\nraw = trimesh.load_mesh("{BROKEN_PATH}")\n'
        "print(len(raw.faces), 'facets,', raw.extents, 'watertight', raw.is_watertight, 'volume', raw.volume)\n"
        "print([(len(body.faces), body.is_watertight) for body in raw.split(only_watertight=False)][:40])"
    )
    report = "print(whole.is_watertight, whole.volume, whole.bounds.tolist(), whole.body_count)"
    return [
        _view(BROKEN_PATH),
        _view(f"{BROKEN_PATH}@below"),
        _python(stock),
        _python(_tools()),
        _python(f"whole = {_mend(pose, at)}\n{report}"),
        _python(_EXPORT),
        _shell(f"admesh --fill-holes=0 {PRINT_PATH} 2>&1 | head -40 || true"),
        _view(PRINT_PATH),
        _view(f"{PRINT_PATH}@below"),
        ToolCall(tool="submit"),
    ]


def alternatives(bodies: Sequence[Region], at: tuple[float, float]) -> Mapping[str, Calls]:
    """Modelled anew from what was measured on the file, by Manifold, and written as text."""
    code = "\n".join(
        [
            "import numpy as np, trimesh",
            "from manifold3d import CrossSection, Manifold",
            "def solid(ring, low, high):",
            f"    return CrossSection([ring]).extrude(high - low).translate(({at[0]!r}, {at[1]!r}, low))",
            f"rows = {_rows(bodies)!r}",
            "part = Manifold()",
            "for cut, ring, low, high in rows:",
            "    part = part - solid(ring, low, high) if cut else part + solid(ring, low, high)",
            "mesh = part.to_mesh64()",
            "whole = trimesh.Trimesh(mesh.vert_properties[:, :3], mesh.tri_verts.astype(int), process=False)",
            f'open("{PRINT_PATH}", "w").write(trimesh.exchange.stl.export_stl_ascii(whole))',
        ]
    )
    return {"modelled_anew": [_python(code), ToolCall(tool="submit")]}


def _rows(bodies: Sequence[Region]) -> list[Json]:
    """From the outside in: clear what is inside a ring, then fill what is solid there."""
    top = 200.0
    rows: list[Json] = []
    for region, _ in walk(bodies):
        ring: Json = [[x, y] for x, y in region.ring]
        rows.append([True, ring, -1.0, top])
        rows += [[False, ring, low, high] for low, high in region.solid]
    return rows


def mutants(pose: Pose, at: tuple[float, float], bodies: Sequence[Region], level: int) -> Mapping[str, Calls]:
    """Near misses and hacks; each leaves a file."""
    mend = f"whole = {_mend(pose, at)}\n"
    letters = max(region.solid[-1][1] for region, _ in walk(bodies) if region.kind == "letter")
    wrong = {
        "convex_hull": mend + f"whole = whole.convex_hull\n{_EXPORT}",
        "remeshed_in_voxels": mend + _REMESH + _EXPORT,
        "printing_next_to_nothing": f"whole = trimesh.creation.box((1, 1, 1))\nwhole.apply_translation("
        f"({at[0] + 0.5}, {at[1] + 0.5}, 0.5))\n{_EXPORT}",
        "floating_above_the_plate": mend + f"whole.apply_translation((0, 0, 0.3))\n{_EXPORT}",
        "part_laid_over_itself": mend + f"whole = trimesh.util.concatenate([whole, whole.copy()])\n{_EXPORT}",
        "lettering_shaved_off": mend + _shaved(bodies, at, letters) + _EXPORT,
    }
    if level >= 3:
        wrong["bores_capped"] = f"whole = {_mend(pose, at, bridge_bores=False)}\n{_EXPORT}"
        wrong["shells_left_overlapping"] = f"whole = {_mend(pose, at, unite=False)}\n{_EXPORT}"
        wrong["wrong_unit"] = mend + f"whole.apply_scale(1 / {pose.unit_mm!r})\n{_EXPORT}"
    sessions = {name: [_python(_tools()), _python(code), ToolCall(tool="submit")] for name, code in wrong.items()}
    copied = [_shell(f"cp {BROKEN_PATH} {PRINT_PATH}"), ToolCall(tool="submit")]
    return {**sessions, "file_as_it_came": copied}


_REMESH = """\
import pymeshlab
meshes = pymeshlab.MeshSet()
meshes.add_mesh(pymeshlab.Mesh(whole.vertices, whole.faces))
meshes.generate_resampled_uniform_mesh(cellsize=pymeshlab.PureValue(1.2), mergeclosevert=True)
made = meshes.current_mesh()
whole = trimesh.Trimesh(made.vertex_matrix(), made.face_matrix(), process=True)
whole = whole if whole.volume > 0 else trimesh.Trimesh(whole.vertices, whole.faces[:, ::-1])
"""


def _shaved(bodies: Sequence[Region], at: tuple[float, float], top: float) -> str:
    """Cut everything away above the plate where the lettering is."""
    letters = [point for region, _ in walk(bodies) if region.kind == "letter" for point in region.ring]
    xs, ys = zip(*letters, strict=True)
    base = next(above.solid[-1][1] for region, above in walk(bodies) if above and region.kind == "letter")
    size = (max(xs) - min(xs) + 1.0, max(ys) - min(ys) + 1.0, top - base + 1.0)
    centre = ((min(xs) + max(xs)) / 2 + at[0], (min(ys) + max(ys)) / 2 + at[1], base + size[2] / 2)
    return (
        f"knife = trimesh.creation.box({size!r})\nknife.apply_translation({centre!r})\n"
        'whole = trimesh.boolean.difference([whole, knife], engine="manifold")\n'
    )


def _tools() -> str:
    source = files(__package__ or "").joinpath("assets", "mend.py").read_text(encoding="utf-8")
    return source.partition('"""\n\n')[2]


def _mend(pose: Pose, at: tuple[float, float], **switches: bool) -> str:
    more = "".join(f", {name}={value}" for name, value in switches.items())
    return f'mend("{BROKEN_PATH}", {pose.unit_mm!r}, {pose.axes!r}, {pose.signs!r}, {at!r}{more})'


def _python(code: str) -> ToolCall:
    return ToolCall(tool="python", arguments={"code": code, "timeout_s": 300})


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _view(path: str) -> ToolCall:
    return ToolCall(tool="view", arguments={"path": path})
