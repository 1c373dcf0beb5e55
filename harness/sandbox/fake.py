"""A scripted sandbox for tests of what stands above it: files in memory, commands answered from a table, no isolation.

Commands never run. `replies` maps a command (an argument list by its words joined) to a result or to a function of the
sandbox and the command; what is not in it answers exit code 127. Files, artefacts, trees, snapshots and losses behave
as the conformance suite demands of every backend.
"""

from __future__ import annotations

import errno
import hashlib
import io
import itertools
import stat
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from metier.envs.core import (
    Artefact,
    Capability,
    Collected,
    ConfigError,
    Deadline,
    ExecResult,
    Limit,
    SandboxLost,
    SandboxSpec,
    SandboxUnavailable,
    Session,
    Snapshot,
    User,
)

from ..telemetry import names, signals
from .fake_tunnel import FakeTunnels
from .requests import as_data, request_frame
from .snapshots import SnapshotGone
from .steward.trees import escapes
from .tunnel import CarriedConnection, Handler, carried

MIB = 1 << 20
Reply = ExecResult | Callable[["FakeSandbox", str], ExecResult]


def result(stdout: bytes = b"", *, exit_code: int = 0, stderr: bytes = b"") -> ExecResult:
    """A command that ended by itself."""
    return ExecResult(
        exit_code=exit_code,
        signal=None,
        stdout=stdout,
        stderr=stderr,
        cut_bytes=0,
        duration_s=0.0,
        timed_out=False,
        oom_killed=False,
        background_open=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    data: bytes
    mode: int
    user: User


class FakeSandbox:
    """One scripted sandbox. `lose` makes every later call raise SandboxLost; `commands` is what was asked of it."""

    def __init__(self, backend: FakeBackend, name: str, spec: SandboxSpec, files: Mapping[str, _File]) -> None:
        self.commands: list[tuple[str, Session | None, User]] = []
        self._backend = backend
        self._name = name
        self._spec = spec
        self._files = dict(files)
        self._lost: tuple[str, Limit | None] | None = None
        self._tunnels = FakeTunnels()

    @property
    def id(self) -> str:
        return self._name

    @property
    def spec(self) -> SandboxSpec:
        return self._spec

    def lose(self, why: str = "lost by the test", agent_caused: Limit | None = None) -> None:
        """From now on it is gone."""
        self._lost = (why, agent_caused)
        self._tunnels.carried.lose()

    def _check(self, op: str = "", **fields: object) -> None:
        """Raises what a real one would before it sends `op` with these fields."""
        if self._lost is not None:
            error = SandboxLost(f"{self._name}: {self._lost[0]}; acquire another one")
            error.agent_caused = self._lost[1]
            raise error
        request_frame(op, 0, fields)

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
        words = command if isinstance(command, str) else list(command)
        if session is not None and isinstance(command, str):
            as_data("exec", command)
            words = ""
        self._check("exec", command=words, cwd=cwd, env=dict(env or {}))
        text = command if isinstance(command, str) else " ".join(command)
        self.commands.append((text, session, user))
        with signals.span(f"{names.SANDBOX_PREFIX}exec", {names.SANDBOX: self._name, names.BACKEND: "fake"}):
            reply = self._backend.replies.get(text)
            if reply is None:
                return result(exit_code=127, stderr=f"fake: no reply scripted for {text!r}\n".encode())
            return reply if isinstance(reply, ExecResult) else reply(self, text)

    async def read(self, path: str, *, max_bytes: int, user: User = "agent") -> bytes:
        self._check("read", path=path)
        path = _absolute(path)
        file = self._files.get(path)
        if file is None:
            if self._below(path):
                raise IsADirectoryError(errno.EISDIR, "is a folder", path)
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if user != file.user and not file.mode & stat.S_IROTH:
            raise PermissionError(errno.EACCES, "permission denied", path)
        if len(file.data) > max_bytes:
            raise ValueError(f"{path}: {len(file.data)} bytes, more than max_bytes={max_bytes}")
        return file.data

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: User = "agent") -> None:
        self._check("write", path=path)
        path = _absolute(path)
        if not any(path.startswith(tree + "/") for tree in self._spec.writable_mb):
            raise OSError(errno.EROFS, "read-only file system", path)
        self._files[path] = _File(data=data, mode=mode, user=user)

    async def collect(self, artefacts: Sequence[Artefact]) -> Collected:
        self._check("collect", artefacts=[artefact.path for artefact in artefacts])
        refused: dict[str, str] = {}
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for artefact in artefacts:
                found = self._artefact(artefact)
                if isinstance(found, str):
                    refused[artefact.path] = found
                    continue
                for name in found:
                    file = self._files[f"/workspace/{name}"]
                    info = tarfile.TarInfo(name)
                    info.size, info.mode = len(file.data), file.mode
                    tar.addfile(info, io.BytesIO(file.data))
        return Collected(tar=out.getvalue(), refused=refused)

    def _artefact(self, artefact: Artefact) -> list[str] | str:
        """The names below /workspace that make it up, or why it is refused."""
        try:
            path = _absolute(f"/workspace/{artefact.path}")
        except ValueError as error:
            return str(error)
        single, below = path in self._files, self._below(path)
        if not single and not below:
            return "missing"
        if single == artefact.tree:
            kinds = ("a file", "a folder") if single else ("a folder", "a file")
            return f"{artefact.path} is {kinds[0]}, {kinds[1]} was declared"
        names = [path] if single else below
        if sum(len(self._files[name].data) for name in names) > artefact.max_mb * MIB:
            return f"too large: more than {artefact.max_mb} MiB"
        return [name.removeprefix("/workspace/") for name in names]

    async def unpack(self, tar: bytes, to: str, *, user: User = "agent") -> None:
        self._check("unpack", to=to)
        try:
            with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
                for member in archive:
                    parts = member.name.split("/")
                    if member.name.startswith("/") or ".." in parts:
                        raise ValueError(f"{member.name!r}: a path that leads out of the tree")
                    if member.issym() and not escapes(parts[:-1], member.linkname):
                        raise ValueError("the fake has no links")
                    if member.isdir():
                        continue
                    source = archive.extractfile(member) if member.isreg() else None
                    if source is None:
                        raise ValueError(f"{member.name!r}: neither a file nor a folder")
                    await self.write(f"{to}/{member.name}", source.read(), mode=member.mode & 0o777, user=user)
        except tarfile.TarError as error:
            raise ValueError(f"not a tar archive: {error}") from None

    async def snapshot(self) -> Snapshot:
        self._check()
        digest = hashlib.sha256()
        for path, file in sorted(self._files.items()):
            digest.update(f"{path}\0{file.mode}\0{len(file.data)}\0".encode() + file.data)
        name = digest.hexdigest()
        self._backend.snapshots[name] = dict(self._files)
        size = sum(len(file.data) for file in self._files.values())
        return Snapshot(digest=name, spec=self._spec, size_bytes=size)

    def tunnel(self, port: int, handler: Handler) -> AbstractAsyncContextManager[int]:
        """See `tunnel.tunnel`; `dial` is the other end."""
        return carried(self._tunnels.carried, self._tunnelled, port, handler)

    def dial(self, port: int) -> CarriedConnection:
        """A connection as a program inside would make it. Raises ConnectionRefusedError."""
        return self._tunnels.dial(port)

    async def _tunnelled(self, op: str, fields: dict[str, Any]) -> dict[str, Any]:
        self._check(op, **fields)
        return self._tunnels.call(op, fields)

    def _below(self, path: str) -> list[str]:
        return sorted(name for name in self._files if name.startswith(path + "/"))

    async def close(self, *, reuse: bool = True) -> None:
        self._backend.open.pop(self._name, None)
        if self._lost is None:
            self.lose("the sandbox was closed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class FakeBackend:
    """Hands out scripted sandboxes; `open` are those not yet closed, by name."""

    name = "fake"
    capabilities: frozenset[Capability] = frozenset({Capability.RESET_IN_PLACE})

    def __init__(self, *, replies: Mapping[str, Reply] | None = None, unavailable: str = "") -> None:
        self.replies = dict(replies or {})
        self.snapshots: dict[str, dict[str, _File]] = {}
        self.open: dict[str, FakeSandbox] = {}
        self._unavailable = unavailable
        self._numbers = itertools.count()

    async def acquire(self, spec: SandboxSpec, *, deadline: Deadline, snapshot: Snapshot | None = None) -> FakeSandbox:
        if self._unavailable:
            raise SandboxUnavailable(self._unavailable)
        if missing := spec.requires - self.capabilities:
            raise ConfigError(f"the fake backend cannot promise {', '.join(sorted(missing))}")
        if snapshot is not None and snapshot.digest not in self.snapshots:
            raise SnapshotGone(f"snapshot {snapshot.digest[:12]} was never taken here")
        files = self.snapshots[snapshot.digest] if snapshot is not None else {}
        sandbox = FakeSandbox(self, f"fake-{next(self._numbers)}", replace(spec), files)
        self.open[sandbox.id] = sandbox
        return sandbox

    async def close(self) -> None:
        for sandbox in list(self.open.values()):
            await sandbox.close(reuse=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _absolute(path: str) -> str:
    """The path without empty parts. Raises ValueError like the steward's own check."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not path.startswith("/") or ".." in parts or "\0" in path:
        raise ValueError(f"{path!r}: not an absolute path, or it holds '..' or NUL")
    return "/" + "/".join(parts)
