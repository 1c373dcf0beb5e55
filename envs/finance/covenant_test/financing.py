"""Debt, interest and repayments that put each covenant near its limit, on either side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from ...core import Rng
from .deal import Deal, ebitda, limit_in_force
from .ledger import QUARTERS, Item, Ledger


def financed(rng: Rng, deal: Deal, ledger: Ledger, *, capped_cash: bool) -> tuple[Deal, Ledger]:
    """The books with their balances, and the deal with the limits that depend on them."""
    valid = deal.cure.valid_amount(ledger, deal.quarter) if deal.cure else 0
    as_ebitda = valid if deal.cure and deal.cure.is_ebitda else 0
    earned = ebitda(deal, ledger) + as_ebitda
    net = round(Fraction(limit_in_force(deal, ledger)) * earned * _near(rng)) + valid - as_ebitda
    amounts = dict(ledger.amounts)

    cash = net * rng.integer(100, 180) // 1000
    cap = cash * rng.integer(55, 80) // 100_000 * 1000 if capped_cash else None
    gross = net + (cash if cap is None else cap)
    leases, revolver = gross * rng.integer(40, 90) // 1000, gross * rng.integer(100, 200) // 1000
    undrawn = revolver * rng.integer(40, 120) // 100
    balances = {
        Item.REVOLVER: revolver,
        Item.LEASES: leases,
        Item.SHAREHOLDER_LOAN: net * rng.integer(100, 200) // 1000,
        Item.SUBSIDIARY_DEBT: net * rng.integer(50, 100) // 1000,
        Item.CASH: cash,
        Item.RESTRICTED_CASH: net * rng.integer(20, 50) // 1000,
    }
    for item, amount in balances.items():
        amounts[item] = tuple(
            amount if quarter == deal.quarter else amount * rng.integer(90, 112) // 100 for quarter in range(QUARTERS)
        )

    tested = range(deal.quarter - 3, deal.quarter + 1)
    charges = round(earned / Fraction(deal.cover) / _near(rng))
    amounts[Item.INTEREST_PAYABLE] = _flow(rng, charges + ledger.flow(Item.INTEREST_INCOME, tested), tested)
    flow = earned - as_ebitda - ledger.flow(Item.TAX_PAID, tested) - ledger.flow(Item.CAPEX, tested)
    repaid = max(400, round(flow / Fraction(deal.service) / _near(rng)) - charges)
    amounts[Item.REPAYMENTS] = _flow(rng, repaid, tested)
    amounts[Item.TERM_LOAN] = _term_loan(gross - leases - revolver, amounts, deal.quarter)
    amounts[Item.UNDRAWN] = tuple(revolver + undrawn - drawn for drawn in amounts[Item.REVOLVER])

    liquidity = Decimal((cash + undrawn) * rng.integer(85, 115) // 50_000).quantize(Decimal("0.1")) / 2
    deal = replace(deal, cash_cap=cap, liquidity=liquidity)
    return deal, Ledger(ends=ledger.ends, amounts=amounts)


def _term_loan(tested: int, amounts: Mapping[Item, tuple[int, ...]], quarter: int) -> tuple[int, ...]:
    """Balances that fall by what is repaid, `tested` standing at the end of `quarter`."""
    repaid = [due + early for due, early in zip(amounts[Item.REPAYMENTS], amounts[Item.PREPAYMENTS], strict=True)]
    first = tested + sum(repaid[1 : quarter + 1])
    return tuple(max(0, first - sum(repaid[1 : index + 1])) for index in range(QUARTERS))


def _near(rng: Rng) -> Fraction:
    """A factor 1.5% to 9% from one."""
    return 1 + Fraction(rng.integer(15, 90) * rng.choice((-1, 1)), 1000)


def _flow(rng: Rng, total: int, tested: range) -> tuple[int, ...]:
    """Eight quarters, of which those of `tested` add up to `total`."""
    weights = [rng.integer(85, 115) for _ in tested]
    parts = [total * weight // sum(weights) for weight in weights]
    parts[-1] += total - sum(parts)
    inside = dict(zip(tested, parts, strict=True))
    return tuple(
        inside[quarter] if quarter in inside else total * rng.integer(80, 118) // 400 for quarter in range(QUARTERS)
    )
