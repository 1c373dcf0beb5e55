"""The CAD kernel's real work once: a boolean and a fillet measured, STEP and STL round trips, pictures looked at."""
# pyright: reportMissingImports=false

import math
import os
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


def main() -> None:
    global part
    assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1, "importing started threads"
    block = Box(40, 30, 10)
    rounded = fillet(block.edges().filter_by(Axis.Z), 4)
    part = rounded - Cylinder(5, 20)
    expected = 40 * 30 * 10 - (64 - 16 * math.pi) * 10 - math.pi * 25 * 10
    assert abs(part.volume - expected) < 1e-6, f"the block has {part.volume} mm3, not {expected}"
    export_step(part, WORK / "block.step")
    again = import_step(WORK / "block.step")
    assert abs(again.volume - expected) < 1e-6 and len(again.faces()) == 11, "the STEP round trip changed the part"
    export_stl(part, WORK / "block.stl", tolerance=0.01)
    mesh = trimesh.load_mesh(WORK / "block.stl")
    assert mesh.is_watertight and abs(mesh.volume - expected) < 0.01 * expected, "the STL file is not the part"
    sources = {"live": None, "step": WORK / "block.step", "stl": WORK / "block.stl", "copy": WORK / "live.png"}
    for name, source in sources.items():
        view.render(None if source is None else str(source), str(WORK / f"{name}.png"))
        pixels = np.asarray(Image.open(WORK / f"{name}.png").convert("RGB"))
        assert pixels.shape == (256, 256, 3) and pixels.std() > 15, f"{name}.png shows nothing"
    assert os.environ.get("METIER_PRELOAD") == "build123d", "the Python session would not hold build123d"


main()
