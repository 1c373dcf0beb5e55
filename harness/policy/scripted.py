"""Policies that follow a script: a list of calls, one a turn; the oracle's; and none at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from metier.envs.core import ConfigError, Deadline, Json, ToolCall, ToolSpec

from .contract import AssistantTurn, Message, write_call


class ScriptedPolicy:
    """Says the next of its calls each turn, and submits when they are used up."""

    def __init__(self, calls: Sequence[ToolCall | Mapping[str, Any]]) -> None:
        self._calls = [call if isinstance(call, ToolCall) else _call(call) for call in calls]

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        turn = sum(isinstance(part, AssistantTurn) for part in conversation)
        call = self._calls[turn] if turn < len(self._calls) else ToolCall(tool="submit")
        return AssistantTurn(text=write_call(call), calls=(call,))


def _call(said: Mapping[str, Any]) -> ToolCall:
    """From its JSON. Raises TypeError, which tells whoever opens the policy that its settings are wrong."""
    call = ToolCall(**said)
    named = all(isinstance(name, str) for name in (call.tool, call.id))
    if not named or not isinstance(call.arguments, dict):
        raise TypeError(f"a call has a tool's name and an object of arguments, not {said!r}")
    return call


class NoopPolicy:
    """Submits at once."""

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        call = ToolCall(tool="submit")
        return AssistantTurn(text=write_call(call), calls=(call,))


def oracle_policy(env_id: str, seed: int, level: int = 0, options: Mapping[str, Json] | None = None) -> ScriptedPolicy:
    """The oracle of one instance, which the settings name; made on the host, it never enters a sandbox."""
    from ..prepare import Task, generate

    prepared = generate(Task(env_id=env_id, seed=seed, level=level, options=dict(options or {})))
    calls = list(prepared.family.oracle(prepared.instance))
    if not calls:
        raise ConfigError(f"{env_id}: its oracle makes no call")
    return ScriptedPolicy(calls)
