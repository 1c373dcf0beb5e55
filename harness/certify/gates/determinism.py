"""Determinism: an instance is a pure function of its names, on every machine, in every process and thread."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..bench import Bench, Cell, found
from ..certificate import Finding
from ..fingerprint import fingerprints

_OTHER_PROCESS_S = 1800.0
_ELSEWHERE = {"PYTHONHASHSEED": "12345", "TZ": "Pacific/Auckland", "LC_ALL": "C"}
_LEAP_DAY = 1835440000.0
"""29 February 2028."""


async def determinism(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Compare fingerprints: here, in another process with another hash seed, zone and day, and in threads at once."""
    wanted = [(cell.seed, cell.level) for cell in cells]
    others = [(cell.seed + 1, cell.level) for cell in cells]
    here = await asyncio.to_thread(fingerprints, bench.entry, bench.options, [*wanted, *others])
    elsewhere = await _other_process(bench, wanted)
    threaded = await asyncio.to_thread(_in_threads, bench, wanted)
    findings: list[Finding] = []
    for index, cell in enumerate(cells):
        mine = here[index]
        for place, theirs in (("another process", elsewhere[index]), ("threads", threaded[index])):
            wrong = [part for part, value in mine.items() if theirs.get(part) != value]
            findings.append(
                found(cell, f"the same in {place}", not wrong, f"differs: {', '.join(wrong)}" if wrong else "")
            )
        differs = mine["instance"] != here[len(cells) + index]["instance"]
        findings.append(
            found(cell, "another seed differs", differs, "" if differs else "seed + 1 gives the same bytes")
        )
    bench.say(f"determinism: {len(cells)} instances, {sum(not finding.ok for finding in findings)} red")
    return findings


async def _other_process(bench: Bench, wanted: list[tuple[int, int]]) -> list[Mapping[str, str]]:
    question = {
        "entry": bench.entry.model_dump(mode="json"),
        "options": dict(bench.options),
        "wanted": wanted,
        "moment": _LEAP_DAY,
    }
    path = os.pathsep.join(part for part in sys.path if part)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "metier.harness.certify.fingerprint",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **_ELSEWHERE, "PYTHONPATH": path},
    )
    try:
        talk = process.communicate(json.dumps(question).encode())
        stdout, stderr = await asyncio.wait_for(talk, _OTHER_PROCESS_S)
    except BaseException:
        process.kill()
        await process.wait()
        raise
    if process.returncode != 0:
        return [{"process": stderr.decode("utf-8", "replace")[-500:]} for _ in wanted]
    return json.loads(stdout)


def _in_threads(bench: Bench, wanted: list[tuple[int, int]]) -> list[Mapping[str, str]]:
    def one(pair: tuple[int, int]) -> Mapping[str, str]:
        return fingerprints(bench.entry, bench.options, [pair])[0]

    with ThreadPoolExecutor(4) as pool:
        backwards = list(pool.map(one, reversed([*wanted, *wanted])))
    return list(reversed(backwards))[: len(wanted)]
