"""The ledger of an issuer: accounts of three years; the rest is in `dealings`. Every figure follows or is drawn.

Invariants: statements add up to the thousand; what is computed is computed from ledger values, never from rounded ones.
Keys end in `.0` for the last year, `.1` and `.2` for those before.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

from ...core import Rng
from ...parts.displays import spelled
from ...parts.ledger import Kind, Ledger
from .names import Names

SEGMENTS = ("segment_a", "segment_b", "segment_c")
REGIONS = ("region_a", "region_b", "region_c", "region_d")
CREW = ("crew_production", "crew_sales", "crew_research", "crew_office")
_ASSETS = ("goodwill", "intangibles", "equipment", "inventories", "receivables", "cash")
_DEBTS = ("debt_short", "debt_long", "leases", "payables", "provisions", "other_liabilities")


def draw_ledger(rng: Rng, names: Names) -> Ledger:
    """All facts of one prospectus."""
    book = Ledger()
    for years_ago in (2, 1, 0):
        _income(rng, book, names, years_ago)
    for years_ago in (1, 0):
        _breakdown(rng, book, names, years_ago)
        _position(rng, book, names, years_ago)
    for years_ago in (0, 1):
        _ratios(book, names, years_ago)
    _cash_flows(rng, book, names)
    _reclassified(rng, book, names)
    return book


def year_of(names: Names, years_ago: int) -> str:
    """The period, as the index writes it."""
    return f"year ended 31 December {names.year - years_ago}"


def end_of(names: Names, years_ago: int) -> str:
    """The balance sheet date."""
    return f"31 December {names.year - years_ago}"


def part(rng: Rng, whole: Fraction, low: int, high: int) -> int:
    """A share of `whole`, drawn in tenths of a percent, as a whole number that does not look round."""
    return int(whole * rng.integer(low, high) / 1000) + rng.integer(3, 96)


def _income(rng: Rng, book: Ledger, names: Names, ago: int) -> None:
    when = year_of(names, ago)

    def money(key: str, value: Fraction | int, label: str, *of: str) -> None:
        book.add(f"{key}.{ago}", Kind.MONEY, value, label, when)
        if of:
            book.relate(f"{key}.{ago}", *(f"{one}.{ago}" for one in of))

    def had(key: str) -> Fraction:
        return book[f"{key}.{ago}"]

    if ago == 2:
        revenue = Fraction(rng.integer(210_000, 880_000) + rng.integer(1, 999))
    else:
        before = book[f"revenue.{ago + 1}"]
        revenue = Fraction(int(before * rng.choice((932, 947, 1046, 1063, 1081, 1094, 1117, 1138)) / 1000))
        revenue += rng.integer(101, 997)
    money("revenue", revenue, "Revenue")
    money("cost_of_sales", part(rng, revenue, 585, 640), "Cost of sales")
    money("gross_profit", revenue - had("cost_of_sales"), "Gross profit", "revenue", "cost_of_sales")
    money("selling", part(rng, revenue, 92, 118), "Selling and distribution expenses")
    money("admin", part(rng, revenue, 51, 69), "General and administrative expenses")
    money("research", part(rng, revenue, 33, 52), "Research and development expenses")
    money("exceptional", part(rng, revenue, 6, 15), "Exceptional items")
    costs = ("selling", "admin", "research", "exceptional")
    profit = had("gross_profit") - sum(had(cost) for cost in costs)
    money("operating_profit", profit, "Operating profit", "gross_profit", *costs)
    money("finance_costs", part(rng, revenue, 12, 22), "Finance costs, net")
    money("profit_before_tax", profit - had("finance_costs"), "Profit before tax", "operating_profit", "finance_costs")
    money("tax", part(rng, had("profit_before_tax"), 215, 290), "Income tax expense")
    money("profit", had("profit_before_tax") - had("tax"), "Profit for the year", "profit_before_tax", "tax")
    money("depreciation", part(rng, revenue, 39, 55), "Depreciation and amortisation")
    adjusted = profit + had("depreciation") + had("exceptional")
    money("ebitda", adjusted, "Adjusted EBITDA", "operating_profit", "depreciation", "exceptional")


def _breakdown(rng: Rng, book: Ledger, names: Names, ago: int) -> None:
    """Revenue by segment and by region."""
    for keys, labels in ((SEGMENTS, names.trade.segments), (REGIONS, names.regions)):
        left = whole = book[f"revenue.{ago}"]
        for key, label in zip(keys[:-1], labels, strict=False):
            share = part(rng, whole, 260, 380) if key == keys[0] else part(rng, whole, 160, 240)
            book.add(f"{key}.{ago}", Kind.MONEY, share, f"Revenue, {label}", year_of(names, ago))
            left -= share
        book.add(f"{keys[-1]}.{ago}", Kind.MONEY, left, f"Revenue, {labels[-1]}", year_of(names, ago))
        book.relate(f"revenue.{ago}", *(f"{key}.{ago}" for key in keys))


def _position(rng: Rng, book: Ledger, names: Names, ago: int) -> None:
    when, revenue = end_of(names, ago), book[f"revenue.{ago}"]
    spans = {
        "goodwill": (80, 130, "Goodwill"),
        "intangibles": (60, 90, "Other intangible assets"),
        "equipment": (230, 330, "Property, plant and equipment"),
        "inventories": (110, 150, "Inventories"),
        "receivables": (130, 175, "Trade receivables"),
        "cash": (48, 92, "Cash and cash equivalents"),
        "debt_short": (18, 33, "Current borrowings"),
        "debt_long": (300, 390, "Non-current borrowings"),
        "leases": (29, 47, "Lease liabilities"),
        "payables": (88, 122, "Trade payables"),
        "provisions": (17, 28, "Provisions"),
        "other_liabilities": (22, 39, "Other liabilities"),
    }
    if ago == 0:
        bought = part(rng, revenue, 31, 62)
        book.add("acquired_goodwill", Kind.MONEY, bought, f"Goodwill from {names.acquired}", "at completion")
        label = str(spans.pop("goodwill")[2])
        of = ("goodwill.1", "acquired_goodwill")
        book.derive("goodwill.0", Kind.MONEY, book["goodwill.1"] + bought, label, when, of)
    for key, (low, high, label) in spans.items():
        book.add(f"{key}.{ago}", Kind.MONEY, part(rng, revenue, low, high), label, when)
    assets, debts = [f"{key}.{ago}" for key in _ASSETS], [f"{key}.{ago}" for key in _DEBTS]
    total = sum((book[key] for key in assets), Fraction(0))
    book.derive(f"assets.{ago}", Kind.MONEY, total, "Total assets", when, assets)
    equity = total - sum(book[key] for key in debts)
    book.derive(f"equity.{ago}", Kind.MONEY, equity, "Total equity", when, [f"assets.{ago}", *debts])
    owed = [f"{key}.{ago}" for key in ("debt_short", "debt_long", "leases", "cash")]
    net = sum((book[key] for key in owed[:3]), Fraction(0)) - book[owed[3]]
    book.derive(f"net_debt.{ago}", Kind.MONEY, net, "Net Debt", when, owed)
    raw, unfinished = part(rng, book[f"inventories.{ago}"], 280, 390), part(rng, book[f"inventories.{ago}"], 150, 240)
    finished = book[f"inventories.{ago}"] - raw - unfinished
    stock = {"stock_raw": (raw, "Raw materials"), "stock_wip": (unfinished, "Work in progress")}
    stock["stock_finished"] = (int(finished), "Finished goods")
    for key, (value, label) in stock.items():
        book.add(f"{key}.{ago}", Kind.MONEY, value, f"Inventories: {label.lower()}", when)
    book.relate(f"inventories.{ago}", *(f"{key}.{ago}" for key in stock))


def _ratios(book: Ledger, names: Names, ago: int) -> None:
    def percent(key: str, label: str, above: str, below: str, when: str) -> None:
        above, below = f"{above}.{ago}", f"{below}.{ago}"
        value = 100 * book[above] / book[below]
        book.derive(f"{key}.{ago}", Kind.PERCENT, value, label, when, (above, below))

    year, end = year_of(names, ago), end_of(names, ago)
    percent("gross_margin", "Gross margin", "gross_profit", "revenue", year)
    percent("ebitda_margin", "Adjusted EBITDA margin", "ebitda", "revenue", year)
    percent("tax_rate", "Effective tax rate", "tax", "profit_before_tax", year)
    percent("research_share", "Research and development as a share of revenue", "research", "revenue", year)
    percent("segment_a_share", f"Share of {names.trade.segments[0]} in revenue", "segment_a", "revenue", year)
    percent("region_a_share", f"Share of {names.regions[0]} in revenue", "region_a", "revenue", year)
    percent("equity_ratio", "Equity ratio", "equity", "assets", end)
    growth = 100 * (book[f"revenue.{ago}"] / book[f"revenue.{ago + 1}"] - 1)
    of = (f"revenue.{ago}", f"revenue.{ago + 1}")
    book.derive(f"growth.{ago}", Kind.PERCENT, abs(growth), "Change of revenue on the year before", year, of)
    leverage = book[f"net_debt.{ago}"] / book[f"ebitda.{ago}"]
    of = (f"net_debt.{ago}", f"ebitda.{ago}")
    book.derive(f"leverage.{ago}", Kind.MULTIPLE, leverage, "Net Debt to Adjusted EBITDA", end, of)


def _cash_flows(rng: Rng, book: Ledger, names: Names) -> None:
    for ago in (2, 1, 0):
        when = year_of(names, ago)
        inflow = part(rng, book[f"ebitda.{ago}"], 690, 880)
        spent = part(rng, book[f"revenue.{ago}"], 41, 58)
        book.add(f"cash_flow.{ago}", Kind.MONEY, inflow, "Cash flow from operating activities", when)
        book.add(f"capex.{ago}", Kind.MONEY, spent, "Capital Expenditure", when)
        of = (f"cash_flow.{ago}", f"capex.{ago}")
        book.derive(f"free_cash_flow.{ago}", Kind.MONEY, inflow - spent, "Free Cash Flow", when, of)


def _reclassified(rng: Rng, book: Ledger, names: Names) -> None:
    """Comparatives that were restated when freight moved from one line to another, and are disclosed."""
    moved = part(rng, book["cost_of_sales.1"], 14, 26)
    when = f"{year_of(names, 1)}, as previously reported"
    book.add("moved", Kind.MONEY, moved, "Freight costs reclassified", year_of(names, 1))
    changes = {
        "cost_of_sales": (-moved, "Cost of sales"),
        "selling": (moved, "Selling and distribution expenses"),
        "gross_profit": (moved, "Gross profit"),
    }
    for key, (change, label) in changes.items():
        book.add(f"{key}_before.1", Kind.MONEY, book[f"{key}.1"] + change, label, when)


def recent_of(names: Names) -> str:
    """The latest practicable date."""
    return spelled(names.recent)


def days_before(names: Names, low: int, high: int, rng: Rng) -> Fraction:
    """A day some time before the prospectus."""
    return Fraction((names.dated - timedelta(days=rng.integer(low, high))).toordinal())
