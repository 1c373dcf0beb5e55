"""From an episode to what is trained on: token rows with an action mask, and whether the episode counts at all.

Every sampled token is in exactly one row, at a place where the mask is true. An episode whose outcome is not graded has
no reward: it is absent from its group's mean and from the loss, never a zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from metier.envs.core import ConfigError, Outcome, ToolSpec
from metier.harness.policy.contract import AssistantTurn, Message

from .rollout.chat import Chat, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One sequence of tokens.

    Example:
        >>> row = Row(ids=(5, 6, 7), actions=(False, True, True), logprobs=(0.0, -0.1, -0.2), versions=(-1, 3, 3))
        >>> row.num_actions
        2
    """

    ids: tuple[int, ...]
    actions: tuple[bool, ...]
    """Which tokens the policy chose; only these are trained."""
    logprobs: tuple[float, ...] | None
    """Behaviour logprobs, 0 at other tokens; None where nothing sampled the row (an oracle's)."""
    versions: tuple[int, ...]
    """Weight version that sampled the token, -1 elsewhere."""

    def __post_init__(self) -> None:
        lengths = {len(self.ids), len(self.actions), len(self.versions), len(self.logprobs or self.ids)}
        if len(lengths) != 1:
            raise ConfigError(f"a row's ids, actions, logprobs and versions differ in length: {sorted(lengths)}")
        if self.ids and self.actions[0]:
            raise ConfigError("a row's first token cannot be an action: nothing predicts it")

    @property
    def num_actions(self) -> int:
        """How many tokens are trained."""
        return sum(self.actions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """An episode as token rows; more than one only where a turn forked."""

    rows: tuple[Row, ...]
    outcome: Outcome
    reward: float | None
    """None exactly where the outcome is not graded."""
    passed: bool = False
    group: str = ""
    """Members of a group share the instance."""

    def __post_init__(self) -> None:
        if self.outcome.graded != (self.reward is not None):
            raise ConfigError(f"outcome {self.outcome} with reward {self.reward}: exactly graded outcomes have one")

    @property
    def trainable(self) -> bool:
        """Whether it counts in its group and in the loss: graded, and with something the policy chose."""
        return self.reward is not None and any(row.num_actions for row in self.rows)


def trajectory(
    chat: Chat,
    conversation: Sequence[Message | AssistantTurn],
    tools: Sequence[ToolSpec],
    *,
    outcome: Outcome,
    reward: float | None,
    passed: bool = False,
    group: str = "",
) -> Trajectory:
    """An episode's conversation as rows; `tools` matter only for turns that carry no trace."""
    rows: list[_Growing] = []
    for turn in chat.turns(conversation, tools):
        if not rows or turn.forked:
            rows.append(_Growing())
        rows[-1].add(turn)
    return Trajectory(
        rows=tuple(row.done() for row in rows), outcome=outcome, reward=reward, passed=passed, group=group
    )


@dataclass(slots=True)
class _Growing:
    ids: list[int] = field(default_factory=list)
    actions: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    sampled: bool = True

    def add(self, turn: Turn) -> Self:
        context, output = len(turn.context_ids), len(turn.output_ids)
        self.ids += (*turn.context_ids, *turn.output_ids)
        self.actions += [False] * context + [True] * output
        self.logprobs += [0.0] * context + list(turn.logprobs or [0.0] * output)
        self.sampled &= turn.logprobs is not None
        spans = turn.versions or ((-1, output),)
        self.versions += [-1] * context + [version for version, count in spans for _ in range(count)]
        return self

    def done(self) -> Row:
        return Row(
            ids=tuple(self.ids),
            actions=tuple(self.actions),
            logprobs=tuple(self.logprobs) if self.sampled else None,
            versions=tuple(self.versions),
        )
