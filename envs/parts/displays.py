"""How a ledger's value is written in a document, and what a reader may take from what is written.

A style has a unit in its last place: a reader knows the value to half of it, and no better. `show` writes, `read` is
its inverse at that precision, `agrees` is the one rule by which a written figure and a fact are the same. Halves are
rounded away from zero; months are English whatever the locale.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .ledger import Kind

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
LARGEST_WORD = len(_WORDS) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """One way to write values of a kind.

    Example:
        >>> show(Fraction(412345), STYLES["m1"], "EUR"), show(Fraction(412345), STYLES["k"], "EUR")
        ('EUR 412.3 million', '412,345')
    """

    kind: Kind
    pattern: str
    """Around the number, with `$` for the currency."""
    scale: int = 1
    """How many units of the kind make one of those written."""
    places: int = 0

    @property
    def unit(self) -> Fraction:
        """The unit in the last place, in units of the kind."""
        return Fraction(self.scale, 10**self.places)


STYLES: Mapping[str, Style] = {
    "k": Style(kind=Kind.MONEY, pattern="{}"),
    "kneg": Style(kind=Kind.MONEY, pattern="({})"),
    "eurk": Style(kind=Kind.MONEY, pattern="$ {} thousand"),
    "m1": Style(kind=Kind.MONEY, pattern="$ {} million", scale=1000, places=1),
    "m1bare": Style(kind=Kind.MONEY, pattern="{}", scale=1000, places=1),
    "m0": Style(kind=Kind.MONEY, pattern="$ {} million", scale=1000),
    "full": Style(kind=Kind.MONEY, pattern="$ {},000"),
    "c2": Style(kind=Kind.PRICE, pattern="$ {}", places=2),
    "n": Style(kind=Kind.COUNT, pattern="{}"),
    "word": Style(kind=Kind.COUNT, pattern="{}"),
    "p1": Style(kind=Kind.PERCENT, pattern="{}%", places=1),
    "p0": Style(kind=Kind.PERCENT, pattern="{}%"),
    "p2": Style(kind=Kind.PERCENT, pattern="{}%", places=2),
    "pc1": Style(kind=Kind.PERCENT, pattern="{} per cent", places=1),
    "x1": Style(kind=Kind.MULTIPLE, pattern="{} times", places=1),
    "x2": Style(kind=Kind.MULTIPLE, pattern="{}x", places=2),
    "d": Style(kind=Kind.DATE, pattern="{}"),
    "iso": Style(kind=Kind.DATE, pattern="{}"),
}
"""The styles by the names that templates use."""


def show(value: Fraction, style: Style, currency: str) -> str:
    """The value as the style writes it."""
    if style.kind is Kind.DATE:
        day = datetime.date.fromordinal(int(value))
        return day.isoformat() if style is STYLES["iso"] else spelled(day)
    units = rounded(value / style.unit)
    if style is STYLES["word"] and 0 <= units <= LARGEST_WORD:
        return _WORDS[units]
    whole, part = divmod(abs(units), 10**style.places)
    number = f"{whole:,}" + (f".{part:0{style.places}d}" if style.places else "")
    sign = "-" if units < 0 else ""
    return style.pattern.replace("$", currency).format(sign + number)


def read(text: str, style: Style) -> Fraction:
    """The value as far as `text` tells it.

    Raises:
        ValueError: the text is not written in that style.
    """
    if style.kind is Kind.DATE:
        return Fraction(_day(text).toordinal())
    if text in _WORDS:
        return Fraction(_WORDS.index(text))
    match = re.search(r"-?\d[\d,]*(?:\.\d+)?", text)
    if match is None:
        raise ValueError(f"no number in {text!r}")
    number = match.group().replace(",", "")
    if style is STYLES["full"]:
        number = number.removesuffix("000")
    return Fraction(number) * style.scale


def agrees(text: str, style: Style, value: Fraction) -> bool:
    """Whether `text` states the value at the precision of its style."""
    try:
        return abs(read(text, style) - value) <= style.unit / 2
    except ValueError:
        return False


def rounded(value: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    whole = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return whole if value >= 0 else -whole


def spelled(day: datetime.date) -> str:
    """As in 30 June 2025."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def _day(text: str) -> datetime.date:
    words = text.split()
    if len(words) == 3 and words[1] in _MONTHS:
        return datetime.date(int(words[2]), _MONTHS.index(words[1]) + 1, int(words[0]))
    return datetime.date.fromisoformat(text)
