"""finance/ThreeStatement: build a linked three-statement model as a live workbook.

One set of formulas is computed on the host and written as cells by the oracle, so truth and workbook cannot drift
apart. The verifier types hidden accounts and assumptions into the named cells, recalculates with LibreOffice, and holds
every named line against the host's figures: numbers that were typed in, scaled or plugged do not follow.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from ...core import Artefact, Family, Instance, Rng, Sandbox, ToolCall, Verdict
from ...parts.spreadsheet import recalculate
from . import attempts, repair
from .conventions import Conventions, draw_conventions
from .figures import Company, Mood, draw_company
from .grading import exam, grade, reads
from .layout import Layout, statement_parts, workbook
from .lines import assumptions, lines
from .names import company_name

_PATH = "model.xlsx"
_RECALCULATE_S = 150.0


@dataclass(frozen=True)
class ThreeStatement(Family):
    """Income statement, balance sheet and cash flow that move together.

    Levels: 0 one row of a finished model; 1 the formulas of a laid-out model; 2 a model from nothing, straight-line
    assets, historic ratios, timing of tax and dividends; 3 a revolving facility whose interest is circular, tax losses,
    half-years; 4 quarters or half-years with a cash sweep, a PIK note, a commitment fee, capped losses, purchases.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        on = draw_conventions(rng.child("conventions"), level)
        company = draw_company(rng.child("company"), on, solvent=True)
        words = rng.child("words")
        labels = _labels(on, words.integer(2021, 2027))
        name, currency = company_name(words), words.choice(("EUR", "GBP", "USD", "CHF", "SEK", "DKK"))
        truth = {"on": on.to_json(), "company": company.to_json()}
        variables: dict[str, Any] = {
            "level": level,
            "company": name,
            "currency": currency,
            "on": on.to_json(),
            "unit": on.period,
            "circular": on.circular,
        }
        artefacts = (Artefact(path=_PATH, max_mb=4),)
        if level == 0:
            layout = Layout.of(on, single=True)
            fault = repair.draw_fault(rng.child("fault"), on)
            rows = repair.faulty_rows(layout, company, fault)
            cells = repair.cells_of(layout, fault.line)
            row = next(row for row in rows if row.name == fault.line)
            variables |= {
                "kind": fault.kind,
                "rule": fault.rule,
                "label": row.label,
                "first": cells[0],
                "last": cells[-1],
            }
            return Instance(
                variables=variables,
                files={_PATH: workbook(layout, rows, labels, name)},
                artefacts=artefacts,
                truth={**truth, "fault": repair.fault_json(fault)},
            )
        files = {
            "memo.md": _memo(on, name, currency, labels),
            "accounts.csv": _accounts(on, company, labels),
            "assumptions.csv": _assumptions(on, company, labels),
        }
        made = {path: text.encode() for path, text in files.items()}
        if level == 1:
            layout = Layout.of(on)
            made[_PATH] = workbook(layout, layout.rows(company, {}), labels, name)
        return Instance(variables=variables, files=made, artefacts=artefacts, truth=truth)

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        on, company = _truth(instance)
        if "fault" not in instance.truth:
            return attempts.oracle(on, company, list(instance.files))
        layout, fault = Layout.of(on, single=True), _fault(instance)
        cells = repair.formulas_of(layout, company, attempts.right_formulas(on), fault.line)
        return [attempts.shell(repair.LOOK), repair.writing(layout, fault.line, cells), ToolCall(tool="submit")]

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        on, company = _truth(instance)
        if "fault" in instance.truth:
            return repair.mutants(Layout.of(on, single=True), company, _fault(instance))
        return attempts.mutants(on, company)

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        on, company = _truth(instance)
        if "fault" not in instance.truth:
            return attempts.alternatives(on, company)
        layout, fault = Layout.of(on, single=True), _fault(instance)
        cells = repair.formulas_of(layout, company, attempts.right_formulas(on), fault.line)
        other = [f"=SUM({str(cell)[1:]})" for cell in cells]
        saved = attempts.saved_by_libreoffice()
        return {"saved_by_libreoffice": [repair.writing(layout, fault.line, other), saved, ToolCall(tool="submit")]}

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        on, company = _truth(instance)
        others = [draw_company(hidden.child(mood), on, mood) for mood in Mood]
        questions = exam(on, company, others)
        result = await recalculate(
            sandbox, f"/workspace/{_PATH}", questions.scenarios, reads(on), timeout_s=_RECALCULATE_S
        )
        if "fault" not in instance.truth:
            return grade(on, questions, result)
        fault = _fault(instance)
        broken = repair.broken_lines(on, [company, *others], company, fault)
        return grade(on, questions, result, broken=broken, row=fault.line)


def _truth(instance: Instance) -> tuple[Conventions, Company]:
    truth: Mapping[str, Any] = instance.truth
    return Conventions.from_json(truth["on"]), Company.from_json(truth["company"])


def _fault(instance: Instance) -> repair.Fault:
    truth: Mapping[str, Any] = instance.truth
    return repair.Fault(**truth["fault"])


def _labels(on: Conventions, first_year: int) -> list[str]:
    """The columns' headings: 2026, H1 2026 or Q1 2026; the forecast begins with a year."""
    letter = {1: "", 2: "H", 4: "Q"}[on.per_year]
    start = first_year * on.per_year - on.history
    parts = [divmod(at, on.per_year) for at in range(start, start + on.history + on.periods)]
    return [f"{letter}{part + 1} {year}" if letter else str(year) for year, part in parts]


def _memo(on: Conventions, name: str, currency: str, labels: Sequence[str]) -> str:
    return _template().render(
        on=on,
        company=name,
        currency=currency,
        labels=labels[on.history :],
        history=on.history,
        unit=on.period,
        parts=[(part, [(line.name, line.label) for line in rows]) for part, rows in statement_parts(on)],
    )


def _accounts(on: Conventions, company: Company, labels: Sequence[str]) -> str:
    rows = [[line.name, line.label, *map(_plain, company.accounts[line.name])] for line in lines(on) if line.past]
    return _csv([["name", "line", *labels[: on.history]], *rows])


def _assumptions(on: Conventions, company: Company, labels: Sequence[str]) -> str:
    forecast = labels[on.history :]
    rows: list[list[str]] = []
    for one in assumptions(on):
        values = [_plain(value) for value in company.assumptions[one.name]]
        rows.append([one.name, one.label, one.unit, *(["", *values] if one.series else [*values, *[""] * on.periods])])
    return _csv([["name", "assumption", "unit", f"every {on.period}", *forecast], *rows])


def _csv(rows: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


@cache
def _template() -> jinja2.Template:
    path = resources.files(__name__.rpartition(".")[0]) / "assets" / "memo.md.j2"
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(path.read_text())
