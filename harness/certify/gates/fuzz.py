"""Fuzzed artefacts: whatever an agent leaves where its work should be is graded, never a failure, and never passes."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence

from metier.envs.core import Artefact, VerifierError

from ..bench import Bench, Cell, found
from ..certificate import Finding

_EACH_S = 120.0
_FUZZ: Mapping[str, str] = {
    "missing": "rm -rf $P",
    "empty": ": > $P",
    "binary": "head -c 65536 /dev/urandom > $P",
    "not UTF-8": r"printf '\377\376\200 1 \303\050\n' > $P",
    "too large": "head -c $BIG /dev/zero > $P",
    "just small enough": "yes 1 | head -c $FULL > $P",
    "deeply nested": r"head -c 200000 /dev/zero | tr '\0' '[' > $P",
    "endless program": r"printf 'while True:\n    pass\n' > $P",
    "leaving program": r"printf 'import os\nos._exit(0)\n' > $P",
    "NaN": "printf 'NaN' > $P",
    "link out": "rm -rf $P; ln -s /etc/passwd $P",
    "folder": "rm -rf $P; mkdir -p $P/$P",
    "pipe": "rm -rf $P; mkfifo $P",
}
"""Bash, with P the path, BIG more bytes than may be collected, FULL as many as may."""
_WHOLE = ("missing", "link out", "folder", "pipe")
"""What replaces the whole of a tree; the others go into each of its files."""


async def fuzzed_artefacts(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Put each kind of rubbish in the place of every artefact, and grade it."""

    async def check(cell: Cell) -> list[Finding]:
        return [await _one(bench, cell, name) for name in _FUZZ]

    return await bench.each(cells, "fuzzed artefacts", check)


async def _one(bench: Bench, cell: Cell, name: str) -> Finding:
    async with await bench.start(cell) as episode:
        artefacts = episode.prepared.instance.artefacts
        for artefact in artefacts:
            await episode.sandbox.exec(_script(artefact, name), timeout_s=_EACH_S)
        collected = await episode.sandbox.collect(artefacts)
    began = time.monotonic()
    try:
        verdict = await bench.grade(cell, collected)
    except VerifierError as error:
        return found(cell, name, False, f"VerifierError: {error}")
    seconds = time.monotonic() - began
    evidence = f"reward {verdict.reward:g}, {'passed' if verdict.passed else 'not passed'}, {seconds:.1f} s"
    return found(cell, name, not verdict.passed and verdict.reward < 1.0, evidence)


def _script(artefact: Artefact, name: str) -> str:
    limit = artefact.max_mb << 20
    sizes = f"BIG={limit + 1}; FULL={min(limit, 4 << 20) - 4096}"
    path = shlex.quote(artefact.path)
    if artefact.tree and name not in _WHOLE:
        return f"{sizes}; find {path} -type f | while IFS= read -r P; do {_quoted(name)}; done"
    return f'{sizes}; P={path}; mkdir -p "$(dirname "$P")"; {_quoted(name)}'


def _quoted(name: str) -> str:
    return _FUZZ[name].replace("$P", '"$P"').replace('"$P"/"$P"', '"$P/inner"')
