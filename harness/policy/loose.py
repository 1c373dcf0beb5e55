"""A reader for what is nearly JSON: what models write where they mean JSON, and the arguments of a Python-like call.

Beside JSON it reads Python's quotes, words and tuples, names without quotes, commas too many, line breaks and quotes
inside a text, escapes that JSON does not have, and closes at the end what was left open. Each liberty is named. Every
step moves on, so reading takes time in proportion to what is read; nesting is bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metier.envs.core import Json

DEPTH = 32
"""Of lists and objects; no tool takes deeper ones (`metier.harness.tools.door`)."""

_SPACE = re.compile(r"\s*+")
_NAME = re.compile(r"[A-Za-z_][\w-]*+")
_NUMBER = re.compile(r"-?(?:\d{1,300})(?:\.\d{1,300})?(?:[eE][+-]?\d{1,3})?(?![\w.])")
_TO_QUOTE = {
    quote: re.compile(rf"[^{quote}\\]*+(?:\\.[^{quote}\\]*+)*+(?={quote})", re.DOTALL) for quote in ("'", '"', "`")
}
_TO_THREE = {three: re.compile(rf"(?:[^\\]|\\.)*?{three}", re.DOTALL) for three in ("'''", '"""')}
_AFTER_NAME = re.compile(r"\s*+:")
_AFTER_VALUE = re.compile(r"\s*+(?:[,}\])]|\Z|```|</|<\|)")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}"
    r"|U00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|.)",
    re.DOTALL,
)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""} | {c: c for c in "\\/\"'`"}
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_ENDS = ("```", "</", "<|")
"""What closes a call around the text of an object."""


