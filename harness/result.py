"""How an episode went: the record that crosses processes, is trained on, and is counted.

A model may say what no record can hold, such as half of a character or a number without end. `recorded_turn` and
`recorded_call` are what it said as it is kept: text with the replacement character, and a call that was refused for
what its arguments hold without them. Such a call did nothing, and does nothing when it is replayed.
"""

from __future__ import annotations

import dataclasses
import operator
from typing import Annotated

import pydantic

from metier.envs.core import Check, Limit, Outcome, ToolCall, ToolResult

from .policy.contract import AssistantTurn, Message
from .tools.door import shortened, unfit
from .tools.truncate import valid_text

NOT_RECORDED = "(not recorded)"
"""The name under which a call's record tells why its arguments are not in it; no tool has an argument of that name."""


def recorded_call(call: ToolCall) -> ToolCall:
    """A call as it is recorded: itself, unless its arguments or names are none.

    Example:
        >>> recorded_call(ToolCall(tool="shell", arguments={"command": "\\ud800"})).arguments
        {'(not recorded)': "command: '\\\\ud800' at character 0 is half of a character, which is no text; send ..."}
    """
    tool = call.tool if isinstance(call.tool, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    call_id = call.id if isinstance(call.id, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    names = {"tool": tool if valid_text(tool) == tool else shortened(tool), "id": valid_text(call_id)}
    wrong = unfit(call.arguments)
    if wrong is not None:
        return ToolCall(arguments={NOT_RECORDED: valid_text(wrong)}, **names)
    return call if names == {"tool": call.tool, "id": call.id} else dataclasses.replace(call, **names)


def recorded_turn(turn: AssistantTurn) -> AssistantTurn:
    """A turn as it is recorded, and as its policy is told of it later."""
    text, notes, reasoning = valid_text(turn.text), tuple(map(valid_text, turn.notes)), valid_text(turn.reasoning)
    calls = tuple(map(recorded_call, turn.calls))
    same = (text, notes, reasoning) == (turn.text, turn.notes, turn.reasoning)
    if same and all(map(operator.is_, calls, turn.calls)):
        return turn
    return dataclasses.replace(turn, text=text, notes=notes, reasoning=reasoning, calls=calls)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What is known of a step besides its call and observation; None where nobody measured."""

    ok: bool | None = None
    cut_bytes: int | None = None
    """That the observation left out, as its text says too."""
    duration_s: float | None = None
    """Of the call, without the grading where it ended the episode."""

    @classmethod
    def of(cls, result: ToolResult, duration_s: float | None = None) -> Detail:
        """Of a tool's result."""
        return cls(ok=result.ok, cut_bytes=result.cut_bytes, duration_s=duration_s)


def _itself(value: bool) -> bool:
    return value


Replayable = Annotated[bool, pydantic.Field(exclude_if=_itself)]
"""Whether `steps` are all that was done, so that they lead to the same end again.

They are not where the agent acted inside the sandbox by itself. Written only where it is false, so that other files are
as they were before there was such an agent, for old readers too.
"""


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
    turns_s: tuple[float, ...] = ()
    """The policy's part of it by turn; empty where nobody measured, as is the next."""
    details: tuple[Detail, ...] = ()
    """Of each of `steps`."""
    replayable: Replayable = True

    @pydantic.model_validator(mode="after")
    def _graded_has_reward(self) -> EpisodeResult:
        if self.outcome.graded != (self.reward is not None):
            raise ValueError(f"outcome {self.outcome} with reward {self.reward}: exactly graded outcomes have a reward")
        return self
