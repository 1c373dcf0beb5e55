"""Brief lint: the brief is whole, says where the work is to be left, and tells no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

from metier.envs.core import Artefact

from ...prepare import Prepared
from ..bench import Bench, Cell, found
from ..certificate import Finding

_UNFINISHED = re.compile(r"\{\{|\}\}|\{%|%\}|\bTODO\b|\bFIXME\b|\bNone\b|\bundefined\b|<[a-z_]+ object at 0x")
_LONGEST = 20_000


async def brief(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """What can be read off the brief without understanding it."""

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        return [found(cell, what, not wrong, wrong) for what, wrong in _lint(prepared).items()]

    return await bench.each(cells, "brief", check)


def _lint(prepared: Prepared) -> dict[str, str]:
    """Rule → what is wrong, empty where nothing is."""
    text = prepared.brief
    unfinished = _UNFINISHED.search(text)
    unnamed = [artefact.path for artefact in prepared.instance.artefacts if not _named(artefact, text)]
    told = [secret for secret in prepared.instance.secrets if secret in text]
    tail = f"{len(text)} characters"
    return {
        "finished": f"contains {unfinished.group()!r}" if unfinished else "",
        "length": "" if 40 <= len(text) <= _LONGEST else tail,
        "names what is graded": f"does not name {', '.join(unnamed)}" if unnamed else "",
        "tells no secret": f"contains {told[0]!r}" if told else "",
    }


def _named(artefact: Artefact, text: str) -> bool:
    if artefact.path == "answer":
        return re.search(r"\b(submit|answer)", text, re.IGNORECASE) is not None
    return artefact.path in text or artefact.path.rpartition("/")[2].removesuffix(".py") in text
