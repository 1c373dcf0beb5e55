"""The bubblewrap backend: for machines where no engine answers, with the same steward in every sandbox.

A sandbox has a read-only root, sized tmpfs, no network, and namespaces of its own for users, pids, IPC and host name.
One launcher process a client starts them all and takes them along when the client ends, however it ends.

What it cannot isolate, and therefore does not promise:

- As a plain user, steward and agent have one uid: the agent cannot kill the steward, which is pid 1, but it can read
  its memory. Memory is not limited in total, processes by RLIMIT_NPROC, processor time not at all.
- As root without writable control groups (in many containers): likewise without a memory limit.
- Processors other than x86_64 have no system call filter here.
- The kernel is the host's, as with Docker; files of the image that are root's belong to nobody inside.
- There are no engines' labels or logs: `metier doctor` sees sandboxes as processes below their launcher.

`capabilities` says what holds on this machine; a spec that requires more is refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from pathlib import Path
from typing import Self, Unpack

from metier.envs.core import Capability, Deadline, Limit, SandboxError, SandboxSpec, SandboxUnavailable
from metier.images import environment, rootfs

from ..client import StewardClient
from ..owner import Owner
from ..pool import Launched, PoolOptions, StewardBackend, steward_code
from . import cgroups
from .command import FILTER_FD, Places, request
from .filter import program
from .link import Link

HELLO_S = 120.0
BLAME_S = 1.0


class BubblewrapBackend(StewardBackend):
    """Sandboxes by bubblewrap, as root or as a plain user."""

    name = "bubblewrap"

    def __init__(self, **pool: Unpack[PoolOptions]) -> None:
        super().__init__(**pool)
        self._as_root = os.geteuid() == 0
        self._hierarchy = cgroups.version()
        self._filter = program()
        self._owner = Owner.current()
        self._steward = steward_code()
        self._link: Link | None = None
        self._linking = asyncio.Lock()
        self.capabilities = frozenset(_promises(self._as_root, self._hierarchy, self._filter))

    async def __aenter__(self) -> Self:
        cgroups.reap()
        await self._launcher()
        return await super().__aenter__()

    async def close(self) -> None:
        await super().close()
        if self._link is not None:
            await self._link.close()
            cgroups.forget(self._owner)

    async def _launcher(self) -> Link:
        """The launcher, started anew if somebody ended it."""
        async with self._linking:
            if self._link is None or not self._link.alive:
                if self._link is not None:
                    await self._link.close()
                self._link = Link.open()
            return self._link

    async def launch(self, name: str, spec: SandboxSpec, *, deadline: Deadline) -> Launched:
        starting = asyncio.create_task(self._start(name, spec, deadline))
        try:
            return await asyncio.shield(starting)
        except BaseException:
            # cut off in the middle, the sandbox may still come up: wait for the end of that, then remove it
            self._spawn(_discard(starting), name)
            raise

    async def _start(self, name: str, spec: SandboxSpec, deadline: Deadline) -> Launched:
        places = Places(await _root_of(spec.image), self._steward)
        groups = cgroups.groups(name, spec, self._hierarchy, self._owner) if self._hierarchy else []
        asked = request(name, spec, places, environment(spec.image), groups, as_root=self._as_root)
        link = await self._launcher()
        ours, theirs = socket.socketpair()
        fds = [theirs.fileno()]
        if self._filter is not None:
            asked["argv"][1:1] = ["--seccomp", str(FILTER_FD)]
            fds.append(_in_memory(self._filter))
        try:
            await link.start(asked, fds)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
            for fd in fds[1:]:
                os.close(fd)
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 20)

        async def remove() -> None:
            writer.close()
            await link.remove(name)

        try:
            hello_s = min(HELLO_S, max(0.1, deadline.left_s()))
            client = await StewardClient.connect(name, reader, writer, timeout_s=hello_s)
        except SandboxError as error:
            writer.close()
            said = (await link.remove(name)).said
            raise SandboxUnavailable(f"image {spec.image} did not start: {error}{said and ': ' + said}") from None
        except BaseException:
            await remove()
            raise
        return Launched(client=client, remove=remove, spec=spec)

    async def blame(self, launched: Launched) -> Limit | None:
        """The steward's last facts, and what its control group counted after them."""
        if limit := await super().blame(launched):
            return limit
        if self._link is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BLAME_S):
                    left = await self._link.gone(launched.client.name)
                    survived = max(launched.oom_at_lease, launched.client.settled.oom)
                    if cgroups.killed_for_memory(left.oom) > survived:
                        return Limit.MEMORY
        return None


def _promises(as_root: bool, hierarchy: int | None, filtered: bytes | None) -> set[Capability]:
    """What holds on this machine."""
    promises = {Capability.PIDS_LIMIT}
    if as_root:
        promises |= {Capability.SEPARATE_UIDS, Capability.RESET_IN_PLACE}
    if hierarchy is not None:
        promises.add(Capability.MEMORY_LIMIT)
    if filtered is not None:
        promises.add(Capability.SYSCALL_FILTER)
    return promises


async def _root_of(image: str) -> Path:
    """The image's root file system: in the cache, or unpacked from an engine that has it; never built in passing."""
    return await asyncio.to_thread(rootfs, image, build=False)


def _in_memory(data: bytes) -> int:
    """A descriptor from which `data` can be read once."""
    fd = os.memfd_create("metier-filter")
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


async def _discard(starting: asyncio.Task[Launched]) -> None:
    try:
        await asyncio.wait([starting])
    except asyncio.CancelledError:
        starting.cancel()
        raise
    if not starting.cancelled() and starting.exception() is None:
        launched = starting.result()
        await launched.client.close()
        await launched.remove()
