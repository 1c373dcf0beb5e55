"""A conversation as the messages of a request.

Calls go back the way they came: those that the endpoint told apart (they have an id) as its own `tool_calls`, answered
by messages of the role tool; any other is the text that it was, answered by the user. Pictures follow in a message of
the user, since no other role may show one everywhere. Neighbours of one role are joined, which some models insist on.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from metier.envs.core import ToolCall, ToolSpec

from ...result import recorded_turn
from ...tools.truncate import valid_text
from ..calls import write_example
from ..contract import AssistantTurn, Message, Role, write_call
from .settings import OpenAISettings

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What the API takes as the name of a function."""
IMAGE_TOKENS = 1000
"""About what a picture costs, for the rate limit."""
_HOW = (
    "You work with tools. To call one, answer with one JSON object that has its name and its arguments, such as\n"
    "{examples}\nand wait for what it says. The tools:\n{tools}"
)
_NOTHING = "(nothing)"
_UNSEEN = "[a picture, which you cannot see]"
_OLDER = "[a picture, which is shown no longer]"

Part = dict[str, Any]


def request_body(
    conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], settings: OpenAISettings
) -> dict[str, Any]:
    """The whole request."""
    body: dict[str, Any] = {"model": settings.model, "messages": messages(conversation, tools, settings)}
    if settings.calls == "native" and tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": spec.name, "description": spec.description, "parameters": spec.parameters},
            }
            for spec in tools
        ]
    if settings.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    chosen = {name: getattr(settings, name) for name in ("temperature", "top_p", "seed")}
    chosen[settings.limit_name] = settings.max_tokens
    return body | {name: value for name, value in chosen.items() if value is not None} | settings.extra


def estimated_tokens(body: dict[str, Any]) -> int:
    """About what a request will use, its answer included; for the rate limit, until the endpoint has counted."""
    answer = body.get("max_tokens") or body.get("max_completion_tokens") or 1024
    shown = 0
    characters = len(json.dumps(body.get("tools", "")))
    for message in body["messages"]:
        content = message.get("content") or ""
        for part in [{"text": content}] if isinstance(content, str) else content:
            shown += "image_url" in part
            characters += len(part.get("text", ""))
        characters += len(json.dumps(message.get("tool_calls", "")))
    return characters // 4 + shown * IMAGE_TOKENS + answer


def messages(
    conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], settings: OpenAISettings
) -> list[dict[str, Any]]:
    """The messages of a request."""
    return _Layout(settings, _newest_images(conversation, settings)).lay(conversation, tools)


def _newest_images(conversation: Sequence[Message | AssistantTurn], settings: OpenAISettings) -> int:
    """How many of the pictures come too early to be shown."""
    total = sum(len(part.images) for part in conversation if isinstance(part, Message))
    return max(0, total - settings.max_images)


class _Layout:
    """The messages so far; the ids of calls that wait for their answer; pictures that wait for the last of these."""

    def __init__(self, settings: OpenAISettings, too_early: int) -> None:
        self._settings = settings
        self._too_early = too_early
        self._made: list[dict[str, Any]] = []
        self._open: dict[str, None] = {}
        self._used: set[str] = set()
        self._waiting: list[Part] = []

    def lay(self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
        if before := "\n\n".join(filter(None, (self._settings.system, self._how(tools)))):
            self._add("system", [_text(before)])
        for part in conversation:
            if isinstance(part, AssistantTurn):
                self._answered()
                self._turn(recorded_turn(part))
            elif part.role is Role.TOOL and part.call_id in self._open:
                del self._open[part.call_id]
                content = valid_text(part.text) or _NOTHING
                self._made.append({"role": "tool", "tool_call_id": part.call_id, "content": content})
                self._waiting += self._shown(part.images)
            else:
                self._answered()
                role = "system" if part.role is Role.SYSTEM else "user"
                self._add(role, [_text(part.text), *self._shown(part.images)])
        self._answered()
        return self._made

    def _how(self, tools: Sequence[ToolSpec]) -> str:
        if self._settings.calls == "native" or not tools:
            return ""
        listed = (
            json.dumps(
                {"tool": spec.name, "description": spec.description, "parameters": spec.parameters}, ensure_ascii=False
            )
            for spec in tools
        )
        return _HOW.format(examples="\n".join(map(write_example, tools)), tools="\n".join(listed))

    def _turn(self, turn: AssistantTurn) -> None:
        message: dict[str, Any] = {"role": "assistant"}
        if self._settings.send_reasoning and turn.reasoning:
            message["reasoning_content"] = valid_text(turn.reasoning)
        ids = [call.id for call in turn.calls]
        told_apart = bool(ids) and all(ids)
        if told_apart and self._settings.calls == "native" and self._native(turn.calls):
            message |= {"content": turn.text or None, "tool_calls": [_native_call(call) for call in turn.calls]}
            self._open = dict.fromkeys(ids)
            self._used |= set(ids)
        else:
            written = map(write_call, turn.calls) if told_apart or not turn.text.strip() else ()
            message["content"] = "\n".join(filter(None, (turn.text.strip() and turn.text, *written))) or _NOTHING
        self._made.append(message)

    def _native(self, calls: Sequence[ToolCall]) -> bool:
        """Whether the API takes them."""
        ids = {call.id for call in calls}
        return len(ids) == len(calls) and not ids & self._used and all(NAME.fullmatch(call.tool) for call in calls)

    def _answered(self) -> None:
        """Before anybody else speaks, each call has its answer, and the pictures are shown."""
        for call_id in self._open:  # an episode that went on without it
            self._made.append({"role": "tool", "tool_call_id": call_id, "content": "(not run)"})
        self._open = {}
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._add("user", waiting)

    def _shown(self, images: Sequence[bytes]) -> Iterator[Part]:
        for image in images:
            early, self._too_early = self._too_early > 0, self._too_early - 1
            if not self._settings.images:
                yield _text(_UNSEEN)
            elif early:
                yield _text(_OLDER)
            else:
                data = base64.b64encode(image).decode()
                yield {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}

    def _add(self, role: str, parts: list[Part]) -> None:
        """A message, joined to the one before where both are of one role."""
        if self._made and self._made[-1]["role"] == role:
            before = self._made[-1]["content"]
            parts = [*([_text(before)] if isinstance(before, str) else before), *parts]
            self._made.pop()
        texts = [part["text"] for part in parts if "text" in part]
        content = "\n\n".join(filter(None, texts)) if len(texts) == len(parts) else [p for p in parts if p != _text("")]
        self._made.append({"role": role, "content": content or _NOTHING})


def _text(text: str) -> Part:
    return {"type": "text", "text": valid_text(text)}


def _native_call(call: ToolCall) -> dict[str, Any]:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.tool, "arguments": arguments}}
