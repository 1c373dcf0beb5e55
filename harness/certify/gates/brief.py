"""Brief lint: the brief is whole, says where and how the work is to be left, and tells no secret."""

from __future__ import annotations

import re
from collections.abc import Sequence

from metier.envs.core import Artefact, VerifierError

from ...prepare import Prepared
from ..bench import Bench, Cell, ends, found
from ..certificate import Finding
from .conventions import rewritings, stated
from .leakage import naming

_UNFINISHED = re.compile(r"\{\{|\}\}|\{%|%\}|\bTODO\b|\bFIXME\b|\bNone\b|\bundefined\b|<[a-z_]+ object at 0x")
_LONGEST = 20_000


async def brief(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """What can be read off the brief without understanding it, and whether it names what the verifier insists on."""
    tried = set(ends(cells))

    async def check(cell: Cell) -> list[Finding]:
        prepared = await bench.prepared(cell)
        findings = [found(cell, what, not wrong, wrong) for what, wrong in _lint(prepared).items()]
        return findings + (await _conventions(bench, cell) if cell in tried else [])

    return await bench.each(cells, "brief", check)


async def _conventions(bench: Bench, cell: Cell) -> list[Finding]:
    """Write the right answer another way, and look in the brief for what the verifier did not forgive."""
    text = (await bench.prepared(cell)).brief
    try:
        right = await bench.solution(cell, "oracle")
        first = await bench.judge(cell, right)
    except VerifierError:
        return []  # the oracle's own gate says so
    if first.verdict is None or not first.verdict.passed:
        return []
    needs = stated(right)
    for need, written in rewritings(right).items():
        judged = await bench.judge(cell, written)
        if judged.verdict is None or not judged.verdict.passed:
            needs.append(need)
    return [
        found(
            cell,
            f"states {need.convention}",
            not need.missing(text),
            f"{need.why}, and the brief has no word about {need.convention}" if need.missing(text) else need.why,
        )
        for need in needs
    ]


def _lint(prepared: Prepared) -> dict[str, str]:
    """Rule → what is wrong, empty where nothing is."""
    text = prepared.brief
    unfinished = _UNFINISHED.search(text)
    unnamed = [artefact.path for artefact in prepared.instance.artefacts if not _named(artefact, text)]
    told = [naming(prepared, secret) for secret in prepared.instance.secrets if secret in text]
    tail = f"{len(text)} characters"
    return {
        "finished": f"contains {unfinished.group()!r}" if unfinished else "",
        "length": "" if 40 <= len(text) <= _LONGEST else tail,
        "names what is graded": f"does not name {', '.join(unnamed)}" if unnamed else "",
        "tells no secret": f"contains {', '.join(told)}" if told else "",
    }


def _named(artefact: Artefact, text: str) -> bool:
    if artefact.path == "answer":
        return re.search(r"\b(submit|answer)", text, re.IGNORECASE) is not None
    return artefact.path in text or artefact.path.rpartition("/")[2].removesuffix(".py") in text
