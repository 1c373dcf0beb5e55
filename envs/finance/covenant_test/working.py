"""The working paper of a careful analyst, as one Python line whose figures stand in the accounts."""

from __future__ import annotations

from .deal import Covenant, Deal
from .ledger import Item, Ledger


def working(deal: Deal, ledger: Ledger) -> str:
    """Source that prints the value of every covenant, in the deal's order; no quotes in it."""
    quarters = range(deal.quarter - 3, deal.quarter + 1)
    cure = deal.cure.valid_amount(ledger, deal.quarter) if deal.cure else 0
    as_ebitda = deal.cure is not None and deal.cure.is_ebitda

    def flow(item: Item) -> int:
        return ledger.flow(item, quarters)

    def balance(item: Item) -> int:
        return ledger.amounts[item][deal.quarter]

    before = f"{ledger.operating_profit(quarters)}+{flow(Item.DEPRECIATION)}+{flow(Item.AMORTISATION)}"
    before += f"+{flow(Item.EXCEPTIONAL)}-{flow(Item.DISPOSAL_GAIN)}"
    before += f"-{flow(Item.SUBSIDIARY_EBITDA)}" if deal.subsidiary else ""
    # operating profit is after exceptional items: what exceeds the cap stays deducted
    lines = [f"x={flow(Item.EXCEPTIONAL)}", f"b={before}-x"]
    lines.append(f"e=b+min(x,b*{deal.cap_percent}/100)" if deal.cap_percent else "e=b+x")
    cash = f"min({balance(Item.CASH)},{deal.cash_cap})" if deal.cash_cap is not None else str(balance(Item.CASH))
    debt = f"{balance(Item.TERM_LOAN)}+{balance(Item.REVOLVER)}+{balance(Item.LEASES)}-{cash}"
    lines.append(f"d={debt}-{0 if as_ebitda else cure}")
    lines.append(f"c={flow(Item.INTEREST_PAYABLE)}-{flow(Item.INTEREST_INCOME)}")
    cured = f"(e+{cure if as_ebitda else 0})"
    values = {
        Covenant.LEVERAGE: f"d/{cured}",
        Covenant.INTEREST_COVER: f"{cured}/c",
        Covenant.DEBT_SERVICE_COVER: f"(e-{flow(Item.TAX_PAID)}-{flow(Item.CAPEX)})/(c+{flow(Item.REPAYMENTS)})",
        Covenant.LIQUIDITY: f"({balance(Item.CASH)}+{balance(Item.UNDRAWN)})/1000",
    }
    return "; ".join([*lines, f"print({', '.join(values[covenant] for covenant in deal.covenants)})"])
