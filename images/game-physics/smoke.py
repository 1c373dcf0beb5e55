"""Each engine's real work once: falls are computed and repeat, a mesh is split, pictures and frames are looked at."""
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


def pymunk_rest() -> float:
    """How high a ball of radius 5 lies on a floor, by pymunk."""
    import pymunk

    space = pymunk.Space()
    space.gravity = (0, -900)
    floor = pymunk.Segment(space.static_body, (-100, 0), (100, 0), 1)
    ball = pymunk.Body(1.0, pymunk.moment_for_circle(1.0, 0, 5))
    ball.position = (0, 60)
    space.add(floor, ball, pymunk.Circle(ball, 5))
    for _ in range(300):
        space.step(1 / 60)
    return float(ball.position.y)


def mujoco_fall(seconds: float) -> float:
    """How far a free body falls in MuJoCo."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option timestep='0.001'/><worldbody><body pos='0 0 10'><freejoint/><geom size='0.1'/></body>"
        "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    for _ in range(round(seconds / 0.001)):
        mujoco.mj_step(model, data)
    return 10.0 - float(data.qpos[2])


def pygame_frame() -> None:
    """A frame with a disc and a word, drawn without a screen, saved, and seen as the live picture."""
    import pygame

    pygame.init()
    screen = pygame.display.set_mode((320, 240))
    screen.fill((20, 30, 40))
    pygame.draw.circle(screen, (230, 80, 60), (160, 120), 50)
    screen.blit(pygame.font.Font(None, 32).render("frame", True, (255, 255, 255)), (10, 10))
    pygame.display.flip()
    pygame.image.save(screen, str(WORK / "frame.png"))
    with Image.open(WORK / "frame.png") as picture:
        assert picture.size == (320, 240) and picture.convert("RGB").getpixel((160, 120)) == (230, 80, 60)
        assert np.asarray(picture.convert("L"))[5:35, 5:100].max() > 200, "no word was drawn"
    view._render_display(str(WORK / "display.png"))
    assert np.asarray(Image.open(WORK / "display.png").convert("RGB"))[128, 128].tolist() == [230, 80, 60]


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
    assert pymunk_rest() == pymunk_rest() and 5 < pymunk_rest() < 6.2, f"pymunk's ball lies at {pymunk_rest()}"
    assert abs(mujoco_fall(1.0) - 4.905) < 0.05, f"MuJoCo's body fell {mujoco_fall(1.0)} m in a second"
    pygame_frame()
    assert os.environ.get("METIER_PRELOAD") == "pybullet,numpy", "the Python session would not hold pybullet"


main()
