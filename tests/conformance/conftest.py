"""The sandbox backends that the conformance suites run over, each opened once for a module."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import SandboxBackend
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.harness.testing import SPEC
from metier.images import docker_tag, recipe


async def _docker_gap() -> str:
    if not await answers():
        return "no Docker engine answers"
    response = await Engine(socket_path()).request("GET", f"/images/{docker_tag(SPEC.image)}/json")
    return "" if response.status == 200 else f"run: metier images build {SPEC.image}"


def _bubblewrap_gap() -> str:
    if importlib.util.find_spec("metier.harness.sandbox.bubblewrap") is None:
        return "no bubblewrap backend"
    from metier.images.store import rootfs_path

    return (
        "" if rootfs_path(recipe(SPEC.image)).is_dir() else f"run: metier images build {SPEC.image} --engine bubblewrap"
    )


def _param(name: str, gap: str) -> Any:
    marks = [pytest.mark.docker] if name == "docker" else []
    return pytest.param(name, marks=[*marks, pytest.mark.skipif(bool(gap), reason=f"{name}: {gap}")])


REAL = [_param("docker", asyncio.run(_docker_gap())), _param("bubblewrap", _bubblewrap_gap())]
ALL = [*REAL, pytest.param("fake")]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=REAL)
async def real(request: pytest.FixtureRequest) -> AsyncIterator[SandboxBackend]:
    """A backend whose sandboxes are real."""
    async with open_backend(request.param) as backend:
        yield backend


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=ALL)
async def any_backend(request: pytest.FixtureRequest) -> AsyncIterator[SandboxBackend]:
    """Every backend, the fake included: for what does not need programs to run."""
    async with open_backend(request.param) as backend:
        yield backend
