"""The policy: conversation to request, answer to turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from metier.envs.core import Deadline, PolicyError, ToolSpec

from ..contract import AssistantTurn, Message, Stop
from .answer import turn_of
from .asking import Answered, Request, line
from .credentials import api_key, headers, scrubbed, scrubbed_json
from .faults import Fault, Meaning
from .messages import estimated_tokens, request_body
from .settings import OpenAISettings

LEAST_ROOM = 64
"""Tokens: where less is left for an answer, the conversation is too long."""


@dataclasses.dataclass(frozen=True, slots=True)
class OpenAIPolicy:
    """Keeps nothing between calls; what it shares with others of its process are connections and a rate limit.

    Example:
        policy = open_policy("openai:http://127.0.0.1:8000/v1#smollm2", {"calls": "text"})
        turn = await policy.act([Message(role=Role.USER, text=brief)], specs, deadline=deadline)
    """

    settings: OpenAISettings

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        """The model's next turn.

        Raises:
            PolicyError: The endpoint cannot be reached, refuses the caller, or gave no answer after all attempts.
        """
        key = api_key(self.settings)
        try:
            return await self._turn(conversation, tools, key, deadline)
        except Fault as fault:
            words = scrubbed(fault.words, key)
            match fault.meaning:
                case Meaning.CONTEXT:
                    return AssistantTurn(text="", stop=Stop.CONTEXT, notes=(f"the conversation is too long: {words}",))
                case Meaning.FILTERED:
                    return AssistantTurn(text="", notes=(f"refused by the endpoint's content filter: {words}",))
                case _:
                    raise PolicyError(f"{self.settings.model} at {self.settings.url}: {words}") from None

    async def _turn(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], key: str, deadline: Deadline
    ) -> AssistantTurn:
        """Raises Fault."""
        body = request_body(conversation, tools, self.settings)
        num_turns = sum(isinstance(part, AssistantTurn) for part in conversation)

        def read(answered: Answered) -> AssistantTurn:
            completion = scrubbed_json(answered.reply.completion, key)
            clean = dataclasses.replace(answered, reply=dataclasses.replace(answered.reply, completion=completion))
            return turn_of(clean, tools, self.settings, num_turns)

        request = Request(body=body, headers=headers(self.settings, key), tokens=estimated_tokens(body), key=key)
        way = line(self.settings)
        try:
            return await way.ask(request, read, deadline)
        except Fault as fault:
            if fault.room_tokens is None or not LEAST_ROOM <= fault.room_tokens < (self.settings.max_tokens or 0):
                raise
            room = fault.room_tokens
        less = dataclasses.replace(request, body={**body, self.settings.limit_name: room})
        turn = await way.ask(less, read, deadline)
        return dataclasses.replace(turn, notes=(*turn.notes, f"max_tokens lowered to {room}, the room that is left"))


def openai_policy(**settings: Any) -> OpenAIPolicy:
    """The registered policy `openai`.

    Raises:
        ConfigError: A setting is wrong, or the environment has no API key.
    """
    policy = OpenAIPolicy(OpenAISettings.of(**settings))
    api_key(policy.settings)
    return policy
