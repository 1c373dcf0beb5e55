"""Documents as numbered sections, with hidden anchors around what a ledger put into them.

A renderer marks each figure it writes; when the document is put together the marks go and their places stay, counted
from the start of their section, so that text added elsewhere moves none of them. The final text holds no trace of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_MARK = re.compile("\x02(\\d+)\x03([^\x02-\x04]*)\x04")
_HEADING = re.compile(r"^## (\S+) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Characters of a section.

    Example:
        >>> Place(document="notes.md", section="6.4", start=10, end=17).end
        17
    """

    document: str
    section: str
    """The number of its heading."""
    start: int
    end: int


def mark(index: int, text: str) -> str:
    """`text` with an anchor around it."""
    return f"\x02{index}\x03{text}\x04"


def marked(text: str) -> list[tuple[int, str]]:
    """The anchors in a text that is not yet put together: (index, what stands in it)."""
    return [(int(match[1]), match[2]) for match in _MARK.finditer(text)]


def restated(text: str, shown: Mapping[int, str]) -> str:
    """The same text with something else in some of the anchors."""
    return _MARK.sub(lambda match: mark(int(match[1]), shown.get(int(match[1]), match[2])), text)


def put_together(document: str, title: str, sections: Sequence[tuple[str, str, str]]) -> tuple[str, dict[int, Place]]:
    """The text of (number, title, marked body) and where each anchor came to stand."""
    places: dict[int, Place] = {}
    parts = [f"# {title}\n"]
    for number, heading, body in sections:
        plain: list[str] = []
        at = length = 0
        for match in _MARK.finditer(body):
            plain += [body[at : match.start()], match[2]]
            start = length + match.start() - at
            length, at = start + len(match[2]), match.end()
            places[int(match[1])] = Place(document=document, section=number, start=start, end=length)
        parts.append(f"\n## {number} {heading}\n{''.join(plain)}{body[at:]}")
    return "".join(parts), places


def bodies(text: str) -> dict[str, str]:
    """The body of every section of a document, by its number."""
    headings = list(_HEADING.finditer(text))
    ends = [*(heading.start() - 1 for heading in headings[1:]), len(text)]
    return {heading[1]: text[heading.end() + 1 : end] for heading, end in zip(headings, ends, strict=True)}


def split(text: str) -> Iterable[tuple[str, str]]:
    """(title, body) of a rendered template, whose sections begin with `## `; what stands above the first is dropped."""
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        yield title.strip(), body.strip("\n") + "\n"
