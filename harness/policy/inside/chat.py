"""A request for a chat completion: what of it reaches the model, and what its answer looks like to who asked.

Messages are made anew of the parts that are known here; what an endpoint could be made to fetch (a picture's address, a
file's id) is refused, since that would lead out of the sandbox. Of the other parts of a request those pass that shape
the answer. The model is the one that is set, whatever name was asked for, and so is what the settings say of sampling.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...tools.truncate import valid_text
from ..contract import Message, Role
from ..openai.messages import NAME
from ..openai.settings import OpenAISettings
from .http import Answer, Refused

MOST_MESSAGES = 10_000
PASSED = frozenset(
    {
        "frequency_penalty",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "tool_choice",
        "tools",
        "top_p",
    }
)
"""Parts of a request that reach the model, but where the settings have their own."""
_READ = frozenset({"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"})
_OTHERS = frozenset({"user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"})
"""That change no answer: left out without a word."""
_ROLES = {"system": Role.SYSTEM, "developer": Role.SYSTEM, "user": Role.USER, "tool": Role.TOOL}
_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,([A-Za-z0-9+/=\s]*)")
_PNG = b"\x89PNG\r\n\x1a\n"
_UNSEEN = "[a picture, which you cannot see]"
_OLDER = "[a picture, which is shown no longer]"
_AS_ASSISTANT = "[said by the agent's program in the model's name]\n"

Part = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A message as it goes into the conversation; `key` is the same for the same message in another request."""

    key: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """A request."""

    body: dict[str, Any]
    """What the model's endpoint is asked."""
    heard: tuple[Heard, ...]
    stream: bool
    include_usage: bool
    notes: tuple[str, ...]


def read_chat(data: bytes, settings: OpenAISettings) -> Chat:
    """What was asked. Raises Refused."""
    said = _object(data)
    given = said.get("messages")
    if not isinstance(given, list) or not given or len(given) > MOST_MESSAGES:
        raise Refused(400, f"messages: a list of 1 to {MOST_MESSAGES}")
    if said.get("n") not in (None, 1):
        raise Refused(400, "n: one completion for a request")
    made, heard = _messages(given, settings)
    body: dict[str, Any] = {"model": settings.model, "messages": made}
    body |= {name: said[name] for name in sorted(PASSED & set(said)) if said[name] is not None}
    body |= {name: getattr(settings, name) for name in ("temperature", "top_p", "seed") if _set(settings, name)}
    if (limit := _limit(said, settings)) is not None:
        body[settings.limit_name] = limit
    if settings.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    options = said.get("stream_options")
    return Chat(
        body=body | settings.extra,
        heard=heard,
        stream=said.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        notes=tuple(_notes(said, settings)),
    )


def _set(settings: OpenAISettings, name: str) -> bool:
    return getattr(settings, name) is not None


def _object(data: bytes) -> dict[str, Any]:
    def constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        said = json.loads(data, parse_constant=constant)
        written = json.dumps(said, ensure_ascii=False, allow_nan=False)
        if valid_text(written) != written:  # half of a character
            said = json.loads(valid_text(written))
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the request's body is no JSON: {str(error)[:200]}") from None
    if not isinstance(said, dict):
        raise Refused(400, "the request's body is no JSON object")
    return said


def _limit(said: Mapping[str, Any], settings: OpenAISettings) -> int | None:
    """The tokens of the answer: what was asked for, and no more than is set."""
    asked = [said[name] for name in ("max_tokens", "max_completion_tokens") if said.get(name) is not None]
    for value in asked:
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise Refused(400, "max_tokens: a number from 1 on")
    return min([*asked, *([] if settings.max_tokens is None else [settings.max_tokens])], default=None)


def _notes(said: Mapping[str, Any], settings: OpenAISettings) -> Iterator[str]:
    """What is not as it was asked."""
    model = said.get("model")
    if model is not None and model != settings.model:
        yield f"the name {str(model)[:80]!r} for the model"
    if left := sorted(name[:40] for name in set(said) - PASSED - _READ - _OTHERS)[:20]:
        yield f"left out of the request: {', '.join(left)}"


def _messages(given: Sequence[Any], settings: OpenAISettings) -> tuple[list[Part], tuple[Heard, ...]]:
    """As the model is told, and as the conversation has them."""
    made: list[Part] = []
    heard: list[Heard] = []
    for number, message in enumerate(given):
        if not isinstance(message, dict):
            raise Refused(400, f"messages[{number}]: an object")
        role = message.get("role")
        content, texts, pictures = _content(message.get("content"), number)
        if role == "assistant":
            calls = _calls(message.get("tool_calls"), number)
            told: Part = {"role": role, "content": content or (None if calls else "")}
            if calls:
                told["tool_calls"] = calls
            text = _AS_ASSISTANT + "\n".join(filter(None, [texts, *map(json.dumps, calls)]))
            heard.append(Heard(key=key_of(texts, calls), message=Message(role=Role.USER, text=text)))
        elif isinstance(role, str) and role in _ROLES:
            told = {"role": role, "content": content}
            call_id = message.get("tool_call_id")
            if role == "tool":
                told["tool_call_id"] = _word(call_id, f"messages[{number}].tool_call_id")
            if isinstance(message.get("name"), str) and NAME.fullmatch(message["name"]):
                told["name"] = message["name"]
            heard.append(
                Heard(
                    key=json.dumps(told, sort_keys=True),
                    message=Message(
                        role=_ROLES[role],
                        text=texts,
                        images=tuple(picture for picture in pictures if picture.startswith(_PNG)),
                        call_id=told.get("tool_call_id", ""),
                    ),
                )
            )
        else:
            raise Refused(400, f"messages[{number}].role: system, developer, user, assistant or tool")
        made.append(told)
    _show_newest(made, settings)
    return made, tuple(heard)


