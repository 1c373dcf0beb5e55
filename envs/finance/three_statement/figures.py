"""Draw a company's figures, visible or hidden: accounts that balance, and assumptions in a mood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Any

from ...core import GenerationError, Json, Rng
from .conventions import Conventions
from .expressions import Frame, solve
from .lines import Assumption, assumptions, lines

_ATTEMPTS = 300


class Mood(StrEnum):
    """What the years ahead are like."""

    TYPICAL = auto()
    SLUMP = auto()
    """Falling revenue, losses, borrowing."""
    BOOM = auto()
    """Rising revenue, idle cash."""


Figures = Mapping[str, tuple[float, ...]]
"""Name → values: historic ones for a line, for an assumption one or one for each period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """What the model starts from; numbers as written, money whole."""

    accounts: Figures
    assumptions: Figures

    def to_json(self) -> dict[str, Json]:
        """As an instance's truth carries it."""
        return {
            "accounts": {name: list(values) for name, values in self.accounts.items()},
            "assumptions": {name: list(values) for name, values in self.assumptions.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Company:
        """The reverse of `to_json`."""
        return cls(
            accounts={name: tuple(values) for name, values in data["accounts"].items()},
            assumptions={name: tuple(values) for name, values in data["assumptions"].items()},
        )


def forecast(on: Conventions, company: Company) -> dict[str, list[float]]:
    """Every line's forecast. Raises ValueError where a period does not settle."""
    return forecast_of(on, company, {line.name: line.formula for line in lines(on)})


def forecast_of(on: Conventions, company: Company, formulas: Mapping[str, str]) -> dict[str, list[float]]:
    """The same with formulas of one's own."""
    known: dict[str, Any] = dict(company.accounts)
    for one in assumptions(on):
        values = company.assumptions[one.name]
        known[one.name] = [0.0] * on.history + list(values) if one.series else float(values[0])
    return solve(Frame(history=on.history, periods=on.periods), formulas, known)


def draw_company(rng: Rng, on: Conventions, mood: Mood = Mood.TYPICAL, *, solvent: bool = False) -> Company:
    """Accounts and assumptions; `solvent`: the forecast keeps cash above 0.

    Raises:
        GenerationError: none was found.
    """
    for attempt in range(_ATTEMPTS):
        drawn = _Draw(rng.child(f"company {attempt}"), on, mood)
        accounts = drawn.accounts()
        if accounts is None:
            continue
        company = Company(
            accounts=accounts, assumptions={one.name: drawn.assumption(one, accounts) for one in assumptions(on)}
        )
        try:
            computed = forecast(on, company)
        except ValueError:
            continue
        if not solvent or min(computed["cash"]) > 0:
            return company
    raise GenerationError(f"no {mood} company was found for {on}; widen the draws")


class _Draw:
    def __init__(self, rng: Rng, on: Conventions, mood: Mood) -> None:
        self._rng, self._on, self._mood = rng, on, mood
        self._revenue = rng.integer(24_000, 190_000) // on.per_year
        """Of one period."""
        self._price = self._between(14, 90, 2)

    def _between(self, low: float, high: float, places: int) -> float:
        scale = 10**places
        return self._rng.integer(round(low * scale), round(high * scale)) / scale

    def _share(self, low: float, high: float) -> float:
        """A share of a year's revenue, in whole thousands."""
        return float(round(self._revenue * self._on.per_year * self._between(low, high, 4)))

    def accounts(self) -> dict[str, tuple[float, ...]] | None:
        """The past, in whole thousands, balanced in every period; None where equity would be negative."""
        on, rows = self._on, dict[str, list[float]]()

        def put(name: str, value: float) -> float:
            rows.setdefault(name, []).append(float(value))
            return float(value)

        drawn = {name: self._share(*span) for name, span in _OPENING.items()}
        repaid = self._share(0.01, 0.03) // on.per_year
        drawn["term_loan"] += repaid * on.history
        capital = retained = 0.0
        for index in range(on.history):
            loan = put("term_loan", drawn["term_loan"] - repaid * (index + 1))
            for name, kept in (("revolver", on.facility != "none"), ("pik_note", on.pik), ("tax_losses", True)):
                put(name, drawn[name] if kept else 0.0)
            self._past_income(put, loan)
            cost, net = rows["cost_of_sales"][-1], rows["net_income"][-1]
            yearly = on.per_year * (self._revenue, cost)[0]
            assets = put("receivables", round(yearly * self._between(32, 60, 0) / on.days))
            assets += put("inventory", round(cost * on.per_year * self._between(30, 75, 0) / on.days))
            assets += put("cash", round(drawn["cash"] * self._between(0.8, 1.25, 3)))
            owed = put("payables", round(cost * on.per_year * self._between(25, 55, 0) / on.days))
            owed += put("tax_payable", round(max(0.0, rows["tax"][-1]) * 0.6) if on.tax_paid != "at_once" else 0.0)
            owed += loan + rows["revolver"][-1] + rows["pik_note"][-1]
            if index == 0:
                equity = drawn["ppe"] + assets - owed
                capital = float(round(equity * self._between(0.3, 0.7, 2)))
                retained = equity - capital
            else:
                retained += net - round(max(0.0, net) * 0.3)
            put("share_capital", capital)
            put("retained_earnings", retained)
            total = put("total_equity_and_liabilities", owed + capital + retained)
            put("ppe", total - assets)
            put("total_assets", total)
            put("balance_check", 0.0)
        if capital <= 0 or min(*rows["retained_earnings"], *rows["ppe"]) <= 0:
            return None
        return {line.name: tuple(rows[line.name]) for line in lines(on) if line.past}

    def _past_income(self, put: Callable[[str, float], float], loan: float) -> None:
        on = self._on
        self._revenue = round(self._revenue * (1 + self._between(-0.02, 0.09, 3) / on.per_year))
        if on.revenue == "price_volume":
            self._price *= 1 + self._between(0, 0.05, 3) / on.per_year
            price = put("unit_price", round(self._price, 2))
            units = put("units", max(1, round(self._revenue / price)))
            self._revenue = round(units * price)
        if on.revenue == "subscribers":
            put("customers", max(20, round(self._revenue / self._price * self._between(0.96, 1.04, 3) * 5)))
        revenue = put("revenue", self._revenue)
        costs = put("cost_of_sales", round(revenue * self._between(0.48, 0.62, 3)))
        gross = put("gross_profit", revenue - costs)
        overheads = put("operating_costs", round(revenue * self._between(0.14, 0.22, 3)))
        ebitda = put("ebitda", gross - overheads)
        depreciation = put("depreciation", round(revenue * self._between(0.03, 0.07, 3)))
        ebit = put("ebit", ebitda - depreciation)
        interest = put("interest_expense", round(loan * self._between(0.04, 0.08, 4) / on.per_year))
        income = put("interest_income", round(revenue * 0.001) if on.facility != "none" else 0)
        before = put("profit_before_tax", ebit - interest + income)
        tax = put("tax", round(max(0.0, before) * self._between(0.19, 0.3, 2)))
        put("net_income", before - tax)

    def assumption(self, one: Assumption, accounts: Figures) -> tuple[float, ...]:
        """Its values, one or one for each period."""
        count = self._on.periods if one.series else 1
        return tuple(self._value(one.name, accounts, index) for index in range(count))

    def _value(self, name: str, accounts: Figures, index: int) -> float:
        per_year, mood = self._on.per_year, self._mood
        year = accounts["revenue"][-1] * per_year
        if name in _SHARES:
            low, high, every = _SHARES[name]
            if every and self._rng.integer(1, every) != 1:
                return 0.0
            each = 1 if name in _STOCKS else per_year
            return float(round(year * self._between(low, high, 4) / each))
        if name == "new_customers":
            return float(round(accounts["customers"][-1] * self._between(*_WON[mood], 3) / per_year))
        if name == "fee_per_customer":
            # revenue of the last period over its customers, so that revenue goes on where it was
            last = accounts["revenue"][-1] / accounts["customers"][-1]
            return round(last * (1 + 0.01 * index) * self._between(0.99, 1.03, 3), 2)
        if name in _CHANGES:
            low, high = _CHANGES[name][mood]
            return self._between(low / per_year, high / per_year, 4)
        low, high, places = (_TROUBLED if mood is Mood.SLUMP and name in _TROUBLED else _PLAIN)[name]
        return self._between(low, high, places)


_OPENING = {
    "term_loan": (0.15, 0.35),
    "revolver": (0.0, 0.05),
    "pik_note": (0.04, 0.09),
    "tax_losses": (0.0, 0.05),
    "cash": (0.05, 0.11),
    "ppe": (0.28, 0.6),
}
"""Balances as shares of a year's revenue."""
_SHARES = {
    "capex": (0.03, 0.09, 0),
    "new_loans": (0.02, 0.08, 4),
    "repayment": (0.02, 0.05, 0),
    "shares_issued": (0.01, 0.05, 4),
    "minimum_cash": (0.03, 0.06, 0),
    "revolver_limit": (0.1, 0.25, 0),
}
"""Money as a share of a year's revenue; where the last number is not 0, only in one period of so many."""
_STOCKS = ("minimum_cash", "revolver_limit", "new_loans", "shares_issued")
_WON = {Mood.TYPICAL: (0.12, 0.26), Mood.SLUMP: (0.0, 0.08), Mood.BOOM: (0.25, 0.4)}
_CHANGES: Mapping[str, Mapping[Mood, tuple[float, float]]] = {
    "revenue_growth": {Mood.TYPICAL: (0.01, 0.09), Mood.SLUMP: (-0.25, 0.02), Mood.BOOM: (0.08, 0.22)},
    "volume_growth": {Mood.TYPICAL: (0.0, 0.06), Mood.SLUMP: (-0.25, 0.0), Mood.BOOM: (0.06, 0.18)},
    "price_rise": {Mood.TYPICAL: (0.005, 0.04), Mood.SLUMP: (-0.06, 0.01), Mood.BOOM: (0.02, 0.05)},
    "inflation": {Mood.TYPICAL: (0.01, 0.05), Mood.SLUMP: (0.02, 0.08), Mood.BOOM: (0.0, 0.04)},
    "churn": {Mood.TYPICAL: (0.1, 0.2), Mood.SLUMP: (0.15, 0.3), Mood.BOOM: (0.05, 0.12)},
}
"""Changes in a year."""
_PLAIN = {
    "cost_ratio": (0.5, 0.6, 3),
    "overhead_ratio": (0.15, 0.22, 3),
    "debtor_days": (30, 62, 0),
    "stock_days": (28, 78, 0),
    "creditor_days": (24, 58, 0),
    "capex_ratio": (0.03, 0.09, 3),
    "depreciation_rate": (0.08, 0.2, 3),
    "asset_life": (2, 7, 0),
    "remaining_life": (3, 8, 0),
    "loan_rate": (0.04, 0.09, 4),
    "sweep_share": (0.4, 0.9, 2),
    "revolver_rate": (0.05, 0.1, 4),
    "commitment_rate": (0.004, 0.012, 4),
    "deposit_rate": (0.005, 0.03, 4),
    "pik_rate": (0.08, 0.13, 4),
    "tax_rate": (0.19, 0.31, 3),
    "advance_share": (0.3, 0.8, 2),
    "loss_cap": (0.4, 0.8, 2),
    "payout_ratio": (0.15, 0.5, 2),
}
_TROUBLED = {"cost_ratio": (0.62, 0.74, 3), "overhead_ratio": (0.24, 0.32, 3)}
