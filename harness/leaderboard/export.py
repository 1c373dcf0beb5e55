"""The board as files: what a server gives at the same addresses, and the page."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from metier.envs.core import ConfigError

from ..view.export import check_new
from . import page
from .boards import Boards
from .contract import Board, written
from .folders import Folders
from .ranking import board
from .store import Store

LEADERBOARD = "leaderboard.json"
SUBMISSIONS = "submissions"


def export(
    store: Store,
    folders: Folders,
    boards: Boards,
    out: Path,
    told: Callable[[int, int], None] = lambda _done, _of: None,
) -> Board:
    """Write `leaderboard.json`, `submissions/<id>/…` and the page into a new folder, whole or not at all.

    Args:
        told: called with how many submissions are written, and of how many.

    Raises:
        ConfigError: something is there already, or it cannot be written.
    """
    check_new(out)
    made = board(store, boards)
    rows = [row for group in made.groups for row in group.rows]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as temporary:
            site = Path(temporary) / "site"
            listed = Path(temporary) / LEADERBOARD
            listed.write_bytes(made.written())
            page.write(folders, site, listed)
            (site / SUBMISSIONS).mkdir(parents=True)
            shutil.copy(listed, site / LEADERBOARD)
            for number, row in enumerate(rows, 1):
                target = site / SUBMISSIONS / row.id
                shutil.copytree(folders.public(row.id), target)
                (target / "submission.json").write_bytes(written(row))
                told(number, len(rows))
            for path in (site, *site.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            if out.is_dir():
                out.rmdir()
            site.rename(out)
    except OSError as error:
        raise ConfigError(f"{out} could not be written: {error.strerror or error}") from error
    return made
