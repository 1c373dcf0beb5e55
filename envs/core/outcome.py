"""How an episode ended: one closed vocabulary from the sandbox to the leaderboard.

The same word travels through ``info["outcome"]``, result rows, trainer masks and the leaderboard's denominator.
Only the first two outcomes carry a reward; every other one means that *we* failed, and an infrastructure failure is
never a reward of 0. What an agent can cause (rubbish, a crash by its own load, a bad artefact) is never a failure.
"""

from __future__ import annotations

from enum import StrEnum, auto


class Outcome(StrEnum):
    """How an episode ended: the first two are graded and carry a reward in [0, 1], the others carry None."""

    COMPLETED = auto()
    """The agent submitted, and was graded."""
    AGENT_LIMIT = auto()
    """A limit of the agent's ended the episode (see `Limit`); graded on what was there."""
    GENERATION_FAILURE = auto()
    """The instance could not be made."""
    SANDBOX_FAILURE = auto()
    """The sandbox was lost with no sign that the agent did it."""
    POLICY_FAILURE = auto()
    """No turn could be had from the policy."""
    VERIFIER_FAILURE = auto()
    """The verifier itself broke or overran its time."""
    CLUSTER_FAILURE = auto()
    """A worker or node was lost."""
    CANCELLED = auto()
    """Stopped from outside."""

    @property
    def graded(self) -> bool:
        """Whether this outcome carries a reward."""
        return self in (Outcome.COMPLETED, Outcome.AGENT_LIMIT)


class Limit(StrEnum):
    """What ended an `agent_limit` episode."""

    STEPS = auto()
    """Tool calls, by `limits.steps`."""
    TIME = auto()
    """Tool time, by `limits.agent_s`, or the runner's deadline."""
    TOKENS = auto()
    """The conversation outgrew the policy's context or token budget."""
    MEMORY = auto()
    """The agent's processes took the sandbox down by memory."""
    PROCESSES = auto()
    """The agent's processes took the sandbox down by their number."""
    DISK = auto()
    """The agent filled the sandbox's writable trees."""
