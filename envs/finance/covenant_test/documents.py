"""Write the agreement, the accounts and the notices of a drawn deal."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from importlib import resources

import jinja2

from ...core import Rng
from .deal import Covenant, Deal
from .ledger import Item, Ledger
from .names import place

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_LABELS = {
    Item.REVENUE: "Revenue",
    Item.COST_OF_SALES: "Cost of sales",
    Item.STAFF: "Staff costs",
    Item.OTHER_COSTS: "Other operating costs",
    Item.DEPRECIATION: "Depreciation",
    Item.AMORTISATION: "Amortisation of intangible assets",
    Item.EXCEPTIONAL: "Exceptional items: restructuring",
    Item.DISPOSAL_GAIN: "Gain on disposal of fixed assets",
    Item.INTEREST_PAYABLE: "Interest payable",
    Item.FEE_AMORTISATION: "Amortisation of arrangement fees",
    Item.INTEREST_INCOME: "Interest income",
    Item.TAX_PAID: "Tax paid",
    Item.CAPEX: "Capital expenditure",
    Item.REPAYMENTS: "Scheduled repayments of term loan",
    Item.PREPAYMENTS: "Voluntary prepayments of term loan",
    Item.TERM_LOAN: "Term loan",
    Item.REVOLVER: "Revolving loans drawn",
    Item.LEASES: "Lease liabilities",
    Item.SHAREHOLDER_LOAN: "Subordinated shareholder loans",
    Item.CASH: "Cash at bank, freely available",
    Item.RESTRICTED_CASH: "Restricted cash (pledged)",
    Item.UNDRAWN: "Undrawn revolving commitments",
}
_PROFIT = (
    Item.REVENUE, Item.COST_OF_SALES, Item.STAFF, Item.OTHER_COSTS, Item.DEPRECIATION, Item.AMORTISATION,
    Item.EXCEPTIONAL, Item.DISPOSAL_GAIN,
)  # fmt: skip
_FINANCE = (Item.INTEREST_PAYABLE, Item.FEE_AMORTISATION, Item.INTEREST_INCOME)
_CASH = (Item.TAX_PAID, Item.CAPEX, Item.REPAYMENTS, Item.PREPAYMENTS)
_POSITION = (
    Item.TERM_LOAN, Item.REVOLVER, Item.LEASES, Item.SHAREHOLDER_LOAN, Item.CASH, Item.RESTRICTED_CASH, Item.UNDRAWN
)  # fmt: skip
_INCOME = frozenset({Item.REVENUE, Item.DISPOSAL_GAIN, Item.INTEREST_INCOME})

Row = tuple[str, tuple[int, ...]]
"""A label, and one amount for each column; an outflow is negative."""


def spelled(day: date) -> str:
    """As in 30 June 2025, whatever the locale."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def agreement(rng: Rng, deal: Deal, ledger: Ledger, currency: str, *, long: bool) -> str:
    """The facility agreement; `long` with the clauses around the covenants, which hold limits of other tests."""
    first = deal.steps[0][0]
    base = deal.steps[-1][1]
    quarterly = bool(deal.subsidiary)
    ends = [*(limit_first for limit_first, _ in deal.steps[1:]), None]
    return _template().render(
        deal=deal,
        currency=currency,
        long=long,
        signed=spelled(first - timedelta(days=rng.integer(40, 90))),
        lender=f"{place(rng)} Bank",
        has={str(covenant): covenant in deal.covenants for covenant in Covenant},
        millions=_millions,
        test_dates="the last day of each quarter of a year" if quarterly else "31 December of each year",
        paragraphs=[_paragraph(deal, covenant, currency) for covenant in deal.covenants],
        stepped=len(deal.steps) > 1,
        steps=[
            (spelled(start), spelled(end) if end else "", _two(limit))
            for (start, limit), end in zip(deal.steps, ends, strict=True)
        ],
        margin=[_two(base - Decimal("0.50")), _two(base - Decimal("1.25"))],
        rates=[f"{rng.integer(300, 390) / 100:.2f}", f"{rng.integer(230, 290) / 100:.2f}", "1.95"],
        lockup=_two(base - Decimal(rng.integer(2, 4)) / 4),
        lockup_cover=_two(deal.cover + Decimal(rng.integer(1, 3)) / 4),
        basket=rng.integer(2, 9),
    )


def _paragraph(deal: Deal, covenant: Covenant, currency: str) -> str:
    match covenant:
        case Covenant.LEVERAGE:
            stepped = len(deal.steps) > 1
            limit = f"the limit set out in clause {deal.clause}.3 for that Test Date" if stepped else ""
            return (
                f"Leverage: the ratio of Net Debt to EBITDA does not exceed {limit or _two(deal.steps[-1][1]) + ':1'}"
            )
        case Covenant.INTEREST_COVER:
            return f"Interest cover: the ratio of EBITDA to Net Finance Charges is not less than {_two(deal.cover)}:1"
        case Covenant.DEBT_SERVICE_COVER:
            return f"Debt service cover: the ratio of Cashflow to Debt Service is not less than {_two(deal.service)}:1"
        case Covenant.LIQUIDITY:
            return f"Liquidity is not less than {currency} {deal.liquidity.normalize():f} million"


