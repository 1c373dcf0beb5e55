"""A completion as a turn: what the model said, tolerantly read, and what was forgiven."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from metier.envs.core import ToolCall, ToolSpec

from ...tools.truncate import valid_text
from ..call_objects import Notes, Tools, bare_text, read_object
from ..calls import MOST_CALLS, read_calls
from ..contract import AssistantTurn, Stop, Usage
from .asking import Answered
from .endpoint import CUT
from .faults import again
from .settings import OpenAISettings, Prices

UNREADABLE = "(arguments that are no JSON object)"
"""The name under which a call holds what its arguments were instead; no tool has an argument of that name."""
_SHOWN_CHARACTERS = 200
_ID = re.compile(r"[\x21-\x7e]{1,200}")
_LENGTH = frozenset({"length", "max_tokens", "model_length"})
_NOT_DONE = frozenset({"abort", "aborted", "error"})
_MILLION = 1_000_000


def turn_of(
    answered: Answered,
    tools: Sequence[ToolSpec],
    settings: OpenAISettings,
    num_turns: int,
    *,
    calls_in_text: bool = True,
) -> AssistantTurn:
    """The turn that a completion is; `num_turns` came before it.

    Calls are looked for in its text too, where the endpoint told none apart and `calls_in_text` allows it.

    Raises:
        Fault: It is no completion.
    """
    message, finish = _message(answered.reply.completion)
    notes = Notes()
    whole = finish not in _LENGTH and finish != CUT
    text = _text(message, notes)
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if finish == CUT:
        notes.add(f"cut by {answered.reply.cut_by}")
        calls: list[ToolCall] = []
    else:
        read = text if calls_in_text else ""
        calls = _calls(message, read, tools, notes, num_turns, whole=whole)
    if finish in _LENGTH:
        notes.add("cut at max_tokens")
    if finish == "content_filter":
        notes.add("stopped by the endpoint's content filter")
    usage = _usage(answered, settings.prices)
    if not usage.prompt_tokens:
        notes.add("the endpoint counted no tokens")
    stop = Stop.ABORT if finish == CUT else Stop.LENGTH if finish in _LENGTH else Stop.END
    return AssistantTurn(
        text=text,
        calls=tuple(calls),
        notes=tuple(notes.said),
        stop=stop,
        usage=usage,
        reasoning=valid_text(reasoning) if isinstance(reasoning, str) else "",
    )


def _message(completion: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The message of the first choice, and why it ended. Raises Fault."""
    choices = completion.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise again("an answer that is no chat completion: it has no message")
    finish = choice.get("finish_reason")
    if finish in _NOT_DONE:
        raise again(f"an answer that the endpoint gave up (finish_reason {finish})")
    return message, finish if isinstance(finish, str) else "stop"


def _text(message: dict[str, Any], notes: Notes) -> str:
    content = message.get("content")
    if isinstance(content, list):  # of parts
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        notes.add("refused")
    said = [part for part in (content, refusal) if isinstance(part, str) and part]
    return "\n".join(said)


def _calls(
    message: dict[str, Any], text: str, tools: Sequence[ToolSpec], notes: Notes, num_turns: int, *, whole: bool
) -> list[ToolCall]:
    """Those that the endpoint told apart; where there are none, those in the text."""
    given = message.get("tool_calls")
    if not isinstance(given, list) or not given:
        single = message.get("function_call")
        given = [{"function": single}] if isinstance(single, dict) else []
    if given:
        if len(given) > MOST_CALLS:
            notes.add(f"more than {MOST_CALLS} calls; the rest was not read")
        native = _Native(Tools(tools), notes, num_turns)
        return [native.call(one, whole=whole or one is not given[-1]) for one in given[:MOST_CALLS]]
    parsed = read_calls(text, tools, whole=whole)
    notes.all(parsed.notes)
    return list(parsed.calls)


class _Native:
    """Reads calls that the endpoint told apart, and gives an id of its own to one that has none."""

    def __init__(self, tools: Tools, notes: Notes, num_turns: int) -> None:
        self._tools = tools
        self._notes = notes
        self._num_turns = num_turns
        self._ids: set[str] = set()

    def call(self, given: Any, *, whole: bool) -> ToolCall:
        """The call; one that nobody can read is a call of no tool, and is answered."""
        given = given if isinstance(given, dict) else {}
        function = given.get("function")
        function = function if isinstance(function, dict) else given
        name = function.get("name")
        if not isinstance(name, str) or not name:
            self._notes.add("a call that names no tool")
            name = ""
        tool = self._tools.known(name, self._notes) or name
        return ToolCall(
            tool=tool, arguments=self._arguments(function.get("arguments"), tool, whole), id=self._id(given)
        )

    def _arguments(self, given: Any, tool: str, whole: bool) -> dict[str, Any]:
        if isinstance(given, dict):
            self._notes.add("arguments as an object, not as a string")
            return given
        if given is None or (isinstance(given, str) and not given.strip()):
            self._notes.add("no arguments at all")
            return {}
        read = read_object(given, self._notes, whole=whole) if isinstance(given, str) else None
        if read is None:
            if isinstance(given, str) and whole and (bare := bare_text(given, tool, self._tools, self._notes)):
                return bare
            self._notes.add("arguments that are no JSON object")
            return {UNREADABLE: valid_text(str(given)[:_SHOWN_CHARACTERS])}
        return read

    def _id(self, given: dict[str, Any]) -> str:
        said = given.get("id")
        if isinstance(said, str) and _ID.fullmatch(said) and said not in self._ids:
            self._ids.add(said)
            return said
        # nine letters and digits suit every vendor
        made = f"call{self._num_turns % 1000:03d}{len(self._ids) % 100:02d}"
        self._notes.add("a call without an id of its own")
        self._ids.add(made)
        return made


def _usage(answered: Answered, prices: Prices | None) -> Usage:
    said = answered.reply.completion.get("usage")
    counted: dict[str, Any] = said if isinstance(said, dict) else {}
    prompt, output = _count(counted, "prompt_tokens"), _count(counted, "completion_tokens")
    cached = min(prompt, _count(counted.get("prompt_tokens_details"), "cached_tokens"))
    return Usage(
        prompt_tokens=prompt,
        output_tokens=output,
        cached_tokens=cached,
        reasoning_tokens=_count(counted.get("completion_tokens_details"), "reasoning_tokens"),
        prefill_s=answered.reply.prefill_s,
        decode_s=answered.reply.decode_s,
        waited_s=answered.waited_s,
        num_requests=answered.num_requests,
        cost_usd=cost_usd(prompt, cached, output, prices) if prices is not None and prompt else None,
    )


def _count(counted: Any, name: str) -> int:
    value = counted.get(name) if isinstance(counted, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def cost_usd(prompt: int, cached: int, output: int, prices: Prices) -> Decimal:
    """What so many tokens cost; `cached` are among those of the prompt.

    Example:
        >>> cost_usd(1_000_000, 400_000, 10_000, Prices(prompt="2.50", cached="0.25", output="10"))
        Decimal('1.70')
    """
    kept = prices.prompt if prices.cached is None else prices.cached
    return ((prompt - cached) * prices.prompt + cached * kept + output * prices.output) / _MILLION
