"""Conversations as chat messages in OpenAI's form.

Where the model's calls were structured (they have ids), they are `tool_calls`; where they were text, they are in the
text, just as the model wrote them, and are not told twice. Arguments are JSON in a string, as that form has them. A
picture is a part `{"type": "image", "image": "images/<sha256>.png"}` beside the text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from metier.envs.core import ToolCall

from ...policy.contract import Role
from ..blob import BlobRef
from ..event import Told
from ..reader import Attempt
from .dialogue import Exchange, exchanges
from .pictures import Pictures

ChatMessage = dict[str, Any]


def messages(attempt: Attempt, pictures: Pictures) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """What the policy was told before its first turn, and all that follows. Raises as `Pictures.path`."""
    before: list[ChatMessage] = []
    after: list[ChatMessage] = []
    for exchange in exchanges(attempt):
        told = [_told(message, pictures) for message in exchange.told]
        if not after and exchange.turn is not None:
            before += told
        else:
            after += told
        after += _said(exchange, pictures)
    return before, after


def _told(told: Told, pictures: Pictures) -> ChatMessage:
    # an agent inside the sandbox tells the observations itself, and no step of ours has them
    answers = {"tool_call_id": told.call_id} if told.role is Role.TOOL and told.call_id else {}
    return {"role": str(told.role), **answers, "content": content(told.text, told.images, pictures)}


def _said(exchange: Exchange, pictures: Pictures) -> list[ChatMessage]:
    structured = any(call.id for _, call in exchange.calls)
    said: list[ChatMessage] = []
    if exchange.turn is not None:
        message: ChatMessage = {"role": "assistant", "content": exchange.turn.turn.text}
        if exchange.turn.turn.reasoning:
            message["reasoning_content"] = exchange.turn.turn.reasoning
        if structured:
            message["tool_calls"] = [_call(call_id, call) for call_id, call in exchange.calls]
        said.append(message)
    for one in exchange.observed:
        said += [_told(message, pictures) for message in one.step.told]
        if not one.step.observed:
            continue
        text = content(one.step.text, one.step.images, pictures)
        if one.call_id is None:  # nothing was called, and the house says so
            said.append({"role": "user", "content": text})
        elif structured:
            said.append({"role": "tool", "tool_call_id": one.call_id, "content": text})
        else:
            said.append({"role": "tool", "content": text})
    return said


def _call(call_id: str, call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}


def content(text: str, images: Sequence[BlobRef], pictures: Pictures) -> str | list[dict[str, Any]]:
    """The text, or parts where there are pictures too."""
    if not images:
        return text
    return [{"type": "text", "text": text}, *({"type": "image", "image": pictures.path(ref)} for ref in images)]
