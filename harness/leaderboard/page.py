"""The seam to the front end: `metier view`'s page over the published results folders, where it is installed.

The page asks for `data/leaderboard.json` and, for a submission's episodes, for what `metier.harness.view.site` lists.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from .folders import Folders


class Page:
    """The front end over one server's submissions."""

    BOARD = "data/leaderboard.json"
    """Answered by the server itself, since it changes."""

    def __init__(self, view: Any, folders: Folders) -> None:
        self._view = view
        self._folders = folders
        self._known: frozenset[str] = frozenset()
        self._site: Any = None

    @classmethod
    def find(cls, folders: Folders) -> Page | None:
        """None where there is no front end."""
        name = f"{__package__.rpartition('.')[0]}.view" if __package__ else ""
        if not name or importlib.util.find_spec(name) is None:
            return None
        return cls(importlib.import_module(name), folders)

    def answer(self, address: str) -> Any:
        """What lies there: `body`, `media` and `status`. Blocks."""
        there = frozenset(path.name for path in self._folders.all_public())
        if self._site is None or there != self._known:
            self._site = self._view.Site(self._view.Library(sorted(self._folders.all_public())), live=False)
            self._known = there
        return self._site.answer(address)

    def write(self, out: Path, board: Path) -> None:
        """The static site, with the board of that file."""
        library = self._view.Library(sorted(self._folders.all_public()))
        self._view.export(self._view.Site(library, live=False, leaderboard=board), out)
