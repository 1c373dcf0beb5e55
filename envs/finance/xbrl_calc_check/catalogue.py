"""What companies' statements consist of: items that every one has, items that some have, and what each total sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...core import Rng


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is filed."""

    statements: tuple[str, ...]
    """assets, balance, income, cash, segments."""
    years: int = 1
    optional: int = 2
    """Of the items that not every company has, in each group."""
    repeats: int = 0
    """Facts that are filed twice, the same or rounded to millions: harmless."""


Group = tuple[str, str, str, Sequence[tuple[str, str, int]]]
"""Total, its label, its balance, and its items: (name, label, weight)."""

_CURRENT_ASSETS = (
    ("Cash", "Cash and cash equivalents", 1),
    ("TradeReceivables", "Trade receivables", 1),
    ("Inventories", "Inventories", 1),
)
_CURRENT_ASSETS_MORE = (
    ("Prepayments", "Prepaid expenses", 1),
    ("ShortTermDeposits", "Short-term deposits", 1),
    ("ContractAssets", "Contract assets", 1),
    ("TaxReceivable", "Income tax receivable", 1),
    ("ReceivablesAllowance", "Allowance for doubtful receivables", -1),
)
_FIXED_ASSETS = (("PlantAndEquipment", "Property, plant and equipment", 1), ("Goodwill", "Goodwill", 1))
_FIXED_ASSETS_MORE = (
    ("Software", "Software", 1),
    ("RightOfUseAssets", "Right-of-use assets", 1),
    ("DeferredTaxAssets", "Deferred tax assets", 1),
    ("Associates", "Investments in associates", 1),
)
_CURRENT_DEBTS = (("TradePayables", "Trade payables", 1), ("AccruedExpenses", "Accrued expenses", 1))
_CURRENT_DEBTS_MORE = (
    ("CurrentBorrowings", "Borrowings due within a year", 1),
    ("ContractLiabilities", "Contract liabilities", 1),
    ("TaxPayable", "Income tax payable", 1),
    ("CurrentLeases", "Lease liabilities due within a year", 1),
)
_LONG_DEBTS = (("Borrowings", "Borrowings due after a year", 1), ("Provisions", "Provisions", 1))
_LONG_DEBTS_MORE = (
    ("Leases", "Lease liabilities due after a year", 1),
    ("PensionObligations", "Pension obligations", 1),
    ("DeferredTaxLiabilities", "Deferred tax liabilities", 1),
)
_EQUITY = (("ShareCapital", "Share capital", 1), ("TreasuryShares", "Treasury shares", -1))
_COSTS = (("SellingExpenses", "Selling expenses", -1), ("AdministrativeExpenses", "Administrative expenses", -1))
_COSTS_MORE = (
    ("ResearchExpenses", "Research and development expenses", -1),
    ("OtherOperatingIncome", "Other operating income", 1),
    ("OtherOperatingExpenses", "Other operating expenses", -1),
    ("RestructuringCosts", "Restructuring costs", -1),
)
_OPERATING = (
    ("ProfitForTheYear", "Profit for the year", 1),
    ("DepreciationAddedBack", "Depreciation and amortisation added back", 1),
    ("IncreaseInReceivables", "Increase in trade receivables", -1),
    ("IncreaseInPayables", "Increase in trade payables", 1),
)
_OPERATING_MORE = (
    ("IncreaseInInventories", "Increase in inventories", -1),
    ("ShareBasedPayment", "Share-based payment added back", 1),
    ("GainOnDisposals", "Gain on disposals", -1),
    ("IncreaseInProvisions", "Increase in provisions", 1),
)
_INVESTING = (
    ("PurchaseOfEquipment", "Purchase of property, plant and equipment", -1),
    ("ProceedsFromDisposals", "Proceeds from disposals", 1),
    ("PurchaseOfSoftware", "Purchase of software", -1),
)
_FINANCING = (
    ("ProceedsFromBorrowings", "Proceeds from borrowings", 1),
    ("RepaymentOfBorrowings", "Repayment of borrowings", -1),
    ("DividendsPaid", "Dividends paid", -1),
    ("PurchaseOfTreasuryShares", "Purchase of treasury shares", -1),
)
MEMBERS = (
    ("EuropeMember", "Europe"), ("AmericasMember", "Americas"), ("AsiaMember", "Asia and Pacific"),
    ("AfricaMember", "Middle East and Africa"), ("NordicsMember", "Nordic countries"),
)  # fmt: skip


