"""Lenses: a backend and its sandboxes as a verifier or an agent would have them, watched or under other conditions.

A lens adds to what passes through and takes nothing away; a family cannot tell that it is there, but by what the lens
is for. Whatever our own code does for a sandbox happens by the real clock, whichever the family lives by.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from metier.envs.core import (
    Artefact,
    Capability,
    Collected,
    Deadline,
    ExecResult,
    Sandbox,
    SandboxBackend,
    SandboxError,
    SandboxSpec,
    Session,
    Snapshot,
    User,
)

from . import clock

_PIN = "taskset -cp {core} $$ > /dev/null 2>&1"
_USAGE = """\
for folder in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  cat $folder/memory.max_usage_in_bytes $folder/memory.peak 2> /dev/null | sed 's/^/peak /'
  grep -E '^(total_cache|file|shmem|total_shmem) ' $folder/memory.stat 2> /dev/null
done
du -sk {trees} 2> /dev/null | sed 's/^/disk /'
"""
_USAGE_S = 20.0


class SandboxLens:
    """Passes everything through; subclasses change the command of `exec`, `write`, or what happens before `close`."""

    def __init__(self, inner: Sandbox) -> None:
        self._inner = inner

    @property
    def id(self) -> str:
        return self._inner.id

    @property
    def spec(self) -> SandboxSpec:
        return self._inner.spec

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float,
        user: User = "agent",
        session: Session | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes = b"",
        output_kib: int = 64,
    ) -> ExecResult:
        command, env = self._command(command, user=user, session=session, env=env, stdin=stdin)
        with clock.at(None):
            return await self._inner.exec(
                command,
                timeout_s=timeout_s,
                user=user,
                session=session,
                cwd=cwd,
                env=env,
                stdin=stdin,
                output_kib=output_kib,
            )

    def _command(
        self,
        command: str | Sequence[str],
        *,
        user: User,
        session: Session | None,
        env: Mapping[str, str] | None,
        stdin: bytes,
    ) -> tuple[str | Sequence[str], Mapping[str, str] | None]:
        """Sees what `exec` is about to run, and says which command and environment to run."""
        return command, env

    async def read(self, path: str, *, max_bytes: int, user: User = "agent") -> bytes:
        with clock.at(None):
            return await self._inner.read(path, max_bytes=max_bytes, user=user)

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: User = "agent") -> None:
        with clock.at(None):
            await self._inner.write(path, data, mode=mode, user=user)

    async def collect(self, artefacts: Sequence[Artefact]) -> Collected:
        with clock.at(None):
            return await self._inner.collect(artefacts)

    async def unpack(self, tar: bytes, to: str, *, user: User = "agent") -> None:
        with clock.at(None):
            await self._inner.unpack(tar, to, user=user)

    async def snapshot(self) -> Snapshot:
        with clock.at(None):
            return await self._inner.snapshot()

    async def close(self, *, reuse: bool = True) -> None:
        with clock.at(None):
            await self._inner.close(reuse=reuse)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class BackendLens:
    """A backend whose sandboxes are seen through `lens`; `spec` may ask for other sandboxes. Closing is its owner's."""

    def __init__(
        self,
        inner: SandboxBackend,
        lens: Callable[[Sandbox], Sandbox],
        spec: Callable[[SandboxSpec], SandboxSpec] = lambda spec: spec,
    ) -> None:
        self._inner = inner
        self._lens = lens
        self._spec = spec

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self._inner.capabilities

    async def acquire(self, spec: SandboxSpec, *, deadline: Deadline, snapshot: Snapshot | None = None) -> Sandbox:
        with clock.at(None):
            return self._lens(await self._inner.acquire(self._spec(spec), deadline=deadline, snapshot=snapshot))

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@dataclass(slots=True, kw_only=True)
class Told:
    """What a verifier said inside a sandbox; `canary` was in the truth that it held."""

    canary: str
    messages: int = 0
    readable: list[bytes] = field(default_factory=list[bytes])
    """What the agent's programs can read: commands, environments and inputs of what ran as the agent, the commands of
    root's probes, and files that are not root's alone."""
    ran_agent: bool = False
    """Whether anything ran as the agent; otherwise nobody was there to read."""


