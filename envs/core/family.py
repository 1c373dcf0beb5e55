"""The family contract: what an author writes, and what a verdict is.

A *family* is a seeded generator of tasks from one line of real work, with a verifier that measures the result. It runs
on the host with the base dependencies only; the trade's tools run in sandboxes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from .rng import Rng
from .sandbox import Artefact, Sandbox
from .tools import Json, ToolCall, ToolResult, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A pure function of (id, version, options, seed, level). `files` and `setup` make the snapshot.

    Example:
        >>> Instance(variables={"name": "x"}, files={"a.txt": b"1"}, artefacts=(Artefact(path="answer"),),
        ...          truth={"answer": "1"}).secrets
        ()
    """

    variables: Mapping[str, Json]
    """For the template `instruction.md`."""
    files: Mapping[str, bytes]
    """Path under /workspace → bytes."""
    executable: frozenset[str] = frozenset()
    """Those of `files` that get mode 755."""
    setup: tuple[str, ...] = ()
    """Bash lines run as the agent in a preparing sandbox, after `files` are there; all must exit 0."""
    services: tuple[str, ...] = ()
    """Bash lines started in every fork."""
    context: tuple[str, ...] = ()
    """Further texts the brief refers to, given to the agent beside it."""
    artefacts: tuple[Artefact, ...]
    """What is graded."""
    truth: Mapping[str, Json]
    """Never enters the agent's sandbox."""
    secrets: tuple[str, ...] = ()
    """Distinctive strings of truth and oracle that must appear nowhere in the agent's sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """`score` in [0, 1]; a gate below 1 makes the reward 0 and weighs nothing."""

    name: str
    score: float
    weight: float = 1.0
    gate: bool = False
    evidence: str = ""

    def __post_init__(self) -> None:
        if not (0.0 <= self.score <= 1.0) or not (self.weight >= 0.0):
            raise ValueError(f"check {self.name}: score {self.score} must lie in [0, 1], weight {self.weight} be >= 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier measured.

    Example:
        >>> kept, fixed = Check(name="kept", score=1, gate=True), Check(name="fixed", score=0.5)
        >>> Verdict(checks=(kept, fixed), passed=False).reward
        0.5
    """

    checks: tuple[Check, ...]
    passed: bool

    @property
    def reward(self) -> float:
        """0 if a gate fails, else sum(w·s) / sum(w) over the other checks (1 where there are none)."""
        if any(check.gate and check.score < 1.0 for check in self.checks):
            return 0.0
        graded = [check for check in self.checks if not check.gate]
        total = sum(check.weight for check in graded)
        return sum(check.weight * check.score for check in graded) / total if total > 0 else 1.0

    @classmethod
    def of(cls, *checks: Check) -> Verdict:
        """Passed means every check at 1."""
        return cls(checks=checks, passed=bool(checks) and all(check.score == 1.0 for check in checks))


class TradeTools(Protocol):
    """A family's own tools for one episode; may keep state on the host, never `truth` that a call can read."""

    @property
    def specs(self) -> tuple[ToolSpec, ...]: ...

    async def call(self, call: ToolCall) -> ToolResult:
        """Raises SandboxError only."""
        ...


@dataclass(frozen=True)
class Family(ABC):
    """A subclass is a frozen dataclass whose fields are the options; stateless, one object serves many episodes."""

    @abstractmethod
    def generate(self, rng: Rng, level: int) -> Instance:
        """Pure and synchronous, in a worker process; level in 0..levels-1."""

    @abstractmethod
    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        """Ends with `submit`; reward 1, passed."""

    @abstractmethod
    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        """Three or more, by name; none passes."""

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        """Other right ways, by name; reward 1."""
        return {}

    @abstractmethod
    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        """Light on the host; VerifierError only for its own faults.

        `sandbox` is a fresh verifier sandbox that holds only the declared artefacts, under /workspace. A missing,
        oversized, forbidden or endless artefact is a failed check, never an error: an agent must not be able to choose
        "no reward".
        """

    def trade_tools(self, sandbox: Sandbox, instance: Instance) -> TradeTools | None:
        """The family's own tools, for one episode."""
        return None
