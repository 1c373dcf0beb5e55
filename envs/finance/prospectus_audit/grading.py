"""Read the findings and hold them against the log of what was planted; no process runs.

A finding is right if one of its sides is a changed figure, the other one of the places that contradict it, and its code
is that of a fact of either. Partial credit is F with precision weighing double; nothing is paid for a list without the
figures that had to be tied off, nor for one that is longer than anybody would read. Nothing that the file holds makes
this raise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from ...core import Check, Json, Sandbox, Verdict
from ...parts.quotes import Searched, plain
from ...parts.sections import Place, bodies

FINDINGS = "findings.json"
MAX_BYTES = 200_000
CAP = 24
"""A longer list of contradictions counts for nothing."""
QUOTE_LEAST, QUOTE_MOST = 8, 200
_SECTION = re.compile(r"(?:[A-Z]\.)?\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A place, and the code of the fact that stands there."""

    place: Place
    code: str

    def to_json(self) -> dict[str, Json]:
        """For the truth."""
        return {"code": self.code, **asdict(self.place)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Spot:
        """The inverse of `to_json`."""
        fields = {name: value[name] for name in ("document", "section", "start", "end")}
        return cls(place=Place(**fields), code=str(value["code"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """A planted contradiction, and all that contradicts it."""

    wrong: Spot
    others: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What is right: the contradictions, and the figures to be tied off with their places."""

    errors: tuple[Error, ...]
    ties: Mapping[str, tuple[Spot, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side as handed in."""

    document: str
    section: str
    quote: str

    def covers(self, spot: Spot, shelf: Shelf) -> bool:
        """Whether the quote stands in that section and takes in the figure of the spot."""
        place = spot.place
        return (self.document, self.section) == (place.document, place.section) and any(
            start <= place.start and place.end <= end for start, end in shelf.quoted(self)
        )


class Shelf:
    """The documents by name, opened and searched once."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = files
        self._bodies: dict[str, dict[str, str]] = {}
        self._searched: dict[tuple[str, str], Searched] = {}
        self._quoted: dict[Side, list[tuple[int, int]]] = {}

    def body(self, document: str, number: str) -> str:
        """A section; empty where there is none."""
        if document not in self._bodies:
            self._bodies[document] = bodies(self._files.get(document, ""))
        return self._bodies[document].get(number, "")

    def quoted(self, side: Side) -> list[tuple[int, int]]:
        """Where the quote of a side stands in its section."""
        if side not in self._quoted:
            where = (side.document, side.section)
            if where not in self._searched:
                self._searched[where] = Searched(self.body(*where))
            self._quoted[side] = list(self._searched[where].occurrences(side.quote))
        return self._quoted[side]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A pair of sides, as handed in."""

    code: str
    sides: tuple[Side, Side]


class FindingsError(ValueError):
    """The file is not what was asked for; the message says why."""


async def read_findings(sandbox: Sandbox) -> str:
    """The text of the file.

    Raises:
        FindingsError: there is none, or it is no text of sane size.
    """
    try:
        data = await sandbox.read(f"/workspace/{FINDINGS}", max_bytes=MAX_BYTES, user="root")
        return data.decode("utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, ValueError) as error:
        raise FindingsError(f"no readable {FINDINGS} of at most {MAX_BYTES} bytes: {type(error).__name__}") from error


def parse(text: str) -> tuple[list[Entry], list[Entry]]:
    """(ties, contradictions).

    Raises:
        FindingsError: it is no JSON of the form that was asked for.
    """
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FindingsError(f"no JSON: {type(error).__name__}") from error
    if not isinstance(value, dict) or not isinstance(value.get("contradictions"), list):
        raise FindingsError("no object with a list `contradictions`")
    ties = value.get("ties", [])
    if not isinstance(ties, list):
        raise FindingsError("`ties` is no list")
    if len(value["contradictions"]) > CAP or len(ties) > CAP:
        raise FindingsError(f"a list is longer than {CAP}")
    return [_entry(one) for one in ties], [_entry(one) for one in value["contradictions"]]


def _entry(value: Any) -> Entry:
    if not isinstance(value, dict):
        raise FindingsError("an entry is no object")
    code = value.get("fact")
    return Entry(code=code.strip().upper() if isinstance(code, str) else "", sides=(_side(value.get("a")),
                                                                                   _side(value.get("b"))))  # fmt: skip


def _side(value: Any) -> Side:
    words = [value.get(name) if isinstance(value, dict) else None for name in ("document", "section", "quote")]
    document, number, quote = (word if isinstance(word, str) else "" for word in words)
    match = _SECTION.search(number)
    wanted = len(quote) <= 4 * QUOTE_MOST and QUOTE_LEAST <= len(plain(quote)) <= QUOTE_MOST
    return Side(
        document=document.strip().rpartition("/")[2],
        section=match.group() if match else "",
        quote=quote if wanted else "",
    )


def grade(text: str, key: Key, shelf: Shelf) -> Verdict:
    """One check of the contradictions; what was tied off is shown beside it and weighs nothing by itself."""
    try:
        ties, found = parse(text)
    except FindingsError as error:
        return unreadable(str(error))
    tied = _tied(ties, key, shelf)
    share = Fraction(len(tied), len(key.ties))
    hits, strangers = _matched(found, key, shelf)
    score = f_score(len(hits), strangers, len(key.errors) - len(hits))
    told = f"{len(hits)} of {len(key.errors)} contradictions, {strangers} entries that are none"
    return Verdict.of(
        Check(
            name="contradictions",
            score=float(share * score),
            evidence=f"{told}; times {share} of the figures tied off",
        ),
        Check(name="figures tied off", score=float(share), weight=0.0, evidence=f"{len(tied)} of {len(key.ties)}"),
    )


def unreadable(why: str) -> Verdict:
    """The verdict on a file that cannot be graded."""
    return Verdict.of(
        Check(name="contradictions", score=0.0, evidence=why),
        Check(name="figures tied off", score=0.0, weight=0.0, evidence=why),
    )


def f_score(hits: int, strangers: int, missed: int) -> Fraction:
    """F with beta 1/2: 1.25 hits / (1.25 hits + 0.25 missed + strangers); 1 where nothing is there nor claimed."""
    if not hits:
        return Fraction(int(not strangers and not missed))
    return Fraction(5 * hits, 5 * hits + missed + 4 * strangers)


def _tied(ties: Sequence[Entry], key: Key, shelf: Shelf) -> set[str]:
    """Codes with two places in different documents, both of which state the figure."""
    done: set[str] = set()
    for entry in ties:
        first, second = entry.sides
        spots = key.ties.get(entry.code, ())
        if first.document != second.document and all(
            any(side.covers(spot, shelf) for spot in spots) for side in entry.sides
        ):
            done.add(entry.code)
    return done


def _matched(found: Sequence[Entry], key: Key, shelf: Shelf) -> tuple[set[int], int]:
    """Which contradictions are found, and how many entries are none; one found twice counts once."""
    hits: set[int] = set()
    strangers = 0
    for entry in found:
        index = next((at for at, error in enumerate(key.errors) if _is(entry, error, shelf)), None)
        if index is None:
            strangers += 1
        else:
            hits.add(index)
    return hits, strangers


def _is(entry: Entry, error: Error, shelf: Shelf) -> bool:
    first, second = entry.sides
    for wrong, other in ((first, second), (second, first)):
        if wrong.covers(error.wrong, shelf):
            codes = [spot.code for spot in error.others if other.covers(spot, shelf)]
            if codes and entry.code in (error.wrong.code, *codes):
                return True
    return False
