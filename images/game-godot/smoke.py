"""Godot's real work once: a body falls and rests the same way twice headless, and a frame is really rendered."""
# pyright: reportMissingImports=false

import os
import subprocess
import sys
from pathlib import Path

from PIL import Image

sys.path.insert(0, "/opt/metier")
import view

WORK = Path("/workspace")
PROJECT = """\
config_version=4

[application]

config/name="Smoke"
run/main_scene="res://drop.tscn"

[display]

window/size/width=512
window/size/height=512

[rendering]

quality/driver/driver_name="GLES2"
"""
SCENE = """\
[gd_scene load_steps=4 format=2]

[ext_resource path="res://drop.gd" type="Script" id=1]

[sub_resource type="RectangleShape2D" id=1]
extents = Vector2( 200, 20 )

[sub_resource type="CircleShape2D" id=2]
radius = 30.0

[node name="Drop" type="Node2D"]
script = ExtResource( 1 )

[node name="Floor" type="StaticBody2D" parent="."]
position = Vector2( 256, 420 )

[node name="Shape" type="CollisionShape2D" parent="Floor"]
shape = SubResource( 1 )

[node name="Ball" type="RigidBody2D" parent="."]
position = Vector2( 256, 300 )

[node name="Shape" type="CollisionShape2D" parent="Ball"]
shape = SubResource( 2 )
"""
SCRIPT = """\
extends Node2D

var ticks = 0

func _physics_process(_delta):
	ticks += 1
	update()
	if ticks == 120:
		print("rests at ", $Ball.position.y)
		if OS.has_feature("Server"):
			get_tree().quit(7)

func _draw():
	draw_rect(Rect2(0, 0, 512, 512), Color(0.1, 0.1, 0.2))
	draw_rect(Rect2(56, 400, 400, 40), Color(0.2, 0.8, 0.3))
	draw_circle($Ball.position, 30, Color(0.9, 0.3, 0.2))
"""


def rest() -> str:
    command = ["godot3-server", "--path", str(WORK), "--fixed-fps", "60"]
    ended = subprocess.run(command, env={**os.environ, "HOME": "/tmp"}, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 7, f"exit code {ended.returncode}: {ended.stdout}{ended.stderr}"
    return next(line for line in ended.stdout.splitlines() if line.startswith("rests at"))


def main() -> None:
    for name, text in {"project.godot": PROJECT, "drop.tscn": SCENE, "drop.gd": SCRIPT}.items():
        (WORK / name).write_text(text)
    first, second = rest(), rest()
    assert first == second, f"two runs differ: {first}, {second}"
    assert 368 < float(first.split()[-1]) < 372, first
    view.render(str(WORK / "drop.tscn"), str(WORK / "drop.png"))
    view.render(str(WORK / "drop.png"), str(WORK / "again.png"))
    with Image.open(WORK / "again.png") as picture:
        assert picture.size == (512, 512)
        floor, ball = picture.getpixel((256, 425)), picture.getpixel((256, 318))
        assert floor[1] > 180 > floor[0] and ball[0] > 200 > ball[1], f"floor {floor}, ball {ball}"
    print(first, "and the frame shows it")


main()
