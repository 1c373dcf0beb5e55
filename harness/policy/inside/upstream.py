"""The model's endpoint, by the means of the policy `openai`: its attempts and pauses, rate limit, key and prices."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from metier.envs.core import Deadline

from ..contract import AssistantTurn, Message, Role
from ..openai.answer import turn_of
from ..openai.asking import Answered, Request, line
from ..openai.credentials import api_key, headers, scrubbed, scrubbed_json
from ..openai.messages import estimated_tokens
from ..openai.policy import OpenAIPolicy
from ..openai.settings import OpenAISettings

PROBE_S = 120.0
_PROBE = Message(role=Role.USER, text="Answer with the word yes.")
_PROBE_TOKENS = 16


class Completed(NamedTuple):
    """An answer: as a turn, and as the endpoint gave it."""

    turn: AssistantTurn
    completion: dict[str, Any]


class Upstream:
    """One model of one endpoint."""

    def __init__(self, settings: OpenAISettings) -> None:
        self.settings = settings
        self._key = api_key(settings)

    async def ask(self, body: dict[str, Any], num_turns: int, deadline: Deadline) -> Completed:
        """The completion of a request that has been read by `chat`.

        Raises:
            Fault: There is none; its words may be told to anybody once they are `scrubbed`.
        """

        def read(answer: Answered) -> Completed:
            completion = scrubbed_json(answer.reply.completion, self._key)
            clean = dataclasses.replace(answer, reply=dataclasses.replace(answer.reply, completion=completion))
            return Completed(turn_of(clean, (), self.settings, num_turns, calls_in_text=False), completion)

        request = Request(
            body=body, headers=headers(self.settings, self._key), tokens=estimated_tokens(body), key=self._key
        )
        return await line(self.settings).ask(request, read, deadline)

    def scrubbed(self, text: str) -> str:
        """Without the key, which an endpoint may repeat."""
        return scrubbed(text, self._key)

    async def probe(self) -> AssistantTurn:
        """Asks what nobody can get wrong, after a request has failed: is it the endpoint that fails, or the request?

        Not within the episode's time, whose end says nothing of the endpoint.

        Raises:
            PolicyError: It is the endpoint.
        """
        few = min(_PROBE_TOKENS, self.settings.max_tokens or _PROBE_TOKENS)
        policy = OpenAIPolicy(self.settings.model_copy(update={"max_tokens": few}))
        deadline = Deadline.after(PROBE_S, limit="probe_s", set_by="the policy inside")
        return await policy.act([_PROBE], (), deadline=deadline)
