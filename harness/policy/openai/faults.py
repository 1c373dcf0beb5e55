"""What a request that was not answered means.

| what came | meaning |
|---|---|
| no connection, silence, a broken answer, 408, 409, 425, 429, 5xx | AGAIN: try again, and in the end PolicyError |
| 401, 403, 404, any other refusal, a used-up account | FINAL: PolicyError at once |
| 400, 413 or 422 that says the conversation is too long | CONTEXT: a turn that stopped for it, which is graded |
| a refusal by the endpoint's content filter | FILTERED: a turn without words, which is graded |

The last two are what an agent can cause by what it says and reads, and must not be a way out of being graded.
"""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from enum import StrEnum, auto
from typing import Any

WORDS_CHARACTERS = 400
"""Of what an endpoint says, in an error's message."""
_AGAIN = frozenset({408, 409, 425, 429})
_TOO_LONG = re.compile(
    r"context[_ -]?(?:length|window|size|limit)|maximum context|exceed_context|prompt (?:is )?too long|max_model_len"
    r"|(?:too many|input|prompt|number of|total) (?:input )?tokens?\b.{0,200}(?:exceed|maximum|larger|too large|limit)"
    r"|(?:input|prompt|messages?|request).{0,100}(?:exceeds?|too (?:long|large)).{0,100}(?:length|tokens|context)"
    r"|too large for model with|reduce the length|string_above_max_length",
    re.I | re.S,
)
_LARGEST = re.compile(r"(?:context (?:length|window|size)(?: is| of|:)?\s*|max_model_len=)(\d{2,9})", re.I)
_PROMPT = re.compile(r"(\d{1,9}) in the messages|(?:has|contains|resulted in) (\d{1,9}) (?:input )?tokens", re.I)
_ONLY_THE_ANSWER = re.compile(r"max_tokens\S* ?(?:cannot be greater|must be (?:at most|less))", re.I)
_PICTURES = re.compile(r"multimodal|image|vision", re.I)
_FILTERED_CODES = frozenset(
    {"content_filter", "content_policy_violation", "data_inspection_failed", "content_filtered", "invalid_prompt"}
)
_FILTERED = re.compile(r"content management policy|content[_ ]filter|blocked by .{0,40}(?:policy|filter)", re.I)
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_ADVICE = {
    401: "check the API key in the environment variable that api_key_env names",
    402: "the account has no credit left",
    403: "this API key may not use the model",
    404: "check the address and the model's name",
    405: "check the address",
}


class Meaning(StrEnum):
    """What to do about it."""

    AGAIN = auto()
    """Another attempt may go better."""
    FINAL = auto()
    """It would not."""
    CONTEXT = auto()
    """The conversation no longer fits."""
    FILTERED = auto()
    """The endpoint will not have it said."""


class Fault(Exception):
    """A request that was not answered."""

    def __init__(
        self,
        meaning: Meaning,
        words: str,
        retry_after_s: float | None = None,
        room_tokens: int | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(words)
        self.meaning = meaning
        self.words = words
        self.retry_after_s = retry_after_s
        """What the endpoint asks for."""
        self.room_tokens = room_tokens
        """Of a CONTEXT: what the conversation leaves for an answer, where the endpoint says so."""
        self.status = status
        """Of the answer, where it was one of HTTP that says no."""


def again(words: str) -> Fault:
    """A failure of the way there or back."""
    return Fault(Meaning.AGAIN, words)


def refused(status: int, headers: Mapping[str, str], body: str, *, max_tokens: int | None) -> Fault:
    """What an HTTP status and its body mean."""
    fault = _refused(status, headers, body, max_tokens)
    fault.status = status
    return fault


def _refused(status: int, headers: Mapping[str, str], body: str, max_tokens: int | None) -> Fault:
    code, words = _said(body)
    shown = f"HTTP {status}{f' ({code})' if code else ''}: {words[:WORDS_CHARACTERS] or 'without a word'}"
    if status in (400, 403, 422) and (code in _FILTERED_CODES or _FILTERED.search(words)):
        return Fault(Meaning.FILTERED, shown)
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(f"{code} {words}")):
        return _too_long(words, shown, max_tokens)
    if status in _AGAIN or status >= 500:
        if code in _NO_MONEY:
            return Fault(Meaning.FINAL, f"{shown}; {_ADVICE[402]}")
        return Fault(Meaning.AGAIN, shown, retry_after_s(headers))
    if 300 <= status < 400:
        return Fault(Meaning.FINAL, f"{shown}; it has moved to {headers.get('location', 'nowhere')}: use that address")
    advice = "set images to false for a model that cannot see" if _PICTURES.search(words) else "check the settings"
    return Fault(Meaning.FINAL, f"{shown}; {_ADVICE.get(status, advice)}")


def _too_long(words: str, shown: str, max_tokens: int | None) -> Fault:
    """Whether it is the conversation that is too long, or the answer that was asked for."""
    largest, prompt = _LARGEST.search(words), _PROMPT.search(words)
    if largest is not None and prompt is not None:
        room = int(largest[1]) - int(next(filter(None, prompt.groups())))
        return Fault(Meaning.CONTEXT, shown, room_tokens=room)
    beyond = largest is not None and max_tokens is not None and max_tokens >= int(largest[1])
    if beyond or _ONLY_THE_ANSWER.search(words):
        return Fault(Meaning.FINAL, f"{shown}; lower max_tokens, which is {max_tokens}")
    return Fault(Meaning.CONTEXT, shown)


def told(error: Any) -> Fault:
    """What an error in the body of an answer means, which began well."""
    code, words = _said(json.dumps({"error": error}))
    if code in _FILTERED_CODES:
        return Fault(Meaning.FILTERED, words[:WORDS_CHARACTERS])
    if _TOO_LONG.search(f"{code} {words}"):
        return Fault(Meaning.CONTEXT, words[:WORDS_CHARACTERS])
    return again(f"an error instead of an answer: {words[:WORDS_CHARACTERS]}")


def _said(body: str) -> tuple[str, str]:
    """The code and the words of an error, in any of the usual forms."""
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        return "", " ".join(body.split())
    if isinstance(value, list) and value:
        value = value[0]
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return "", str(inner)
    code = next((str(inner[name]) for name in ("code", "type") if isinstance(inner.get(name), str)), "")
    words = next((inner[name] for name in ("message", "detail", "error") if inner.get(name)), body)
    return code, words if isinstance(words, str) else json.dumps(words)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asks to wait, told in milliseconds, seconds or as a date; None where it does not.

    Example:
        >>> retry_after_s({"retry-after": "20"}), retry_after_s({"retry-after-ms": "1500"}), retry_after_s({})
        (20.0, 1.5, None)
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        try:
            seconds = float(said) * unit
        except ValueError:
            seconds = _seconds_until(said) if name == "retry-after" and said else None
        if seconds is not None and math.isfinite(seconds) and seconds >= 0:
            return seconds
    return None


def _seconds_until(date: str) -> float | None:
    try:
        return max(0.0, email.utils.parsedate_to_datetime(date).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
