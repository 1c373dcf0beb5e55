"""A STEP file is measured in millimetres whatever unit it is written in, and nothing small is lost on the way."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Mapping
from typing import Any

import pytest

from metier.envs.core import SandboxSpec
from metier.envs.parts import brep_probe
from metier.envs.parts.probe import run_probe
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from waiting import soon

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers"),
]

SPEC = SandboxSpec(image="cad", memory_mb=1024, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})
UNITS_MM = {"MM": 1.0, "CM": 10.0, "M": 1000.0, "IN": 25.4, "FT": 304.8}
BORE_MM, PIN_MM = 2.5, 0.02
"""The pin's radius is 2e-5 in metres, under what many a reader takes for the same point."""
BUILD = f"""
from build123d import *
part = Box(40, 30, 10) - Cylinder({BORE_MM}, 20) + Pos(10, 10, 5.5) * Cylinder({PIN_MM}, 1)
for unit, size in {UNITS_MM!r}.items():
    # the exporter takes the part's numbers for numbers of that unit
    export_step(scale(part, 1 / size), f"/workspace/{{unit}}.step", unit=Unit[unit])
"""
VOLUME = 40 * 30 * 10 - math.pi * BORE_MM**2 * 10 + math.pi * PIN_MM**2
MEASURE = (
    inspect.getsource(brep_probe)
    + "\n_answer({unit: measure(f'/workspace/{unit}.step', [[10.0, 10.0, 5.5], [0.0, 0.0, 0.0]], 1e-5)"
    + " for unit in payload})\n"
)


async def test_every_unit_gives_the_same_part() -> None:
    async with open_backend("docker") as backend, await backend.acquire(SPEC, deadline=soon(300)) as sandbox:
        built = await sandbox.exec(["python3", "-c", BUILD], timeout_s=200)
        assert built.ok, built.stderr.decode()
        answer = await run_probe(sandbox, MEASURE, list(UNITS_MM), timeout_s=200)
    assert isinstance(answer.value, dict), answer.failure
    assert set(answer.value) == set(UNITS_MM)
    for unit, found in answer.value.items():
        measured: Mapping[str, Any] = found  # type: ignore[assignment]
        assert (measured["solids"], measured["valid"]) == (1, True), (unit, measured)
        assert measured["volume"] == pytest.approx(VOLUME, rel=1e-9), unit
        radii = sorted(surface["radius"] for surface in measured["turned"])
        assert radii == pytest.approx([PIN_MM, BORE_MM], rel=1e-6), unit
        assert measured["inside"] == [True, False], unit
