"""Sentences from a small grammar: text that reads like a filing and never says the same twice, at no cost.

A pattern is a sentence with alternatives in braces, `{may|could} {delay|reduce} it`, numbers `{#2..4000}` with both
ends, and years `{@1898..1974}`, which have no comma. One draw decides a whole sentence. A library is a mapping of a
topic to its patterns; `Prose` walks through a topic's patterns in random order before it uses one again, so that near
duplicates lie far apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core import Rng

_CHOICE = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"([#@])(\d+)\.\.(\d+)")
_WIDE = (1 << 120) - 1


class Prose:
    """Sentences of a library, with names filled into its `<slots>`."""

    def __init__(self, rng: Rng, library: Mapping[str, Sequence[str]], names: Mapping[str, str] | None = None) -> None:
        self._rng = rng
        filled = {topic: [_filled(pattern, names or {}) for pattern in library[topic]] for topic in library}
        self._library = {topic: [_compiled(pattern) for pattern in patterns] for topic, patterns in filled.items()}
        self._left: dict[str, list[int]] = {topic: [] for topic in library}

    def sentence(self, topic: str) -> str:
        """One sentence of a topic."""
        left = self._left[topic]
        if not left:
            left += self._rng.shuffled(range(len(self._library[topic])))
        return _expanded(self._library[topic][left.pop()], self._rng.integer(0, _WIDE))

    def paragraph(self, topic: str, sentences: int) -> str:
        """Several sentences of a topic."""
        return " ".join(self.sentence(topic) for _ in range(sentences))


def _filled(pattern: str, names: Mapping[str, str]) -> str:
    for slot, name in names.items():
        pattern = pattern.replace(f"<{slot}>", name)
    return pattern


@dataclass(frozen=True, slots=True)
class _Span:
    low: int
    high: int
    pattern: str


_Part = str | tuple[str, ...] | _Span


def _compiled(pattern: str) -> list[_Part]:
    parts: list[_Part] = []
    for index, piece in enumerate(_CHOICE.split(pattern)):
        span = _RANGE.fullmatch(piece) if index % 2 else None
        if span is not None:
            parts.append(_Span(int(span[2]), int(span[3]), "{:,}" if span[1] == "#" else "{}"))
        else:
            parts.append(tuple(piece.split("|")) if index % 2 else piece)
    return parts


def _expanded(parts: Sequence[_Part], draw: int) -> str:
    words: list[str] = []
    for part in parts:
        match part:
            case str():
                words.append(part)
            case _Span():
                draw, index = divmod(draw, part.high - part.low + 1)
                words.append(part.pattern.format(part.low + index))
            case _:
                draw, index = divmod(draw, len(part))
                words.append(part[index])
    return "".join(words)
