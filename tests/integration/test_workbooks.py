"""Workbooks are graded by what they compute: cached results are neither needed nor believed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metier.envs.core import Outcome, SandboxBackend, ToolCall
from metier.harness.episode import Episode, Step
from metier.harness.prepare import Preparer, Task
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from waiting import soon

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]

TASK = Task(env_id="finance/ThreeStatement-v0", seed=5, level=1)
SUBMIT = ToolCall(tool="submit")
COUNT = """\
import openpyxl
formulas = openpyxl.load_workbook("model.xlsx")
values = openpyxl.load_workbook("model.xlsx", data_only=True)
cells = [
    (sheet.title, cell.coordinate) for sheet in formulas for row in sheet for cell in row
    if isinstance(cell.value, str) and cell.value.startswith("=")
]
print(len(cells), sum(values[sheet][cell].value is not None for sheet, cell in cells))
"""
"""How many cells hold a formula, and how many of those a result beside it."""
FORGE = """\
import re, zipfile
with zipfile.ZipFile("model.xlsx") as old:
    parts = {name: old.read(name) for name in old.namelist()}
with zipfile.ZipFile("model.xlsx", "w", zipfile.ZIP_DEFLATED) as new:
    for name, data in parts.items():
        if name.startswith("xl/worksheets/sheet"):
            data = re.sub(rb"(<f[^>]*>)([^<]*)(</f>)", rb"\\g<1>0*(\\2)\\3", data)
        new.writestr(name, data)
"""
"""Every formula becomes a wrong one, and the right result of the right one stays beside it."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[SandboxBackend]:
    async with open_backend("docker") as opened:
        yield opened


def shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 120})


def python(source: str) -> ToolCall:
    return shell(f"python3 - <<'END'\n{source}END")


async def built(backend: SandboxBackend) -> Episode:
    """An episode in which the workbook of the oracle lies, not yet handed in."""
    episode = await Episode.start(TASK, backend, Preparer(backend), deadline=soon(600))
    *building, _look, _submit = episode.prepared.family.oracle(episode.prepared.instance)
    for call in building:
        assert (await episode.step(call)).result.ok
    return episode


async def counted(episode: Episode) -> tuple[int, int]:
    formulas, results = (await episode.step(python(COUNT))).result.text.split()
    return int(formulas), int(results)


def earned(step: Step) -> float:
    assert step.outcome is Outcome.COMPLETED and step.verdict is not None
    return step.verdict.reward


async def test_formulas_without_a_cached_result_earn_what_they_compute(backend: SandboxBackend) -> None:
    async with await built(backend) as episode:
        formulas, results = await counted(episode)
        assert formulas > 20 and results == 0
        assert earned(await episode.step(SUBMIT)) == 1.0


async def test_right_results_beside_wrong_formulas_earn_nothing_for_it(backend: SandboxBackend) -> None:
    async with await built(backend) as episode:
        assert "at rest" in (await episode.step(shell("recalculate model.xlsx"))).result.text
        assert (await episode.step(python(FORGE))).result.ok
        formulas, results = await counted(episode)
        assert results == formulas > 20
        step = await episode.step(SUBMIT)
        assert earned(step) < 0.5 and step.verdict is not None and not step.verdict.passed
