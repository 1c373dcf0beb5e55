"""From a task to a sandbox that is ready: generate the instance, make its files, fork.

Files and `setup` go into a sandbox of their own, whose writable trees become the snapshot that every rollout of a group
forks from: no trace of the set-up reaches the agent. An instance without `setup` needs no snapshot: its files are
unpacked straight into a fresh sandbox, which gives the same trees.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import tarfile
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from metier.envs.core import (
    ConfigError,
    Deadline,
    Family,
    GenerationError,
    Instance,
    Json,
    MetierError,
    Sandbox,
    SandboxBackend,
    SandboxUnavailable,
    Snapshot,
    instance_rng,
)
from metier.envs.entry import Entry
from metier.envs.registry import get, make_family, render_brief

from .blame import blamed
from .sandbox.snapshots import SnapshotGone

SETUP_TIMEOUT_S = 300.0
MAX_SEED = 2**63 - 1
_TOLD_CHARACTERS = 200
_KEPT = 256
_FORK_TRIES = 3
"""A snapshot that is gone again right after it was taken has other processes against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Which episode: everything but the policy.

    Example:
        >>> Task(env_id="finance/CovenantTest-v0", seed=3).level
        0
    """

    env_id: str
    seed: int
    level: int = 0
    options: dict[str, Json] = field(default_factory=dict)
    sample: int = 0
    """Which rollout of the same instance."""

    @property
    def key(self) -> str:
        """Names the instance; samples of one group share it."""
        return f"{self.env_id}?{self.options}#{self.seed}.{self.level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An instance that can be forked."""

    key: str
    """Its task's."""
    entry: Entry
    family: Family
    instance: Instance
    brief: str
    snapshot: Snapshot | None
    """None where the files are enough."""


def check_seed(env_id: str, seed: object) -> int:
    """The seed, if it is one. Raises ConfigError."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise ConfigError(f"{env_id}: a seed is an integer from 0 to {MAX_SEED}, not {told(seed)}")
    return seed


def told(value: object) -> str:
    """A value that somebody gave us, as a message may repeat it: some have no text, and some no end.

    Example:
        >>> told("abc"), told(10**5000)
        ("'abc'", 'a value of type int')
    """
    try:
        text = repr(value)
    except Exception:
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _TOLD_CHARACTERS else f"{text[:_TOLD_CHARACTERS]}…"


def generate(task: Task) -> Prepared:
    """The instance and its brief, without a sandbox.

    Raises:
        ConfigError: unknown id, level or option.
        GenerationError: the family's generator or brief broke.
    """
    entry = get(task.env_id)
    level = entry.check_level(task.level)
    check_seed(task.env_id, task.seed)
    family = make_family(entry, task.options)
    try:
        instance = family.generate(instance_rng(entry.id, task.options, task.seed, level), level)
        brief = render_brief(family, instance, level)
    except MetierError:
        raise
    except Exception as error:
        raise GenerationError(f"{task.key}: the generator broke: {blamed(family, error)}") from error
    return Prepared(key=task.key, entry=entry, family=family, instance=instance, brief=brief, snapshot=None)


def workspace_tar(instance: Instance) -> bytes:
    """The instance's files as a tar relative to /workspace; the same bytes for the same instance."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in sorted(instance.files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            member.mode = 0o755 if path in instance.executable else 0o644
            member.uid = member.gid = 1000
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _retrieved(future: asyncio.Future[Prepared]) -> None:
    """Its error, if it has one, is told to whoever asks again."""
    if not future.cancelled():
        future.exception()


async def _fill(sandbox: Sandbox, prepared: Prepared) -> None:
    """Brings the instance's files in. Raises SandboxLost, and GenerationError where they do not fit."""
    try:
        await sandbox.unpack(workspace_tar(prepared.instance), "/workspace")
    except ConnectionError:
        raise
    except (OSError, ValueError) as error:
        raise GenerationError(
            f"{prepared.entry.id}: its files could not be put into a workspace: {error}; raise limits.memory_mb"
        ) from error