class Listening(SandboxLens):
    """Keeps what is told to a sandbox."""

    def __init__(self, inner: Sandbox, told: Told) -> None:
        super().__init__(inner)
        self._told = told

    def _command(
        self,
        command: str | Sequence[str],
        *,
        user: User,
        session: Session | None,
        env: Mapping[str, str] | None,
        stdin: bytes,
    ) -> tuple[str | Sequence[str], Mapping[str, str] | None]:
        words = [command] if isinstance(command, str) else list(command)
        if user == "agent":
            words += [f"{name}={value}" for name, value in (env or {}).items()]
        self._told.messages += 1
        self._told.ran_agent = self._told.ran_agent or user == "agent"
        self._told.readable.append("\0".join(words).encode() + (b"\0" + stdin if user == "agent" else b""))
        return command, env

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: User = "agent") -> None:
        self._told.messages += 1
        if user == "agent" or mode & 0o044:
            self._told.readable.append(data)
        await super().write(path, data, mode=mode, user=user)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Where and when commands in a sandbox believe to be; the empty one is here and now."""

    zone: str = ""
    moment: float | None = None
    """Seconds since 1970; for Python started with `-c`, as probes are. Nobody may set a sandbox's own clock."""
    core: int | None = None
    """The one core that commands may use."""


class Displaced(SandboxLens):
    """Runs commands elsewhere; sessions stay where they are."""

    def __init__(self, inner: Sandbox, where: Elsewhere) -> None:
        super().__init__(inner)
        self._where = where

    def _command(
        self,
        command: str | Sequence[str],
        *,
        user: User,
        session: Session | None,
        env: Mapping[str, str] | None,
        stdin: bytes,
    ) -> tuple[str | Sequence[str], Mapping[str, str] | None]:
        if session is None:
            command = self._elsewhere(command)
            env = {"TZ": self._where.zone, **(env or {})} if self._where.zone else env
        return command, env

    def _elsewhere(self, command: str | Sequence[str]) -> str | Sequence[str]:
        pin = _PIN.format(core=self._where.core) if self._where.core is not None else ""
        if isinstance(command, str):
            return f"{pin}\n{command}" if pin else command
        words = list(command)
        if self._where.moment is not None and words[0].rpartition("/")[2].startswith("python") and "-c" in words:
            at = words.index("-c") + 1
            words[at] = moved_python(words[at], self._where.moment)
        return ["bash", "-c", f'{pin}; exec "$@"', "bash", *words] if pin else words


def moved_python(source: str, moment: float) -> str:
    """Python `source` that lives at `moment`; as it is where nothing may stand in front of it."""
    if "from __future__" in source:
        return source
    with open(clock.__file__, encoding="utf-8") as file:
        mover = f"{file.read()}\nmove_for_good({moment})\n"
    return f"exec({mover!r}, {{'__name__': 'clock'}})\n{source}"


@dataclass(slots=True, kw_only=True)
class Usage:
    """The most that was seen of some sandboxes, in MiB; 0 where it could not be seen."""

    memory_mb: float = 0.0
    """Of processes and of files kept in memory, from a sandbox's first moment; the cache of files on disk left out."""
    disk_mb: float = 0.0
    """In the writable trees, at the end."""
    seconds: float = 0.0
    """From having it to giving it back, the longest."""

    def saw(self, report: str) -> None:
        """Another sandbox's report."""
        numbers: dict[str, float] = {"disk": 0.0}
        for name, number in (line.split()[:2] for line in report.splitlines() if len(line.split()) > 1):
            numbers[name] = float(number) + (numbers["disk"] if name == "disk" else 0.0)
        # cgroup v2 counts files in memory among `file`; v1 has totals of its own
        cache = numbers.get("total_cache", numbers.get("file", 0.0))
        cache -= numbers.get("total_shmem", numbers.get("shmem", 0.0))
        self.memory_mb = max(self.memory_mb, round((numbers.get("peak", 0.0) - max(0.0, cache)) / (1 << 20), 1))
        self.disk_mb = max(self.disk_mb, round(numbers["disk"] / 1024, 1))


class Measuring(SandboxLens):
    """Looks at memory and disk before the end. Only of use in a sandbox that nobody had before or has later."""

    def __init__(self, inner: Sandbox, usage: Usage) -> None:
        super().__init__(inner)
        self._usage = usage
        self._since = time.monotonic()

    async def close(self, *, reuse: bool = True) -> None:
        self._usage.seconds = max(self._usage.seconds, time.monotonic() - self._since)
        trees = " ".join(self._inner.spec.writable_mb)
        with contextlib.suppress(SandboxError):  # one that is gone has no answer
            seen = await self._inner.exec(_USAGE.format(trees=trees), timeout_s=_USAGE_S)
            self._usage.saw(seen.stdout.decode("utf-8", "replace"))
        await super().close(reuse=False)


def measuring(backend: SandboxBackend, usage: Usage) -> SandboxBackend:
    """`backend` with sandboxes of their own for `usage`; another time to live keeps them out of the pools."""
    return BackendLens(backend, lambda inner: Measuring(inner, usage), lambda spec: replace(spec, ttl_s=spec.ttl_s + 1))
