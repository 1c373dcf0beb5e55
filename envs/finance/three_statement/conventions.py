"""What a company's model follows: how revenue is built, what is timed how, who finances the rest. Drawn for a level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ...core import Json, Rng


@dataclass(frozen=True, slots=True, kw_only=True)
class Conventions:
    """One choice for each question that a modelling memo answers.

    Example:
        >>> Conventions.from_json(Conventions(periods=3).to_json()).periods
        3
    """

    periods: int
    """Of the forecast."""
    history: int = 1
    """Years, or periods, of accounts."""
    per_year: int = 1
    """Periods in a year."""
    days: int = 365
    """Days in a year, for working capital."""
    revenue: str = "growth"
    """growth, price_volume or subscribers."""
    costs: str = "ratio"
    """ratio, mean_ratio or sum_ratio (both of the historic accounts)."""
    overheads: str = "share"
    """share (of revenue) or inflated."""
    capex: str = "planned"
    """planned or share (of revenue)."""
    depreciation: str = "declining"
    """declining, straight_same, straight_next or half."""
    payables: str = "costs"
    """costs or purchases."""
    interest: str = "opening"
    """opening or average."""
    tax: str = "plain"
    """plain, losses or capped_losses."""
    tax_paid: str = "at_once"
    """at_once, next or advance."""
    dividends: str = "none"
    """none, at_once or next."""
    facility: str = "none"
    """none, revolver or sweep."""
    new_money: bool = False
    """New loans and share issues."""
    pik: bool = False
    fee: bool = False
    """A fee on the undrawn part of the revolver."""
    yearly: tuple[str, ...] = ()
    """Assumptions that are given for each period instead of once."""

    @property
    def days_in_period(self) -> float:
        """365 for years, 90 for quarters of 360 days."""
        return self.days / self.per_year

    @property
    def period(self) -> str:
        """What one period is called."""
        return {1: "year", 2: "half-year", 4: "quarter"}[self.per_year]

    @property
    def circular(self) -> bool:
        """Whether interest depends on the cash that it reduces."""
        return self.facility != "none" and self.interest == "average"

    def to_json(self) -> dict[str, Json]:
        """As an instance's truth carries it."""
        return {
            one.name: list(value) if isinstance(value := getattr(self, one.name), tuple) else value
            for one in fields(self)
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Conventions:
        """The reverse of `to_json`."""
        return cls(**{**data, "yearly": tuple(data["yearly"])})


_MAYBE_YEARLY = ("cost_ratio", "overhead_ratio", "debtor_days", "stock_days", "creditor_days", "tax_rate")


def draw_conventions(rng: Rng, level: int) -> Conventions:
    """Every company gets its own, within what the level asks."""
    if level == 0:
        return Conventions(periods=3, days=rng.choice((360, 365)))
    if level == 1:
        return Conventions(
            periods=4,
            history=2,
            days=rng.choice((360, 365)),
            revenue=rng.choice(("growth", "price_volume")),
            overheads=rng.choice(("share", "inflated")),
            capex=rng.choice(("planned", "share")),
            dividends=rng.choice(("at_once", "next")),
            yearly=tuple(sorted(rng.sample(_MAYBE_YEARLY, 2))),
        )
    common: dict[str, Any] = {
        "history": 3,
        "days": rng.choice((360, 365)),
        "revenue": rng.choice(("growth", "price_volume", "subscribers")),
        "costs": rng.choice(("ratio", "mean_ratio", "sum_ratio")),
        "overheads": rng.choice(("share", "inflated")),
        "capex": rng.choice(("planned", "share")),
        "yearly": tuple(sorted(rng.sample(_MAYBE_YEARLY, 3))),
        "new_money": True,
    }
    if level == 2:
        return Conventions(
            periods=5,
            depreciation=rng.choice(("straight_same", "straight_next")),
            interest=rng.choice(("opening", "average")),
            tax_paid=rng.choice(("at_once", "next")),
            dividends=rng.choice(("at_once", "next")),
            **common,
        )
    if level == 3:
        per_year = rng.choice((1, 2))
        return Conventions(
            periods=5 if per_year == 1 else 8,
            per_year=per_year,
            depreciation=rng.choice(("straight_same", "straight_next", "half")),
            payables=rng.choice(("costs", "purchases")),
            interest="average",
            tax="losses",
            tax_paid=rng.choice(("next", "advance")),
            dividends=rng.choice(("at_once", "next")),
            facility="revolver",
            **common,
        )
    per_year = rng.choice((2, 4))
    return Conventions(
        periods=10 if per_year == 2 else 12,
        per_year=per_year,
        depreciation=rng.choice(("straight_next", "half")),
        payables="purchases",
        interest="average",
        tax="capped_losses",
        tax_paid="advance",
        dividends=rng.choice(("at_once", "next")),
        facility="sweep",
        pik=True,
        fee=True,
        **common,
    )
