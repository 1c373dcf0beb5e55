"""Backends by name: name → where its class lives, loaded when asked for."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from metier.envs.core import ConfigError, SandboxBackend

AUTO = "auto"
_BACKENDS = {
    "bubblewrap": "metier.harness.sandbox.bubblewrap:BubblewrapBackend",
    "docker": "metier.harness.sandbox.docker:DockerBackend",
    "fake": "metier.harness.sandbox.fake:FakeBackend",
}


def backend_names() -> list[str]:
    """Every name that `open_backend` takes."""
    return [AUTO, *sorted(_BACKENDS)]


@asynccontextmanager
async def open_backend(name: str = AUTO, **options: Any) -> AsyncIterator[SandboxBackend]:
    """A backend, closed at the end with every sandbox it made. `auto`: Docker where an engine answers, else bubblewrap.

    Raises:
        ConfigError: no backend of that name, or an option it does not have.
        SandboxUnavailable: it cannot work on this machine.
    """
    if name == AUTO:
        from .docker import answers

        name = "docker" if await answers() else "bubblewrap"
    if name not in _BACKENDS:
        near = difflib.get_close_matches(name, backend_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(backend_names())}"
        raise ConfigError(f"no sandbox backend {name!r}; {hint}")
    module, _, attribute = _BACKENDS[name].partition(":")
    try:
        backend: SandboxBackend = getattr(importlib.import_module(module), attribute)(**options)
    except TypeError as error:
        raise ConfigError(f"sandbox backend {name!r}: {error}") from error
    async with backend:
        yield backend
