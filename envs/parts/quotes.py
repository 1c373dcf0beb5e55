"""Where a quote stands in a text, forgiving what copying changes: spaces, dashes, quotation marks, ligatures, mark-up.

A quote is found if its letters, digits and signs follow each other in the text; its place is given in the text itself.
Table bars, emphasis and soft hyphens count as nothing but a gap, and case does not count. Figures are never forgiven.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-")
_QUOTES = {ord("\u2018"): "'", ord("\u2019"): "'", ord("\u201c"): '"', ord("\u201d"): '"', ord("`"): " "}
_GONE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"), "")
_GAPS = dict.fromkeys(map(ord, "|*_#"), " ")
_TABLE = {**_DASHES, **_QUOTES, **_GONE, **_GAPS}


def plain(text: str) -> str:
    """The text without what copying changes; no spaces at its ends."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_TABLE).casefold().split())


class Searched:
    """A text in which quotes are looked for.

    Example:
        >>> list(Searched("| Cash |  41,300 |").occurrences("cash 41,300"))
        [(2, 16)]
    """

    def __init__(self, text: str) -> None:
        self._letters, self._places = _mapped(text)

    def occurrences(self, quote: str) -> Iterator[tuple[int, int]]:
        """The (start, end) of every place in the text that the quote may have been copied from."""
        wanted = plain(quote)
        if not wanted:
            return
        at = self._letters.find(wanted)
        while at >= 0:
            yield self._places[at], self._places[at + len(wanted) - 1] + 1
            at = self._letters.find(wanted, at + 1)


def _mapped(text: str) -> tuple[str, list[int]]:
    """`plain` of the text, and for each of its characters where it came from."""
    letters: list[str] = []
    places: list[int] = []
    gap = True  # no space at the start
    for index, character in enumerate(text):
        if character.isascii() and character.isalnum():
            letters.append(character.lower())
            places.append(index)
            gap = False
            continue
        for letter in unicodedata.normalize("NFKC", character).translate(_TABLE).casefold():
            if not letter.isspace():
                letters.append(letter)
                places.append(index)
                gap = False
            elif not gap:
                letters.append(" ")
                places.append(index)
                gap = True
    return "".join(letters), places
