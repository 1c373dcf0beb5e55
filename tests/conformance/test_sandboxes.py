"""The sandbox backends keep what the conformance suites say: the real ones all of it, the scripted fake the files."""

from __future__ import annotations

import pytest

from metier.envs.core import SandboxBackend
from metier.harness.testing import (
    EXEC,
    FILES,
    ISOLATION,
    LEAVINGS,
    LINKS,
    SESSIONS,
    TUNNELLED,
    TUNNELS,
    Claim,
    Place,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROGRAMS = [claim for suite in (EXEC, LINKS, LEAVINGS, ISOLATION, SESSIONS, TUNNELLED) for claim in suite.claims]


async def hold(claim: Claim[Place], backend: SandboxBackend) -> None:
    place = Place(backend)
    if gap := claim.unmet(place):
        pytest.skip(gap)
    await claim.holds(place)


@pytest.mark.parametrize("claim", [*FILES.claims, *TUNNELS.claims], ids=str)
async def test_files(any_backend: SandboxBackend, claim: Claim[Place]) -> None:
    await hold(claim, any_backend)


@pytest.mark.parametrize("claim", PROGRAMS, ids=str)
async def test_programs(real: SandboxBackend, claim: Claim[Place]) -> None:
    await hold(claim, real)
