"""The seam to the front end: `metier view`'s page over the published results folders, where it is installed.

It begins with the board, which it asks for at `data/leaderboard.json`, and leads from a row to its episodes.
"""

from __future__ import annotations

import importlib
import importlib.util
import threading
from pathlib import Path
from typing import Any

from .faults import Reason, Refusal
from .folders import Folders

_VIEW = f"{__name__.rpartition('.')[0].rpartition('.')[0]}.view"


class Page:
    """The front end over one server's submissions; safe for many threads."""

    BOARD = "data/leaderboard.json"
    """Answered by the server itself, since it changes."""

    def __init__(self, view: Any, folders: Folders) -> None:
        self._view = view
        self._folders = folders
        self._lock = threading.Lock()
        self._known: list[Path] = []
        self._site: Any = None

    @classmethod
    def find(cls, folders: Folders) -> Page | None:
        """None where there is no front end."""
        if importlib.util.find_spec(_VIEW) is None:
            return None
        return cls(importlib.import_module(_VIEW), folders)

    def answer(self, address: str) -> Any:
        """What lies there: `body`, `media` and `status`. Blocks.

        Raises:
            Refusal: nothing was ever submitted.
        """
        return self._current().answer(address)

    def write(self, out: Path, board: Path) -> None:
        """The static site, with the board of that file. Raises ConfigError."""
        library = self._view.Library(sorted(self._folders.all_public()))
        self._view.export(self._view.Site(library, live=False, leaderboard=board, start="leaderboard"), out)

    def _current(self) -> Any:
        with self._lock:
            there = sorted(self._folders.all_public())
            if not there:
                raise Refusal(Reason.NOT_FOUND, "nothing was submitted yet; /api/v1/server says what may be")
            if there != self._known:
                self._site = self._view.Site(self._view.Library(there), live=False, start="leaderboard")
                self._known = there
            return self._site
