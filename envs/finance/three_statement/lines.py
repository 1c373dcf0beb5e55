"""The lines of a model under its conventions, and the assumptions that they read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from .conventions import Conventions
from .expressions import names


class Part(StrEnum):
    """Where a line stands."""

    INCOME = "Income statement"
    BALANCE = "Balance sheet"
    CASH = "Cash flow"
    SCHEDULE = "Schedules"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the model: its formula in the host's notation, and whether the accounts hold its past."""

    name: str
    label: str
    part: Part
    formula: str
    past: bool = False
    graded: bool = True
    """False: a step that a modeller may lay out as he likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One row of the assumptions; `series`: one value for each period."""

    name: str
    label: str
    unit: str
    series: bool = False


def lines(conventions: Conventions) -> tuple[Line, ...]:
    """Every line, in the order of the statements."""
    return (*_income(conventions), *_balance(conventions), *_cash(conventions), *_schedules(conventions))


def _per(conventions: Conventions) -> str:
    return "" if conventions.per_year == 1 else f"/{conventions.per_year}"


def _base(conventions: Conventions, name: str) -> str:
    """The balance that bears interest."""
    return f"({name}[-1]+{name})/2" if conventions.interest == "average" else f"{name}[-1]"


def _income(on: Conventions) -> Iterator[Line]:
    revenue = {
        "growth": "revenue[-1]*(1+revenue_growth)",
        "price_volume": "units*unit_price",
        "subscribers": "(customers[-1]+customers)/2*fee_per_customer",
    }
    costs = {"ratio": "cost_ratio"}.get(on.costs, f"{on.costs}(cost_of_sales,revenue)")
    overheads = {"share": "revenue*overhead_ratio", "inflated": "operating_costs[-1]*(1+inflation)"}
    made = (
        ("revenue", "Revenue", revenue[on.revenue], True),
        ("cost_of_sales", "Cost of sales", f"revenue*{costs}", True),
        ("gross_profit", "Gross profit", "revenue-cost_of_sales", True),
        ("operating_costs", "Operating costs", overheads[on.overheads], True),
        ("ebitda", "EBITDA", "gross_profit-operating_costs", True),
        ("depreciation", "Depreciation", _depreciation(on), True),
        ("ebit", "EBIT", "ebitda-depreciation", True),
        ("interest_expense", "Interest expense", _interest(on), True),
        *([("interest_income", "Interest income", _income_on_cash(on), True)] if on.facility != "none" else []),
        (
            "profit_before_tax",
            "Profit before tax",
            "ebit-interest_expense" + ("+interest_income" if on.facility != "none" else ""),
            True,
        ),
        ("tax", "Tax", _tax(on), True),
        ("net_income", "Net income", "profit_before_tax-tax", True),
    )
    for name, label, formula, past in made:
        yield Line(name=name, label=label, part=Part.INCOME, formula=formula, past=past)


def _depreciation(on: Conventions) -> str:
    if on.depreciation == "declining":
        return f"ppe[-1]*depreciation_rate{_per(on)}"
    times = "" if on.per_year == 1 else f"*{on.per_year}"
    life, rest = f"asset_life{times}", f"remaining_life{times}"
    spread = {
        "straight_same": f"past(capex,0,{life}-1)/({life})",
        "straight_next": f"past(capex,1,{life})/({life})",
        "half": f"(past(capex,0,{life}-1)+past(capex,1,{life}))/2/({life})",
    }
    return f"IF(period<={rest},opening(ppe)/({rest}),0)+{spread[on.depreciation]}"


def _interest(on: Conventions) -> str:
    per = _per(on)
    parts = [f"({_base(on, 'term_loan')})*loan_rate{per}"]
    if on.facility != "none":
        parts.append(f"({_base(on, 'revolver')})*revolver_rate{per}")
    if on.fee:
        parts.append(f"MAX(0,revolver_limit-({_base(on, 'revolver')}))*commitment_rate{per}")
    if on.pik:
        parts.append("pik_interest")
    return "+".join(parts)


def _income_on_cash(on: Conventions) -> str:
    return f"({_base(on, 'cash')})*deposit_rate{_per(on)}"


def _tax(on: Conventions) -> str:
    if on.tax == "plain":
        return "MAX(0,profit_before_tax)*tax_rate"
    return "(MAX(0,profit_before_tax)-losses_used)*tax_rate"


