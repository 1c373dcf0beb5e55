"""Plant contradictions: one figure of a fact is changed in one place, so that all its other places contradict it.

Invariants: every change shows at the precision of every other place of the fact; no two planted facts stand in one
relation; the primary statements stay right; everything else that a document states agrees with the ledger.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ...core import Rng
from ...parts.displays import LARGEST_WORD, STYLES, Style, agrees, read, rounded, show
from ...parts.ledger import Kind, Ledger, ordinal
from ...parts.sections import Place, bodies
from .writer import Hop, Mention

STATEMENTS = "statements.md"
CONFUSED: tuple[tuple[str, str], ...] = (
    ("employees.0", "employees_recent"), ("employees.0", "employees_average"), ("backlog.0", "backlog_recent"),
    ("facility", "facility_first"), ("facility_signed", "facility_amended"), ("office_rent", "office_rent_later"),
    ("claim", "claim_later"), ("cost_of_sales.1", "cost_of_sales_before.1"), ("selling.1", "selling_before.1"),
    ("gross_profit.1", "gross_profit_before.1"),
)  # fmt: skip
"""Different facts that a hurried reader takes for one; both are right."""
_SUPERSEDED = ("office_rent", "claim")
_LEAST_SHARE = Fraction(2, 100)
_LEAST_RATIO_SHARE = Fraction(4, 100)
_MOST_SHARE = Fraction(45, 100)
_LEAST_UNITS = 3
_LEAST_DAYS = 9
_MOST_DAYS = 800
_STRAY_PERCENT = (0, 30, 50, 60, 70)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One contradiction: the log of a minimal edit."""

    key: str
    wrong: int
    """The mention that was changed."""
    before: str
    after: str
    hop: Hop


@dataclass(frozen=True, slots=True, kw_only=True)
class Sites:
    """Where the figures of a draft stand."""

    mentions: Sequence[Mention]
    places: Mapping[int, Place]
    book: Ledger

    def of(self, key: str) -> list[Mention]:
        """The mentions of a fact that stand in some document."""
        return [one for one in self.mentions if one.key == key and one.index in self.places]

    def opposite(self, wrong: Mention) -> list[Mention]:
        """What contradicts a wrong mention in other sections: its fact, what it follows from or that from it."""
        here = self.places[wrong.index].section
        keys = (wrong.key, *sorted(self.book.tied(wrong.key)))
        return [one for key in keys for one in self.of(key) if self.places[one.index].section != here]


def plant(rng: Rng, sites: Sites, hops: frozenset[Hop], count: int, level: int, currency: str) -> list[Planted]:
    """`count` contradictions, each reached by one of `hops`."""
    able = [one for one in sites.mentions if one.hop in hops and _may_be_wrong(sites, one, level)]
    closed: set[str] = set()
    planted: list[Planted] = []
    while len(planted) < count:
        open_ones = [one for one in able if one.key not in closed]
        if not open_ones:
            raise ValueError(f"only {len(planted)} of {count} contradictions fit")
        mention = _drawn(rng, open_ones, level)
        after = _changed(rng, sites, mention, currency)
        closed.add(mention.key)
        if after:
            closed |= sites.book.entangled(mention.key) | _alike(mention.key)
            planted.append(
                Planted(key=mention.key, wrong=mention.index, before=mention.shown, after=after, hop=mention.hop)
            )
    return planted


def _may_be_wrong(sites: Sites, mention: Mention, level: int) -> bool:
    place = sites.places.get(mention.index)
    if place is None or place.document == STATEMENTS:
        return False
    superseded = level >= 3 and mention.key in _SUPERSEDED
    return not superseded and bool(sites.opposite(mention))


def _drawn(rng: Rng, able: Sequence[Mention], level: int) -> Mention:
    """A kind of hop first, so that none is rare; then a place, off the beaten track more often at high levels."""
    stray = rng.integer(0, 99) < _STRAY_PERCENT[level]
    pool = [one for one in able if one.stray] if stray else []
    pool = pool or list(able)
    hop = rng.choice(sorted({one.hop for one in pool}))
    return rng.choice([one for one in pool if one.hop is hop])


