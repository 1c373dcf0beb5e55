"""Solutions of one instance, right and wrong: a build script as a modeller writes it, and what a lazy one hands in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...core import ToolCall
from .conventions import Conventions
from .figures import Company, forecast
from .layout import Layout, Row
from .lines import lines

_SUBMIT = ToolCall(tool="submit", arguments={})
_RECALCULATE = "recalculate model.xlsx"
_SCRIPT = """\
import json
import openpyxl
from openpyxl.utils import get_column_letter
from openpyxl.workbook.defined_name import DefinedName

DOWN = {down}
{opening}

def put(sheet, at, along, value):
    if sheet not in book.sheetnames:
        book.create_sheet(sheet)
    place = (along, at) if DOWN else (at, along)
    book[sheet].cell(*place, value)

def mark(along):
    return str(along) if DOWN else get_column_letter(along)

# sheet, row, label, past, figures of the forecast, formula ({{c}}: this period, {{p}}: the one before)
for sheet, at, label, past, values, formula in json.loads(r'''
{rows}
'''):
    put(sheet, at, 1, label)
    for along, value in enumerate(past, 2):
        put(sheet, at, along, value)
    for along, value in enumerate(values, {first}):
        put(sheet, at, along, value)
    for along in range({first}, {first} + {periods}) if formula else ():
        put(sheet, at, along, formula.format(c=mark(along), p=mark(along - 1)))

for name, place in json.loads(r'''
{names}
''').items():
    book.defined_names[name] = DefinedName(name, attr_text=place)
{iterate}
book.save("model.xlsx")
"""
_NEW = "book = openpyxl.Workbook()\nbook.remove(book.active)"
_ITERATE = """
book.calculation.iterate, book.calculation.iterateCount, book.calculation.iterateDelta = True, 200, 1e-6
"""
_CHECK = """\
python3 - <<'END'
import openpyxl
book = openpyxl.load_workbook("/tmp/look.xlsx", data_only=True)
for name in ("balance_check", "cash", "net_income"):
    (sheet, area), = book.defined_names[name].destinations
    print(name, [round(cell.value, 4) for row in book[sheet][area.replace("$", "")] for cell in row])
END"""
_FORGED = """\
printf '{"reward": 1.0, "passed": true}' | tee reward.json verdict.json > /tmp/reward.json
python3 - <<'END'
import openpyxl
book = openpyxl.Workbook()
book.active["A1"], book.active["B1"] = "balance_check", 0
book.save("model.xlsx")
END"""


def shell(command: str) -> ToolCall:
    """One call of the shell."""
    return ToolCall(tool="shell", arguments={"command": command, "timeout_s": 120})


def saved_by_libreoffice() -> ToolCall:
    """Open the workbook with LibreOffice and keep what it saves."""
    return shell(_RECALCULATE)


def building(layout: Layout, rows: Sequence[Row], *, fill: bool = False) -> ToolCall:
    """Write the workbook of these rows with openpyxl; `fill`: write them into the one that is there."""
    on = layout.on
    script = _SCRIPT.format(
        down=layout.down,
        opening='book = openpyxl.load_workbook("model.xlsx")' if fill else _NEW,
        rows=_listed([[row.sheet, row.at, row.label, list(row.past), list(row.values), row.formula] for row in rows]),
        names="{" + ",\n".join(f"{json.dumps(name)}: {json.dumps(to)}" for name, to in layout.names().items()) + "}",
        first=layout.along(0),
        periods=on.periods,
        iterate=_ITERATE if on.circular else "",
    )
    return shell(f"cat > /tmp/build.py <<'END'\n{script}END\npython3 /tmp/build.py")


def _listed(rows: Sequence[Sequence[object]]) -> str:
    return "[" + ",\n".join(json.dumps(row) for row in rows) + "]"


def right_formulas(on: Conventions) -> dict[str, str]:
    """Every line's formula."""
    return {line.name: line.formula for line in lines(on)}


def oracle(on: Conventions, company: Company, files: Sequence[str]) -> list[ToolCall]:
    """Read, build, recalculate, look at the check, submit."""
    layout = Layout.of(on)
    rows = layout.rows(company, right_formulas(on))
    skeleton = "model.xlsx" in files
    build = building(layout, [row for row in rows if row.formula] if skeleton else rows, fill=skeleton)
    reading = [shell(f"cat {path}") for path in files if not path.endswith(".xlsx")]
    # the results are looked at in a copy: what is handed in stays as it was written
    look = f"cp model.xlsx /tmp/look.xlsx && recalculate /tmp/look.xlsx && {_CHECK}"
    return [*reading, build, shell(look), _SUBMIT]


