"""Calls that are no JSON objects: in tags, as `<function=shell><parameter=command>ls…`, or like Python's `shell("ls")`.

A Python-like call must stand on a line of its own and name a known tool: prose speaks of `submit()` too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from metier.envs.core import ToolCall

from .call_objects import Notes, Tools, made
from .loose import PythonArguments, Unreadable, read_loose, read_python_arguments

_OPEN = re.compile(r"""<(?:function=["']?|invoke\s+name=["'])([\w.:-]{1,100})["']?\s*>""")
_PARAMETER = re.compile(r"""<parameter(?:=["']?|\s+name=["'])([\w.:-]{1,100})["']?[^<>]{0,100}>""")
_PARAMETERS = 64
"""The most that are read of one call."""
_BEGINS = re.compile(r"^[ \t]*+[\[>*`-]{0,3}[ \t]*+((?:[A-Za-z_]\w{0,60}\.)?[A-Za-z_]\w{0,100})\(", re.MULTILINE)
_GOES_ON = re.compile(r"\s{0,80},\s{0,80}((?:[A-Za-z_]\w{0,60}\.)?[A-Za-z_]\w{0,100})\(")
_ENDS = re.compile(r"[ \t]*+[\]`;]{0,4}[ \t]*+(?:#[^\n]*+)?(?:\Z|\n|</|<\|)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where in the text these calls were read."""

    start: int
    end: int
    calls: Sequence[ToolCall]


class Budget:
    """How much more may be tried on one text: attempts, and characters looked at."""

    def __init__(self, attempts: int, characters: int) -> None:
        self.attempts = attempts
        self.characters = characters

    def spend(self, characters: int) -> None:
        self.attempts -= 1
        self.characters -= characters

    @property
    def spent(self) -> bool:
        return self.attempts <= 0 or self.characters <= 0


def tagged(text: str, start: int, tools: Tools, notes: Notes, budget: Budget, *, whole: bool) -> Iterator[Span]:
    """The calls in tags, in order."""
    at, closes = start, True
    while not budget.spent and (opened := _OPEN.search(text, at)) is not None:
        close = "</function>" if text.startswith("<function", opened.start()) else "</invoke>"
        end = text.find(close, opened.end()) if closes else -1
        if end < 0:
            closes = False
            following = _OPEN.search(text, opened.end())
            if following is None and not whole:
                return
            notes.add("a tag left open")
            end = len(text) if following is None else following.start()
        at = end if end == len(text) or not closes else end + len(close)
        budget.spend(1024)
        name = tools.known(opened[1], notes) or opened[1]
        arguments = _parameters(text, opened.end(), end, tools.parameters(name))
        notes.add("a call in tags")
        yield Span(start=opened.start(), end=at, calls=made(name, arguments, notes))


def _parameters(text: str, start: int, end: int, schemas: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    at, closes = start, True
    while len(arguments) < _PARAMETERS and (opened := _PARAMETER.search(text, at, end)) is not None:
        stop = text.find("</parameter>", opened.end(), end) if closes else -1
        if stop < 0:
            closes = False
            following = _PARAMETER.search(text, opened.end(), end)
            stop = end if following is None else following.start()
        raw = text[opened.end() : stop].removeprefix("\n").removesuffix("\n")
        arguments[opened[1]] = _typed(raw, schemas.get(opened[1]) or {})
        at = stop
    return arguments


def _typed(raw: str, schema: dict[str, Any]) -> Any:
    """What a tag holds is text, unless its tool takes something else there."""
    if schema.get("type", "string") == "string":
        return raw
    try:
        (value,) = read_loose(f"[{raw}]").value
    except ValueError:
        return raw
    return value


def python_like(text: str, start: int, tools: Tools, notes: Notes, budget: Budget, *, whole: bool) -> Iterator[Span]:
    """The calls that look like Python's, in order."""
    at = start
    while not budget.spent and (begun := _BEGINS.search(text, at)) is not None:
        at = begun.end()
        while begun is not None and not budget.spent and (name := _tool(begun[1], tools)) is not None:
            try:
                read = read_python_arguments(text, begun.end(), whole=whole)
            except Unreadable as error:
                budget.spend(error.at - begun.end() + 64)
                break
            budget.spend(read.end - begun.end() + 64)
            following = _GOES_ON.match(text, read.end)
            arguments = _by_name(read, list(tools.parameters(name)), notes)
            if arguments is None or not (following or _ENDS.match(text, read.end)):
                break
            notes.add("a call like Python's")
            notes.all(read.forgiven)
            yield Span(start=begun.start(), end=read.end, calls=made(name, arguments, notes))
            at, begun = read.end, following


def _tool(name: str, tools: Tools) -> str | None:
    bare = name.rpartition(".")[2]
    return bare if bare in tools.by_name else None


def _by_name(read: PythonArguments, names: Sequence[str], notes: Notes) -> dict[str, Any] | None:
    """All arguments by name; None where there are more than the tool has."""
    if len(read.positional) == 1 and not read.named and isinstance(read.positional[0], dict):
        return read.positional[0]
    if len(read.positional) > len(names):
        return None
    if read.positional:
        notes.add("arguments by position")
    return {**dict(zip(names, read.positional, strict=False)), **read.named}