class Unreadable(ValueError):
    """No sense could be made of it; `at` is how far reading came."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True, kw_only=True)
class Loose:
    """A value, where it ends, and what was forgiven to read it."""

    value: Any
    end: int
    forgiven: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonArguments:
    """What stood between the brackets of a Python-like call, and where it ends."""

    positional: tuple[Any, ...]
    named: dict[str, Any]
    end: int
    forgiven: tuple[str, ...]


def read_loose(text: str, start: int = 0, end: int | None = None, *, whole: bool = True) -> Loose:
    """The object or list that begins at `start`; nothing from `end` on is looked at.

    `whole`: the text ends where its author ended it, so that brackets left open may be closed.

    Raises:
        Unreadable: not even nearly JSON.

    Example:
        >>> read_loose("{'tool': 'shell', 'deep': [True, None,], }").value
        {'tool': 'shell', 'deep': [True, None]}
    """
    reader = _Reader(text, start, len(text) if end is None else end, whole)
    value = reader.value(0)
    return Loose(value=value, end=reader.at, forgiven=tuple(reader.forgiven))


def read_python_arguments(text: str, start: int, end: int | None = None, *, whole: bool = True) -> PythonArguments:
    """What follows the opening bracket of a call, which lies just before `start`, up to its closing one.

    Raises:
        Unreadable: no such thing.

    Example:
        >>> read_python_arguments("command='ls', timeout_s=3) …", 0).named
        {'command': 'ls', 'timeout_s': 3}
    """
    reader = _Reader(text, start, len(text) if end is None else end, whole)
    positional, named = reader.arguments()
    return PythonArguments(positional=tuple(positional), named=named, end=reader.at, forgiven=tuple(reader.forgiven))


class _Reader:
    def __init__(self, text: str, start: int, end: int, whole: bool) -> None:
        self.text = text
        self.at = start
        self.end = end
        self.whole = whole and end == len(text)
        self.forgiven: dict[str, None] = {}

    def value(self, depth: int) -> Any:
        self._skip()
        character = self.text[self.at] if self.at < self.end else ""
        if character in ("{", "[", "("):
            if depth >= DEPTH:
                raise Unreadable(f"nested more than {DEPTH} deep", self.at)
            self.at += 1
            return self._object(depth + 1) if character == "{" else self._list(depth + 1, character)
        if character and character in "'\"`":
            return self._string(_AFTER_VALUE)
        if (number := self._match(_NUMBER)) is not None:
            read = int(number) if number.lstrip("-").isdigit() else float(number)
            if math.isinf(read):
                raise Unreadable("a number without end", self.at)
            return read
        word = self._match(_NAME) or ""
        if word not in _WORDS:
            raise Unreadable("no value", self.at)
        if word[0].isupper():
            self._forgive("Python's words for true, false and null")
        return _WORDS[word]

    def arguments(self) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}

        def member() -> None:
            here = self.at
            name = self._match(_NAME)
            self._skip()
            if name is not None and self.text.startswith("=", self.at):
                self.at += 1
                named[name] = self.value(1)
                return
            self.at = here
            positional.append(self.value(1))

        self._members(")", member)
        return positional, named

    def _object(self, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}

        def member() -> None:
            name = self._name()
            self._skip()
            if not self.text.startswith(":", self.at) or self.at >= self.end:
                raise Unreadable("a name without a value", self.at)
            self.at += 1
            made[name] = self.value(depth)

        self._members("}", member)
        return made

    def _list(self, depth: int, opening: str) -> list[Any]:
        made: list[Any] = []
        self._members("]" if opening == "[" else ")", lambda: made.append(self.value(depth)))
        return made

    def _members(self, closing: str, member: Callable[[], None]) -> None:
        """Reads members with commas between, and the closing bracket."""
        several = False
        while True:
            self._skip()
            if self.text.startswith(closing, self.at) and self.at < self.end:
                self.at += 1
                return
            if several and self._over():
                self._forgive("brackets left open at the end")
                return
            member()
            several = True
            self._skip()
            if self.text.startswith(",", self.at) and self.at < self.end:
                self.at += 1
                self._skip()
                if self.text.startswith(closing, self.at):
                    self._forgive("a comma too many")
            elif not self.text.startswith(closing, self.at) and not self._over():
                raise Unreadable(f"neither a comma nor {closing}", self.at)

    def _over(self) -> bool:
        """Whether nothing more of this object is to come, though brackets are open."""
        return self.whole and (self.at >= self.end or self.text.startswith(_ENDS, self.at))

    def _name(self) -> str:
        self._skip()
        if self.at < self.end and self.text[self.at] in "'\"`":
            return self._string(_AFTER_NAME)
        name = self._match(_NAME)
        if name is None:
            raise Unreadable("no name", self.at)
        self._forgive("names without quotes")
        return name

    def _string(self, after: re.Pattern[str]) -> str:
        quote = self.text[self.at]
        three = quote * 3
        if three in _TO_THREE and self.text.startswith(three, self.at):
            found = _TO_THREE[three].match(self.text, self.at + 3, self.end)
            if found is not None:
                self._forgive("three quotes around a text")
                self.at = found.end()
                return self._unescaped(found[0][:-3])
        if quote != '"':
            self._forgive("single quotes" if quote == "'" else "backquotes")
        start = self.at = self.at + 1
        while (found := _TO_QUOTE[quote].match(self.text, self.at, self.end)) is not None:
            self.at = found.end() + 1
            if after.match(self.text, self.at, self.end):
                return self._unescaped(self.text[start : found.end()])
            self._forgive("quotes inside a text")
        raise Unreadable("a text without an end", self.end)

    def _unescaped(self, raw: str) -> str:
        if "\n" in raw:
            self._forgive("line breaks inside a text")
        return _ESCAPE.sub(self._character, raw) if "\\" in raw else raw

    def _character(self, escape: re.Match[str]) -> str:
        said = escape[0][1:]
        if len(said) > 1:
            halves = [int(part, 16) for part in said[1:].split("\\u")]
            code = halves[0] if len(halves) == 1 else 0x10000 + ((halves[0] - 0xD800) << 10) + (halves[1] - 0xDC00)
            return chr(code)
        if said not in _PLAIN_ESCAPES:
            self._forgive("escapes that JSON does not have")
            return escape[0]
        return _PLAIN_ESCAPES[said]

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self.text, self.at, self.end)
        if found is None:
            return None
        self.at = found.end()
        return found[0]

    def _skip(self) -> None:
        found = _SPACE.match(self.text, self.at, self.end)
        assert found is not None
        self.at = found.end()

    def _forgive(self, what: str) -> None:
        self.forgiven[what] = None
