"""Verifier determinism: a verdict is a function of the artefacts, not of the hour, the place or the load."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import threading
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from metier.envs.core import Sandbox, Verdict, VerifierError

from .. import clock
from ..bench import Bench, Cell, found
from ..busy import busy_machine
from ..certificate import Finding
from ..lenses import BackendLens, Displaced, Elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Where, when and how a verdict is measured again; all of it applies to our verifying code and to its probes."""

    name: str
    zone: str
    moment: datetime.datetime | None = None
    one_core: bool = False
    busy: bool = False
    times: int = 1
    """How often at once."""
    oracle_only: bool = False


CONDITIONS = (
    Condition(name="in UTC", zone="UTC", times=2),
    Condition(
        name="on one core in 2038, in Kathmandu",
        zone="Asia/Kathmandu",
        moment=datetime.datetime(2038, 1, 19, 3, 14, 6, tzinfo=datetime.UTC),
        one_core=True,
        oracle_only=True,
    ),
    Condition(
        name="on 29 February, at Kiritimati",
        zone="Pacific/Kiritimati",
        moment=datetime.datetime(2028, 2, 29, 5, 0, tzinfo=datetime.UTC),
    ),
    Condition(
        name="at the year's end, in Pago Pago",
        zone="Pacific/Pago_Pago",
        moment=datetime.datetime(2028, 1, 1, 10, 59, 58, tzinfo=datetime.UTC),
        oracle_only=True,
    ),
    Condition(
        name="on a busy machine, the night the clocks change, in Newfoundland",
        zone="America/St_Johns",
        moment=datetime.datetime(2028, 3, 12, 5, 29, 58, tzinfo=datetime.UTC),
        busy=True,
        times=2,
    ),
)


_TURN = threading.Lock()
"""Zone and clock belong to the whole process: one certification at a time may move them."""
_TURN_S = 0.05


async def verifier_repeats(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """The oracle's artefacts and one mutant's: graded alone, then again under each condition."""
    first: dict[tuple[Cell, str], Verdict] = {}

    async def reference(cell: Cell) -> list[Finding]:
        findings: list[Finding] = []
        for name in filter(None, ("oracle", await bench.wrong_solution(cell))):
            judged, _ = await bench.heard(cell, name)
            if judged.verdict is None:
                findings.append(found(cell, f"{name} graded", False, judged.words))
            else:
                first[cell, name] = judged.verdict
        return findings

    findings = await bench.each(cells, "verifier repeats, first", reference)
    for condition in CONDITIONS:

        async def again(cell: Cell, condition: Condition = condition) -> list[Finding]:
            names = ["oracle"] if condition.oracle_only else [name for one, name in first if one == cell]
            graded = [name for name in names if (cell, name) in first]
            return [await _again(bench, cell, name, first[cell, name], condition) for name in graded]

        async with _under(bench, condition):
            findings += await bench.each(cells, f"verifier repeats, {condition.name}", again)
    return findings


@contextlib.asynccontextmanager
async def _under(bench: Bench, condition: Condition) -> AsyncIterator[None]:
    """Our own process there; the clock moves only in `clock.at`."""
    while not _TURN.acquire(blocking=False):
        await asyncio.sleep(_TURN_S)
    try:
        async with _moved(bench, condition):
            yield
    finally:
        _TURN.release()


@contextlib.asynccontextmanager
async def _moved(bench: Bench, condition: Condition) -> AsyncIterator[None]:
    zone = os.environ.get("TZ")
    package = bench.entry.entry_point.partition(":")[0].rpartition(".")[0]
    replaced = clock.install((package, "metier.envs"))
    async with busy_machine() if condition.busy else contextlib.nullcontext():
        os.environ["TZ"] = condition.zone
        time.tzset()
        try:
            yield
        finally:
            if zone is None:
                del os.environ["TZ"]
            else:
                os.environ["TZ"] = zone
            time.tzset()
            clock.remove(replaced)


async def _again(bench: Bench, cell: Cell, name: str, first: Verdict, condition: Condition) -> Finding:
    what = f"{name} graded {condition.name}"
    moment = condition.moment.timestamp() if condition.moment else None
    core = min(os.sched_getaffinity(0)) if condition.one_core else None
    where = Elsewhere(zone=condition.zone, moment=moment, core=core)

    def lens(inner: Sandbox) -> Sandbox:
        return Displaced(inner, where)

    backend = BackendLens(bench.backend, lens)
    try:
        collected = await bench.solution(cell, name)
        with clock.at(moment):
            verdicts = await asyncio.gather(*(bench.grade(cell, collected, backend) for _ in range(condition.times)))
    except VerifierError as error:
        return found(cell, what, False, f"VerifierError: {error}")
    differing = [verdict for verdict in verdicts if _scores(verdict) != _scores(first)]
    if differing:
        return found(cell, what, False, f"{_scores(first)}, then {_scores(differing[0])}")
    return found(cell, what, True, f"reward {first.reward:g} {condition.times} times more")


def _scores(verdict: Verdict) -> tuple[bool, tuple[tuple[str, float], ...]]:
    return verdict.passed, tuple((check.name, check.score) for check in verdict.checks)
