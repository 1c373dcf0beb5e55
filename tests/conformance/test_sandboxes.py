"""The sandbox backends keep what the conformance suites say: the real ones all of it, the scripted fake the files."""

from __future__ import annotations

import time
from typing import Any

import pytest

from metier.envs.core import SandboxBackend
from metier.harness.testing import EXEC, FILES, ISOLATION, LINKS, SESSIONS, Claim, Place

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAMS = [claim for suite in (EXEC, LINKS, ISOLATION, SESSIONS) for claim in suite.claims]


async def hold(claim: Claim[Place], backend: SandboxBackend) -> None:
    place = Place(backend)
    if gap := claim.unmet(place):
        pytest.skip(gap)
    await claim.holds(place)


@pytest.mark.parametrize("claim", FILES.claims, ids=str)
async def test_files(any_backend: SandboxBackend, claim: Claim[Place]) -> None:
    await hold(claim, any_backend)


@pytest.mark.parametrize("claim", PROGRAMS, ids=str)
async def test_programs(real: SandboxBackend, claim: Claim[Place]) -> None:
    await hold(claim, real)


async def test_a_session_step_is_fast(real: SandboxBackend) -> None:
    times: list[float] = []
    async with Place(real).box() as box:
        command: dict[str, Any] = {"session": "shell", "timeout_s": 10}
        await box.exec("true", **command)
        for _ in range(50):
            began = time.perf_counter()
            await box.exec("true", **command)
            times.append(time.perf_counter() - began)
    # an order of magnitude under a docker exec, whatever else the machine does
    assert sorted(times)[10] < 0.01, f"{real.name}: {sorted(times)}"
