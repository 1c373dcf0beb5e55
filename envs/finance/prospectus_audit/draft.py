"""A prospectus in the making: its documents section by section, still marked, then put together as files.

Whatever its length, it has the same sections under the same numbers, but for further companies in Annex A: what is
added are paragraphs of passages about something else, and rows of annexes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...core import Rng
from ...parts.filing_prose import LIBRARY
from ...parts.ledger import Ledger
from ...parts.prose import Prose
from ...parts.sections import Place, put_together, restated
from ...parts.token_count import count_tokens
from . import annexes
from .annexes import Section
from .names import Names
from .writer import STRAYS, Mention, Writer

FOLDER = "prospectus"
_MAIN: Mapping[str, tuple[str, str]] = {
    "summary.md": ("Summary", ""),
    "risk-factors.md": ("Risk factors", "risk"),
    "business.md": ("Business", "business"),
    "review.md": ("Operating and financial review", ""),
    "statements.md": ("Consolidated financial statements", ""),
    "notes.md": ("Notes to the consolidated financial statements", "policy"),
    "definitions.md": ("Definitions", ""),
    "offering.md": ("The Offering", ""),
    "management.md": ("Management and shareholders", ""),
    "contracts.md": ("Material contracts", "clause"),
    "supplement.md": ("Supplement", ""),
}
"""Title, and the topic of passages about something else; the number of a document is its place here."""
_STRAYS = (20, 40, 60, 80, 100)
"""Percent of the sentences of the ledger that stand in passages about something else, by level."""
_SHARES = {"risk": 9, "business": 6, "policy": 5, "clause": 8}
_ANNEX_SHARES: Mapping[str, tuple[int, Callable[[Rng, Rng, Writer, int], list[Section]]]] = {
    annexes.ACCOUNTS: (27, annexes.accounts),
    annexes.PROPERTIES: (15, annexes.properties),
    annexes.CONTRACTS: (15, annexes.contracts),
    annexes.MARKET: (15, annexes.market),
}
"""Percent of what is to be added."""
_SUPPLEMENT_FROM = 3
_WITHOUT_HEADINGS = 98
_HEADING_TOKENS = 12
_REFERENCE = re.compile("\x05([^:\x06]+):([^\x06]+)\x06")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Documents with numbered sections, marked; and every figure in them."""

    sections: Mapping[str, tuple[tuple[str, str, str], ...]]
    """Document → (number, title, body)."""
    mentions: tuple[Mention, ...]

    def finished(self, shown: Mapping[int, str]) -> tuple[dict[str, str], dict[int, Place]]:
        """The files, with other words in some of the figures, and where each figure stands."""
        files: dict[str, str] = {}
        places: dict[int, Place] = {}
        for document, sections in self.sections.items():
            told = [(number, title, restated(body, shown)) for number, title, body in sections]
            files[document], found = put_together(document, title_of(document), told)
            places.update(found)
        return files, places


def title_of(document: str) -> str:
    """The title above a document."""
    return _MAIN[document][0] if document in _MAIN else annexes.TITLES[document]


def make_draft(core: Rng, filler: Rng, names: Names, book: Ledger, level: int, tokens: int) -> Draft:
    """`core` decides what every length shares, `filler` what is added up to `tokens`."""
    writer = Writer(core.child("words"), names, book, level)
    documents = [name for name in _MAIN if name != "supplement.md" or level >= _SUPPLEMENT_FROM]
    written = {name: writer.template(name) for name in documents}
    left = tokens - sum(count_tokens(body) + _HEADING_TOKENS for part in written.values() for _, body in part)
    left = left * _WITHOUT_HEADINGS // 100
    for name, (share, make) in _ANNEX_SHARES.items():
        written[name] = make(core.child(name), filler.child(name), writer, left * share // 100)
    strays = {topic: body.splitlines() for topic, body in writer.template(STRAYS)}
    for name in documents:
        if topic := _MAIN[name][1]:
            rng = core.child(name)
            told = rng.sample(strays[topic], len(strays[topic]) * _STRAYS[level] // 100)
            titles = _titles(rng, names, topic, 3 + 3 * level)
            passages = _passages(filler.child(name), names, topic, titles, told, left * _SHARES[topic] // 100)
            first, *rest = written[name]
            written[name] = [first, *rng.child("order").shuffled([*rest, *passages])]
    return Draft(sections=_numbered(written), mentions=tuple(writer.mentions))


def _titles(rng: Rng, names: Names, topic: str, count: int) -> list[str]:
    """Different titles; a topic has only so many."""
    prose = Prose(rng.child("titles"), LIBRARY, _slots(names))
    drawn = (prose.sentence(f"{topic} title") for _ in range(4 * count))
    return list(dict.fromkeys(drawn))[:count]


def _passages(rng: Rng, names: Names, topic: str, titles: list[str], told: list[str], tokens: int) -> list[Section]:
    """Sections about something else, grown paragraph by paragraph, with a sentence of the ledger here and there."""
    prose = Prose(rng, LIBRARY, _slots(names))
    paragraphs: list[list[str]] = [[] for _ in titles]
    spent = _HEADING_TOKENS * len(titles)
    turn = 0
    while turn < 2 * len(titles) or spent < tokens:
        sentences = [prose.sentence(topic) for _ in range(4)]
        paragraphs[turn % len(titles)].append(" ".join(sentences))
        spent += count_tokens(paragraphs[turn % len(titles)][-1])
        turn += 1
    places = rng.child("places")
    for index, sentence in enumerate(told):
        body = paragraphs[index % len(titles)]
        at = places.integer(0, len(body) - 1)
        head, _, tail = body[at].partition(". ")
        body[at] = f"{head}. {sentence} {tail}"
    return [(title, "\n\n".join(body) + "\n") for title, body in zip(titles, paragraphs, strict=True)]


def _slots(names: Names) -> dict[str, str]:
    year = names.year
    years = {"year": year, "before": year - 1, "until": year + 3, "later": year + 6}
    return {"cur": names.currency, **{slot: str(value) for slot, value in years.items()}}


def _numbered(written: Mapping[str, list[Section]]) -> dict[str, tuple[tuple[str, str, str], ...]]:
    heads = {name: name.split("-")[1].upper() for name in annexes.TITLES}
    heads |= {name: str(index) for index, name in enumerate(_MAIN, 1)}
    numbers: dict[tuple[str, str], str] = {}
    for name, sections in written.items():
        for index, (title, _) in enumerate(sections, 1):
            numbers.setdefault((name, title), f"{heads[name]}.{index}")

    def numbered(body: str) -> str:
        return _REFERENCE.sub(lambda match: numbers[match[1], match[2]], body)

    return {
        name: tuple(
            (f"{heads[name]}.{index}", title, numbered(body)) for index, (title, body) in enumerate(sections, 1)
        )
        for name, sections in written.items()
    }