def key_of(text: str, calls: Sequence[Part]) -> str:
    """Tells what an assistant said from what it did not, however its message was put together."""
    return json.dumps(
        ["assistant", text.strip(), [[call["function"]["name"], call["function"]["arguments"]] for call in calls]]
    )


def _content(content: Any, number: int) -> tuple[Any, str, list[bytes]]:
    """As it is passed on; its text; its pictures."""
    if content is None or isinstance(content, str):
        return content or "", content or "", []
    if not isinstance(content, list):
        raise Refused(400, f"messages[{number}].content: a text, or a list of parts")
    parts: list[Part] = []
    texts: list[str] = []
    pictures: list[bytes] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal") and isinstance(part.get(kind), str):
            parts.append({"type": "text", "text": part[kind]})
            texts.append(part[kind])
        elif kind == "image_url":
            url, data = _picture(part.get("image_url"), number)
            parts.append({"type": "image_url", "image_url": {"url": url}})
            pictures.append(data)
            texts.append("" if data.startswith(_PNG) else "[a picture that is no PNG, and is not recorded]")
        else:
            raise Refused(400, f"messages[{number}].content: parts are of type text, or image_url with a data: address")
    return parts, "\n".join(filter(None, texts)), pictures


def _picture(given: Any, number: int) -> tuple[str, bytes]:
    """Its address, which must hold it, and its bytes."""
    url = given.get("url") if isinstance(given, dict) else given
    found = _PICTURE.fullmatch(url) if isinstance(url, str) else None
    try:
        if found is not None:
            return found[0], base64.b64decode(found[1], validate=False)
    except (binascii.Error, ValueError):
        pass
    raise Refused(
        400, f"messages[{number}]: a picture is a data: address of base64 (png, jpeg, gif, webp); no other leads out"
    )


def _show_newest(made: Sequence[Part], settings: OpenAISettings) -> None:
    """Pictures that the model cannot see, or is not to see any more, become words."""
    left = settings.max_images if settings.images else 0
    for message in reversed(made):
        parts = message["content"] if isinstance(message["content"], list) else []
        for at in range(len(parts) - 1, -1, -1):
            if parts[at]["type"] == "image_url":
                left -= 1
                if left < 0:
                    parts[at] = {"type": "text", "text": _OLDER if settings.images else _UNSEEN}


def _calls(given: Any, number: int) -> list[Part]:
    if given is None:
        return []
    if not isinstance(given, list):
        raise Refused(400, f"messages[{number}].tool_calls: a list")
    calls: list[Part] = []
    for call in given:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise Refused(400, f"messages[{number}].tool_calls: each has a function")
        name, arguments = function.get("name"), function.get("arguments")
        where = f"messages[{number}].tool_calls"
        calls.append(
            {
                "id": _word(call.get("id"), f"{where}.id"),
                "type": "function",
                "function": {
                    "name": _word(name, f"{where}.function.name"),
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
                },
            }
        )
    return calls


def _word(value: Any, what: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise Refused(400, f"{what}: a text of 1 to 200 characters")
    return value


def answered(chat: Chat, completion: Mapping[str, Any], *, number: int, created: float, model: str) -> Answer:
    """A completion as it was asked for: whole, or as events."""
    choice = completion["choices"][0]
    message = _said(choice["message"])
    finish = choice.get("finish_reason")
    if finish not in ("stop", "length", "tool_calls", "content_filter", "function_call"):
        finish = "length" if finish == "cut" else "tool_calls" if message.get("tool_calls") else "stop"
    usage = completion.get("usage") if isinstance(completion.get("usage"), dict) else None
    head = {"id": f"chatcmpl-{number}", "created": math.floor(created), "model": model}
    if not chat.stream:
        whole = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return Answer.of({**head, "object": "chat.completion", "choices": [whole], "usage": usage})
    head["object"] = "chat.completion.chunk"
    pieces = [
        _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}) for delta in _deltas(message)
    ]
    pieces.append(_event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}))
    if chat.include_usage:
        pieces.append(_event({**head, "choices": [], "usage": usage}))
    return Answer(200, "text/event-stream", [*pieces, b"data: [DONE]\n\n"])


def _said(message: Mapping[str, Any]) -> Part:
    """The model's message, of the parts that a client knows."""
    made: Part = {"role": "assistant", "content": message.get("content")}
    for name in ("refusal", "reasoning_content", "reasoning"):
        if isinstance(message.get(name), str):
            made[name] = message[name]
    if isinstance(message.get("tool_calls"), list) and message["tool_calls"]:
        made["tool_calls"] = message["tool_calls"]
    return made


def _deltas(message: Part) -> Iterator[Part]:
    texts = {name: value for name, value in message.items() if name != "tool_calls"}
    yield {**texts, "content": texts["content"] or ""}
    for index, call in enumerate(message.get("tool_calls", [])):
        yield {"tool_calls": [{**(call if isinstance(call, dict) else {}), "index": index}]}


def _event(value: Part) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
