"""Probe a workbook's formulas: set its named cells to other inputs, recalculate with LibreOffice, read named results.

The workbook is the agent's program, so it is computed as the agent in the verifier sandbox, and only inputs enter;
what is expected stays on the host. A workbook that cannot be probed is a result with a `failure`, never an error; a
LibreOffice that cannot even compute our own two cells is the verifier's fault.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from ..core import Json, Sandbox, VerifierError
from . import spreadsheet_probe
from .probe import run_probe
from .workbook_file import Sheet, xlsx

_SOURCE = inspect.getsource(spreadsheet_probe) + "\n_answer(examine(payload))\n"
_CONTROL = "/tmp/control.xlsx"

Result = float | str | None
"""A number; or the text or error in the cell; or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is written into the workbook before it is recalculated.

    Example:
        >>> Scenario(inputs={"growth": (0.02, 0.03)}).overwrites
        ()
    """

    inputs: Mapping[str, Sequence[float]]
    """Defined name → one value for each of its cells."""
    overwrites: tuple[tuple[str, int, float], ...] = ()
    """(name, cell of its range, value): a result that someone typed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalculated:
    """What the workbook computed: for each scenario, name → values. `failure` says why there is none."""

    runs: tuple[Mapping[str, tuple[Result, ...]], ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names that are missing or of another shape, and how."""
    constants: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of the names read: how many of their cells hold no formula."""
    failure: str = ""


async def recalculate(
    sandbox: Sandbox,
    path: str,
    scenarios: Sequence[Scenario],
    reads: Mapping[str, int],
    *,
    timeout_s: float,
    control_s: float = 40.0,
) -> Recalculated:
    """Each scenario's results of the names in `reads` (name → number of cells). All scenarios set the same names.

    Raises:
        VerifierError: LibreOffice did not end, and does not for a workbook of our own either.
        SandboxLost: the sandbox is gone.
    """
    counts = {**reads, **{name: len(values) for one in scenarios for name, values in one.inputs.items()}}
    result = await _ask(sandbox, path, scenarios, list(reads), counts, timeout_s)
    if result.failure.startswith(("LibreOffice", "did not end")):
        await _require_libreoffice(sandbox, control_s)
    return result


async def _ask(
    sandbox: Sandbox,
    path: str,
    scenarios: Sequence[Scenario],
    reads: Sequence[str],
    counts: Mapping[str, int],
    timeout_s: float,
) -> Recalculated:
    question: dict[str, Any] = {
        "path": path,
        "set": list(dict.fromkeys(name for one in scenarios for name in one.inputs)),
        "read": list(reads),
        "counts": dict(counts),
        "scenarios": [
            {
                "set": {name: list(values) for name, values in one.inputs.items()},
                "overwrite": [list(change) for change in one.overwrites],
            }
            for one in scenarios
        ],
    }
    probe = await run_probe(sandbox, _SOURCE, cast(Json, question), timeout_s=timeout_s, user="agent")
    if probe.failure or not isinstance(probe.value, dict):
        return Recalculated(failure=probe.failure or "the probe's answer was replaced")
    answer = cast(dict[str, Any], probe.value)
    if answer.get("failure"):
        return Recalculated(failure=str(answer["failure"]))
    return Recalculated(
        runs=tuple({name: tuple(values) for name, values in run.items()} for run in answer["runs"]),
        wrong=answer["wrong"],
        constants=answer["constants"],
    )


async def _require_libreoffice(sandbox: Sandbox, timeout_s: float) -> None:
    book = xlsx([Sheet(name="A", cells={(1, 1): 2, (1, 2): "=A1*3"})], {"x": "A!$A$1", "y": "A!$B$1"})
    await sandbox.write(_CONTROL, book)
    control = await _ask(sandbox, _CONTROL, [Scenario(inputs={"x": (5.0,)})], ["y"], {"x": 1, "y": 1}, timeout_s)
    if control.failure or control.runs[0].get("y") != (15.0,):
        raise VerifierError(f"LibreOffice alone fails: {control.failure or control.runs}; the machine is overloaded")
