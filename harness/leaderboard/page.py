"""The front end of the board: the viewer's page over the published results folders, beginning with the board.

It asks for the board at `data/leaderboard.json`, and leads from a row to its episodes.
"""

from __future__ import annotations

import threading
from pathlib import Path

from ..view import Library, Site, export
from ..view.site import Answer
from .folders import Folders

BOARD = "data/leaderboard.json"
"""Answered by the server itself, since it changes."""


class Page:
    """The front end over one server's submissions; safe for many threads."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._lock = threading.Lock()
        self._known: list[Path] = []
        self._site = Site(Library([]), live=False, start="leaderboard")

    def answer(self, address: str) -> Answer:
        """What lies there. Blocks."""
        with self._lock:
            there = sorted(self._folders.all_public())
            if there != self._known:
                self._site = Site(Library(there), live=False, start="leaderboard")
                self._known = there
            site = self._site
        return site.answer(address)


def write(folders: Folders, out: Path, board: Path) -> None:
    """The static site, with the board of that file. Raises ConfigError."""
    library = Library(sorted(folders.all_public()))
    export(Site(library, live=False, leaderboard=board, start="leaderboard"), out)
