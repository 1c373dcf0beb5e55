"""Where the claims about sandboxes run: a backend, and what its sandboxes are to be."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any

from metier.envs.core import Capability, Deadline, Sandbox, SandboxBackend, SandboxSpec, Snapshot

from .claims import Suite

SPEC = SandboxSpec(image="terminal-python", memory_mb=256, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})
"""What the claims' sandboxes are: small, on an image with bash, Python and procps."""
SOON_S = 30.0
"""In time, on a busy machine too: what would fail takes a minute or for ever."""


@dataclass(frozen=True, slots=True)
class Place:
    """An open backend under test."""

    backend: SandboxBackend
    spec: SandboxSpec = SPEC

    def soon(self, seconds: float = 60) -> Deadline:
        """What a claim may wait for a sandbox."""
        return Deadline.after(seconds, limit="claim_s", set_by="conformance suite")

    @asynccontextmanager
    async def box(self, spec: SandboxSpec | None = None, snapshot: Snapshot | None = None) -> AsyncIterator[Sandbox]:
        """A sandbox as an agent gets it, given back at the end."""
        made = await self.backend.acquire(spec or self.spec, deadline=self.soon(), snapshot=snapshot)
        async with made as sandbox:
            yield sandbox


Check = Callable[..., Awaitable[None]]


class SandboxSuite(Suite[Place]):
    """Claims about backends: some of one sandbox, some of the backend as a whole."""

    def of_sandbox(
        self, *, cases: Mapping[str, Any] | Sequence[Any] | None = None, needs: Capability | None = None
    ) -> Callable[[Check], Check]:
        """Registers a claim that takes a fresh sandbox, and the values of its case."""

        def register(check: Check) -> Check:
            @wraps(check)
            async def in_a_box(place: Place, *values: Any) -> None:
                async with place.box() as box:
                    await check(box, *values)

            self.add(in_a_box, cases, _unmet(needs))
            return check

        return register

    def of_backend(
        self, *, cases: Mapping[str, Any] | Sequence[Any] | None = None, needs: Capability | None = None
    ) -> Callable[[Check], Check]:
        """Registers a claim that takes the place, and the values of its case."""

        def register(check: Check) -> Check:
            self.add(check, cases, _unmet(needs))
            return check

        return register


def _unmet(needs: Capability | None) -> Callable[[Place], str]:
    def unmet(place: Place) -> str:
        lacking = needs is not None and needs not in place.backend.capabilities
        return f"the {place.backend.name} backend does not promise {needs}" if lacking else ""

    return unmet
