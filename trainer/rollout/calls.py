"""Tool calls as text: one canonical way to write a call, and a tolerant way to read what a model wrote.

Reading never raises: rubbish yields no call, and every liberty taken is a note, so that forgiveness can be counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metier.envs.core import Json, ToolCall, ToolSpec
from metier.harness.policy.contract import write_call

_TOOL_KEYS = ("tool", "name", "function")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "input")
_EXAMPLES: dict[str, Json] = {
    "string": "...",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The calls found in a text, and what was forgiven to find them."""

    calls: tuple[ToolCall, ...]
    notes: tuple[str, ...]


def write_example(spec: ToolSpec) -> str:
    """A call of this tool with a placeholder for each required argument (for every one, where none is required)."""
    schema: dict[str, Any] = dict(spec.parameters) if isinstance(spec.parameters, dict) else {}
    properties: dict[str, Any] = schema.get("properties") or {}
    names: list[str] = schema.get("required") or list(properties)
    arguments = {name: _placeholder(properties.get(name) or {}) for name in names}
    return write_call(ToolCall(tool=spec.name, arguments=arguments))


def _placeholder(schema: Mapping[str, Any]) -> Json:
    if schema.get("enum"):
        return schema["enum"][0]
    return _EXAMPLES.get(str(schema.get("type", "string")), "...")


def read_calls(text: str) -> Parsed:
    """The calls in `text`, in order.

    Example:
        >>> read_calls('{"tool":"submit","arguments":{}}').calls[0].tool
        'submit'
        >>> read_calls("I will look around first.").calls
        ()
    """
    calls: list[ToolCall] = []
    notes: list[str] = []
    around: list[str] = []
    decoder = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)
    at = 0
    while (start := text.find("{", at)) >= 0:
        around.append(text[at:start])
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            notes.append(f"not JSON: {str(error)[:80]}")
            around.append(text[start:])
            break
        call = _as_call(value, notes)
        if call is not None:
            calls.append(call)
    else:
        around.append(text[at:])
    if "".join(around).strip():
        notes.append("text around the calls")
    return Parsed(calls=tuple(calls), notes=tuple(notes))


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON")


def _as_call(value: dict[str, Any], notes: list[str]) -> ToolCall | None:
    key = next((key for key in _TOOL_KEYS if isinstance(value.get(key), str)), None)
    if key is None:
        notes.append("an object that names no tool")
        return None
    rest = {name: item for name, item in value.items() if name != key}
    holder = next((name for name in _ARGUMENT_KEYS if name in rest), None)
    arguments = rest if holder is None else rest[holder]
    if isinstance(arguments, str):
        arguments = _object_in(arguments)
        notes.append("arguments as a string")
    if not isinstance(arguments, dict):
        notes.append("arguments that are no object")
        return None
    if (key, holder) != ("tool", "arguments"):
        notes.append(f"keys {key} and {holder or 'none'} instead of tool and arguments")
    call = ToolCall(tool=value[key], arguments=arguments)
    try:
        write_call(call).encode()
    except UnicodeEncodeError:
        notes.append("half of a surrogate pair, which is no text")
        return None
    return call


def _object_in(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
