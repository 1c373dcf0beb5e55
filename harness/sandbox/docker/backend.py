"""The Docker backend: hardened containers whose pid 1 is the steward, over the attached standard streams.

Nobody has to remove a container: when this process dies, the engine closes the container's stdin, the steward ends, and
the engine removes what is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from typing import Any, Self, Unpack

from metier.envs.core import Capability, Deadline, Limit, SandboxError, SandboxSpec, SandboxUnavailable
from metier.images import cache_dir, docker_tag, making_room

from ..client import StewardClient
from ..owner import Owner
from ..pool import Launched, PoolOptions, StewardBackend, steward_code
from .container import creation
from .engine import PING_S, Attachment, Engine, EngineError, socket_path
from .podman import CREATE, Podman, podman_of
from .reaper import reap_for_ever, remove

HELLO_S = 120.0
"""Imports of a heavy image included, on a busy machine; the caller's deadline is usually nearer."""
BLAME_S = 2.0


class DockerBackend(StewardBackend):
    """Sandboxes as containers of the engine at DOCKER_HOST. Entering it starts the reaper."""

    name = "docker"
    capabilities = frozenset(
        {
            Capability.MEMORY_LIMIT,
            Capability.PIDS_LIMIT,
            Capability.SYSCALL_FILTER,
            Capability.SEPARATE_UIDS,
            Capability.RESET_IN_PLACE,
        }
    )

    def __init__(self, *, run: str = "", **pool: Unpack[PoolOptions]) -> None:
        super().__init__(**pool)
        self.engine = Engine(socket_path())
        self._owner = Owner.current()
        self._run = run or f"{self._owner.pid}-{int(time.time())}"
        self._steward = steward_code()
        self._podman: Podman | None = None
        self._reaper: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        answer = await self.engine.request("GET", "/_ping", timeout_s=PING_S)
        if answer.status != 200:
            raise SandboxUnavailable(
                f"the Docker engine at {self.engine.path} is not ready ({answer.message}); wait for it, "
                "set DOCKER_HOST, or choose the bubblewrap backend"
            )
        await super().__aenter__()
        with making_room(cache_dir(), "Podman's system call filter"):
            self._podman = await podman_of(self.engine, cache_dir() / "seccomp")
        self._reaper = asyncio.create_task(reap_for_ever(self.engine, cache_dir() / "reaper.lock"))
        return self

    async def close(self) -> None:
        try:
            await super().close()
        finally:
            if self._reaper is not None:
                self._reaper.cancel()
                await asyncio.gather(self._reaper, return_exceptions=True)

    async def launch(self, name: str, spec: SandboxSpec, *, deadline: Deadline) -> Launched:
        starting = asyncio.create_task(self._start(name, spec, deadline))
        try:
            return await asyncio.shield(starting)
        except BaseException:
            # cut off in the middle, the engine may still bring it up: wait for the end of that, then remove it
            self._spawn(self._discard(name, starting), name)
            raise

    async def _start(self, name: str, spec: SandboxSpec, deadline: Deadline) -> Launched:
        tag = image_tag(spec.image)
        try:
            await self._create(name, creation(name, tag, spec, self._steward, self._run, self._owner))
        except EngineError as error:
            if not await self.engine.has_image(tag):
                raise SandboxUnavailable(
                    f"image {spec.image} is not built; run `metier images build {spec.image}`"
                ) from None
            raise SandboxUnavailable(str(error)) from None
        streams: Attachment | None = None
        try:
            streams = await self.engine.attach(name)
            await self.engine.checked("POST", f"/containers/{name}/start")
            hello_s = min(HELLO_S, max(0.1, deadline.left_s()))
            client = await StewardClient.connect(name, streams, streams.writer, timeout_s=hello_s)
        except SandboxError as error:
            said = ""
            if streams is not None:
                streams.writer.close()
                said = streams.stderr.decode("utf-8", "replace").strip()
            raise SandboxUnavailable(f"image {spec.image} did not start: {error}{said and ': ' + said}") from None
        return Launched(client=client, remove=lambda: remove(self.engine, name), spec=spec)

    async def _create(self, name: str, body: dict[str, Any]) -> None:
        if self._podman is not None:
            await self.engine.checked("POST", CREATE, body=self._podman.specification(name, body))
        else:
            await self.engine.checked("POST", "/containers/create", query={"name": name}, body=body)

    async def _discard(self, name: str, starting: asyncio.Task[Launched]) -> None:
        try:
            await asyncio.wait([starting])
        except asyncio.CancelledError:
            starting.cancel()
            raise
        if not starting.cancelled() and starting.exception() is None:
            await starting.result().client.close()
        await remove(self.engine, name)

    async def blame(self, launched: Launched) -> Limit | None:
        """The steward's last facts, and what the engine saw after them."""
        if limit := await super().blame(launched):
            return limit
        filters = json.dumps({"container": [launched.client.name], "event": ["oom"]})
        now = time.time()
        since = now - time.monotonic() + max(launched.at, launched.client.settled_at)
        query = {"since": f"{since:.6f}", "until": f"{now:.6f}", "filters": filters}
        with contextlib.suppress(SandboxError):
            events = await self.engine.request("GET", "/events", query=query, timeout_s=BLAME_S)
            if b'"oom"' in events.body:
                return Limit.MEMORY
        return None


def image_tag(image: str) -> str:
    """The engine's name of an image of ours; a name with a colon is taken as it is."""
    if ":" in image:
        return image
    return docker_tag(image)


async def answers() -> bool:
    """Whether a Docker engine can be used from here."""
    try:
        path = socket_path()
    except SandboxUnavailable:
        return False
    return os.path.exists(path) and await Engine(path).ping()
