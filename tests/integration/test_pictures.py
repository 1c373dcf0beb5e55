"""A picture crosses from a sandbox to observation, `info` and `render()` without a bit of it changed."""

from __future__ import annotations

import io
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from metier.envs.registry import get, registry_path, sources
from metier.harness.gym.loop import call
from metier.harness.gym.member import PICTURE

pytestmark = pytest.mark.docker

VIEWERS_PX = {
    "game/BulletColliderFit-v0": 256,
    "cad/BracketFromSpec-v0": 256,
    "blender/MeshAssemblySpec-v0": 256,
    "game/GodotPlatformer-v0": 512,
}
"""One environment for each image whose trade is visual, and how large its viewer draws."""
PAINTING = """\
import struct, zlib
def chunk(kind, data):
    return struct.pack("!I", len(data)) + kind + data + struct.pack("!I", zlib.crc32(kind + data))
size = {size}
rows = b"".join(
    b"\\0" + bytes(v for x in range(size) for v in (x % 256, y % 256, x * y * 31 % 251)) for y in range(size)
)
head = struct.pack("!IIBBBBB", size, size, 8, 2, 0, 0, 0)
parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
open("painted.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" + parts)
"""


def painted(size: int) -> NDArray[np.uint8]:
    """What the program above paints."""
    y, x = np.mgrid[0:size, 0:size]
    return np.stack([x % 256, y % 256, x * y * 31 % 251], axis=-1).astype(np.uint8)


def test_every_image_of_a_visual_trade_is_tried() -> None:
    visual = {one.image for one in map(get, sources()[registry_path()]) if one.observation == "text+image"}
    assert visual == {get(env_id).image for env_id in VIEWERS_PX}


@pytest.mark.parametrize("env_id", VIEWERS_PX)
def test_a_picture_arrives_bit_by_bit(env_id: str) -> None:
    size = VIEWERS_PX[env_id]
    env: Any = gymnasium.make(env_id, backend="docker", render_mode="rgb_array").unwrapped
    try:
        observation, _ = env.reset(seed=1)
        assert observation["image"].shape == PICTURE and not observation["image"].any()
        program = PAINTING.replace("{size}", str(size))
        assert env.step({"tool": "shell", "arguments": {"command": f"python3 - <<'END'\n{program}END"}})[-1]["ok"]
        observation, *_, info = env.step({"tool": "view", "arguments": {"path": "painted.png"}})
        (png,) = info["images"]
        picture = Image.open(io.BytesIO(png))
        assert np.array_equal(np.asarray(picture), painted(size))
        assert png == call(env.episode.sandbox.read("/tmp/view-1.png", max_bytes=4 << 20))
        # where the viewer draws larger than an observation is, it is made smaller, once
        seen = painted(size) if size == PICTURE[0] else np.asarray(picture.resize(PICTURE[:2]))
        assert np.array_equal(observation["image"], seen)
        assert np.array_equal(env.render(), seen)
        observation, *_, info = env.step({"tool": "shell", "arguments": {"command": "true"}})
        assert np.array_equal(observation["image"], seen), "the last picture stays"
        assert info["images"] == ()
    finally:
        env.close()
