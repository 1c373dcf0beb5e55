"""Baseline bots: what an agent can do without doing the work earns nothing, in time, and breaks nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence

from metier.envs.core import ToolCall

from ...episode import Episode
from ..bench import Bench, Cell, Judged, found
from ..certificate import Finding
from .bots import Bot, bots


async def baselines(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Every bot scores 0, does not pass, and ends in time."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        return [await _one(bench, cell, bot) for bot in bots(prepared, cell.seed)]

    return await bench.each(cells, "baselines", check)


async def _one(bench: Bench, cell: Cell, bot: Bot) -> Finding:
    """Equal artefacts are graded once: most bots leave nothing at all."""
    began = time.monotonic()

    def calls(episode: Episode) -> Sequence[ToolCall]:
        return bot.calls(episode.specs)

    prepared = await bench.prepared(cell)
    paths = [artefact.path for artefact in prepared.instance.artefacts if not artefact.tree]
    files = {path: bot.text.encode("utf-8", "replace") for path in paths} if bot.text else {}
    left = await bench.leave(cell, calls, files)
    judged = Judged(verdict=left.ended) if left.collected is None else await bench.judge(cell, left.collected)
    seconds = time.monotonic() - began
    limits = prepared.entry.limits
    in_time = seconds < limits.agent_s + limits.verify_s
    return found(cell, f"bot {bot.name}", judged.floored and in_time, f"{seconds:.1f} s; {judged.words}")
