"""Level 0: a whole model in which one row is empty, typed over or wrong, and the rule that it must follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...core import Json, Rng, ToolCall
from ...parts.workbook_file import column
from .attempts import right_formulas, shell
from .conventions import Conventions
from .figures import Company, forecast, forecast_of
from .layout import Layout, Row

_RULES: Mapping[str, tuple[str, str]] = {
    "revenue": ("revenue of the year before × (1 + growth)", "revenue[-1]*(1-revenue_growth)"),
    "cost_of_sales": ("revenue × cost of sales to revenue", "revenue*(1-cost_ratio)"),
    "receivables": ("revenue × days that customers take / {days}", "cost_of_sales*debtor_days/{days}"),
    "inventory": ("cost of sales × days of stock / {days}", "revenue*stock_days/{days}"),
    "payables": ("cost of sales × days that suppliers give / {days}", "revenue*creditor_days/{days}"),
    "depreciation": ("opening PP&E × depreciation rate", "capex*depreciation_rate"),
    "ppe": ("opening PP&E + capital expenditure - depreciation", "ppe[-1]+capex+depreciation"),
    "interest_expense": ("opening term loan × interest on the term loan", "term_loan*loan_rate"),
    "tax": ("profit before tax × tax rate, and 0 on a loss", "ebit*tax_rate"),
    "term_loan": ("opening term loan - loan repaid", "term_loan[-1]+loan_repaid"),
    "cash": ("opening cash + net cash flow", "cash[-1]-net_cash_flow"),
    "retained_earnings": ("opening retained earnings + net income", "retained_earnings[-1]+ebit"),
}
"""Line → its rule in words, and a slip. "Opening" is the column to the left."""

LOOK = """\
python3 -c "
import openpyxl
for r in openpyxl.load_workbook('model.xlsx')['Model'].iter_rows(min_row=2):
    print(r[0].row, *(c.value for c in r if c.value is not None), sep=' | ')" """


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with one row; `formula` is what it holds now, if anything live."""

    line: str
    kind: str
    """empty, typed or wrong."""
    rule: str
    formula: str = ""


def draw_fault(rng: Rng, on: Conventions) -> Fault:
    """One row of the model, and how it is wrong."""
    line = rng.choice(sorted(_RULES))
    rule, slip = (text.format(days=on.days) for text in _RULES[line])
    kind = rng.choice(("empty", "typed", "wrong"))
    return Fault(line=line, kind=kind, rule=rule, formula=slip if kind == "wrong" else "")


def faulty_rows(layout: Layout, company: Company, fault: Fault) -> list[Row]:
    """The rows of the workbook as the agent gets it."""
    formulas = right_formulas(layout.on)
    typed = forecast(layout.on, company)[fault.line]
    rows = layout.rows(company, {**formulas, fault.line: fault.formula})
    place = next(index for index, row in enumerate(rows) if row.name == fault.line)
    if fault.kind == "typed":
        old = rows[place]
        values = tuple(float(round(value)) for value in typed)
        rows[place] = Row(sheet=old.sheet, at=old.at, name=old.name, label=old.label, past=old.past, values=values)
    return rows


def broken_lines(on: Conventions, companies: Sequence[Company], given: Company, fault: Fault) -> set[str]:
    """The lines that the faulty workbook gets wrong for any of the companies."""
    typed = [float(round(value)) for value in forecast(on, given)[fault.line]]
    broken: set[str] = {fault.line}
    for company in companies:
        right = forecast(on, company)
        now = {**right_formulas(on), fault.line: fault.formula or "0*cash[-1]"}
        if fault.kind == "typed":
            chosen = [f"IF(period<={at + 1},{value!r}," for at, value in enumerate(typed)]
            now[fault.line] = "".join(chosen) + "0" + ")" * len(chosen)
        wrong = forecast_of(on, company, now)
        for name, values in right.items():
            if any(abs(value - other) > 1e-6 for value, other in zip(values, wrong[name], strict=True)):
                broken.add(name)
    return broken


def cells_of(layout: Layout, line: str) -> list[str]:
    """The addresses of a line's forecast."""
    at = layout.places[line][1]
    return [f"{column(layout.along(step))}{at}" for step in range(layout.on.periods)]


def writing(layout: Layout, line: str, values: Sequence[float | str], *, sheet: str = "Model") -> ToolCall:
    """Put these into the line's forecast cells, and save."""
    pairs = ", ".join(f"{cell}={value!r}" for cell, value in zip(cells_of(layout, line), values, strict=True))
    lines = ["import openpyxl", "b=openpyxl.load_workbook('model.xlsx')"]
    lines += [f"for c,v in dict({pairs}).items(): b['{sheet}'][c]=v", "b.save('model.xlsx')"]
    code = "\n".join(lines)
    return shell(f"python3 - <<'END'\n{code}\nEND")


def formulas_of(layout: Layout, company: Company, formulas: Mapping[str, str], line: str) -> list[float | str]:
    """A line's forecast cells with these formulas."""
    row = next(row for row in layout.rows(company, formulas) if row.name == line)
    return [value for along, value in layout.filled(row) if along >= layout.along(0)]


def mutants(layout: Layout, company: Company, fault: Fault) -> dict[str, Sequence[ToolCall]]:
    """The row typed in, by another rule, live in one cell only; and a model that was changed elsewhere."""
    on, submit = layout.on, ToolCall(tool="submit", arguments={})
    right = right_formulas(on)
    cells = formulas_of(layout, company, right, fault.line)
    numbers = [round(value, 2) for value in forecast(on, company)[fault.line]]
    slip = _RULES[fault.line][1].format(days=on.days)
    wrong = slip if fault.kind != "wrong" else f"({right[fault.line]})*1.01"
    slipped = formulas_of(layout, company, {**right, fault.line: wrong}, fault.line)
    elsewhere = "ebitda" if fault.line != "ebitda" else "ebit"
    pasted = [round(value, 2) for value in forecast(on, company)[elsewhere]]
    found: dict[str, list[ToolCall]] = {
        "numbers_typed_in": [writing(layout, fault.line, numbers)],
        "another_rule": [writing(layout, fault.line, slipped)],
        "first_cell_only": [writing(layout, fault.line, [cells[0], *numbers[1:]])],
        "other_row_typed_over": [writing(layout, fault.line, cells), writing(layout, elsewhere, pasted)],
        "forged_reward": [shell("""printf '{"reward": 1.0}' | tee reward.json > verdict.json""")],
    }
    return {name: [*calls, submit] for name, calls in found.items()}


def fault_json(fault: Fault) -> dict[str, Json]:
    """As an instance's truth carries it."""
    return {"line": fault.line, "kind": fault.kind, "rule": fault.rule, "formula": fault.formula}
