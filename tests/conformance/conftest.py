"""The sandbox backends that the conformance suite runs over, each opened once for a module."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from metier.envs.core import Deadline, Sandbox, SandboxBackend, SandboxSpec
from metier.harness.sandbox import open_backend
from metier.harness.sandbox.docker import answers
from metier.harness.sandbox.docker.engine import Engine, socket_path
from metier.images import docker_tag, recipe

IMAGE = "terminal-python"
SPEC = SandboxSpec(image=IMAGE, memory_mb=256, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})


async def _docker_gap() -> str:
    if not await answers():
        return "no Docker engine answers"
    response = await Engine(socket_path()).request("GET", f"/images/{docker_tag(IMAGE)}/json")
    return "" if response.status == 200 else f"run: metier images build {IMAGE}"


def _bubblewrap_gap() -> str:
    if importlib.util.find_spec("metier.harness.sandbox.bubblewrap") is None:
        return "no bubblewrap backend"
    from metier.images.store import rootfs_path

    return "" if rootfs_path(recipe(IMAGE)).is_dir() else f"run: metier images build {IMAGE} --engine bubblewrap"


def _param(name: str, gap: str) -> Any:
    marks = [pytest.mark.docker] if name == "docker" else []
    return pytest.param(name, marks=[*marks, pytest.mark.skipif(bool(gap), reason=f"{name}: {gap}")])


REAL = [_param("docker", asyncio.run(_docker_gap())), _param("bubblewrap", _bubblewrap_gap())]
ALL = [*REAL, pytest.param("fake")]


def deadline(seconds: float = 60) -> Deadline:
    """What a test may wait for a sandbox."""
    return Deadline.after(seconds, limit="test_s", set_by="conformance suite")


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


@pytest_asyncio.fixture(loop_scope="module")
async def box(real: SandboxBackend) -> AsyncIterator[Sandbox]:
    """A real sandbox, as an agent gets it."""
    async with await real.acquire(SPEC, deadline=deadline()) as sandbox:
        yield sandbox


@pytest_asyncio.fixture(loop_scope="module")
async def files(any_backend: SandboxBackend) -> AsyncIterator[Sandbox]:
    """A sandbox for file operations, the fake's included."""
    async with await any_backend.acquire(SPEC, deadline=deadline()) as sandbox:
        yield sandbox


@pytest.fixture
def spec() -> SandboxSpec:
    """What the suite's sandboxes are."""
    return SPEC


@pytest.fixture
def soon() -> Callable[[], Deadline]:
    """A fresh deadline for acquiring."""
    return deadline
