"""The error tree: one root, one branch for each boundary crossed, each naming the outcome of the episode it ends.

    MetierError
    ├── ConfigError            (ValueError)       the caller's mistake, before any episode
    ├── GenerationError        (RuntimeError)     → generation_failure
    ├── SandboxError           (RuntimeError)     → sandbox_failure
    │   ├── SandboxUnavailable                    none could be had
    │   └── SandboxLost        (ConnectionError)  dead or unreachable
    ├── PolicyError            (RuntimeError)     → policy_failure
    ├── VerifierError          (RuntimeError)     → verifier_failure
    ├── ClusterError           (RuntimeError)     → cluster_failure
    ├── RecordError            (OSError)
    └── DeadlineExceeded       (TimeoutError)     wrapped by the boundary it crosses

A failure is attributed once, where it crosses a boundary; only boundaries catch broadly. Every error pickles, so that
it crosses processes and Ray unchanged, and every message says what to do.
"""

from __future__ import annotations

from typing import ClassVar

from .outcome import Limit, Outcome


class MetierError(Exception):
    """Root; picklable; the message says what to do. `outcome` is what an episode ends with."""

    outcome: ClassVar[Outcome | None] = None


class ConfigError(MetierError, ValueError):
    """The caller's mistake (id, level, option, registry, capability), before any episode."""


class GenerationError(MetierError, RuntimeError):
    """`generate` or `setup` failed."""

    outcome = Outcome.GENERATION_FAILURE


class SandboxError(MetierError, RuntimeError):
    """The sandbox failed, not the command in it."""

    outcome = Outcome.SANDBOX_FAILURE


class SandboxUnavailable(SandboxError):
    """None could be had: engine, image, capacity."""


class SandboxLost(SandboxError, ConnectionError):
    """Dead or unreachable; with no sign that the agent did it, unless `agent_caused` names the limit it ran into."""

    def __init__(self, message: str, agent_caused: Limit | None = None) -> None:
        super().__init__(message)
        self.agent_caused = agent_caused
        """The evidence: which limit the agent's own processes had hit. Then the episode is graded, not failed."""

    def __reduce__(self) -> tuple[type[SandboxLost], tuple[str, Limit | None]]:
        return type(self), (str(self), self.agent_caused)


class PolicyError(MetierError, RuntimeError):
    """No turn could be had (endpoint down, engine dead); never a bad answer."""

    outcome = Outcome.POLICY_FAILURE


class VerifierError(MetierError, RuntimeError):
    """The verifier itself broke or overran `verify_s`."""

    outcome = Outcome.VERIFIER_FAILURE


class ClusterError(MetierError, RuntimeError):
    """A worker or node was lost."""

    outcome = Outcome.CLUSTER_FAILURE


class RecordError(MetierError, OSError):
    """Events can be neither sent nor spilled."""


class DeadlineExceeded(MetierError, TimeoutError):
    """Names the limit, the elapsed seconds and who set it; the boundary it crosses wraps it."""
