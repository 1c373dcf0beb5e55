"""Conventions: what the verifier turns out to insist on must be said in the brief.

The oracle's own text is handed in written another way – the last digit dropped, the lines turned round, another
encoding – and graded. Where the verdict changes, the verifier relies on that convention, and the brief must have a word
about it. Units and signs cannot be tried that way, since no work survives them: they are looked for wherever the right
text has measured or negative numbers, or where the format has lengths. A word is no proof that the sentence is right;
its absence is proof that it is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from metier.envs.core import Collected

from ..bench import files_of
from .rubbish import rewritten

_DECIMAL = re.compile(r"(?<![\w.])-?\d+\.\d+(?![\w.])")
_NEGATIVE = re.compile(r"(?<![\w.)-])-\d|(?<!\w)\(\d[\d,]*(?:\.\d+)?\)")
_PLAIN_TEXT = ("", ".txt", ".csv", ".tsv", ".md", ".log")
_DATA = (*_PLAIN_TEXT, ".json", ".jsonl", ".yaml", ".yml", ".xml")
_LENGTHS = (".step", ".stp", ".stl", ".obj", ".ply", ".blend", ".gltf", ".glb", ".dxf", ".ifc", ".svg", ".3mf", ".usda")
_LARGEST = 1 << 20

_LENGTH = r"mm|cm|dm|km|\w*met(?:re|er)s?|inch(?:es)?|feet|foot|mils?|pixels?|px"
_CLEAR = rf"""
{_LENGTH}|kg|mg|tonnes?|\w*grams?|kN|kNm|Nm|MPa|kPa|GPa|Pa|psi|newtons?|
ms|µs|ns|Hz|kHz|fps|radians?|degrees?|°C?|kelvin|celsius|kW|kWh|MW|MWh|volts?|amperes?|watts?|joules?|
percent\w*|per\s+cent|bps|bp|basis\s+points?|ppm|ratios?|shares?|fractions?|factors?|dimensionless|probabilit\w+|
EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|CAD|AUD|euros?|dollars?|pounds?|francs?|cents?|pence|thousands?|millions?|billions?|
litres?|liters?|hectares?|acres?|dB|lux|lumens?|mol|moles?
"""
_VAGUE = r"""
m|s|g|t|N|K|V|A|W|J|h|l|L|in|ft|pt|bar|rad|deg|mil|min|
seconds?|minutes?|hours?|days?|weeks?|months?|years?|frames?|ticks?|bytes?|bits?|points?
"""
"""Words that mean much else: units only behind a number, "in", "as", "of" or an opening bracket."""


def _joined(words: str) -> str:
    return "".join(words.split())


_LENGTH_NAMES = rf"(?<![A-Za-z])(?:{_LENGTH})(?![A-Za-z])|(?:\d\s*|\bin |\()(?:m|in|ft)\b|_(?:mm|cm|m|km|in|ft|px)\b"
_WORDS: Mapping[str, re.Pattern[str]] = {
    "units": re.compile(
        rf"(?<![A-Za-z])(?:{_joined(_CLEAR)})(?![A-Za-z])|[%€$£]"
        rf"|(?:\d\s*|\b(?:in|as|of)\s+(?:whole\s+)?|[(\[/`])(?:{_joined(_VAGUE)})(?![A-Za-z])"
        r"|_(?:mm|cm|m|km|s|ms|kg|g|t|n|kn|mpa|pct|percent|eur|usd|gbp|chf|deg|rad|hz|kw|kwh|mw|mwh|days|months|years)\b"
    ),
    "lengths": re.compile(_LENGTH_NAMES),
    "rounding": re.compile(
        r"decimals?\b|round|digits?\b|precis|toleran|within|±|\+/-|exact|significant|nearest|relative|cents?\b"
        r"|places?\b|accura|truncat|integers?\b|whole|%",
        re.IGNORECASE,
    ),
    "sign": re.compile(
        r"sign\b|signed|negative|positive|minus|parenthes|brackets|below|above|left|right|up\b|down|axis|axes|direction"
        r"|credit|debit|outflow|decrease|loss|\b[XYZ]\b|\u2212|-\d",
        re.IGNORECASE,
    ),
    "order": re.compile(
        r"order|sort|ascending|descending|sequence|first|last|same lines|alphabetic|chronolog|oldest|newest|rank"
        r"|top to bottom|by (?:date|name|id|number)|one line|header|largest|smallest",
        re.IGNORECASE,
    ),
    "encoding": re.compile(r"utf-?\s?8|utf-?16|ascii|latin|encod|unicode|json|xml|yaml", re.IGNORECASE),
    "line ends": re.compile(r"line (?:end|feed)|\bLF\b|CRLF|newline|\\n|unix|byte", re.IGNORECASE),
    "version": re.compile(
        r"\bAP ?\d{3}|\bR(?:12|14|2\d{3})|\bIFC ?[24]\w*|\bAC1\d{3}|\d+\.\d+|version \w+", re.IGNORECASE
    ),
}
_VERSIONED = (".step", ".stp", ".dxf", ".ifc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A convention that the verifier relies on, and why we think so."""

    convention: str
    why: str

    def missing(self, brief: str) -> bool:
        """Whether the brief has no word about it."""
        return _WORDS[self.convention].search(brief) is None


