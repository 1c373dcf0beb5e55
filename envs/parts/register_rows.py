"""Rows of registers and accounts of companies, properties and contracts: true of somebody, and of nobody that matters.

One wide draw decides a row, so that an annex of a million tokens takes seconds. Accounts add up.
"""

from __future__ import annotations

import datetime

from ..core import Rng
from .company_names import company, word

_WIDE = (1 << 160) - 1
_USES = ("Warehouse", "Workshop", "Office", "Production", "Showroom", "Land", "Service point", "Archive")
_LANES = ("Road", "Lane", "Street", "Square", "Way", "Quay", "Row", "Court")
_CURRENCIES = ("EUR", "USD", "GBP", "SEK", "NOK", "DKK", "CHF", "PLN", "CZK", "CAD")


class Draw:
    """Small integers out of one wide draw."""

    def __init__(self, rng: Rng) -> None:
        self._left = rng.integer(0, _WIDE)

    def between(self, low: int, high: int) -> int:
        """Both ends included."""
        self._left, value = divmod(self._left, high - low + 1)
        return low + value

    def of(self, words: tuple[str, ...]) -> str:
        """One of them."""
        return words[self.between(0, len(words) - 1)]

    def day(self, first: int, last: int) -> datetime.date:
        """A day of the years from `first` to `last`."""
        return datetime.date(self.between(first, last), self.between(1, 12), self.between(1, 28))


def property_cells(rng: Rng, year: int, *, addressed: bool, taken: frozenset[str]) -> list[str]:
    """Register no. (none that is taken), address or town, use, floor area, annual rent in thousands, lease end."""
    draw = Draw(rng)
    number = f"{draw.between(1000, 9899)}-{draw.between(1000, 9899)}"
    while number in taken:
        number = f"{draw.between(1000, 9899)}-{draw.between(1000, 9899)}"
    town = word(rng)
    place = f"{draw.between(1, 240)} {word(rng)} {draw.of(_LANES)}, {town}" if addressed else town
    rent = draw.between(12, 3200)
    until = draw.day(year + 1, year + 12).isoformat()
    return [number, place, draw.of(_USES), f"{draw.between(90, 19800):,}", f"{rent:,}", until]


def contract_cells(rng: Rng, year: int, *, withheld: bool, taken: frozenset[str]) -> list[str]:
    """Register no., counterparty, day of signing, amount in thousands, end; neither name nor number is `taken`."""
    draw = Draw(rng)
    number = f"CR-{draw.between(10000, 98999)}"
    while number in taken:
        number = f"CR-{draw.between(10000, 98999)}"
    counterparty = "(withheld)" if withheld and draw.between(0, 9) < 6 else company(rng, taken)
    amount = draw.between(15, 900) * (1 if draw.between(0, 1) else 240) + draw.between(0, 99)
    signed, until = draw.day(year - 6, year).isoformat(), draw.day(year + 1, year + 9).isoformat()
    if draw.between(0, 11) == 0:
        return [number, counterparty, "not stated", "by sales", until]
    return [number, counterparty, signed, f"{amount:,}", until]


def peer_cells(rng: Rng, taken: frozenset[str]) -> list[str]:
    """Company, revenue in millions, margin, equity ratio, employees, market share."""
    draw = Draw(rng)
    revenue = draw.between(210, 22000)
    heads = revenue * draw.between(38, 66) // 100 + draw.between(3, 40)
    shares = (draw.between(70, 290), draw.between(180, 690), draw.between(2, 260))
    margin, equity, market = (f"{share // 10}.{share % 10}%" for share in shares)
    return [company(rng, taken), f"{revenue // 10:,}.{revenue % 10}", margin, equity, f"{heads:,}", market]


def accounts_of(rng: Rng, name: str, year: int) -> str:
    """The statutory accounts of a company: a sentence and a table of two years."""
    draw = Draw(rng)
    later = _year(draw, draw.between(1900, 96000))
    earlier = _year(Draw(rng), later[0][1] * draw.between(82, 117) // 100 + 7)
    rows = [f"| {label} | {now:,} | {then:,} |" for (label, now), (_, then) in zip(later, earlier, strict=True)]
    seat, number = word(rng), draw.between(100000, 989999)
    held = draw.of(("all", "all", "60%", "75%", "51%", "90%"))
    head = f"{name}, {seat}, registered under no. {number}. The Issuer holds {held} of its shares."
    money = draw.of(_CURRENCIES)
    table = [f"| {money} thousand | {year} | {year - 1} |", "|---|---:|---:|", *rows]
    return "\n".join([f"{head} Statutory accounts, before consolidation:", "", *table, ""])


def _year(draw: Draw, revenue: int) -> list[tuple[str, int]]:
    cost = revenue * draw.between(52, 71) // 100 + draw.between(1, 40)
    running = revenue * draw.between(11, 26) // 100 + draw.between(1, 40)
    profit = revenue - cost - running
    assets = revenue * draw.between(48, 131) // 100 + draw.between(5, 90)
    owed = assets * draw.between(20, 55) // 100
    return [
        ("Revenue", revenue),
        ("Cost of sales", cost),
        ("Gross profit", revenue - cost),
        ("Other operating expenses", running),
        ("Operating profit", profit),
        ("Total assets", assets),
        ("Borrowings", owed),
        ("Equity", assets - owed - assets * draw.between(5, 18) // 100),
        ("Cash", assets * draw.between(2, 14) // 100 + 3),
        ("Employees", revenue // draw.between(140, 260) + draw.between(3, 30)),
    ]
