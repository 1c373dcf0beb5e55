"""Two readers without understanding: one greps the rare words of the index, one pairs figures that look alike.

They read the files alone, as a script of an agent's could. Where they find much, an instance asks for too little.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...core import Json

_HEADING = re.compile(r"^## (\S+) ")
_FIGURE = re.compile(r"\d[\d,]*(?:\.\d+)?")
_WORD = re.compile(r"[a-z]{4,}")
_STOP = frozenset(
    ("with", "from", "that", "this", "were", "will", "ended", "year", "december", "before", "after", "other")
)
_REACH = 45
_HITS = 60
_CLAIMS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A figure with the words just before it."""

    document: str
    section: str
    quote: str
    number: str
    words: frozenset[str]

    def side(self) -> dict[str, Json]:
        """As an entry has it."""
        return {"document": self.document, "section": self.section, "quote": self.quote}


def rare_word_grep(files: Mapping[str, str], index: str) -> list[dict[str, Json]]:
    """For each fact the figures behind its rarest words: one that is alone against several equal ones is a finding."""
    seen = list(_seen(files))
    frequency = Counter(word for one in seen for word in one.words)
    by_word: dict[str, list[Seen]] = defaultdict(list)
    for one in seen:
        for word in one.words:
            by_word[word].append(one)
    found: list[tuple[int, dict[str, Json]]] = []
    for row in csv.DictReader(io.StringIO(index)):
        words = sorted(_words(row["fact"]) & frequency.keys(), key=lambda word: (frequency[word], word))[:2]
        year = row["when"][-4:]
        hits = [one for one in by_word[words[0]] if set(words) <= one.words and one.number != year] if words else []
        hits = [one for one in hits if year in one.quote or not year.isdecimal()][:_HITS]
        alike = [[other for other in hits if not _differ(one.number, other.number)] for one in hits]
        most = max(alike, key=len, default=[])
        lonely = [one for one, others in zip(hits, alike, strict=True) if len(others) == 1]
        if len(most) > 1 and lonely:
            entry: dict[str, Json] = {"fact": row["code"], "a": most[0].side(), "b": lonely[0].side()}
            found.append((len(lonely), entry))
    return [entry for _, entry in sorted(found, key=lambda one: one[0])[:_CLAIMS]]


def same_number_matcher(files: Mapping[str, str], index: str) -> list[dict[str, Json]]:
    """Figures of two sections that are one digit or one exchange apart, most common words first."""
    labels = [(row["code"], _words(row["fact"])) for row in csv.DictReader(io.StringIO(index))]
    groups: dict[str, list[Seen]] = defaultdict(list)
    for one in _seen(files):
        digits = one.number.replace(",", "").replace(".", "")
        if len(digits) >= 3:
            for at in range(len(digits)):
                groups[f"{len(digits)}:{digits[:at]}?{digits[at + 1 :]}"].append(one)
            groups["".join(sorted(digits))].append(one)
    pairs: dict[tuple[str, str], tuple[int, dict[str, Json]]] = {}
    for group in groups.values():
        for first, second in itertools.pairwise(group):
            common = first.words & second.words
            if first.number != second.number and first.section != second.section and common:
                code = max(labels, key=lambda label: len(label[1] & (first.words | second.words)))[0]
                pairs[first.quote, second.quote] = (
                    -len(common),
                    {"fact": code, "a": first.side(), "b": second.side()},
                )
    return [entry for _, entry in sorted(pairs.values(), key=lambda one: one[0])[:_CLAIMS]]


def _seen(files: Mapping[str, str]) -> Iterator[Seen]:
    for document, text in files.items():
        number = ""
        for line in text.splitlines():
            if heading := _HEADING.match(line):
                number = heading[1]
                continue
            for figure in _FIGURE.finditer(line):
                start = max(0, figure.start() - _REACH)
                quote = line[start : figure.end() + 12]
                yield Seen(
                    document=document,
                    section=number,
                    quote=quote,
                    number=figure.group(),
                    words=_words(line[max(0, figure.start() - 2 * _REACH) : figure.start()]),
                )


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _STOP


def _differ(first: str, second: str) -> bool:
    """Whether they cannot be one number, rounded, in one unit or another."""
    numbers: Sequence[float] = [float(text.replace(",", "")) for text in (first, second)]
    return not any(abs(numbers[0] * scale / (numbers[1] or 1) - 1) < 0.006 for scale in (1e-6, 1e-3, 1, 1e3, 1e6))
