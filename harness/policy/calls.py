"""Tool calls as text: an example of each tool, and a tolerant way to read what a model wrote.

Reading never raises and is bounded: rubbish yields no call, and every liberty taken is a note, so that forgiveness can
be counted. One reader serves every policy whose model answers in text, those that are trained included. In order:

1. what follows a model's thinking; calls it only thought of are none;
2. calls in tags (`call_marks`);
3. JSON objects, wherever they stand: bare, in a fence, in `<tool_call>`, in a list, after a tool's name;
4. between those, what is nearly JSON (`loose`);
5. where there is none of these, calls that look like Python's (`call_marks`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metier.envs.core import Json, ToolCall, ToolSpec

from .call_marks import Budget, Span, python_like, tagged
from .call_objects import Notes, Tools, calls_of, made, refuse_constant
from .contract import write_call
from .loose import Unreadable, read_loose

MOST_CALLS = 128
"""Of one turn; more than any environment has steps for in one."""
_ATTEMPTS = 4096
_CHUNKS = (4096, 65_536)
"""How much of a text is given to the JSON reader at once, whose errors cost as much as they were given."""
_EXAMPLES: dict[str, Json] = {
    "string": "...",
    "integer": 1,
    "number": 1.0,
    "boolean": True,
    "array": [],
    "object": {},
}
_JSON = re.compile(r'\{(?=\s*+["}])')
_NEARLY = re.compile(r"""\{(?=\s*+(?:["'`}]|[A-Za-z_][\w-]*+\s*+:))""")
_FENCE = re.compile(r"```[\w-]*")
_TAG = re.compile(r"</?(?:tool_calls?|function_calls?|functions?|tools?)>|<\|[\w ]{1,40}\|>|\[/?TOOL_CALLS?\]")
_DECODER = json.JSONDecoder(strict=False, parse_constant=refuse_constant)
_WORD = 16
"""Longer than any word of JSON; an error this near the end of a chunk may be the chunk's."""
_BETWEEN = " \t\r\n,;[]"
_BEFORE = 120
"""Characters before an object in which the name of its tool may stand."""
_FILLING = re.compile(
    r"<[|｜][^<>]{1,40}[|｜]>\Z|\[ARGS\]\Z|\b(?:json|action[ _]input|arguments|args|parameters)\Z", re.I
)
_LAST_NAME = re.compile(r"[\w.:-]{1,100}\Z")


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


def read_calls(text: str, tools: Sequence[ToolSpec] = (), *, whole: bool = True) -> Parsed:
    """The calls in `text`, in order.

    Args:
        text: What the model said.
        tools: Those it may call; without them fewer liberties are taken.
        whole: Its author ended it, so that brackets left open at the end may be closed.

    Example:
        >>> read_calls('{"tool":"submit","arguments":{}}').calls[0].tool
        'submit'
        >>> read_calls("I will look around first.").calls
        ()
        >>> read_calls("```json\\n{'tool': 'submit', 'arguments': {}}\\n```").notes
        ('single quotes', 'in a code fence')
    """
    notes = Notes()
    reader = _Reader(text, Tools(tools), notes, whole)
    start = _after_thinking(text, notes)
    spans = reader.marked(start)
    spans = reader.in_gaps(spans, start, reader.objects)
    spans = reader.in_gaps(spans, start, reader.nearly_objects)
    if not any(span.calls for span in spans):
        spans = reader.like_python(start)
    calls = [call for span in spans for call in span.calls]
    if reader.budget.spent:
        notes.add("too much that looks like calls; the rest was not read")
    if len(calls) > MOST_CALLS:
        notes.add(f"more than {MOST_CALLS} calls; the rest was not read")
    if calls:
        _remark(text, start, spans, notes)
    return Parsed(calls=tuple(calls[:MOST_CALLS]), notes=tuple(notes.said))


def _after_thinking(text: str, notes: Notes) -> int:
    """Where what a model says begins, after what it thinks."""
    head = text[:1000].lstrip()
    if head.startswith(("{", "[", "```", "<tool_call>")):  # the mark may stand in an argument
        return 0
    end = text.find("</think>")
    if end >= 0:
        notes.add("thinking before the calls")
        return end + len("</think>")
    if head.startswith("<think>"):
        notes.add("thinking without an end")
        return len(text)
    return 0


class _Reader:
    """One text, and what may still be spent on it."""

    def __init__(self, text: str, tools: Tools, notes: Notes, whole: bool) -> None:
        self.text = text
        self.tools = tools
        self.notes = notes
        self.whole = whole
        self.budget = Budget(_ATTEMPTS, 4 * len(text) + 2**20)
        self.no_calls: dict[int, tuple[int, Notes]] = {}
        """Where an object begins that is JSON and no call: where it ends, and why it is none."""

    def marked(self, start: int) -> list[Span]:
        return _some(tagged(self.text, start, self.tools, self.notes, self.budget, whole=self.whole))

    def like_python(self, start: int) -> list[Span]:
        return _some(python_like(self.text, start, self.tools, self.notes, self.budget, whole=self.whole))

    def in_gaps(self, spans: list[Span], start: int, read: Callable[[int, int], Iterator[Span]]) -> list[Span]:
        """These spans, and those that `read` finds between them."""
        found: list[Span] = []
        for span in spans:
            found += [*_some(read(start, span.start)), span]
            start = span.end
        return found + _some(read(start, len(self.text)))

    def objects(self, start: int, end: int) -> Iterator[Span]:
        """The objects between, that are JSON and calls."""
        at = start
        while not self.budget.spent and (begun := _JSON.search(self.text, at, end)) is not None:
            at = begun.start()
            value, length = self._decoded(at)
            if value is None or at + length > end:
                at += 1
                continue
            why = Notes()
            calls = self._calls(value, start, at, why)
            if calls:
                self.notes.all(why.said)
                yield Span(start=at, end=at + length, calls=calls)
            else:
                self.no_calls[at] = (at + length, why)
            at += length

    def _decoded(self, start: int) -> tuple[Any, int]:
        """The JSON value that begins here, and its length; None and 0 where there is none."""
        for size in (*_CHUNKS, len(self.text)):
            chunk = self.text[start : start + size]
            cut = len(chunk) < len(self.text) - start
            try:
                value, length = _DECODER.raw_decode(chunk)
            except json.JSONDecodeError as error:
                self.budget.spend(error.pos + 64)
                if not cut or (error.pos < len(chunk) - _WORD and not error.msg.startswith("Unterminated")):
                    return None, 0
                self.budget.spend(len(chunk))
            except (ValueError, RecursionError):
                self.budget.spend(len(chunk))
                return None, 0
            else:
                self.budget.spend(64)
                return value, length
        return None, 0

    def nearly_objects(self, start: int, end: int) -> Iterator[Span]:
        """The objects between, that are nearly JSON and calls."""
        at = start
        while not self.budget.spent and (begun := _NEARLY.search(self.text, at, end)) is not None:
            at = begun.start()
            if at in self.no_calls:
                at, why = self.no_calls[at]
                self.notes.all(why.said)
                continue
            try:
                read = read_loose(self.text, at, end, whole=self.whole)
            except Unreadable as error:
                self.notes.add(f"not JSON: {error}")
                self.budget.spend(2 * (error.at - at) + 64)
                at += 1
                continue
            self.budget.spend(read.end - at + 64)
            calls = self._calls(read.value, start, at, self.notes)
            if calls:
                self.notes.all(read.forgiven)
                yield Span(start=at, end=read.end, calls=calls)
            at = read.end

    def _calls(self, value: Any, start: int, at: int, notes: Notes) -> list[ToolCall]:
        """The calls that an object means, by itself or by the name that stands before it."""
        own = Notes()
        calls = calls_of(value, self.tools, own)
        if not calls and (name := self._named_before(start, at)) and set(value) <= set(self.tools.parameters(name)):
            notes.add("a tool's name before its arguments")
            return made(name, value, notes)
        notes.all(own.said)
        return calls

    def _named_before(self, start: int, at: int) -> str | None:
        before = self.text[max(start, at - _BEFORE) : at]
        for _ in range(8):
            bare = _FILLING.sub("", before.rstrip(" \t\r\n:=(\"'`*"))
            if bare == before:
                break
            before = bare
        name = _LAST_NAME.search(before)
        if name is None:
            return None
        found = self.tools.known(name[0], Notes())
        return found if found and name[0].endswith(found) else None


def _some(spans: Iterator[Span]) -> list[Span]:
    """One call more than is read of a turn, at most."""
    found: list[Span] = []
    count = 0
    for span in spans:
        found.append(span)
        count += len(span.calls)
        if count > MOST_CALLS:
            break
    return found


def _remark(text: str, start: int, spans: Sequence[Span], notes: Notes) -> None:
    """What stands around the calls."""
    around: list[str] = []
    for span in spans:
        around.append(text[start : span.start])
        start = span.end
    left = " ".join((*around, text[start:]))
    bare = _FENCE.sub("", left)
    if bare != left:
        notes.add("in a code fence")
    untagged = _TAG.sub("", bare)
    if untagged != bare:
        notes.add("in tags")
    if untagged.strip(_BETWEEN):
        notes.add("text around the calls")
