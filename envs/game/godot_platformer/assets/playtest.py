#!/usr/bin/env python3
"""Play a scenario with player.gd and print where the player is, tick by tick: playtest.py SCENARIO.json [PICTURE.png]

Scenario files hold a list; playtest.gd says what is in one. x and y are the body's centre after the tick (y grows
downwards), vx and vy the movement of that tick in px/s. With a picture, the last scenario of the file is played in a
window on a virtual screen: the body at every sixth tick, a dot for every tick, a red one for every tenth.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    scenarios = json.loads(Path(sys.argv[1]).read_text())
    picture = Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else None
    folder = Path(tempfile.mkdtemp())
    (folder / "in.json").write_text(json.dumps(scenarios[-1:] if picture else scenarios))
    names = {"PLAYTEST_IN": folder / "in.json", "PLAYTEST_OUT": folder / "out.json", "HOME": folder}
    here = {**os.environ, "LANG": "en_US.UTF-8", **{name: str(path) for name, path in names.items()}}
    if picture:
        scenarios = scenarios[-1:]
        said = on_screen({**here, "PLAYTEST_PNG": str(picture)}, folder)
    else:
        command = ["godot3-server", "--path", str(HERE), "--fixed-fps", "60"]
        said = subprocess.run(command, env=here, capture_output=True, text=True, timeout=100).stderr
    for line in said.splitlines():
        if "SCRIPT ERROR" in line or ".gd:" in line:
            print(line.strip())
    if not (folder / "out.json").exists():
        sys.exit("the engine left no record")
    for scenario, record in zip(scenarios, json.loads((folder / "out.json").read_text()), strict=True):
        show(scenario, record)


def on_screen(here, folder):
    with open(folder / "screen", "w+") as number:
        screen = subprocess.Popen(
            ["Xvfb", "-displayfd", str(number.fileno()), "-screen", "0", "512x512x24", "-nolisten", "tcp"],
            pass_fds=[number.fileno()],
            stderr=subprocess.DEVNULL,
        )
        try:
            while not (folder / "screen").read_text().strip():
                if screen.poll() is not None:
                    sys.exit("no virtual screen")
                time.sleep(0.02)
            here["DISPLAY"] = ":" + (folder / "screen").read_text().strip()
            command = ["godot3-runner", "--path", str(HERE), "--fixed-fps", "60", "--audio-driver", "Dummy"]
            return subprocess.run(command, env=here, capture_output=True, text=True, timeout=100).stderr
        finally:
            screen.terminate()
            screen.wait()


def show(scenario, record):
    print(scenario.get("name", "scenario"), "marks", record["marks"])
    events = {}
    for mark, offset, action, pressed in scenario.get("events", []):
        if mark in record["marks"]:
            events.setdefault(record["marks"][mark] + offset, []).append(("+" if pressed else "-") + action)
    print("tick       x       y      vx      vy")
    last = scenario["start"]
    for tick, (x, y) in enumerate(record["track"]):
        said = " ".join(events.get(tick, []))
        print(f"{tick:4} {x:7.1f} {y:7.1f} {60 * (x - last[0]):7.1f} {60 * (y - last[1]):7.1f} {said}".rstrip())
        last = (x, y)


main()
