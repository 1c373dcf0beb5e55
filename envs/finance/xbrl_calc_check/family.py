"""finance/XbrlCalcCheck: make an XBRL filing agree with its statements and with its own calculations.

Statements, taxonomy and instance come from one set of amounts; faults are planted on facts and arcs of their own.
Arelle reads what is handed in, and facts are compared by what they are about, whatever their contexts are called. All
that was right before is a gate, so deleting facts, links or precision earns nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Artefact, Family, Instance, Rng, Sandbox, ToolCall, Verdict
from ...parts.xbrl import read_filing
from . import attempts
from .accounts import Accounts, draw_accounts
from .catalogue import Size
from .faults import Fault, plant
from .filing import Filing, filing_from_json, filing_json
from .grading import grade
from .render import render
from .statements import printed

_DOCUMENT = "statements.txt"
_GIVEN = "/tmp/given"
_READ_S = 60.0
_FIRST = (
    "Al", "Bren", "Cor", "Dal", "El", "Fen", "Gar", "Hol", "Ister", "Jor", "Kel", "Lun", "Mar", "Nor", "Os", "Pel",
    "Quin", "Ras", "Sol", "Tor",
)  # fmt: skip
_LAST = ("dane", "vik", "mont", "berg", "ford", "stad", "wen", "holm", "tec", "lux", "mar", "nova")
_FORMS = ("plc", "SE", "AG", "NV", "ASA", "Oyj", "SA")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What a level turns."""

    size: Size
    always: tuple[str, ...] = ()
    """Kinds of fault that every instance has."""
    drawn: tuple[str, ...] = ()
    """Kinds to draw from."""
    count: int = 0
    """How many are drawn."""


_VALUES = ("typo", "sign", "scale")
_LEVELS = (
    Knobs(size=Size(statements=("assets",), optional=1), drawn=_VALUES, count=1),
    Knobs(size=Size(statements=("balance", "income"), optional=1), drawn=_VALUES, count=2),
    Knobs(
        size=Size(statements=("balance", "income", "cash"), years=2, repeats=2),
        always=("weight", "typo"),
        drawn=("sign", "scale", "decimals", "duplicate", "unit"),
        count=2,
    ),
    Knobs(
        size=Size(statements=("balance", "income", "cash", "segments"), years=2, optional=3, repeats=4),
        always=("missing_arc", "other_year", "typo"),
        drawn=("weight", "sign", "scale", "decimals", "duplicate", "unit", "member"),
        count=3,
    ),
    Knobs(
        size=Size(statements=("balance", "income", "cash", "segments"), years=3, optional=4, repeats=8),
        always=("offset", "offset", "extra_arc", "period", "other_year", "decimals"),
        drawn=("weight", "missing_arc", "typo", "sign", "scale", "duplicate", "unit", "member"),
        count=5,
    ),
)


@dataclass(frozen=True)
class XbrlCalcCheck(Family):
    """Tie a filing to its statements.

    Levels: 0 one wrong value among a few; 1 two in two statements; 2 a wrong weight, duplicates, precision, units; 3
    arcs that are missing, facts of another year, members; 4 errors that offset each other, double counting, contexts.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        knobs = _LEVELS[level]
        right = _accounts(rng.child("accounts"), knobs.size)
        kinds = [*knobs.always, *rng.child("kinds").sample(knobs.drawn, knobs.count)]
        faulty, faults = plant(rng.child("faults"), right.filing, kinds)
        files = {f"{attempts.FOLDER}/{name}": text.encode() for name, text in render(faulty).items()}
        files[_DOCUMENT] = printed(right.filing, right.statements).encode()
        mended = [call.arguments["new"] for call in attempts.edits_between(render(faulty), render(right.filing))]
        given = "\n".join(render(faulty).values())
        secrets = [line for text in mended for line in str(text).splitlines() if len(line) > 40 and line not in given]
        return Instance(
            variables={
                "level": level,
                "company": right.filing.company,
                "currency": right.filing.currency,
                "folder": attempts.FOLDER,
                "document": _DOCUMENT,
                "entry": right.filing.entry,
                "stem": right.filing.stem,
                "count": len(kinds),
                "validate": attempts.validate(right.filing),
            },
            files=files,
            artefacts=(Artefact(path=attempts.FOLDER, tree=True, max_mb=4),),
            truth={
                "right": filing_json(right.filing),
                "faulty": filing_json(faulty),
                "faults": [fault.to_json() for fault in faults],
            },
            secrets=tuple(dict.fromkeys(secrets)),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        right, faulty, _ = _truth(instance)
        return attempts.oracle(right, faulty, _DOCUMENT)

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(*_truth(instance))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(_truth(instance)[0])

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        right, faulty, faults = _truth(instance)
        for name, text in render(faulty).items():
            await sandbox.write(f"{_GIVEN}/{name}", text.encode(), user="root")
        about: dict[str, Any] = {"namespace": right.namespace, "calculation": "c11r", "timeout_s": _READ_S}
        about["entity"] = f"http://register.example|{right.entity}"
        read = await read_filing(sandbox, f"/workspace/{attempts.FOLDER}", right.entry, **about)
        if read.failure:
            return grade(right, faults, read, read)
        given = await read_filing(sandbox, _GIVEN, right.entry, **about)
        return grade(right, faults, given, read)


def _accounts(rng: Rng, size: Size) -> Accounts:
    name = rng.choice(_FIRST) + rng.choice(_LAST)
    return draw_accounts(
        rng,
        size,
        prefix=name[:4].lower(),
        company=f"{name} {rng.choice(_FORMS)}",
        currency=rng.choice(("EUR", "USD", "GBP", "CHF", "SEK")),
        year=rng.integer(2021, 2027),
    )


def _truth(instance: Instance) -> tuple[Filing, Filing, tuple[Fault, ...]]:
    truth: Mapping[str, Any] = instance.truth
    faults = tuple(Fault.from_json(one) for one in truth["faults"])
    return filing_from_json(truth["right"]), filing_from_json(truth["faulty"]), faults