def _alike(key: str) -> set[str]:
    """Facts that are easily confused with this one: two contradictions about them would be a riddle."""
    return {one for pair in CONFUSED if key in pair for one in pair}


def _changed(rng: Rng, sites: Sites, mention: Mention, currency: str) -> str:
    """Another figure in the same style, plausible and clearly wrong; empty where none is."""
    style = STYLES[mention.style]
    step = max(STYLES[one.style].unit for one in sites.of(mention.key))
    for slip in rng.shuffled(_slips(sites.book, mention, style)):
        for value in rng.shuffled(slip):
            text = show(value, style, currency)
            if _clear(sites.book, mention, read(text, style), step):
                return text
    return ""


def _clear(book: Ledger, mention: Mention, value: Fraction, step: Fraction) -> bool:
    right, kind = book[mention.key], book.fact(mention.key).kind
    change = abs(value - right)
    if kind is Kind.DATE:
        return _LEAST_DAYS <= change <= _MOST_DAYS
    if mention.style == "word" or (kind is Kind.COUNT and right <= LARGEST_WORD):
        return 1 <= change <= 2 and 2 <= value <= LARGEST_WORD
    ratio = kind in (Kind.PERCENT, Kind.MULTIPLE)
    least = (_LEAST_RATIO_SHARE if ratio else _LEAST_SHARE) * right
    return max(least, _LEAST_UNITS * step) <= change <= max(_MOST_SHARE * right, 4 * step)


def _slips(book: Ledger, mention: Mention, style: Style) -> list[list[Fraction]]:
    """What a typist, a stale version or a wrong column would put there, by the kind of slip."""
    right = book[mention.key]
    stem, dot, ago = mention.key.rpartition(".")
    columns = {f"{stem}.{int(ago) + change}" for change in (-1, 1)} if dot else set[str]()
    stale = {one for pair in CONFUSED if mention.key in pair for one in pair} - {mention.key}
    slips = [[fact.value for fact in book if fact.key in keys] for keys in (columns, stale)]
    if style.kind is Kind.DATE:
        return [*slips, *_days(datetime.date.fromordinal(int(right)))]
    units = rounded(right / style.unit)
    digits = str(units)
    near = [units + change for change in (-2, -1, 1, 2)] if units <= LARGEST_WORD else []
    swapped = [digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :] for at in range(len(digits) - 1)]
    typed = [
        digits[:at] + digit + digits[at + 1 :]
        for at, right_one in enumerate(digits)
        for digit in "0123456789"
        if digit != right_one
    ]
    numbers = (near, *([int(text) for text in texts if text[0] != "0"] for texts in (swapped, typed)))
    return [*slips, *([number * style.unit for number in some] for some in numbers)]


def _days(day: datetime.date) -> list[list[Fraction]]:
    """Another year, another month, another ten days."""
    safe = min(day.day, 28)
    years = [datetime.date(day.year + change, day.month, safe) for change in (-2, -1, 1, 2)]
    months = [datetime.date(day.year, month, safe) for month in range(1, 13) if month != day.month]
    tens = [datetime.date(day.year, day.month, number) for number in (day.day - 10, day.day + 10) if 0 < number < 29]
    return [[ordinal(one) for one in days] for days in (years, months, tens)]


def proven(files: Mapping[str, str], sites: Sites, planted: Sequence[Planted]) -> None:
    """Read every figure back from the files: those planted are wrong, all others right.

    Raises:
        ValueError: one is not.
    """
    wrong = {one.wrong: one.after for one in planted}
    told = {document: bodies(text) for document, text in files.items()}
    for mention in sites.mentions:
        place = sites.places.get(mention.index)
        if place is None:
            continue
        text = told[place.document][place.section][place.start : place.end]
        if text != wrong.get(mention.index, mention.shown):
            raise ValueError(f"{mention.key} is not where it was put: {text!r}")
        if agrees(text, STYLES[mention.style], sites.book[mention.key]) == (mention.index in wrong):
            raise ValueError(f"{mention.key} reads {text!r} in {place.document} {place.section}")
