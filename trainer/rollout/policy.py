"""The policy that acts through an engine: conversation to prompt ids, output ids to calls, a trace to train on."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from metier.envs.core import Deadline, ToolSpec
from metier.harness.policy.calls import read_calls
from metier.harness.policy.contract import AssistantTurn, Message, Stop, TokenTrace, Usage

from .chat import Chat
from .engine import Engine, GenerationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePolicy:
    """Keeps nothing between calls: the conversation, traces included, is all the state.

    Example:
        policy = EnginePolicy(engine=engine, chat=Chat(models.get("smollm2-135m")))
        turn = await policy.act([Message(role=Role.USER, text=brief)], specs, deadline=deadline)
    """

    engine: Engine
    chat: Chat
    max_tokens: int = 96
    """Of one turn."""
    temperature: float = 1.0
    top_p: float = 1.0
    group: str = ""

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        """The model's next turn; rubbish is a turn without calls.

        Raises:
            PolicyError: The engine died or the deadline passed.
        """
        prompt = self.chat.prompt(conversation, tools)
        request = GenerationRequest(
            id=uuid.uuid4().hex,
            prompt_ids=prompt.ids,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            stop_ids=(self.chat.end_id,),
            group=self.group,
        )
        made = await self.engine.generate(request, deadline=deadline)
        text = self.chat.decode(made.output_ids)
        parsed = read_calls(text, tools, whole=made.stop is Stop.END)
        return AssistantTurn(
            text=text,
            calls=parsed.calls,
            notes=(*parsed.notes, *(("cut at max_tokens",) if made.stop is Stop.LENGTH else ())),
            stop=made.stop,
            usage=Usage(
                prompt_tokens=len(prompt.ids),
                output_tokens=len(made.output_ids),
                cached_tokens=made.cached_tokens,
                prefill_s=made.prefill_s,
                decode_s=made.decode_s,
            ),
            tokens=TokenTrace(
                context_ids=prompt.context_ids,
                output_ids=made.output_ids,
                logprobs=made.logprobs,
                versions=made.versions,
            ),
        )


def engine_policy(
    address: str, model: str, max_tokens: int = 96, temperature: float = 1.0, top_p: float = 1.0, group: str = ""
) -> EnginePolicy:
    """The registered policy `engine`: reaches an `EngineServer` at `address`; `model` is the tokenizer's folder."""
    return EnginePolicy(
        engine=_client(address),
        chat=_chat(model),
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        group=group,
    )


_clients: dict[str, Engine] = {}
"""This worker process's connections; a task after another shares them."""


def _client(address: str) -> Engine:
    from metier.scheduler.worker import on_close

    from .remote import EngineClient

    if address not in _clients:
        client = _clients[address] = EngineClient(address)

        async def close() -> None:
            _clients.pop(address, None)
            await client.close()

        on_close("engine client", close)
    return _clients[address]


@lru_cache(maxsize=4)
def _chat(model: str) -> Chat:
    return Chat(Path(model))
