"""Read the typed answer and hold each line against the truth; no process runs.

A line is `name: value=3.42 limit=3.50 pass clause=21.2`, in level 0 `ratio=3.42 pass`. What cannot be read, is said
twice or hedges between pass and fail is wrong; nothing that an answer holds makes this raise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from ...core import Check, Sandbox, Verdict
from ...parts.answers import AnswerError, parse_number
from .terms import Tested

ANSWER_BYTES = 4096
_HALF_UNIT = Decimal("0.005")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the answer, as typed."""

    name: str
    value: str
    status: str
    limit: str = ""
    clause: str = ""


async def read_answer(sandbox: Sandbox) -> str:
    """The text of /workspace/answer.

    Raises:
        AnswerError: there is none, or it is no short text.
    """
    try:
        data = await sandbox.read("/workspace/answer", max_bytes=ANSWER_BYTES, user="root")
        return data.decode()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError, ValueError) as error:
        raise AnswerError(f"no readable answer of at most {ANSWER_BYTES} bytes: {type(error).__name__}") from error


def parse_lines(text: str) -> dict[str, Line]:
    """The answer's lines by name; a line without a name is called `ratio`.

    Raises:
        AnswerError: a line cannot be read, or a covenant is answered twice.
    """
    lines: dict[str, Line] = {}
    for raw in text.splitlines():
        if not raw.strip():
            continue
        line = _parse(raw)
        if line.name in lines:
            raise AnswerError(f"{line.name} is answered twice")
        lines[line.name] = line
    return lines


def _parse(raw: str) -> Line:
    name, colon, rest = raw.partition(":")
    fields: dict[str, str] = {"name": name.strip().lower() if colon else "ratio"}
    for word in (rest if colon else raw).split():
        key, equals, value = word.rstrip(",;").partition("=")
        if not equals and key.lower() in ("pass", "fail"):
            key, value = "status", key.lower()
        key = "value" if key.lower() == "ratio" else key.lower()
        if key not in ("value", "limit", "status", "clause") or key in fields:
            raise AnswerError(f"cannot read {word[:40]!r}")
        fields[key] = value
    if not {"value", "status"} <= fields.keys():
        raise AnswerError("a line needs a value, and pass or fail")
    return Line(**fields)


def grade(text: str, tested: Sequence[Tested], *, evidence: bool) -> Verdict:
    """One check for each covenant; `evidence` asks for the limit and the clause as well."""
    try:
        lines = parse_lines(text)
    except AnswerError as error:
        return Verdict.of(*(Check(name=one.name, score=0.0, evidence=str(error)) for one in tested))
    if unknown := [name for name in lines if name not in {one.name for one in tested}]:
        why = f"no covenant is called {unknown[0][:40]!r}"
        return Verdict.of(*(Check(name=one.name, score=0.0, evidence=why) for one in tested))
    return Verdict.of(*(_check(one, lines.get(one.name), evidence) for one in tested))


def _check(tested: Tested, line: Line | None, evidence: bool) -> Check:
    faults = ["not answered"] if line is None else list(_faults(tested, line, evidence))
    return Check(name=tested.name, score=0.0 if faults else 1.0, evidence="; ".join(faults) or "right")


def _faults(tested: Tested, line: Line, evidence: bool) -> list[str]:
    faults: list[str] = []
    if not _near(line.value, tested.exact, _HALF_UNIT):
        faults.append(f"value {line.value[:20]!r} is not {tested.rounded}")
    if line.status != tested.status:
        faults.append(f"{line.status[:20]!r} is not {tested.status}")
    if evidence and not _near(line.limit, tested.limit, Decimal(0)):
        faults.append(f"limit {line.limit[:20]!r} is not {tested.limit}")
    if evidence and _clause(line.clause) != _clause(tested.clause):
        faults.append(f"clause {line.clause[:20]!r} is not {tested.clause}")
    return faults


def _near(text: str, expected: Decimal, tolerance: Decimal) -> bool:
    try:
        return abs(parse_number(text) - expected) <= tolerance
    except AnswerError:
        return False


def _clause(text: str) -> str:
    return re.sub(r"^(clause|section)", "", text.lower()).strip(" .")
