"""The policy contract: given a conversation, return an assistant turn.

The word policy means this only; the scheduler has dispatch rules. A policy keeps nothing between calls: the
conversation, traces included, is all the state, so any policy can act on any process and any turn can be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum, auto
from typing import NamedTuple, Protocol, runtime_checkable

from metier.envs.core import Deadline, Limit, Sandbox, ToolCall, ToolSpec


class Role(StrEnum):
    """Who speaks a message."""

    SYSTEM = auto()
    """The house: the tools and how to call them."""
    USER = auto()
    """The brief, or a remark of the harness."""
    TOOL = auto()
    """The observation of one call."""


class Stop(StrEnum):
    """Why a turn ended."""

    END = auto()
    """The model said so."""
    LENGTH = auto()
    """`max_tokens` of the turn."""
    CONTEXT = auto()
    """The conversation no longer fits the model: an `agent_limit` by tokens."""
    ABORT = auto()
    """Cancelled from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What the policy is told."""

    role: Role
    text: str
    images: tuple[bytes, ...] = ()
    """PNG bytes."""
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a turn cost; zeros where nobody counted."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    """Those of its reasoning included."""
    cached_tokens: int = 0
    """Of `prompt_tokens`, those that were not computed again."""
    reasoning_tokens: int = 0
    prefill_s: float = 0.0
    """From the request that was answered to its first token; 0 where the answer came in one piece."""
    decode_s: float = 0.0
    waited_s: float = 0.0
    """For a client-side rate limit, and between and in attempts that failed."""
    num_requests: int = 0
    """To an endpoint, those that failed included."""
    cost_usd: Decimal | None = None
    """None where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTrace:
    """This turn's ids.

    The prompt is all earlier context and output ids + `context_ids`, id for id, or `context_ids` alone where `forked`.

    Example:
        >>> trace = TokenTrace(context_ids=(1, 2), output_ids=(3,), logprobs=(-0.5,), versions=((0, 1),))
        >>> len(trace.output_ids) == len(trace.logprobs) == sum(count for _, count in trace.versions)
        True
    """

    context_ids: Sequence[int]
    output_ids: Sequence[int]
    logprobs: Sequence[float]
    """Of `output_ids`, under the distribution they were sampled from."""
    versions: tuple[tuple[int, int], ...]
    """(weight version, count) spans that tile `output_ids`."""
    forked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantTurn:
    """Text and 0 to k calls."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    """What parsing forgave."""
    stop: Stop = Stop.END
    usage: Usage = Usage()
    tokens: TokenTrace | None = None
    """Engine-backed policies only; a turn without it cannot be trained on at token level."""
    reasoning: str = ""
    """What the model thought, where its endpoint tells it apart from `text`."""


class Policy(Protocol):
    """Built from a registered name and JSON settings; keeps nothing between calls."""

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        """The next turn, by `deadline`.

        A bad answer is a turn: rubbish, a refusal, silence, a call that does not exist. Where the deadline cuts short
        somebody who was at work on an answer, what there is of it is a turn that stopped with ABORT.

        Raises:
            PolicyError: No turn could be had: the endpoint is down, refuses the caller, or says nothing at all.
        """
        ...


class Departure(NamedTuple):
    """How an agent that acts inside the sandbox ended; what it left there is graded."""

    limit: Limit | None
    """What ended it; None where it ended by itself, which is its submission."""
    waited_s: float
    """For its model."""
    acted_s: float
    """The rest of its time: what `agent_s` bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """An episode, as it is handed over to an agent that acts inside its sandbox."""

    sandbox: Sandbox
    brief: str
    tools: tuple[ToolSpec, ...]
    """The environment's, those of the harness left out: they run on the host, out of reach from inside."""
    max_turns: int
    """What the environment allows in steps."""
    agent_s: float
    """Of its own time."""
    deadline: Deadline
    say: Callable[[Message | AssistantTurn], None]
    """Takes what belongs into the conversation, in order."""


@runtime_checkable
class Inside(Protocol):
    """A policy whose agent acts inside the sandbox by itself.

    Nobody sees the calls that it makes there, so its episodes cannot be replayed. Its `act` refuses.
    """

    async def stay(self, stay: Stay) -> Departure:
        """Lets the agent act until it ends or a limit does, and leaves nothing of it on the host.

        Raises:
            ConfigError: This environment or sandbox cannot have it.
            PolicyError: The agent's model could not be reached.
            SandboxError: The sandbox was lost.
        """
        ...


def write_call(call: ToolCall) -> str:
    """The canonical text of a call.

    Example:
        >>> write_call(ToolCall(tool="shell", arguments={"command": "ls"}))
        '{"tool":"shell","arguments":{"command":"ls"}}'
    """
    return json.dumps({"tool": call.tool, "arguments": dict(call.arguments)}, ensure_ascii=False, separators=(",", ":"))
