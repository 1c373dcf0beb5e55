"""Fill the templates of a prospectus from the ledger, and remember every figure that was written and how.

A template states figures by key alone: `f("revenue.0", "m1", "scale")` writes one, in a style, with the kind of step
that leads from it to the other places of the fact. Wording varies by `pick`; what is said never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, auto
from functools import cache
from importlib import resources

import jinja2

from ...core import Rng
from ...parts.displays import STYLES, show, spelled
from ...parts.ledger import Kind, Ledger
from ...parts.sections import mark, split
from .names import Names


class Hop(StrEnum):
    """How a reader gets from one place to the other places of a fact."""

    DIRECT = auto()
    """The same words and the same unit."""
    SCALE = auto()
    """Another unit, rounded."""
    TERM = auto()
    """By the definition of a term."""
    DERIVED = auto()
    """By computing it from other facts."""
    ASOF = auto()
    """Figures of other dates, or as previously reported, stand near it."""
    AMENDED = auto()
    """An earlier or later figure of the same thing is right elsewhere."""
    REFERENCE = auto()
    """By a number in a register, a code name or a section that is referred to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One figure in one document."""

    index: int
    key: str
    style: str
    hop: Hop
    shown: str
    stray: bool
    """Whether it stands in a passage about something else."""


_DEFAULT = {
    Kind.PRICE: "c2", Kind.COUNT: "n", Kind.PERCENT: "p1", Kind.MULTIPLE: "x1", Kind.DATE: "d",
}  # fmt: skip
STRAYS = "strays.md"
"""The template of sentences that stand in passages about something else: a section for each topic, one a line."""
_LARGE = 100_000
_SCALED = ("m1", "m0", "m1bare")


class Writer:
    """Writes marked text for one prospectus."""

    def __init__(self, rng: Rng, names: Names, book: Ledger, level: int) -> None:
        self.names, self.book, self.level = names, book, level
        self.mentions: list[Mention] = []
        self._rng = rng

    def template(self, document: str) -> list[tuple[str, str]]:
        """(title, marked body) of the sections of a document."""
        text = _template(f"{document.removesuffix('.md')}.md.j2").render(**self._words(document))
        return list(split(text))

    def figure(self, document: str, key: str, style: str = "", hop: str = "") -> str:
        """A fact, marked, as one place of it."""
        name = self._style(key, style)
        shown = show(self.book[key], STYLES[name], self.names.currency)
        kind = Hop(hop) if hop else self._hop(key, name)
        index = len(self.mentions)
        self.mentions.append(Mention(index=index, key=key, style=name, hop=kind, shown=shown, stray=document == STRAYS))
        return mark(index, shown)

    def _style(self, key: str, style: str) -> str:
        kind = self.book.fact(key).kind
        if kind is not Kind.MONEY or style not in ("", "~"):
            return style or _DEFAULT[kind]
        if not self.level:
            return "eurk"
        return "m0" if style == "~" and self.level >= 2 and self.book[key] >= _LARGE else "m1"

    def _hop(self, key: str, style: str) -> Hop:
        if self.book.fact(key).kind in (Kind.PERCENT, Kind.MULTIPLE) and self.book.tied(key):
            return Hop.DERIVED
        return Hop.SCALE if style in _SCALED else Hop.DIRECT

    def _words(self, document: str) -> dict[str, object]:
        names, level = self.names, self.level
        rng = self._rng.child(document)

        def pick(*words: str) -> str:
            return rng.choice(words)

        def term(*words: str) -> str:
            return rng.choice(words) if level >= 2 else words[0]

        def figure(key: str, style: str = "", hop: str = "") -> str:
            return self.figure(document, key, style, hop)

        coded = level >= 3
        return {
            "n": names,
            "L": level,
            "y": [names.year - ago for ago in range(3)],
            "f": figure,
            "pick": pick,
            "term": term,
            "ref": reference,
            "tab": "m1bare" if level else "k",
            "up": [self.book[f"revenue.{ago}"] > self.book[f"revenue.{ago + 1}"] for ago in (0, 1)],
            "recent": spelled(names.recent),
            "dated": spelled(names.dated),
            "fac": "the Senior Facility" if level >= 2 else f"the term loan facility of {names.bank}",
            "acq": f"Project {names.projects[0]}" if coded else f"the acquisition of {names.acquired}",
            "claimant": "the Claimant" if coded else names.claimant,
            "supply_name": f"the {names.projects[1]} Agreement" if coded else f"a contract with {names.supplier}",
        }


def reference(document: str, title: str) -> str:
    """A reference to a section that has no number yet."""
    return f"\x05{document}.md:{title}\x06"


@cache
def _template(name: str) -> jinja2.Template:
    text = (resources.files(__package__ or "") / "assets" / name).read_text(encoding="utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["upper_first"] = lambda words: words[0].upper() + words[1:]
    return environment.from_string(text)
