"""What a way to build images must do; there are two, Docker's and the one without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from .recipe import Recipe
from .reporter import Reporter

SMOKE_TIMEOUT_S = 300.0
SMOKE_MEMORY_MB = 2048
SMOKE_PATH = "/metier/smoke.py"
SMOKE_TMPFS_MB = {"/workspace": 512, "/tmp": 256}


class Ran(NamedTuple):
    """How a command in an image ended."""

    code: int
    output: str


class Builder(Protocol):
    """Builds single images whose parents are there; `build.py` does the rest.

    What takes long raises Stopped once its build's `Stop` was asked for.
    """

    name: str

    def has(self, recipe: Recipe) -> bool:
        """Whether the image of exactly this recipe is there."""
        ...

    def make(self, recipe: Recipe, reporter: Reporter) -> None:
        """Build it. Raises SandboxUnavailable with the failed step and its last words; leaves nothing half made."""
        ...

    def run(self, recipe: Recipe, command: Sequence[str], *, smoke: Path | None = None) -> Ran:
        """Run a command in it as the agent would: uid 1000, no network, read-only root; `smoke` is at SMOKE_PATH."""
        ...

    def size_mb(self, recipe: Recipe) -> int:
        """MiB on disk."""
        ...

    def discard(self, recipe: Recipe) -> None:
        """Remove it: it failed its smoke test."""
        ...
