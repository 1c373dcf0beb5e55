# pyright: basic, reportUndefinedVariable=false, reportMissingImports=false
"""The process of one peer, uid 1000's: the end of a program that begins with `peer.py`; sent as text, never imported.

It reads nothing before the simulation is loaded, and then one command a line. What it was told at its start is in its
arguments: where the package is and what things are called.
"""

import importlib
import json
import os
import sys

_told = json.loads(sys.argv[1])
sys.path.insert(0, _told["top"])
_real, sys.stdout = sys.stdout, open(os.devnull, "w")  # noqa: SIM115  # for as long as the process lives


class _Surface:
    """Draws with the simulation's own `draw`."""

    def __init__(self, draw):
        import pygame

        self._draw, self._surface = draw, pygame.Surface((200, 150))

    def draw(self, world, ahead):
        self._draw(world, self._surface, ahead)

    def look(self, x, y):
        """Below the middle of the unit's disc, between all else that is drawn on it and its edge."""
        width, height = _told["size"]
        colour = self._surface.get_at((int(x * 200 / width), int(y * 150 / height) + 6))
        return " ".join(map(str, colour[:3]))


def _answers():
    try:
        world = importlib.import_module(_told["package"] + ".world")
        screen = importlib.import_module(_told["package"] + ".screen")
        return Peer(world.World, _told["names"], _Surface(screen.draw)).answer  # noqa: F821
    except BaseException as error:
        raised = {"raises": type(error).__name__ + ": " + str(error)[:200]}
        return lambda command: raised


_answer = _answers()
for _line in sys.stdin:
    _real.write(json.dumps(_answer(json.loads(_line))) + "\n")
    _real.flush()
os._exit(0)
