# pyright: basic, reportMissingImports=false
"""Runs as the set-up, never imported here: the scene the agent starts from, and the goal pictures."""

import json
import sys
from pathlib import Path

sys.path.insert(0, "/workspace/.setup")
import bpy
import studio
from PIL import Image

case = json.loads(Path("/workspace/.setup/case.json").read_text())
studio.empty()
item = studio.studio(case["studio"])
start = studio.build("Finish", case["start"])
item.data.materials.append(start)
studio.settings(192, 16)
bpy.context.scene.camera = bpy.data.objects["CamA"]
bpy.ops.wm.save_as_mainfile(filepath="/workspace/scene.blend")
item.data.materials[0] = studio.build("Goal", case["goal"])
for letter in "ab":
    studio.take("Cam" + letter.upper(), "/workspace/.setup/goal.png")
    Image.open("/workspace/.setup/goal.png").convert("RGB").save(f"/workspace/goal_{letter}.png")  # pixels only
