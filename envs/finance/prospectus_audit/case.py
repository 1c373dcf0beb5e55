"""One case whole: names, ledger, documents with their contradictions, the index, and what is right to hand in.

`core` decides all of it but the text that is added up to the wanted length, which `filler` does.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...core import Json, Rng
from ...parts.ledger import Ledger
from .dealings import add_dealings
from .draft import make_draft
from .grading import Spot
from .names import Names, draw_names
from .plant import CONFUSED, Planted, Sites, plant, proven
from .world import draw_ledger
from .writer import Hop, Mention

_CLEAN_PERCENT = 28
_HARMLESS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What a level turns."""

    tokens: int
    fewest: int
    most: int
    hops: frozenset[Hop]
    """How contradictions may be reached."""
    ties: int
    """How many figures are to be tied off."""
    can_be_clean: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What an instance is made of."""

    names: Names
    book: Ledger
    files: Mapping[str, str]
    """Document → text."""
    codes: Mapping[str, str]
    """Fact → its code in the index."""
    sites: Sites
    planted: Sequence[Planted]
    tied: Sequence[str]
    """The facts to be tied off."""
    harmless: Sequence[tuple[Mention, Mention]]

    @property
    def index(self) -> str:
        """The index as CSV."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(("code", "fact", "when"))
        facts = [self.book.fact(key) for key in self.codes]
        writer.writerows(sorted((self.codes[fact.key], fact.label, fact.when) for fact in facts))
        return buffer.getvalue()

    @property
    def to_tie(self) -> list[str]:
        """The facts to be tied off, in words."""
        facts = [self.book.fact(key) for key in self.tied]
        return [f"{self.codes[fact.key]} ({fact.label}, {fact.when})" for fact in facts]

    def truth(self) -> dict[str, Json]:
        """The log of the edits, the places of the figures to be tied off, and pairs that only look wrong."""
        by_index = {one.index: one for one in self.sites.mentions}
        errors: list[Json] = []
        for one in self.planted:
            wrong = by_index[one.wrong]
            errors.append(
                {
                    "wrong": self._spot(wrong),
                    "others": [self._spot(other) for other in self.sites.opposite(wrong)],
                    "before": one.before,
                    "after": one.after,
                    "hop": str(one.hop),
                }
            )
        ties: dict[str, Json] = {self.codes[key]: [self._spot(one) for one in self.sites.of(key)] for key in self.tied}
        harmless: list[Json] = [[self._spot(first), self._spot(second)] for first, second in self.harmless]
        return {"errors": errors, "ties": ties, "harmless": harmless}

    def secrets(self) -> tuple[str, ...]:
        """Each edit of the log, which no document holds."""
        return tuple(json.dumps([self.codes[one.key], one.before, one.after]) for one in self.planted)

    def _spot(self, mention: Mention) -> dict[str, Json]:
        return Spot(place=self.sites.places[mention.index], code=self.codes[mention.key]).to_json()


def make_case(core: Rng, filler: Rng, knobs: Knobs, level: int, tokens: int) -> Case:
    """Draw the world, write it, plant the contradictions, and prove them."""
    names = draw_names(core.child("names"))
    book = draw_ledger(core.child("ledger"), names)
    add_dealings(core.child("dealings"), book, names)
    draft = make_draft(core.child("draft"), filler, names, book, level, tokens)
    clean = knobs.can_be_clean and core.child("clean").integer(0, 99) < _CLEAN_PERCENT
    count = 0 if clean else core.child("count").integer(knobs.fewest, knobs.most)
    before = Sites(mentions=draft.mentions, places=draft.finished({})[1], book=book)
    planted = plant(core.child("plant"), before, knobs.hops, count, level, names.currency)
    files, places = draft.finished({one.wrong: one.after for one in planted})
    sites = Sites(mentions=draft.mentions, places=places, book=book)
    proven(files, sites, planted)
    told = [fact.key for fact in book if sites.of(fact.key)]
    numbers = core.child("codes").sample(range(100, 1000), len(told))
    return Case(
        names=names,
        book=book,
        files=files,
        codes={key: f"T{number}" for key, number in zip(told, numbers, strict=True)},
        sites=sites,
        planted=planted,
        tied=_to_tie(core.child("ties"), sites, planted, knobs.ties),
        harmless=tuple(_harmless(core.child("harmless"), sites, planted)),
    )


def _to_tie(rng: Rng, sites: Sites, planted: Sequence[Planted], count: int) -> list[str]:
    """Facts that are right everywhere, and stand in different documents."""
    wrong = {one.key for one in planted}
    able = [
        fact.key
        for fact in sites.book
        if fact.key not in wrong and len({sites.places[one.index].document for one in sites.of(fact.key)}) > 1
    ]
    return rng.sample(able, count)


def _harmless(rng: Rng, sites: Sites, planted: Sequence[Planted]) -> Iterator[tuple[Mention, Mention]]:
    """Pairs that look like contradictions: other dates, amendments, restated or rounded figures."""
    wrong = {one.wrong for one in planted}

    def right(key: str) -> list[Mention]:
        return [one for one in sites.of(key) if one.index not in wrong]

    confused = [(right(first), right(second)) for first, second in CONFUSED]
    pairs = [(rng.choice(first), rng.choice(second)) for first, second in confused if first and second]
    rounded = [(one, other) for one in right("revenue.0") for other in right("revenue.0") if one.shown < other.shown]
    yield from rng.sample(pairs, min(len(pairs), _HARMLESS - 1))
    yield from rounded[:1]
