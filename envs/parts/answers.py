"""Typed numbers in free text: read what a person would write, refuse what is no number, compare as decimals.

A percentage or basis points are the plain ratio they mean (5% is 0.05, 12.5 bps is 0.00125) and a scale word multiplies
(1.2 billion is 1,200,000,000), so "5" is never "5%" and "543" never "543 billion". Parentheses and "minus" are signs. A
comma before exactly three digits groups thousands; otherwise it is a decimal comma. NaN, infinities, empty text and
code are refused with `AnswerError`, which a verifier turns into a wrong answer.
"""

from __future__ import annotations

import re
from decimal import Decimal

MAX_CHARS = 80
"""Longer texts are no number."""
_MAX_EXPONENT = 30

_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_SCALES = {
    "k": 3, "thousand": 3, "m": 6, "mn": 6, "mm": 6, "mio": 6, "million": 6, "millions": 6,
    "b": 9, "bn": 9, "billion": 9, "billions": 9, "t": 12, "tn": 12, "trillion": 12, "trillions": 12,
}  # fmt: skip
_PARTS = {
    "%": -2, "percent": -2, "per cent": -2, "pct": -2, "bps": -4, "bp": -4, "basis points": -4, "basis point": -4,
}  # fmt: skip
_CURRENCIES = ("us$", "usd", "eur", "gbp", "chf", "jpy", "$", "€", "£", "¥")
_TIMES = ("times", "x", "×")

_UNITS = {**dict.fromkeys(_TIMES, 0), **_SCALES, **_PARTS}
_ENGLISH = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d+)?|\d+(\.\d*)?|\.\d+", re.ASCII)
_SPACED = re.compile(r"\d{1,3}( \d{3})+([.,]\d+)?", re.ASCII)
_CONTINENTAL = re.compile(r"\d{1,3}(\.\d{3})+,\d+|\d{1,3}(\.\d{3}){2,}|\d+,\d+", re.ASCII)
_EXPONENT = re.compile(r"(?P<mantissa>\d+(\.\d*)?|\.\d+)e(?P<power>[+-]?\d{1,3})", re.ASCII)


class AnswerError(ValueError):
    """The text is not the answer that was asked for; the message says why."""


def parse_number(text: str) -> Decimal:
    """The number that `text` states.

    Raises:
        AnswerError: it states none, or none that is finite and of sane size.

    Example:
        >>> parse_number("(12.5%)"), parse_number("1.2 billion"), parse_number("1.234,5")
        (Decimal('-0.125'), Decimal('1200000000'), Decimal('1234.5'))
    """
    if len(text) > MAX_CHARS:
        raise AnswerError(f"{len(text)} characters are no number")
    rest = " ".join(text.lower().replace("\u2212", "-").replace("\u202f", " ").split())
    negative, rest = _signed(rest)
    rest, power = _unit(_without_currency(rest))
    if not negative:
        negative, rest = _signed(rest)
    value = _magnitude(_without_currency(rest), text).scaleb(power)
    return -value if negative else value


def close(answer: Decimal, expected: Decimal, tolerance: Decimal) -> bool:
    """Whether `answer` lies within `tolerance` of `expected`."""
    return abs(answer - expected) <= tolerance


def _signed(text: str) -> tuple[bool, str]:
    if text.startswith("(") and text.endswith(")"):
        return True, text[1:-1].strip()
    for sign, negative in (("minus ", True), ("negative ", True), ("-", True), ("+", False)):
        if text.startswith(sign):
            return negative, text[len(sign) :].strip()
    return False, text


def _without_currency(text: str) -> str:
    for currency in _CURRENCIES:
        if text.startswith(currency):
            return text[len(currency) :].strip()
        if text.endswith(currency):
            return text[: -len(currency)].strip()
    return text


def _unit(text: str) -> tuple[str, int]:
    """The text without its unit, and the power of ten that the unit means."""
    for unit in sorted(_UNITS, key=len, reverse=True):
        head = text.removesuffix(unit)
        if head != text and head and not head[-1].isalpha():
            return head.rstrip(), _UNITS[unit]
    return text, 0


def _magnitude(text: str, whole: str) -> Decimal:
    if text in _WORDS:
        return Decimal(_WORDS.index(text))
    if match := _EXPONENT.fullmatch(text):
        power = int(match["power"])
        if abs(power) > _MAX_EXPONENT:
            raise AnswerError(f"{whole!r} is out of range")
        return Decimal(match["mantissa"]).scaleb(power)
    if _ENGLISH.fullmatch(text):
        return Decimal(text.replace(",", ""))
    if _SPACED.fullmatch(text):
        return Decimal(text.replace(" ", "").replace(",", "."))
    if _CONTINENTAL.fullmatch(text):
        return Decimal(text.replace(".", "").replace(",", "."))
    raise AnswerError(f"{whole!r} is no number")