def _balance(on: Conventions) -> Iterator[Line]:
    days = f"{on.days_in_period:g}"
    base = "cost_of_sales" if on.payables == "costs" else "(cost_of_sales+inventory-inventory[-1])"
    lagged_tax = on.tax_paid != "at_once"
    liabilities = ["payables", *(["tax_payable"] if lagged_tax else []), "term_loan"]
    liabilities += (["revolver"] if on.facility != "none" else []) + (["pik_note"] if on.pik else [])
    drawn = "+new_loans" if on.new_money else ""
    sweep = "-sweep" if on.facility == "sweep" else ""
    made: list[tuple[str, str, str]] = [
        ("cash", "Cash", "cash[-1]+net_cash_flow"),
        ("receivables", "Trade receivables", f"revenue*debtor_days/{days}"),
        ("inventory", "Inventory", f"cost_of_sales*stock_days/{days}"),
        ("ppe", "Property, plant and equipment", "ppe[-1]+capex-depreciation"),
        ("total_assets", "Total assets", "cash+receivables+inventory+ppe"),
        ("payables", "Trade payables", f"{base}*creditor_days/{days}"),
        *([("tax_payable", "Tax payable", "tax_payable[-1]+tax-tax_paid")] if lagged_tax else []),
        ("term_loan", "Term loan", f"term_loan[-1]{drawn}-loan_repaid{sweep}"),
    ]
    if on.facility != "none":
        made.append(("revolver", "Revolving facility", "MAX(0,revolver[-1]+minimum_cash-cash_before_facility)"))
    if on.pik:
        made.append(("pik_note", "PIK note", "pik_note[-1]+pik_interest"))
    issued = "+shares_issued" if on.new_money else ""
    paid = "-dividends" if on.dividends != "none" else ""
    made += [
        ("share_capital", "Share capital", f"share_capital[-1]{issued}"),
        ("retained_earnings", "Retained earnings", f"retained_earnings[-1]+net_income{paid}"),
        (
            "total_equity_and_liabilities",
            "Total equity and liabilities",
            "+".join([*liabilities, "share_capital", "retained_earnings"]),
        ),
    ]
    for name, label, formula in made:
        yield Line(name=name, label=label, part=Part.BALANCE, formula=formula, past=True)
    yield Line(
        name="balance_check",
        label="Balance check",
        part=Part.BALANCE,
        formula="total_assets-total_equity_and_liabilities",
        past=True,
    )


def _cash(on: Conventions) -> Iterator[Line]:
    def change(name: str, sign: str) -> str:
        return f"{sign}({name}-{name}[-1])"

    operating = "net_income+depreciation" + ("+pik_interest" if on.pik else "")
    operating += change("receivables", "-") + change("inventory", "-") + change("payables", "+")
    operating += change("tax_payable", "+") if on.tax_paid != "at_once" else ""
    capex = {"planned": "", "share": "revenue*capex_ratio"}[on.capex]
    if capex:
        yield Line(name="capex", label="Capital expenditure", part=Part.CASH, formula=capex)
    if on.dividends != "none":
        profit = "net_income" if on.dividends == "at_once" else "net_income[-1]"
        yield Line(name="dividends", label="Dividends paid", part=Part.CASH, formula=f"MAX(0,{profit})*payout_ratio")
    financing = [("new_loans-" if on.new_money else "-") + "loan_repaid"]
    financing += ["-sweep"] if on.facility == "sweep" else []
    financing += ["+revolver-revolver[-1]"] if on.facility != "none" else []
    financing += ["+shares_issued"] if on.new_money else []
    financing += ["-dividends"] if on.dividends != "none" else []
    made = (
        ("cash_from_operations", "Cash flow from operations", operating),
        ("cash_from_investing", "Cash flow from investing", "-capex"),
        ("cash_from_financing", "Cash flow from financing", "".join(financing)),
        ("net_cash_flow", "Net cash flow", "cash_from_operations+cash_from_investing+cash_from_financing"),
    )
    for name, label, formula in made:
        yield Line(name=name, label=label, part=Part.CASH, formula=formula)


