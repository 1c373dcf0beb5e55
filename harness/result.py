"""How an episode went: the record that crosses processes, is trained on, and is counted."""

from __future__ import annotations

import pydantic

from metier.envs.core import Check, Limit, Outcome, ToolCall

from .policy.contract import AssistantTurn, Message


class EpisodeResult(pydantic.BaseModel):
    """One episode, whole; JSON by `model_dump(mode="json")`.

    `reward` is None exactly where the outcome is not graded: an infrastructure failure is never a reward of 0.
    """

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    env_id: str
    seed: int
    level: int
    sample: int
    outcome: Outcome
    limit: Limit | None = None
    reward: float | None = None
    passed: bool | None = None
    checks: tuple[Check, ...] = ()
    failure: str = ""
    """The error's class and words, where the outcome is a failure."""
    conversation: tuple[Message | AssistantTurn, ...] = ()
    steps: tuple[ToolCall, ...] = ()
    """What was run, in order: with the seed it replays the episode."""
    dropped: tuple[ToolCall, ...] = ()
    """Calls of the last turn after the end."""
    timings_s: dict[str, float] = {}
    """The time ledger: reset, policy, tool, verify, total."""

    @pydantic.model_validator(mode="after")
    def _graded_has_reward(self) -> EpisodeResult:
        if self.outcome.graded != (self.reward is not None):
            raise ValueError(f"outcome {self.outcome} with reward {self.reward}: exactly graded outcomes have a reward")
        return self
