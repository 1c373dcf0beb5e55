"""A sandbox with a steward in it: the whole `Sandbox` contract over one connection, for every backend."""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Any, Self

from metier.envs.core import (
    Artefact,
    Collected,
    ConfigError,
    ExecResult,
    SandboxError,
    SandboxLost,
    SandboxSpec,
    Session,
    Snapshot,
    User,
)

from ..telemetry import names, signals
from .client import Answer, StewardClient
from .protocol import HOST_GRACE_S
from .requests import as_data
from .snapshots import SnapshotStore
from .tunnel import Handler, carried

FILE_S = 60.0
"""How long reading or writing files may take."""
TREE_S = 300.0
"""How long packing or unpacking a whole tree may take."""
TUNNEL_S = 30.0
"""How long opening or closing a tunnel may take."""


class StewardSandbox:
    """A leased sandbox. `release(sandbox, reuse)` gives it back to its backend, and is called once."""

    def __init__(
        self,
        client: StewardClient,
        spec: SandboxSpec,
        snapshots: SnapshotStore,
        release: Callable[[StewardSandbox, bool], Coroutine[Any, Any, None]],
        *,
        backend: str = "",
    ) -> None:
        """`backend` is its name, for metrics."""
        self.client = client
        self.ran_agent = False
        """Whether anything ran as the agent here; such a sandbox never serves a verifier again."""
        self._spec = spec
        self._snapshots = snapshots
        self._release = release
        self._backend = backend
        self._closing: asyncio.Task[None] | None = None

    @property
    def id(self) -> str:
        return self.client.name

    @property
    def spec(self) -> SandboxSpec:
        return self._spec

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
        """See `Sandbox.exec`.

        Raises:
            ConfigError: what no session can do: root, an argument list, stdin; or a limit below 0.
            RequestRefused: too long for a request, or text that is none; as every method.
        """
        if session is not None and (user != "agent" or stdin or not isinstance(command, str)):
            raise ConfigError("a session takes source text of the agent's, without stdin; use a plain exec otherwise")
        if timeout_s <= 0 or output_kib < 0:
            raise ConfigError(f"timeout_s must be above 0 and output_kib not below: {timeout_s}, {output_kib}")
        self.ran_agent = self.ran_agent or user == "agent"
        if session is not None and isinstance(command, str):
            command, stdin = "", as_data("exec", command)
        fields = {
            "command": command if isinstance(command, str) else list(command),
            "timeout_s": timeout_s,
            "user": user,
            "session": session,
            "cwd": cwd,
            "env": dict(env or {}),
            "output_kib": output_kib,
        }
        with self._span("exec") as span:
            answer = await self._call("exec", fields, timeout_s=timeout_s + HOST_GRACE_S, body=stdin)
            result = self._result_of(answer)
            span.set(names.SESSION, session)
            span.set(names.EXIT_CODE, result.exit_code)
            span.set(names.TIMED_OUT, result.timed_out or None)
            span.set(names.OOM_KILLED, result.oom_killed or None)
        signals.observe(names.EXEC_SECONDS, result.duration_s, backend=self._backend)
        if result.timed_out:
            signals.add(names.EXEC_TIMEOUTS, backend=self._backend)
        if result.oom_killed:
            signals.add(names.OOM, backend=self._backend)
        return result

    def _span(self, op: str) -> AbstractContextManager[signals.Span]:
        """Around an operation, for whoever listens; what is in a command or a file is not told."""
        return signals.span(
            f"{names.SANDBOX_PREFIX}{op}", {names.SANDBOX: self.client.name, names.BACKEND: self._backend}
        )

    async def _call(self, op: str, fields: Mapping[str, Any] | None = None, **how: Any) -> Answer:
        """As the client's, and a loss is counted. Raises SandboxLost, also where this lease is over."""
        self._check_held()
        try:
            return await self.client.call(op, fields, **how)
        except SandboxLost:
            signals.add(names.LOST, backend=self._backend)
            raise

    async def _seen(self, op: str, fields: Mapping[str, Any] | None = None, **how: Any) -> Answer:
        """As `_call`, within a span."""
        with self._span(op):
            return await self._call(op, fields, **how)

    def _result_of(self, answer: Answer) -> ExecResult:
        reply = answer.fields
        return ExecResult(
            exit_code=reply["exit_code"],
            signal=reply["signal"],
            stdout=answer.out,
            stderr=answer.err,
            cut_bytes=reply["cut_bytes"],
            duration_s=reply["duration_s"],
            timed_out=reply["timed_out"],
            oom_killed=reply["oom_killed"],
            background_open=reply["background_open"],
        )

    async def read(self, path: str, *, max_bytes: int, user: User = "agent") -> bytes:
        fields = {"path": path, "max_bytes": max_bytes, "user": user}
        return (await self._seen("read", fields, timeout_s=FILE_S)).out

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: User = "agent") -> None:
        self._check_room(data)
        await self._seen("write", {"path": path, "mode": mode, "user": user}, timeout_s=FILE_S, body=data)

    async def collect(self, artefacts: Sequence[Artefact]) -> Collected:
        fields = {
            "artefacts": [
                {"path": a.path, "max_mb": a.max_mb, "tree": a.tree, "links": a.links, "metadata": a.metadata}
                for a in artefacts
            ]
        }
        answer = await self._seen("collect", fields, timeout_s=TREE_S)
        return Collected(tar=answer.out, refused=answer.fields["refused"])

    async def unpack(self, tar: bytes, to: str, *, user: User = "agent") -> None:
        self._check_room(tar)
        await self._seen("unpack", {"to": to, "user": user}, timeout_s=TREE_S, body=tar)

    def _check_room(self, data: bytes) -> None:
        """Refuses what no tree can hold: the steward, which has to hold it first, would be killed for its memory."""
        most_mb = sum(self._spec.writable_mb.values())
        if len(data) > most_mb << 20:
            raise OSError(errno.ENOSPC, f"{len(data) >> 20} MiB for trees of {most_mb} MiB in all")

    async def snapshot(self) -> Snapshot:
        with self._snapshots.writer(self._spec) as writer:
            await self._seen("snapshot", timeout_s=TREE_S, sink=writer.add)
            taken = writer.finish()
        await asyncio.to_thread(self._snapshots.added, taken)
        return taken

    async def restore(self, snapshot: Snapshot) -> None:
        """Fills the writable trees with a snapshot's files. Raises SnapshotGone if it is not on this machine."""
        tar = await asyncio.to_thread(self._snapshots.read, snapshot)
        await self._seen("restore", timeout_s=TREE_S, body=tar)

    def tunnel(self, port: int, handler: Handler) -> AbstractAsyncContextManager[int]:
        """See `tunnel.tunnel`."""
        return carried(self.client.carried, self._tunnelled, port, handler)

    async def _tunnelled(self, op: str, fields: dict[str, Any]) -> dict[str, Any]:
        if op == "tunnel":
            self._check_held()
        return (await self.client.call(op, fields, timeout_s=TUNNEL_S)).fields

    def _check_held(self) -> None:
        """Raises SandboxLost once the sandbox was given back: it may be somebody else's by now."""
        if self._closing is not None:
            raise SandboxLost(f"{self.id}: the sandbox was closed; acquire another one")

    async def close(self, *, reuse: bool = True) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._release(self, reuse))
        await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(SandboxError):
            await self.close()