def _schedules(on: Conventions) -> Iterator[Line]:
    def line(name: str, label: str, formula: str, *, past: bool = False, graded: bool = True) -> Line:
        return Line(name=name, label=label, part=Part.SCHEDULE, formula=formula, past=past, graded=graded)

    if on.revenue == "price_volume":
        yield line("units", "Units sold (thousand)", "units[-1]*(1+volume_growth)", past=True)
        yield line("unit_price", "Price of a unit", "unit_price[-1]*(1+price_rise)", past=True)
    if on.revenue == "subscribers":
        yield line("customers", "Customers (thousand)", "customers[-1]*(1-churn)+new_customers", past=True)
    yield line("loan_repaid", "Loan repaid", "MIN(term_loan[-1],repayment)")
    if on.tax_paid != "at_once":
        advance = "advance_share*tax+" if on.tax_paid == "advance" else ""
        yield line("tax_paid", "Tax paid", f"{advance}tax_payable[-1]")
    if on.tax != "plain":
        cap = "*loss_cap" if on.tax == "capped_losses" else ""
        yield line("losses_used", "Tax losses used", f"MIN(tax_losses[-1],MAX(0,profit_before_tax){cap})")
        yield line("tax_losses", "Tax losses", "tax_losses[-1]+MAX(0,-profit_before_tax)-losses_used", past=True)
    if on.pik:
        yield line("pik_interest", "PIK interest", f"pik_note[-1]*pik_rate{_per(on)}")
    if on.facility != "none":
        before = "cash[-1]+cash_from_operations+cash_from_investing-loan_repaid"
        before += "+new_loans+shares_issued" if on.new_money else ""
        before += "-dividends" if on.dividends != "none" else ""
        yield line("cash_before_facility", "Cash before the facility", before, graded=False)
    if on.facility == "sweep":
        left = "term_loan[-1]-loan_repaid" + ("+new_loans" if on.new_money else "")
        spare = "MAX(0,cash_before_facility-revolver[-1]-minimum_cash)"
        yield line("sweep", "Cash sweep", f"MIN({left},sweep_share*{spare})")


def assumptions(on: Conventions) -> tuple[Assumption, ...]:
    """What the model reads beside its own lines, in the order of the memo."""
    read = {name for line in lines(on) for name in names(line.formula)}
    made = {line.name for line in lines(on)}
    return tuple(
        replace(one, series=one.series or one.name in on.yearly)
        for one in _ASSUMPTIONS
        if one.name in read and one.name not in made
    )


_RATIO = "ratio"
_ANNUAL = "annual rate"
_MONEY = "thousand"
_ASSUMPTIONS = (
    Assumption(name="revenue_growth", label="Revenue growth on the period before", unit=_RATIO, series=True),
    Assumption(name="volume_growth", label="Growth of units on the period before", unit=_RATIO, series=True),
    Assumption(name="price_rise", label="Rise of the price on the period before", unit=_RATIO, series=True),
    Assumption(name="churn", label="Share of the opening customers lost in a period", unit=_RATIO),
    Assumption(name="new_customers", label="Customers won in the period", unit=_MONEY, series=True),
    Assumption(name="fee_per_customer", label="Fee of one customer for the period", unit="currency", series=True),
    Assumption(name="cost_ratio", label="Cost of sales to revenue", unit=_RATIO),
    Assumption(name="overhead_ratio", label="Operating costs to revenue", unit=_RATIO),
    Assumption(name="inflation", label="Rise of operating costs on the period before", unit=_RATIO, series=True),
    Assumption(name="debtor_days", label="Days that customers take", unit="days"),
    Assumption(name="stock_days", label="Days of stock", unit="days"),
    Assumption(name="creditor_days", label="Days that suppliers give", unit="days"),
    Assumption(name="capex", label="Capital expenditure", unit=_MONEY, series=True),
    Assumption(name="capex_ratio", label="Capital expenditure to revenue", unit=_RATIO),
    Assumption(name="depreciation_rate", label="Depreciation on the opening book value", unit=_ANNUAL),
    Assumption(name="asset_life", label="Useful life of new assets", unit="years"),
    Assumption(name="remaining_life", label="Remaining life of the assets held now", unit="years"),
    Assumption(name="new_loans", label="Drawings of the term loan", unit=_MONEY, series=True),
    Assumption(name="repayment", label="Scheduled repayment of the term loan", unit=_MONEY, series=True),
    Assumption(name="loan_rate", label="Interest on the term loan", unit=_ANNUAL),
    Assumption(name="sweep_share", label="Share of excess cash that is swept", unit=_RATIO),
    Assumption(name="minimum_cash", label="Cash to be held at least", unit=_MONEY),
    Assumption(name="revolver_rate", label="Interest on the revolving facility", unit=_ANNUAL),
    Assumption(name="revolver_limit", label="Commitment of the revolving facility", unit=_MONEY),
    Assumption(name="commitment_rate", label="Fee on the undrawn commitment", unit=_ANNUAL),
    Assumption(name="deposit_rate", label="Interest on cash", unit=_ANNUAL),
    Assumption(name="pik_rate", label="Interest on the PIK note", unit=_ANNUAL),
    Assumption(name="tax_rate", label="Tax rate", unit=_RATIO),
    Assumption(name="advance_share", label="Share of a period's tax that is paid in it", unit=_RATIO),
    Assumption(name="loss_cap", label="Share of a profit that losses may cover", unit=_RATIO),
    Assumption(name="shares_issued", label="Shares issued for cash", unit=_MONEY, series=True),
    Assumption(name="payout_ratio", label="Dividends to net income", unit=_RATIO),
)  # fmt: skip
