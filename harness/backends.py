"""The sandbox backends of one event loop: each opened once, on first use, and shared by all its episodes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from metier.envs.core import MetierError, SandboxBackend

from .prepare import Preparer


class Backends:
    """One backend and one preparer for each backend name. Belongs to the loop that first asks; close it there."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Task[tuple[SandboxBackend, Preparer]]] = {}
        self._exits = AsyncExitStack()

    def is_open(self, name: str) -> bool:
        """Whether a backend of that name is open or opening."""
        return name in self._open

    async def get(self, name: str, options: Mapping[str, Any] | None = None) -> tuple[SandboxBackend, Preparer]:
        """The backend and its preparer; `options` matter for whoever opens it.

        Raises:
            ConfigError, SandboxUnavailable: as `open_backend`; the next call tries again.
        """
        if name not in self._open:
            self._open[name] = asyncio.ensure_future(self._start(name, options or {}))
        try:
            return await asyncio.shield(self._open[name])
        except MetierError:
            self._open.pop(name, None)  # an engine may be started meanwhile
            raise

    async def _start(self, name: str, options: Mapping[str, Any]) -> tuple[SandboxBackend, Preparer]:
        from .sandbox import open_backend

        backend = await self._exits.enter_async_context(open_backend(name, **options))
        return backend, Preparer(backend)

    async def close(self) -> None:
        """Idempotent: every sandbox of these backends is gone afterwards."""
        opening = list(self._open.values())
        self._open.clear()
        for start in opening:
            start.cancel()  # one that has opened is not touched by that
        await asyncio.gather(*opening, return_exceptions=True)
        await self._exits.aclose()