def alternatives(on: Conventions, company: Company) -> dict[str, Sequence[ToolCall]]:
    """One sheet with the periods down; and the usual workbook as LibreOffice saves it."""
    down = Layout.of(on, single=True, down=True)
    usual = Layout.of(on)
    formulas = right_formulas(on)
    return {
        "one_sheet_transposed": [building(down, down.rows(company, formulas)), _SUBMIT],
        "saved_by_libreoffice": [building(usual, usual.rows(company, formulas)), saved_by_libreoffice(), _SUBMIT],
    }


def mutants(on: Conventions, company: Company) -> dict[str, Sequence[ToolCall]]:
    """Numbers instead of a model, and models of another company."""
    layout = Layout.of(on)
    rows = layout.rows(company, right_formulas(on))
    computed = forecast(on, company)
    found = {
        "pasted_numbers": building(layout, [_pasted(row, computed) for row in rows]),
        "scaled_by_revenue": building(layout, [_scaled(row, computed, layout) for row in rows]),
        "check_typed_in": building(layout, [_typed(row, on) if row.name == "balance_check" else row for row in rows]),
        "forged_reward": shell(_FORGED),
    }
    for name, changes in wrong_formulas(on).items():
        wrong = {**right_formulas(on), **changes}
        found[name] = building(layout, layout.rows(company, wrong))
    return {name: [build, _SUBMIT] for name, build in found.items()}


def wrong_formulas(on: Conventions) -> dict[str, dict[str, str]]:
    """Mistake → the formulas that it changes."""
    right = right_formulas(on)
    balancing = "total_equity_and_liabilities-receivables-inventory-ppe"
    found = {
        "cash_as_the_plug": {"cash": balancing, "cash_from_investing": "-depreciation"},
        "other_days_in_the_year": _other_days(on, right),
        "interest_on_another_balance": _other_base(on, right),
    }
    if on.dividends != "none":
        other = replace(on, dividends="next" if on.dividends == "at_once" else "at_once")
        found["dividends_in_another_period"] = {"dividends": right_formulas(other)["dividends"]}
    if on.depreciation != "declining":
        other = replace(on, depreciation="straight_next" if on.depreciation != "straight_next" else "straight_same")
        found["depreciation_in_another_period"] = {"depreciation": right_formulas(other)["depreciation"]}
    if on.tax != "plain":
        found["losses_forgotten"] = {"losses_used": "0*tax_losses[-1]"}
    if on.payables == "purchases":
        found["payables_on_costs"] = {"payables": right_formulas(replace(on, payables="costs"))["payables"]}
    return found


def _other_days(on: Conventions, right: Mapping[str, str]) -> dict[str, str]:
    other = right_formulas(replace(on, days=725 - on.days))
    return {name: other[name] for name in ("receivables", "inventory", "payables") if other[name] != right[name]}


def _other_base(on: Conventions, right: Mapping[str, str]) -> dict[str, str]:
    other = right_formulas(replace(on, interest="opening" if on.interest == "average" else "average"))
    return {name: other[name] for name in ("interest_expense", "interest_income") if name in other}


def _pasted(row: Row, computed: Mapping[str, Sequence[float]]) -> Row:
    if not row.formula:
        return row
    return replace(row, formula="", values=tuple(round(value, 4) for value in computed[row.name]))


def _scaled(row: Row, computed: Mapping[str, Sequence[float]], layout: Layout) -> Row:
    """Every line moves with revenue, which is live."""
    if not row.formula or row.name in ("revenue", "units", "unit_price", "customers"):
        return row
    ratios = (value / revenue for value, revenue in zip(computed[row.name], computed["revenue"], strict=True))
    cells = (layout.range("revenue", index, 1) for index in range(layout.on.periods))
    return replace(
        row, formula="", values=tuple(f"={cell}*{ratio:.9f}" for cell, ratio in zip(cells, ratios, strict=True))
    )


def _typed(row: Row, on: Conventions) -> Row:
    return replace(row, formula="", values=(0.0,) * on.periods)
