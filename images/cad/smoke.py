"""Every tool of the CAD trade does its real work once, and what comes out is measured; pictures are looked at."""
# pyright: reportMissingImports=false

import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import trimesh
from build123d import Axis, Box, Cylinder, export_step, export_stl, fillet, import_step
from PIL import Image

sys.path.insert(0, "/opt/metier")
import view

WORK = Path("/workspace")
BLOCK = 40 * 30 * 10 - (64 - 16 * math.pi) * 10 - math.pi * 25 * 10


def main() -> None:
    assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1, "importing started threads"
    assert os.environ.get("METIER_PRELOAD") == "build123d", "the Python session would not hold build123d"
    solid_modelling()
    drawing()
    booleans()
    scad()
    repair_by_admesh()
    repair_by_meshlab()
    queries()
    pictures()


def solid_modelling() -> None:
    global part
    block = Box(40, 30, 10)
    part = fillet(block.edges().filter_by(Axis.Z), 4) - Cylinder(5, 20)
    assert abs(part.volume - BLOCK) < 1e-6, f"the block has {part.volume} mm3, not {BLOCK}"
    export_step(part, WORK / "block.step")
    again = import_step(WORK / "block.step")
    assert abs(again.volume - BLOCK) < 1e-6 and len(again.faces()) == 11, "the STEP round trip changed the part"
    export_stl(part, WORK / "block.stl", tolerance=0.01)
    mesh = trimesh.load_mesh(WORK / "block.stl")
    assert mesh.is_watertight and abs(mesh.volume - BLOCK) < 0.01 * BLOCK, "the STL file is not the part"


def drawing() -> None:
    import ezdxf
    from ezdxf import units

    document = ezdxf.new("R2010", setup=True, units=units.MM)
    document.layers.add("HIDDEN", linetype="DASHED", lineweight=25)
    document.layers.add("VISIBLE", lineweight=50)
    space = document.modelspace()
    space.add_lwpolyline([(0, 0), (40, 0), (40, 30), (0, 30)], close=True, dxfattribs={"layer": "VISIBLE"})
    space.add_circle((20, 15), 5, dxfattribs={"layer": "VISIBLE"})
    space.add_line((0, 10), (40, 10), dxfattribs={"layer": "HIDDEN"})
    space.add_linear_dim(base=(20, -10), p1=(0, 0), p2=(40, 0), dimstyle="EZDXF").render()
    document.saveas(WORK / "plate.dxf")
    again = ezdxf.readfile(WORK / "plate.dxf")
    kinds = sorted(entity.dxftype() for entity in again.modelspace())
    assert kinds == ["CIRCLE", "DIMENSION", "LINE", "LWPOLYLINE"], f"the DXF round trip gave {kinds}"
    (dimension,) = again.modelspace().query("DIMENSION")
    assert abs(dimension.get_measurement() - 40.0) < 1e-9 and not again.audit().errors
    assert again.layers.get("HIDDEN").dxf.linetype == "DASHED" and again.units == units.MM


def booleans() -> None:
    from manifold3d import Manifold

    plate, pin = Manifold.cube((20, 20, 4)), Manifold.cylinder(8, 3, 3, 64).translate((10, 10, -2))
    bored, area = plate - pin, 32 * 9 * math.sin(2 * math.pi / 64)
    assert abs(bored.volume() - (1600 - 4 * area)) < 1e-3 and bored.genus() == 1, "manifold's difference is wrong"
    both = trimesh.boolean.union([trimesh.creation.box((2, 2, 2)), trimesh.creation.box((1, 1, 4))], engine="manifold")
    assert both.is_watertight and abs(both.volume - 10) < 1e-6, "trimesh does not reach manifold"


def scad() -> None:
    source = WORK / "cup.scad"
    source.write_text("difference() { cube([20, 20, 10]); translate([2, 2, 2]) cube([16, 16, 10]); }\n")
    ran = subprocess.run(
        ["openscad", "--hardwarnings", "-o", "cup.stl", source.name], cwd=WORK, capture_output=True, text=True
    )
    assert ran.returncode == 0, f"OpenSCAD: {ran.stderr}"
    mesh = trimesh.load_mesh(WORK / "cup.stl")
    assert mesh.is_watertight and abs(mesh.volume - (4000 - 16 * 16 * 8)) < 1e-3, "OpenSCAD's STL is not the cup"


def repair_by_admesh() -> None:
    box = trimesh.creation.box((10, 10, 10))
    box.faces[3] = box.faces[3][::-1]
    trimesh.Trimesh(box.vertices, box.faces[1:], process=False).export(WORK / "broken.stl")
    assert not trimesh.load_mesh(WORK / "broken.stl").is_watertight
    ran = subprocess.run(
        ["admesh", "--write-binary-stl=mended.stl", "broken.stl"], cwd=WORK, capture_output=True, text=True
    )
    assert ran.returncode == 0, f"admesh: {ran.stderr}"
    mesh = trimesh.load_mesh(WORK / "mended.stl")
    assert mesh.is_watertight and abs(mesh.volume - 1000) < 1e-3, "admesh did not mend the box"


def repair_by_meshlab() -> None:
    import pymeshlab

    meshes = pymeshlab.MeshSet()
    meshes.load_new_mesh(str(WORK / "broken.stl"))
    meshes.meshing_remove_duplicate_vertices()
    meshes.meshing_re_orient_faces_coherently()
    meshes.meshing_close_holes(maxholesize=30)
    meshes.save_current_mesh(str(WORK / "closed.stl"))
    mesh = trimesh.load_mesh(WORK / "closed.stl")
    assert mesh.is_watertight and abs(abs(mesh.volume) - 1000) < 1e-3, "MeshLab did not close the box"


def queries() -> None:
    ball = trimesh.creation.icosphere(subdivisions=3)
    assert list(ball.contains([[0, 0, 0], [2, 0, 0]])) == [True, False], "rtree does not serve trimesh's rays"
    _, distance, _ = trimesh.proximity.closest_point(ball, [[3, 0, 0]])
    assert abs(distance[0] - 2) < 0.02, "trimesh's distances are wrong"
    split = trimesh.util.concatenate([ball, ball.copy().apply_translation([5, 0, 0])]).split()
    assert len(split) == 2, "networkx or scipy does not serve trimesh's split"


def pictures() -> None:
    names = {"step": "block.step", "stl": "block.stl@below", "dxf": "plate.dxf", "window": "plate.dxf@10,5,30,25"}
    view.render(None, str(WORK / "live.png"))
    for name, source in {**names, "broken": "broken.stl", "copy": "live.png"}.items():
        view.render(str(WORK / source), str(WORK / f"{name}.png"))
    for name in (*names, "live", "copy", "broken"):
        pixels = np.asarray(Image.open(WORK / f"{name}.png").convert("RGB")).astype(int)
        assert pixels.shape == (256, 256, 3) and pixels.std() > 12, f"{name}.png shows nothing"
        red = (pixels[:, :, 0] - pixels[:, :, 1:].max(axis=2) > 120).sum()
        assert (red > 60) == (name == "broken"), f"{name}.png has {red} red pixels: open edges are red, no others"


main()