class Preparer:
    """Prepares instances on one backend, each once for all rollouts of its group; keeps the last few hundred."""

    def __init__(self, backend: SandboxBackend) -> None:
        self._backend = backend
        self._kept: OrderedDict[str, asyncio.Future[Prepared]] = OrderedDict()

    async def prepare(self, task: Task, *, deadline: Deadline) -> Prepared:
        """Raises ConfigError, GenerationError, SandboxError."""
        check_seed(task.env_id, task.seed)
        known = self._kept.get(task.key)
        if known is not None and not (known.done() and (known.cancelled() or known.exception())):
            self._kept.move_to_end(task.key)
            return await asyncio.shield(known)
        return await asyncio.shield(self._keep(task.key, self._prepare(task, deadline)))

    def _keep(self, key: str, preparing: Coroutine[Any, Any, Prepared]) -> asyncio.Future[Prepared]:
        future = asyncio.ensure_future(preparing)
        future.add_done_callback(_retrieved)  # whoever waited may have been interrupted
        self._kept[key] = future
        self._kept.move_to_end(key)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return future

    async def _prepare(self, task: Task, deadline: Deadline) -> Prepared:
        prepared = await asyncio.to_thread(generate, task)
        if not prepared.instance.setup:
            return prepared
        return await self._set_up(prepared, deadline)

    async def _set_up(self, prepared: Prepared, deadline: Deadline) -> Prepared:
        """With a snapshot of its files after `setup`. Raises GenerationError, SandboxError."""
        sandbox = await self._backend.acquire(prepared.entry.sandbox(), deadline=deadline)
        try:
            await _fill(sandbox, prepared)
            for line in prepared.instance.setup:
                result = await sandbox.exec(line, timeout_s=min(SETUP_TIMEOUT_S, deadline.left_s()))
                if not result.ok:
                    why = "did not end in time" if result.timed_out else f"ended with {result.exit_code}"
                    tail = result.stderr.decode("utf-8", "replace")[-500:]
                    raise GenerationError(f"{prepared.key}: setup line {line[:80]!r} {why}: {tail}")
            return dataclasses.replace(prepared, snapshot=await sandbox.snapshot())
        finally:
            await sandbox.close(reuse=False)

    async def _forked(self, prepared: Prepared, deadline: Deadline) -> Sandbox:
        """A sandbox with its snapshot, which is taken again where it had to make room for others."""
        spec = prepared.entry.sandbox()
        for _ in range(_FORK_TRIES):
            try:
                return await self._backend.acquire(spec, deadline=deadline, snapshot=prepared.snapshot)
            except SnapshotGone:
                prepared = await self._anew(prepared, deadline)
        raise SandboxUnavailable(
            f"{prepared.key}: its snapshot is removed as often as it is taken, since other processes fill the cache; "
            "run fewer at once, or set METIER_HOME to a folder of this process's own"
        )

    async def _anew(self, prepared: Prepared, deadline: Deadline) -> Prepared:
        """With another snapshot, taken once for all that miss the old one."""
        known = self._kept.get(prepared.key)
        if known is None or (known.done() and (known.cancelled() or known.exception() or known.result() is prepared)):
            known = self._keep(prepared.key, self._set_up(prepared, deadline))
        return await asyncio.shield(known)

    async def fork(self, prepared: Prepared, *, deadline: Deadline) -> Sandbox:
        """A sandbox of the instance, its services running. Raises SandboxError, GenerationError."""
        sandbox = await self._forked(prepared, deadline)
        try:
            if prepared.snapshot is None and prepared.instance.files:
                await _fill(sandbox, prepared)
            for line in prepared.instance.services:
                started = await sandbox.exec(line, timeout_s=min(60.0, deadline.left_s()))
                if not started.ok:
                    raise GenerationError(f"{prepared.entry.id}: service {line[:80]!r} did not start")
        except BaseException:
            await sandbox.close(reuse=False)
            raise
        return sandbox
