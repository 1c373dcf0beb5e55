"""A backend whose sandboxes hold stewards: leases, warm sandboxes, their verified reset, forks, and the end of it.

A subclass says only how one sandbox is started (`launch`) and how it is removed. Invariants:

- a sandbox is launching, warm or leased, and known by name from before it is made until after it is gone;
- warm means: fresh, or reset and proven empty, and young enough for a whole lease;
- verifiers come from a pool of their own, and one in which the agent's programs ran never returns to it;
- whatever exists has its share of the host (`budget`), from before it is made until after it is gone;
- whoever is cancelled while a sandbox is made leaves nobody behind: the late result is removed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict

from metier.envs.core import (
    Capability,
    ConfigError,
    Deadline,
    Limit,
    SandboxError,
    SandboxLost,
    SandboxSpec,
    SandboxUnavailable,
    Snapshot,
)
from metier.images import cache_dir, making_room

from ..telemetry import names, signals
from .budget import HostBudget
from .clearing import Clearing
from .client import Facts, StewardClient
from .owner import Owner
from .protocol import life_of, steward_folder
from .sandbox import StewardSandbox
from .snapshots import SnapshotStore

_log = logging.getLogger(__name__)

MAX_USES = 50
RESET_S = 4.0
REMOVE_S = 30.0
LEASE_S = 10.0
ADMISSION_S = 300.0
"""How long a sandbox may wait for room on this host: about as long as an episode."""
ADMISSION_LOOK_S = 0.1
MAX_IDLE_S = 600.0
"""Longer than a training step, in which nobody asks for a sandbox."""


class PoolOptions(TypedDict, total=False):
    """What every backend of this kind takes; see `StewardBackend`."""

    max_warm: int
    max_idle_s: float
    recycle_verifiers: bool
    snapshots: SnapshotStore
    budget: HostBudget


@dataclass(slots=True, kw_only=True)
class Launched:
    """A running sandbox: its connection, and how it is removed. `remove` is idempotent and raises SandboxError."""

    client: StewardClient
    remove: Callable[[], Awaitable[None]]
    spec: SandboxSpec
    at: float = field(default_factory=time.monotonic)
    uses: int = 0
    oom_at_lease: int = 0
    refused_at_lease: int = 0
    idle: asyncio.TimerHandle | None = None
    """Ends it if nobody asks for it; None where it has never been warm."""


class StewardBackend(ABC):
    """Pools and leases over `launch`. An async context manager: leaving it removes all it made."""

    name: str
    capabilities: frozenset[Capability]

    def __init__(
        self,
        *,
        max_warm: int = 8,
        max_idle_s: float = MAX_IDLE_S,
        recycle_verifiers: bool = True,
        snapshots: SnapshotStore | None = None,
        budget: HostBudget | None = None,
    ) -> None:
        """
        Args:
            max_warm: sandboxes that may wait, of all kinds together; the one that waits longest gives way.
            max_idle_s: how long one may wait for its next lease.
            recycle_verifiers: throw a verifier away in which the agent's program ran. Where False it is reset and
                proven empty like any other sandbox (docs/decisions/0006).
            snapshots: where snapshots are kept.
            budget: the host that sandboxes share.
        """
        self.snapshots = snapshots or SnapshotStore(cache_dir() / "snapshots")
        self.budget = budget or HostBudget(cache_dir() / "claims")
        self._max_warm = max_warm
        self._max_idle_s = max_idle_s
        self._recycle_verifiers = recycle_verifiers
        self._warm: list[Launched] = []
        self._leased: dict[StewardSandbox, Launched] = {}
        self._clearing = Clearing(self.name)
        self._starting: set[asyncio.Task[Launched]] = set()
        self._launches = asyncio.Semaphore(2 * (os.cpu_count() or 1))
        self._admitting = asyncio.Lock()
        self._closed = False
        self._removing = 0
        self._resisting: list[float] = []
        """Of those that could not be removed, when each must be gone by itself."""
        signals.register(self)

    @abstractmethod
    async def launch(self, name: str, spec: SandboxSpec, *, deadline: Deadline) -> Launched:
        """Start one sandbox. Cancelled or failing, it leaves nothing. Raises SandboxUnavailable, SandboxLost."""

    def check(self, spec: SandboxSpec) -> None:
        """Refuses what this backend cannot promise. Raises ConfigError."""
        missing = spec.requires - self.capabilities
        if spec.gpus:
            missing |= {Capability.GPU}
        if spec.allow_hosts:
            missing |= {Capability.ALLOWLIST} - self.capabilities
        if missing:
            raise ConfigError(
                f"the {self.name} backend cannot promise {', '.join(sorted(missing))} for image {spec.image}; "
                "choose another backend, or an environment that does not need it"
            )
        if not spec.writable_mb or sum(spec.writable_mb.values()) > spec.memory_mb / 2:
            raise ConfigError(
                f"image {spec.image}: writable_mb {dict(spec.writable_mb)} must name a tree, and all together be "
                f"at most half of memory_mb={spec.memory_mb}, for they are kept in memory"
            )
        self.budget.check(spec)

    async def acquire(
        self, spec: SandboxSpec, *, deadline: Deadline, snapshot: Snapshot | None = None
    ) -> StewardSandbox:
        """See `SandboxBackend.acquire`; SnapshotGone, a ConfigError, where the snapshot is not here any more."""
        attributes = {names.BACKEND: self.name, names.IMAGE: spec.image, names.VERIFIER: spec.verifier}
        began = time.monotonic()
        with signals.span(f"{names.SANDBOX_PREFIX}acquire", attributes) as span:
            sandbox = await self._acquire(spec, deadline, snapshot)
            source = "cold" if self._leased[sandbox].idle is None else "warm"
            span.set(names.SANDBOX, sandbox.id)
            span.set(names.SOURCE, source)
        signals.observe(names.ACQUIRE_SECONDS, time.monotonic() - began, backend=self.name, source=source)
        return sandbox

    async def _acquire(self, spec: SandboxSpec, deadline: Deadline, snapshot: Snapshot | None) -> StewardSandbox:
        self.check(spec)
        self._check_open()
        if snapshot is not None:
            self.snapshots.use(snapshot)
        while True:
            launched = self._take_warm(spec) or await self._launch(spec, deadline)
            try:
                return await self._lease(launched, spec, snapshot)
            except SandboxLost:
                if launched.idle is None:
                    raise
                # it died while it waited; the next one is tried

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxUnavailable(f"the {self.name} backend is closed; open another one")

    async def prewarm(self, spec: SandboxSpec, count: int, *, deadline: Deadline) -> None:
        """Makes warm sandboxes, so that `count` can be had at once. Raises what `acquire` raises."""
        self.check(spec)
        there = sum(_key(launched.spec) == _key(spec) for launched in self._warm)
        made = await asyncio.gather(
            *(self._launch(spec, deadline) for _ in range(count - there)), return_exceptions=True
        )
        for launched in made:
            if isinstance(launched, Launched):
                self._keep(launched)
        for failure in made:
            if isinstance(failure, BaseException):
                raise failure

    def _take_warm(self, spec: SandboxSpec) -> Launched | None:
        for launched in [one for one in reversed(self._warm) if _key(one.spec) == _key(spec)]:
            self._unkeep(launched)
            old = time.monotonic() - launched.at + spec.ttl_s > life_of(spec)
            if launched.client.lost is None and not old:
                return launched
            self._spawn(self._remove(launched), launched.client.name)
        return None

    def _keep(self, launched: Launched) -> None:
        """Among the warm ones, where the oldest gives way, and whoever waits for too long."""
        self._warm.append(launched)
        launched.idle = asyncio.get_running_loop().call_later(self._max_idle_s, self._evict, launched)
        while len(self._warm) > self._max_warm:
            self._evict(self._warm[0])

    def _unkeep(self, launched: Launched) -> None:
        """No longer among the warm ones."""
        self._warm.remove(launched)
        if launched.idle is not None:
            launched.idle.cancel()

    def _evict(self, launched: Launched) -> asyncio.Task[None]:
        self._unkeep(launched)
        return self._spawn(self._remove(launched), launched.client.name)

    async def _launch(self, spec: SandboxSpec, deadline: Deadline) -> Launched:
        """In a task of its own, so that `close` can cut it off without whoever waits for it being cancelled."""
        starting = asyncio.create_task(self._launch_one(spec, deadline))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        try:
            launched = await starting
        except asyncio.CancelledError:
            waiting = asyncio.current_task()
            if waiting is None or not waiting.cancelling():
                self._check_open()
            raise
        if self._closed:
            self._spawn(self._remove(launched), launched.client.name)
        self._check_open()
        return launched

    async def _launch_one(self, spec: SandboxSpec, deadline: Deadline) -> Launched:
        """A new one, or one that became warm while there was no room for that."""
        name = f"metier-{secrets.token_hex(6)}"
        try:
            async with asyncio.timeout(deadline.left_s()):
                if (given_back := await self._admit(name, spec, deadline)) is not None:
                    return given_back
                async with self._launches:
                    launched = await self.launch(name, spec, deadline=deadline)
        except BaseException as error:
            self.budget.give(name)
            if isinstance(error, TimeoutError):
                raise SandboxUnavailable(str(deadline.error(f"starting a sandbox of image {spec.image}"))) from None
            raise
        launched.client.why_lost = lambda: self.blame(launched)
        return launched

    async def _admit(self, name: str, spec: SandboxSpec, deadline: Deadline) -> Launched | None:
        """Waits for room on this host, first come, first served; what is warm here gives way.

        One of the right kind that is given back meanwhile is taken as it is, and returned.

        A verifier never waits: whoever needs it holds an agent's sandbox, and all of them could wait for one another.

        Raises:
            SandboxUnavailable: there was none in time.
        """
        if spec.verifier:
            self.budget.take(name, spec, whatever=True)
            return None
        until = time.monotonic() + min(ADMISSION_S, deadline.left_s())
        told = False
        async with self._admitting:
            while not self.budget.take(name, spec):
                if (given_back := self._take_warm(spec)) is not None:
                    return given_back
                if self._warm:
                    await asyncio.shield(self._evict(self._warm[0]))
                    continue
                if not told:
                    _log.warning("waiting for room for a sandbox on this host: %s", self.budget.words())
                    told = True
                if time.monotonic() + ADMISSION_LOOK_S > until:
                    raise SandboxUnavailable(
                        f"no room on this host for a sandbox of image {spec.image} ({spec.memory_mb} MiB, {spec.pids} "
                        f"processes): {self.budget.words()}; close some, run fewer at once, or ask for less"
                    )
                await asyncio.sleep(ADMISSION_LOOK_S)
        return None

    async def _lease(self, launched: Launched, spec: SandboxSpec, snapshot: Snapshot | None) -> StewardSandbox:
        sandbox = StewardSandbox(launched.client, spec, self.snapshots, self._release, backend=self.name)
        self._leased[sandbox] = launched
        launched.uses += 1
        try:
            answer = await launched.client.call("lease", {"ttl_s": spec.ttl_s}, timeout_s=LEASE_S)
            launched.oom_at_lease = answer.fields["oom"]
            launched.refused_at_lease = answer.fields["refused_forks"]
            if snapshot is not None:
                await sandbox.restore(snapshot)
        except BaseException as error:
            await asyncio.shield(sandbox.close(reuse=False))
            if isinstance(error, KeyError | OSError) and not isinstance(error, SandboxLost):
                raise SandboxUnavailable(
                    f"{sandbox.id} could not be leased: {type(error).__name__}: {error}"
                ) from error
            raise
        return sandbox

    async def blame(self, launched: Launched) -> Limit | None:
        """Whether the agent took this sandbox down, by what was last seen of it."""
        return blamed(launched.client.facts, launched)

    async def _release(self, sandbox: StewardSandbox, reuse: bool) -> None:
        launched = self._leased[sandbox]
        try:
            proven = reuse and await self._reset(sandbox, launched)
        except asyncio.CancelledError:
            await launched.client.close()  # given up; with its connection it ends by itself
            raise
        finally:
            del self._leased[sandbox]
        if proven:
            self._keep(launched)
        else:
            await self._clearing.settled(self._spawn(self._remove(launched), sandbox.id))

    async def _reset(self, sandbox: StewardSandbox, launched: Launched) -> bool:
        """Whether it is proven to be as new."""
        if (
            self._closed
            or Capability.RESET_IN_PLACE not in self.capabilities
            or launched.client.lost is not None
            or launched.client.busy  # given back by one thread while another still runs a command in it
            or launched.uses >= MAX_USES
            or (launched.spec.verifier and sandbox.ran_agent and self._recycle_verifiers)
        ):
            return False
        began = time.monotonic()
        clean = False
        with signals.span(f"{names.SANDBOX_PREFIX}reset", {names.SANDBOX: sandbox.id, names.BACKEND: self.name}):
            try:
                found = (await launched.client.call("reset", timeout_s=RESET_S)).fields
                clean = not found["left"] and found["oom"] == launched.oom_at_lease
            except (SandboxLost, OSError, ValueError, KeyError):
                pass
        signals.observe(names.RESET_SECONDS, time.monotonic() - began, backend=self.name)
        if not clean:
            signals.add(names.DIRTY_RESETS, backend=self.name)
        return clean and not self._closed

    async def _remove(self, launched: Launched) -> None:
        """Never fails: what resists is left to its own dead-man switches and to the reaper, and said in the log."""
        self._removing += 1
        try:
            await launched.client.close()
            async with asyncio.timeout(REMOVE_S):
                await launched.remove()
        except (SandboxError, TimeoutError) as error:
            self._resisting.append(launched.at + life_of(launched.spec))
            signals.add(names.LEAKS, backend=self.name)
            _log.warning("sandbox %s is still there, the reaper will take it: %s", launched.client.name, error)
        finally:
            self._removing -= 1
            self.budget.give(launched.client.name)

    def readings(self) -> Iterable[signals.Reading]:
        """How many sandboxes there are: running less those leased, warm and being removed are leaked.

        One that resisted counts until its own dead-man switch must have ended it.
        """
        now = time.monotonic()
        leaked = sum(until > now for until in list(self._resisting))
        leased, warm, removing = len(self._leased), len(self._warm), self._removing
        for metric, value in (
            (names.RUNNING, leased + warm + removing + leaked),
            (names.LEASED, leased),
            (names.WARM, warm),
            (names.REMOVING, removing),
        ):
            yield signals.Reading(metric, value, {"backend": self.name})

    def _spawn(self, work: Coroutine[Any, Any, None], name: str = "a sandbox") -> asyncio.Task[None]:
        return self._clearing.spawn(work, name)

    async def close(self) -> None:
        """Idempotent: every sandbox of this backend is gone afterwards, or given up where its engine hangs."""
        self._closed = True
        for sandbox in list(self._leased):
            self._spawn(sandbox.close(reuse=False), sandbox.id)
        while self._warm:
            self._evict(self._warm[-1])
        while self._starting:
            for starting in self._starting:
                starting.cancel()
            await asyncio.wait(list(self._starting))
        await self._clearing.finish()

    async def __aenter__(self) -> Self:
        self.budget.sweep()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self.close())


def steward_code() -> Path:
    """The folder with the steward's code, in the cache. Raises SandboxUnavailable; then nothing of it stays there."""
    with making_room(cache_dir(), "the steward's code"):
        try:
            return steward_folder(cache_dir())
        except OSError:
            for begun in (cache_dir() / "steward").glob(f"{Owner.current().label()}.*"):
                shutil.rmtree(begun, ignore_errors=True)
            raise


def blamed(facts: Facts, launched: Launched) -> Limit | None:
    """The limit that the facts show the agent to have reached in this lease, and the sandbox not to have survived.

    Else every sandbox that ever saw a process killed for memory would be the agent's loss, whatever took it down later.
    """
    settled = launched.client.settled
    if facts.oom > max(launched.oom_at_lease, settled.oom):
        return Limit.MEMORY
    if facts.refused_forks > max(launched.refused_at_lease, settled.refused_forks):
        return Limit.PROCESSES
    if facts.pids >= launched.spec.pids > 0:
        return Limit.PROCESSES
    if facts.disk_full and not settled.disk_full:
        return Limit.DISK
    return None


def _key(spec: SandboxSpec) -> str:
    """What two specs must share for their sandboxes to be one another's."""
    trees = ",".join(f"{tree}={size}" for tree, size in spec.writable_mb.items())
    return f"{spec.image} {spec.memory_mb} {spec.cpus} {spec.pids} {spec.ttl_s} {spec.verifier} {trees}"
