"""Bullet's real work once: a compound falls and rests the same way twice, a mesh is split, pictures are looked at."""
# pyright: reportMissingImports=false

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pybullet as bullet
import trimesh
from PIL import Image

sys.path.insert(0, "/opt/metier")
import view

WORK = Path("/workspace")


def drop() -> tuple[float, ...]:
    """Where a dumb-bell of a box and a sphere comes to rest."""
    bullet.resetSimulation(physicsClientId=0)
    bullet.setGravity(0, 0, -9.81)
    ground = bullet.createCollisionShape(bullet.GEOM_PLANE)
    bullet.createMultiBody(0, ground)
    shape = bullet.createCollisionShapeArray(
        shapeTypes=[bullet.GEOM_BOX, bullet.GEOM_SPHERE],
        halfExtents=[[0.3, 0.1, 0.1], [0, 0, 0]],
        radii=[0, 0.2],
        collisionFramePositions=[[0, 0, 0], [0.4, 0, 0]],
    )
    body = bullet.createMultiBody(1.0, shape, basePosition=[0, 0, 0.5])
    for _ in range(480):
        bullet.stepSimulation()
    position, turn = bullet.getBasePositionAndOrientation(body)
    return (*position, *turn)


def main() -> None:
    assert threading.active_count() == len(os.listdir("/proc/self/task")) == 1, "importing started threads"
    bullet.connect(bullet.DIRECT)
    first, second = drop(), drop()
    assert first == second, "the same drop ended differently"
    assert 0.09 < first[2] < 0.3, f"the body rests at {first[2]} m"
    scene = trimesh.util.concatenate(
        [trimesh.creation.box((1, 1, 1)), trimesh.creation.icosphere().apply_translation((3, 0, 0))]
    )
    assert len(scene.split()) == 2, "the mesh was not split into its two bodies"
    scene.export(WORK / "pair.obj")
    for name, source in {"live": None, "mesh": WORK / "pair.obj", "copy": WORK / "live.png"}.items():
        view.render(None if source is None else str(source), str(WORK / f"{name}.png"))
        pixels = np.asarray(Image.open(WORK / f"{name}.png").convert("RGB"))
        assert pixels.shape == (256, 256, 3) and pixels.std() > 10, f"{name}.png shows nothing"
    assert os.environ.get("METIER_PRELOAD") == "pybullet,numpy", "the Python session would not hold pybullet"


main()
