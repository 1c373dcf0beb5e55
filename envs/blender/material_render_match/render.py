# pyright: basic, reportMissingImports=false
"""Render the two goal views of the open scene, exactly as the goal pictures were made.

In the Python session: `import render; render.pictures("look")` writes look_a.png and look_b.png. In the shell:
`python3 render.py match.blend look`.
"""

import sys

import bpy


def pictures(prefix):
    scene = bpy.context.scene
    for letter in "ab":
        scene.camera = bpy.data.objects["Cam" + letter.upper()]
        scene.render.filepath = f"/workspace/{prefix}_{letter}.png"
        bpy.ops.render.render(write_still=True)


if __name__ == "__main__":
    bpy.ops.wm.open_mainfile(filepath=sys.argv[1], use_scripts=False)
    pictures(sys.argv[2])