def yearly_rows(deal: Deal, ledger: Ledger) -> tuple[list[str], list[Row], list[Row]]:
    """Columns, flows and balances of the tested year and the year before."""
    years = [range(4, 8), range(4)]
    columns = [str(ledger.ends[quarters.stop - 1].year) for quarters in years]
    flows = [_row(item, [ledger.flow(item, quarters) for quarters in years]) for item in (*_PROFIT, *_FINANCE)]
    profit: Row = ("Operating profit", tuple(ledger.operating_profit(quarters) for quarters in years))
    flows.insert(len(_PROFIT), profit)
    balances = [_row(item, [ledger.amounts[item][quarters.stop - 1] for quarters in years]) for item in _POSITION[:-1]]
    return columns, flows, balances


def quarterly_rows(deal: Deal, ledger: Ledger) -> tuple[list[str], list[Row], list[Row]]:
    """Columns, flows and balances of eight quarters."""
    columns = [end.isoformat() for end in ledger.ends]
    flows = [_row(item, ledger.amounts[item]) for item in (*_PROFIT, *_FINANCE, *_CASH)]
    profit: Row = ("Operating profit", tuple(ledger.operating_profit([quarter]) for quarter in range(len(columns))))
    flows.insert(len(_PROFIT), profit)
    flows.append((f"of which EBITDA of {deal.subsidiary}", tuple(ledger.amounts[Item.SUBSIDIARY_EBITDA])))
    balances = [_row(item, ledger.amounts[item]) for item in _POSITION]
    balances.insert(4, (f"Loans of {deal.subsidiary}", tuple(ledger.amounts[Item.SUBSIDIARY_DEBT])))
    return columns, flows, balances


def _row(item: Item, amounts: Sequence[int]) -> Row:
    outflow = item in (*_PROFIT, *_FINANCE, *_CASH) and item not in _INCOME
    return _LABELS[item], tuple(-amount if outflow else amount for amount in amounts)


def as_csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Plain numbers under a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["item", *columns])
    writer.writerows([label, *amounts] for label, amounts in rows)
    return out.getvalue()


def as_table(title: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Grouped thousands, outflows in parentheses, as printed accounts have them."""
    lines = [title, "", " " * 44 + "".join(f"{column:>13}" for column in columns)]
    lines += [f"{label:<44}" + "".join(f"{_printed(amount):>13}" for amount in amounts) for label, amounts in rows]
    return "\n".join(lines) + "\n"


def _printed(amount: int) -> str:
    return f"({-amount:,})" if amount < 0 else f"{amount:,} " if amount else "- "


def notices(deal: Deal) -> str:
    """What was notified to the agent, in order of time."""
    entries: list[tuple[date, str]] = []
    for notice in deal.cure.notices if deal.cure else ():
        money = f"Contribution in cash of {_printed(notice.amount).strip()} thousand received from shareholders"
        entries.append((notice.received, f"{money} as a Cure Amount for the Test Date {spelled(notice.tested)}."))
    if deal.spike:
        price = _printed(deal.spike.price).strip()
        entries.append(
            (deal.spike.completed, f"Completion of the acquisition of {deal.spike.target} for {price} thousand.")
        )
    lines = [f"{spelled(day)}: {text}" for day, text in sorted(entries)]
    return f"Notices to the Agent, {deal.borrower}\n\n" + "\n".join(lines) + "\n"


def documents(rng: Rng, deal: Deal, ledger: Ledger, currency: str, level: int) -> Mapping[str, str]:
    """Every file of the workspace, by path."""
    files = {"agreement.txt": agreement(rng, deal, ledger, currency, long=level >= 3)}
    columns, flows, balances = quarterly_rows(deal, ledger) if level >= 3 else yearly_rows(deal, ledger)
    if level in (1, 3):
        if level == 1:
            files["accounts.csv"] = as_csv(columns, [*flows, *balances])
        else:
            files |= {"quarters.csv": as_csv(columns, flows), "balances.csv": as_csv(columns, balances)}
    else:
        unit = f"{currency} thousand"
        tables = [
            as_table(f"{deal.borrower}: income statement and cash items, {unit}", columns, flows),
            as_table(f"{deal.borrower}: balances at the end of the period, {unit}", columns, balances),
        ]
        files["accounts.txt"] = "\n".join(tables)
    if level >= 3:
        files["notices.txt"] = notices(deal)
    return files


def _two(value: Decimal) -> str:
    return f"{value:.2f}"


def _millions(thousands: int) -> str:
    return f"{Decimal(thousands) / 1000:f}"


@cache
def _template() -> jinja2.Template:
    path = resources.files(__name__.rpartition(".")[0]) / "assets" / "agreement.txt.j2"
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(path.read_text())