SMALL = frozenset(
    {name for name, _, _ in (*_COSTS_MORE, *_CURRENT_DEBTS, *_CURRENT_DEBTS_MORE, *_LONG_DEBTS, *_LONG_DEBTS_MORE)}
    | {"ShareCapital", "TreasuryShares", "ReceivablesAllowance", "FinanceIncome", "FinanceCosts", "IncomeTax"}
)
Made = tuple[str, str, str, list[Group]]
"""Role, title, period type, groups."""


Item = tuple[str, str, int]


def _more(rng: Rng, always: Sequence[Item], more: Sequence[Item], count: int) -> list[Item]:
    chosen = sorted(rng.sample(range(len(more)), min(count, len(more))))
    return [*always, *(more[index] for index in chosen)]


def _asset_groups(rng: Rng, size: Size) -> list[Group]:
    current = _more(rng, _CURRENT_ASSETS, _CURRENT_ASSETS_MORE, size.optional)
    fixed = _more(rng, _FIXED_ASSETS, _FIXED_ASSETS_MORE, size.optional)
    both = [("CurrentAssets", "Current assets", 1), ("NonCurrentAssets", "Non-current assets", 1)]
    return [
        ("CurrentAssets", "Current assets", "debit", current),
        ("NonCurrentAssets", "Non-current assets", "debit", fixed),
        ("Assets", "Assets", "debit", both),
    ]


def _assets(rng: Rng, size: Size) -> Made:
    return "Assets", "Statement of financial position: assets", "instant", _asset_groups(rng, size)


def _balance(rng: Rng, size: Size) -> Made:
    current = _more(rng, _CURRENT_DEBTS, _CURRENT_DEBTS_MORE, size.optional)
    long = _more(rng, _LONG_DEBTS, _LONG_DEBTS_MORE, size.optional)
    equity = [*_EQUITY, ("RetainedEarnings", "Retained earnings", 1)]
    claims = [
        ("CurrentLiabilities", "Current liabilities", 1),
        ("NonCurrentLiabilities", "Non-current liabilities", 1),
        ("Equity", "Equity", 1),
    ]
    groups: list[Group] = [
        *_asset_groups(rng, size),
        ("CurrentLiabilities", "Current liabilities", "credit", current),
        ("NonCurrentLiabilities", "Non-current liabilities", "credit", long),
        ("Equity", "Equity", "credit", equity),
        ("EquityAndLiabilities", "Equity and liabilities", "credit", claims),
    ]
    return "Balance", "Statement of financial position", "instant", groups


def _income(rng: Rng, size: Size) -> Made:
    costs = _more(rng, _COSTS, _COSTS_MORE, size.optional)
    groups: list[Group] = [
        ("GrossProfit", "Gross profit", "credit", [("Revenue", "Revenue", 1), ("CostOfSales", "Cost of sales", -1)]),
        ("OperatingProfit", "Operating profit", "credit", [("GrossProfit", "Gross profit", 1), *costs]),
        (
            "ProfitBeforeTax",
            "Profit before tax",
            "credit",
            [
                ("OperatingProfit", "Operating profit", 1),
                ("FinanceIncome", "Finance income", 1),
                ("FinanceCosts", "Finance costs", -1),
            ],
        ),
        (
            "ProfitForTheYear",
            "Profit for the year",
            "credit",
            [("ProfitBeforeTax", "Profit before tax", 1), ("IncomeTax", "Income tax expense", -1)],
        ),
    ]
    return "Income", "Income statement", "duration", groups


def _cash(rng: Rng, size: Size) -> Made:
    parts = (
        ("CashFromOperations", "Cash flow from operating activities"),
        ("CashFromInvesting", "Cash flow from investing activities"),
        ("CashFromFinancing", "Cash flow from financing activities"),
    )
    groups: list[Group] = [
        (*parts[0], "", _more(rng, _OPERATING, _OPERATING_MORE, size.optional)),
        (*parts[1], "", _INVESTING),
        (*parts[2], "", _FINANCING),
        ("NetChangeInCash", "Net change in cash", "", [(name, label, 1) for name, label in parts]),
    ]
    return "CashFlow", "Statement of cash flows", "duration", groups


STATEMENTS: Mapping[str, Callable[[Rng, Size], Made]] = {
    "assets": _assets,
    "balance": _balance,
    "income": _income,
    "cash": _cash,
}
