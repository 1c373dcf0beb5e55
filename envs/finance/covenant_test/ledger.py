"""The borrower's books: eight quarters in whole thousands, from which every document is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum, auto

from ...core import Rng

QUARTERS = 8


class Item(StrEnum):
    """A line of the accounts; every amount is positive, whatever its side."""

    REVENUE = auto()
    COST_OF_SALES = auto()
    STAFF = auto()
    OTHER_COSTS = auto()
    DEPRECIATION = auto()
    AMORTISATION = auto()
    EXCEPTIONAL = auto()
    DISPOSAL_GAIN = auto()
    INTEREST_PAYABLE = auto()
    INTEREST_INCOME = auto()
    FEE_AMORTISATION = auto()
    TAX_PAID = auto()
    CAPEX = auto()
    REPAYMENTS = auto()
    PREPAYMENTS = auto()
    SUBSIDIARY_EBITDA = auto()
    TERM_LOAN = auto()
    REVOLVER = auto()
    LEASES = auto()
    SHAREHOLDER_LOAN = auto()
    SUBSIDIARY_DEBT = auto()
    CASH = auto()
    RESTRICTED_CASH = auto()
    UNDRAWN = auto()


FLOWS = tuple(Item)[: tuple(Item).index(Item.TERM_LOAN)]
BALANCES = tuple(Item)[len(FLOWS) :]

_COSTS = {
    Item.COST_OF_SALES: (520, 580),
    Item.STAFF: (130, 170),
    Item.OTHER_COSTS: (50, 80),
    Item.DEPRECIATION: (25, 45),
    Item.AMORTISATION: (5, 15),
    Item.EXCEPTIONAL: (4, 30),
    Item.INTEREST_INCOME: (1, 3),
    Item.FEE_AMORTISATION: (2, 5),
    Item.TAX_PAID: (10, 25),
    Item.CAPEX: (15, 40),
    Item.PREPAYMENTS: (5, 20),
    Item.SUBSIDIARY_EBITDA: (6, 18),
}
"""Per mille of the quarter's revenue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Amounts by item and quarter, in thousands; `ends` are the quarters' last days."""

    ends: tuple[date, ...]
    amounts: Mapping[Item, tuple[int, ...]]

    def flow(self, item: Item, quarters: Sequence[int]) -> int:
        """The sum over some quarters."""
        return sum(self.amounts[item][quarter] for quarter in quarters)

    def operating_profit(self, quarters: Sequence[int]) -> int:
        """After exceptional items and gains on disposals."""
        costs = (Item.COST_OF_SALES, Item.STAFF, Item.OTHER_COSTS, Item.DEPRECIATION, Item.AMORTISATION)
        earned = self.flow(Item.REVENUE, quarters) + self.flow(Item.DISPOSAL_GAIN, quarters)
        return earned - sum(self.flow(item, quarters) for item in (*costs, Item.EXCEPTIONAL))


def quarter_end(first_year: int, index: int) -> date:
    """The last day of a quarter, counted from the first of `first_year`; negative ones lie before it."""
    year, quarter = divmod(first_year * 4 + index, 4)
    month, day = ((3, 31), (6, 30), (9, 30), (12, 31))[quarter]
    return date(year, month, day)


def quarter_ends(first_year: int) -> tuple[date, ...]:
    """The last days of the eight quarters."""
    return tuple(quarter_end(first_year, index) for index in range(QUARTERS))


def operations(rng: Rng) -> dict[Item, tuple[int, ...]]:
    """The flows that do not depend on the debt."""
    base = rng.integer(24_000, 160_000)
    revenue = tuple(base * rng.integer(93, 109) // 100 + rng.integer(0, 99) for _ in range(QUARTERS))
    amounts = {Item.REVENUE: revenue}
    for item, (low, high) in _COSTS.items():
        amounts[item] = tuple(amount * rng.integer(low * 10, high * 10) // 10_000 for amount in revenue)
    sold = rng.integer(4, 6)
    amounts[Item.DISPOSAL_GAIN] = tuple(
        amount * rng.integer(20, 45) // 1000 if quarter in (sold, sold - 4) else 0
        for quarter, amount in enumerate(revenue)
    )
    return amounts