def stated(right: Collected) -> list[Need]:
    """Needs that the right artefacts show by themselves."""
    texts, paths = _texts(right), files_of(right)
    needs: list[Need] = []
    numbers = [path for path, text in texts.items() if _DECIMAL.search(text)]
    lengths = [path for path in paths if path.endswith(_LENGTHS)]
    if numbers:
        needs.append(Need(convention="units", why=f"{numbers[0]} holds measured numbers"))
    if lengths:
        needs.append(Need(convention="lengths", why=f"the format of {lengths[0]} has lengths without a unit"))
    if negative := [path for path, text in texts.items() if _NEGATIVE.search(text)]:
        needs.append(Need(convention="sign", why=f"{negative[0]} holds negative numbers"))
    if versioned := [path for path in paths if path.endswith(_VERSIONED)]:
        needs.append(Need(convention="version", why=f"there are versions of the format of {versioned[0]}"))
    return needs


def rewritings(right: Collected) -> dict[Need, Collected]:
    """The right artefacts written another way, by the convention that is broken if the verdict changes."""
    texts = _texts(right)

    def other(convention: str, how: str, change: Callable[[str], bytes], only: tuple[str, ...]) -> None:
        wanted = {path for path in texts if _ending(path) in only}
        changed = rewritten(right, lambda path, data: change(texts[path]) if path in wanted else data)
        if files_of(changed) != files_of(right):
            made[Need(convention=convention, why=f"the verdict changes with {how}")] = changed

    made: dict[Need, Collected] = {}
    other("rounding", "one digit less", lambda text: _DECIMAL.sub(_coarser, text).encode(), _DATA)
    other("order", "the lines in another order", lambda text: _turned(text).encode(), _PLAIN_TEXT)
    other("line ends", "CRLF line ends", lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n").encode(), _DATA)
    files = {path for path in texts if path != "answer"}
    changed = rewritten(
        right,
        lambda path, data: texts[path].encode("utf-16") if path in files and _ending(path) in _PLAIN_TEXT else data,
    )
    if files_of(changed) != files_of(right):
        made[Need(convention="encoding", why="the verdict changes with UTF-16")] = changed
    return made


def _texts(collected: Collected) -> dict[str, str]:
    """The files of data that are text."""
    texts: dict[str, str] = {}
    for path, data in files_of(collected).items():
        if len(data) <= _LARGEST and _ending(path) in _DATA:
            try:
                texts[path] = data.decode()
            except UnicodeDecodeError:
                continue  # no text
    return texts


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :].lower() if "." in name else ""


def _coarser(number: re.Match[str]) -> str:
    """With one digit less, or rounded to a whole number; a number that is the same with it stays."""
    text = number.group()
    digits = len(text.rpartition(".")[2])
    return f"{float(text):.{digits - 1}f}"


def _turned(text: str) -> str:
    """The lines turned round, a header left in place."""
    lines = text.splitlines(keepends=True)
    if len(lines) < 2:
        return text
    lines[-1] = lines[-1] if lines[-1].endswith("\n") else lines[-1] + "\n"
    head = 1 if not _DECIMAL.search(lines[0]) and len(lines) > 2 and ("," in lines[0] or "\t" in lines[0]) else 0
    return "".join([*lines[:head], *reversed(lines[head:])])
