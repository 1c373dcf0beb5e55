"""The contracts that every room shares: outcome, errors, deadline, randomness, tools, family, sandbox."""

from .deadline import Deadline
from .errors import (
    ClusterError,
    ConfigError,
    DeadlineExceeded,
    GenerationError,
    MetierError,
    PolicyError,
    RecordError,
    SandboxError,
    SandboxLost,
    SandboxUnavailable,
    VerifierError,
)
from .family import Check, Family, Instance, TradeTools, Verdict
from .outcome import Limit, Outcome
from .rng import HashRng, Rng, hidden_rng, instance_rng
from .sandbox import (
    Artefact,
    Capability,
    Collected,
    ExecResult,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    Session,
    Snapshot,
    User,
)
from .tools import Json, ToolCall, ToolResult, ToolSpec

__all__ = [
    "Artefact",
    "Capability",
    "Check",
    "ClusterError",
    "Collected",
    "ConfigError",
    "Deadline",
    "DeadlineExceeded",
    "ExecResult",
    "Family",
    "GenerationError",
    "HashRng",
    "Instance",
    "Json",
    "Limit",
    "MetierError",
    "Outcome",
    "PolicyError",
    "RecordError",
    "Rng",
    "Sandbox",
    "SandboxBackend",
    "SandboxError",
    "SandboxLost",
    "SandboxSpec",
    "SandboxUnavailable",
    "Session",
    "Snapshot",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "TradeTools",
    "User",
    "Verdict",
    "VerifierError",
    "hidden_rng",
    "instance_rng",
]
