"""The sandbox contract: an isolated place with a trade's real tools, and how it is had.

An `ExecResult` is about the command only. A sandbox that is dead or unreachable raises `SandboxLost`; that is never an
observation and never a reward. What the agent can cause (killed for memory, out of pids, disk or time) is an
observation. An unsupported request is refused at validation, never ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from types import TracebackType
from typing import Literal, Protocol, Self

from .deadline import Deadline

User = Literal["agent", "root"]
"""uid 1000, or the sandbox's own root (with few capabilities)."""
Session = Literal["shell", "python"]
"""A persistent bash, or a persistent Python interpreter."""


class Capability(StrEnum):
    """A promise beyond the defaults; a family names those it needs in `requires`, and is refused elsewhere."""

    MEMORY_LIMIT = auto()
    """Total memory of the sandbox is bounded."""
    PIDS_LIMIT = auto()
    """The number of processes is bounded."""
    SYSCALL_FILTER = auto()
    """Dangerous system calls are refused."""
    SEPARATE_UIDS = auto()
    """The steward runs under another uid than the agent."""
    ROOT_INSIDE = auto()
    """The agent may be root inside."""
    OVERLAY_ROOT = auto()
    """The whole root is writable, and thrown away."""
    ALLOWLIST = auto()
    """Network to named hosts only."""
    RESET_IN_PLACE = auto()
    """A used sandbox is wiped, verified and used again."""
    GPU = auto()
    """A GPU can be lent to the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """What a sandbox must be.

    Example:
        >>> SandboxSpec(image="terminal-python").memory_mb
        1024
    """

    image: str
    """A folder of `images/`."""
    memory_mb: int = 1024
    cpus: float = 1.0
    pids: int = 256
    gpus: int = 0
    ttl_s: float = 3600
    """After this many seconds the sandbox ends by itself, whoever forgot it."""
    verifier: bool = False
    """From the pool where no agent ever ran."""
    writable_mb: Mapping[str, int] = field(default_factory=lambda: {"/workspace": 256, "/tmp": 128})
    """MiB of each tmpfs, together at most half of `memory_mb`."""
    allow_hosts: tuple[str, ...] = ()
    requires: frozenset[Capability] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Files of the writable trees by content hash; no processes."""

    digest: str
    """SHA-256 of the tar, which lies in the backend's host cache under that name."""
    spec: SandboxSpec
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecResult:
    """How the command ended: an exit code or a signal, never both. `cut_bytes` left the middle of the streams."""

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    cut_bytes: int
    duration_s: float
    timed_out: bool
    oom_killed: bool
    background_open: bool
    """The command ended while a child of its own still held its output open."""

    @property
    def ok(self) -> bool:
        """Ended by itself, with exit code 0."""
        return self.exit_code == 0 and not self.timed_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A graded path under /workspace; links and metadata (owner, mode, ACL) only where declared."""

    path: str
    """Relative to /workspace."""
    max_mb: int = 16
    tree: bool = False
    """A folder with everything in it, instead of one regular file."""
    links: bool = False
    metadata: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """The declared artefacts, and what was refused and why."""

    tar: bytes
    """Paths relative to /workspace."""
    refused: Mapping[str, str]
    """Declared path → why it is not in the tar (missing, too large, a link, a device…)."""


class Sandbox(Protocol):
    """One sandbox. Any method may raise SandboxLost.

    Files are touched with the named user's rights; no link leads out.
    """

    @property
    def id(self) -> str:
        """Unique on this host; the container's name where there is a container."""
        ...

    @property
    def spec(self) -> SandboxSpec: ...

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
        """str: bash, or source for a session; never raises for the command.

        `output_kib` bounds each end (head, tail) kept of each stream. It runs in /workspace unless `cwd` is given.
        """
        ...

    async def read(self, path: str, *, max_bytes: int, user: User = "agent") -> bytes:
        """Raises FileNotFoundError, PermissionError, IsADirectoryError, or ValueError if larger than `max_bytes`."""
        ...

    async def write(self, path: str, data: bytes, *, mode: int = 0o644, user: User = "agent") -> None:
        """Makes parents; OSError if full."""
        ...

    async def collect(self, artefacts: Sequence[Artefact]) -> Collected:
        """After the agent's processes died: tar bytes, and what was refused and why."""
        ...

    async def unpack(self, tar: bytes, to: str, *, user: User = "agent") -> None:
        """A tree; same checks as collect."""
        ...

    async def snapshot(self) -> Snapshot:
        """Stops processes first."""
        ...

    async def close(self, *, reuse: bool = True) -> None:
        """Idempotent, shielded, bounded: verified reset into the pool, else destroyed."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SandboxBackend(Protocol):
    """Where sandboxes come from. An async context manager: leaving it removes everything it made."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    async def acquire(self, spec: SandboxSpec, *, deadline: Deadline, snapshot: Snapshot | None = None) -> Sandbox:
        """Fresh, or forked from `snapshot`. Raises ConfigError, SandboxUnavailable."""
        ...

    async def close(self) -> None:
        """Idempotent: every sandbox of this backend is gone afterwards."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
