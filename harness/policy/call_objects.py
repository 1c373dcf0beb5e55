"""From a JSON object to the calls it means, whatever its names are; and the tools that a reader knows of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from metier.envs.core import Json, ToolCall, ToolSpec

from .contract import write_call
from .loose import Unreadable, read_loose

NOTES = 16
"""The most that one turn has; each is short."""
NOTE_CHARACTERS = 160
_TOOL_KEYS = ("tool", "name", "function", "tool_name", "action")
_ARGUMENT_KEYS = ("arguments", "args", "parameters", "params", "input", "action_input")
_LIST_KEYS = ("tool_calls", "calls")
_PREFIX = re.compile(r"(?:functions?|tools?|default_api)[.:/]")
_HEAD = re.compile(r"[\w-]+")


@dataclass(slots=True)
class Notes:
    """What was forgiven, each thing once, and bounded."""

    said: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, what: str) -> None:
        if len(self.said) < NOTES:
            self.said[what[:NOTE_CHARACTERS]] = None

    def all(self, what: Iterable[str]) -> None:
        for one in what:
            self.add(one)


class Tools:
    """The tools that a turn may call, by name."""

    def __init__(self, specs: Sequence[ToolSpec] = ()) -> None:
        self.by_name = {spec.name: spec for spec in specs}

    def known(self, name: str, notes: Notes) -> str | None:
        """The tool that a name means: `functions.shell`, `Shell` and `shell<|channel|>json` are `shell`."""
        if name in self.by_name:
            return name
        head = _HEAD.match(_PREFIX.sub("", name.strip()[:200], count=1))
        meant = head[0].lower().replace("-", "_") if head else ""
        found = next((one for one in self.by_name if one.lower().replace("-", "_") == meant), None)
        if found is not None:
            notes.add(f"the name {name[:40]!r} for {found}")
        return found

    def parameters(self, name: str) -> dict[str, Any]:
        """The schema of each of its parameters, in order; empty for a tool that is not known."""
        schema: Any = self.by_name[name].parameters if name in self.by_name else {}
        return dict(schema.get("properties") or {})

    def only_text(self, name: str) -> str | None:
        """The parameter that a bare text must be meant for: the one that is required, if it is a text."""
        schema: Any = self.by_name[name].parameters if name in self.by_name else {}
        required: list[str] = schema.get("required") or []
        if len(required) != 1 or self.parameters(name).get(required[0], {}).get("type") != "string":
            return None
        return required[0]


def refuse_constant(name: str) -> Json:
    """For `parse_constant`: NaN and the infinities are no JSON."""
    raise ValueError(f"{name} is no JSON")


def calls_of(value: Any, tools: Tools, notes: Notes) -> list[ToolCall]:
    """The calls that an object means; none where it names no tool. What is forgiven goes to `notes`."""
    if not isinstance(value, dict):
        return []
    for key in _LIST_KEYS:
        listed = value.get(key)
        if isinstance(listed, list) and listed:
            notes.add(f"calls in a list named {key}")
            return [call for one in listed for call in _one(one, tools, notes)]
    return _one(value, tools, notes)


def _one(value: Any, tools: Tools, notes: Notes) -> list[ToolCall]:
    if not isinstance(value, dict):
        return []
    inner = value.get("function")
    if isinstance(inner, dict):  # as in a response of the API
        notes.add("a call in an object named function")
        value = inner
    key = next((key for key in _TOOL_KEYS if isinstance(value.get(key), str)), None)
    if key is None:
        return _keyed_by_name(value, tools, notes)
    name = value[key]
    rest = {name: item for name, item in value.items() if name != key}
    holder = next((name for name in _ARGUMENT_KEYS if name in rest), None)
    if holder is None and key != "tool" and tools.by_name and tools.known(name, Notes()) is None:
        notes.add("an object that names no tool")  # one with a name of its own, such as a person's
        return []
    tool = tools.known(name, notes) or name
    arguments = arguments_of(rest if holder is None else rest[holder], tool, tools, notes)
    if arguments is None:
        notes.add("arguments that are no object")
        return []
    if (key, holder) != ("tool", "arguments"):
        notes.add(f"keys {key} and {holder or 'none'} instead of tool and arguments")
    return made(tool, arguments, notes)


def _keyed_by_name(value: dict[str, Any], tools: Tools, notes: Notes) -> list[ToolCall]:
    """`{"shell": {"command": "ls"}}`, or nothing."""
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if name in tools.by_name and isinstance(arguments, dict):
            notes.add("a tool's name as the key of its arguments")
            return made(name, arguments, notes)
    notes.add("an object that names no tool")
    return []


def arguments_of(value: Any, tool: str, tools: Tools, notes: Notes) -> dict[str, Any] | None:
    """The arguments that a value means; None where it means none."""
    if isinstance(value, str):
        notes.add("arguments as a string")
        read = read_object(value, notes)
        return bare_text(value, tool, tools, notes) if read is None else read
    if value is None:
        notes.add("null for no arguments")
        return {}
    return value if isinstance(value, dict) else None


def bare_text(text: str, tool: str, tools: Tools, notes: Notes) -> dict[str, Any] | None:
    """A text, or a JSON text, for the one parameter that it must be meant for; nothing that was to be an object."""
    name = tools.only_text(tool)
    if name is None or text.lstrip().startswith("{"):
        return None
    try:
        said = json.loads(text, strict=False, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        said = text
    if isinstance(said, list):
        return None
    notes.add(f"a bare text for {name}")
    return {name: said if isinstance(said, str) else text}


def read_object(text: str, notes: Notes, *, whole: bool = True) -> dict[str, Any] | None:
    """The object that is all of `text`, JSON or nearly so."""
    try:
        value = json.loads(text, strict=False, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        try:
            loose = read_loose(text.strip(), whole=whole)
        except Unreadable:
            return None
        if text.strip()[loose.end :]:
            notes.add("text after the arguments")
        notes.all(loose.forgiven)
        value = loose.value
    if isinstance(value, str):
        try:
            value = json.loads(value, strict=False, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return None
        notes.add("a string in a string")
    return value if isinstance(value, dict) else None


def made(tool: str, arguments: dict[str, Any], notes: Notes) -> list[ToolCall]:
    """The call, or none where no record could hold it."""
    call = ToolCall(tool=tool, arguments=arguments)
    try:
        write_call(call).encode()
    except UnicodeEncodeError:
        notes.add("half of a surrogate pair, which is no text")
        return []
    except (RecursionError, ValueError, TypeError):
        notes.add("arguments nested too deep")
        return []
    return [call]
