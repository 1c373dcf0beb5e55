"""Level 0: one clause and a handful of figures in one short file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from ...core import Rng
from .names import borrower
from .terms import Tested, is_clear


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """The file, and what it tests."""

    borrower: str
    path: str
    text: str
    tested: Tested
    numerator: str
    """As written in the file."""
    denominator: str
    mistaken: Mapping[str, Tested]
    """What a careless reading finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ratio:
    """A usual covenant: names of its two figures, the limit's range in hundredths, and the denominator's in tenths."""

    title: str
    above: tuple[str, ...]
    below: tuple[str, ...]
    is_maximum: bool
    limits: tuple[int, int]
    amounts: tuple[int, int]


_RATIOS = (
    _Ratio(
        title="Leverage",
        above=("Total Debt", "Net Debt", "Borrowings", "Senior Debt"),
        below=("EBITDA", "Adjusted EBITDA", "Cash Flow"),
        is_maximum=True,
        limits=(250, 525),
        amounts=(180, 990),
    ),
    _Ratio(
        title="Interest Cover",
        above=("EBITDA", "Operating Profit", "EBIT", "Adjusted EBITDA"),
        below=("Net Interest", "Finance Charges", "Interest"),
        is_maximum=False,
        limits=(175, 425),
        amounts=(40, 290),
    ),
    _Ratio(
        title="Debt Service Cover",
        above=("Cash Flow", "Free Cash Flow", "CFADS"),
        below=("Debt Service", "Repayments", "Scheduled Debt Service"),
        is_maximum=False,
        limits=(105, 160),
        amounts=(90, 680),
    ),
    _Ratio(
        title="Gearing",
        above=("Borrowings", "Total Debt", "Net Debt"),
        below=("Equity", "Net Worth", "Tangible Net Worth"),
        is_maximum=True,
        limits=(75, 190),
        amounts=(210, 980),
    ),
    _Ratio(
        title="Current Ratio",
        above=("Current Assets", "Liquid Assets"),
        below=("Current Liabilities", "Trade Creditors"),
        is_maximum=False,
        limits=(105, 210),
        amounts=(150, 940),
    ),
)
_MAXIMUM = (
    "{above} divided by {below} must not exceed {limit}.",
    "The ratio of {above} to {below} shall be at most {limit}.",
    "{above} may be no more than {limit} times {below}.",
    "Maximum {limit}: {above} to {below}.",
)
_MINIMUM = (
    "{above} divided by {below} must be at least {limit}.",
    "The ratio of {above} to {below} shall not be below {limit}.",
    "{above} may be no less than {limit} times {below}.",
    "Minimum {limit}: {above} to {below}.",
)
_OTHERS = ("Revenue", "Capex", "Tax Paid", "Dividends", "Depreciation", "Inventories", "Receivables", "Staff Costs")
_FILES = ("covenant", "clause", "facility", "certificate", "lender", "loan", "terms")
_CURRENCIES = ("EUR m", "GBP m", "USD m", "CHF m", "SEK m")


def letter(rng: Rng) -> Letter:
    """One clause, two figures that it uses, and two that it does not."""
    # as many ceilings as floors, or a habit would answer better than reading
    is_maximum = rng.choice((True, False))
    ratio = rng.choice([ratio for ratio in _RATIOS if ratio.is_maximum is is_maximum])
    above, below = rng.choice(ratio.above), rng.choice(ratio.below)
    limit = Decimal(rng.integer(ratio.limits[0] // 5, ratio.limits[1] // 5) * 5).scaleb(-2)
    numerator, denominator = _figures(rng.child("figures"), ratio, limit)
    tested = Tested(
        name="ratio",
        value=Fraction(numerator) / Fraction(denominator),
        limit=limit,
        is_maximum=ratio.is_maximum,
        clause=f"{rng.integer(9, 27)}.{rng.integer(1, 9)}",
    )
    others = [(name, Decimal(rng.integer(31, 2990)).scaleb(-1)) for name in rng.sample(_OTHERS, 2)]
    lines = [(label, str(amount)) for label, amount in ((above, numerator), (below, denominator), *others)]
    wrong = {
        "upside_down": 1 / tested.value,
        "wrong_figure": Fraction(others[0][1]) / Fraction(denominator),
        "wrong_base": Fraction(numerator) / Fraction(others[1][1]),
    }
    name = borrower(rng)
    wording = rng.choice(_MAXIMUM if ratio.is_maximum else _MINIMUM).format(above=above, below=below, limit=limit)
    return Letter(
        borrower=name,
        path=f"{rng.choice(_FILES)}.txt",
        text=_text(rng, name, f"{tested.clause} {ratio.title}. {wording}", rng.shuffled(lines)),
        tested=tested,
        numerator=str(numerator),
        denominator=str(denominator),
        mistaken={name: replace(tested, value=value) for name, value in wrong.items() if _apart(value, tested.value)},
    )


def _apart(value: Fraction, other: Fraction) -> bool:
    return abs(value - other) > Fraction(2, 100)


def _figures(rng: Rng, ratio: _Ratio, limit: Decimal) -> tuple[Decimal, Decimal]:
    """Figures to one decimal whose ratio lies 3% to 35% from the limit, on either side, and rounds without doubt."""
    while True:
        denominator = Decimal(rng.integer(*ratio.amounts)).scaleb(-1)
        off = Decimal(rng.integer(3, 35)).scaleb(-2) * rng.choice((-1, 1))
        numerator = (limit * denominator * (1 + off)).quantize(Decimal("0.1"))
        ratio_value = Fraction(numerator) / Fraction(denominator)
        # a trailing zero is left out, so that what Python prints is what is submitted
        if is_clear(ratio_value, limit) and round(ratio_value * 100) % 10:
            return numerator, denominator


def _text(rng: Rng, name: str, clause: str, lines: Sequence[tuple[str, str]]) -> str:
    mark = rng.choice((": ", " = ", "  "))
    heading = f"{name}, {rng.choice(('FY', 'year ', 'accounts '))}{rng.integer(2019, 2026)}, {rng.choice(_CURRENCIES)}"
    table = "\n".join(f"{label}{mark}{amount}" for label, amount in lines)
    return f"{clause}\n{heading}\n{table}\n" if rng.integer(0, 1) else f"{heading}\n{table}\n{clause}\n"
