"""The agreement's terms and the notices under it, and how a covenant is computed from them, rightly or by mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum, auto
from fractions import Fraction

from .ledger import Item, Ledger
from .terms import Tested


class Covenant(StrEnum):
    """A financial covenant, by the name that the answer uses."""

    LEVERAGE = auto()
    INTEREST_COVER = auto()
    DEBT_SERVICE_COVER = auto()
    LIQUIDITY = auto()


class Mistake(StrEnum):
    """A reading of the agreement that a hurried analyst falls into."""

    RESTRICTED_CASH = auto()
    """Restricted cash is netted against the debt."""
    SHAREHOLDER_LOAN = auto()
    """The subordinated loan counts as debt."""
    GAIN_KEPT = auto()
    """Gains on disposals stay in EBITDA."""
    OTHER_YEAR = auto()
    """The figures of another period than the one tested."""
    FIRST_STEP = auto()
    """The limit as first agreed, without its later steps."""
    NO_CAP = auto()
    """Exceptional items are added back without their cap."""
    FEES_AS_INTEREST = auto()
    """Amortised fees count as finance charges."""
    SUBSIDIARY = auto()
    """The excluded subsidiary's EBITDA and debt stay in."""
    CURE = auto()
    """An invalid cure is applied, or a valid one is not."""
    PREPAYMENTS = auto()
    """Voluntary prepayments count as debt service."""
    SPIKE = auto()
    """The acquisition step-up is applied where it does not apply, or the other way round."""
    CASH_UNCAPPED = auto()
    """All free cash is netted, beyond the cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CureNotice:
    """Money from the owners, meant for one test date; thousands."""

    tested: date
    received: date
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """The cure right: counts as EBITDA where `is_ebitda`, else as a prepayment of debt."""

    is_ebitda: bool
    days: int
    most: int
    notices: tuple[CureNotice, ...]
    """In order of time; the last is for the date tested."""

    def valid_amount(self, ledger: Ledger, quarter: int) -> int:
        """What the agreement lets count for the date tested."""
        last = self.notices[-1]
        late = (last.received - last.tested).days > self.days
        before = ledger.ends[quarter - 1]
        in_a_row = any(notice.tested == before for notice in self.notices)
        return 0 if late or in_a_row or len(self.notices) > self.most else last.amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike:
    """The step-up after a large acquisition; thousands."""

    step: Decimal
    threshold: int
    target: str
    completed: date
    price: int

    def applies(self, ledger: Ledger, quarter: int) -> bool:
        """In the quarter of completion and the next one."""
        return self.price >= self.threshold and ledger.ends[quarter - 2] < self.completed <= ledger.ends[quarter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """Terms, and which quarter is tested. Limits of leverage go by step, from the first test date that each binds."""

    borrower: str
    clause: int
    covenants: tuple[Covenant, ...]
    """In the order of the paragraphs (a), (b)…"""
    quarter: int
    steps: tuple[tuple[date, Decimal], ...]
    cover: Decimal
    service: Decimal
    liquidity: Decimal
    """Millions."""
    cap_percent: int | None = None
    cash_cap: int | None = None
    subsidiary: str = ""
    cure: Cure | None = None
    spike: Spike | None = None

    def paragraph(self, covenant: Covenant) -> str:
        """Where the covenant stands, as in 21.2(b)."""
        return f"{self.clause}.2({'abcd'[self.covenants.index(covenant)]})"


def compute(deal: Deal, ledger: Ledger, mistakes: frozenset[Mistake] = frozenset()) -> tuple[Tested, ...]:
    """Every covenant of the deal at its test date."""
    return tuple(_Sheet(deal, ledger, mistakes).tested(covenant) for covenant in deal.covenants)


def ebitda(deal: Deal, ledger: Ledger) -> Fraction:
    """EBITDA as the deal defines it, before any cure; needs the flows only."""
    return _Sheet(deal, ledger, frozenset()).ebitda()


def limit_in_force(deal: Deal, ledger: Ledger) -> Decimal:
    """The limit of leverage at the test date."""
    return _Sheet(deal, ledger, frozenset()).limit()


class _Sheet:
    """One analyst's working paper."""

    def __init__(self, deal: Deal, ledger: Ledger, mistakes: frozenset[Mistake]) -> None:
        self.deal, self.ledger, self.mistakes = deal, ledger, mistakes
        last = deal.quarter
        if Mistake.OTHER_YEAR in mistakes:
            last = 3 if last != 3 else 7
        self.quarters: Sequence[int] = range(last - 3, last + 1)

    def tested(self, covenant: Covenant) -> Tested:
        value, limit, is_maximum = {
            Covenant.LEVERAGE: self._leverage,
            Covenant.INTEREST_COVER: self._interest_cover,
            Covenant.DEBT_SERVICE_COVER: self._service_cover,
            Covenant.LIQUIDITY: self._liquidity,
        }[covenant]()
        clause = self.deal.paragraph(covenant)
        return Tested(name=str(covenant), value=value, limit=limit, is_maximum=is_maximum, clause=clause)

    def _leverage(self) -> tuple[Fraction, Decimal, bool]:
        return self._net_debt() / (self.ebitda() + self._cured(True)), self.limit(), True

    def _interest_cover(self) -> tuple[Fraction, Decimal, bool]:
        return (self.ebitda() + self._cured(True)) / self._charges(), self.deal.cover, False

    def _service_cover(self) -> tuple[Fraction, Decimal, bool]:
        flow = self.ebitda() - self._flow(Item.TAX_PAID) - self._flow(Item.CAPEX)
        service = self._charges() + self._flow(Item.REPAYMENTS)
        if Mistake.PREPAYMENTS in self.mistakes:
            service += self._flow(Item.PREPAYMENTS)
        return flow / service, self.deal.service, False

    def _liquidity(self) -> tuple[Fraction, Decimal, bool]:
        amount = self._balance(Item.CASH) + self._balance(Item.UNDRAWN)
        if Mistake.RESTRICTED_CASH in self.mistakes:
            amount += self._balance(Item.RESTRICTED_CASH)
        return Fraction(amount, 1000), self.deal.liquidity, False

    def ebitda(self) -> Fraction:
        before = self.ledger.operating_profit(self.quarters)
        before += self._flow(Item.DEPRECIATION) + self._flow(Item.AMORTISATION)
        if Mistake.GAIN_KEPT not in self.mistakes:
            before -= self._flow(Item.DISPOSAL_GAIN)
        if self.deal.subsidiary and Mistake.SUBSIDIARY not in self.mistakes:
            before -= self._flow(Item.SUBSIDIARY_EBITDA)
        added = Fraction(self._flow(Item.EXCEPTIONAL))
        if self.deal.cap_percent is not None and Mistake.NO_CAP not in self.mistakes:
            added = min(added, Fraction(before * self.deal.cap_percent, 100))
        return before + added

    def _net_debt(self) -> Fraction:
        debt = sum(self._balance(item) for item in (Item.TERM_LOAN, Item.REVOLVER, Item.LEASES))
        if Mistake.SHAREHOLDER_LOAN in self.mistakes:
            debt += self._balance(Item.SHAREHOLDER_LOAN)
        if Mistake.SUBSIDIARY in self.mistakes:
            debt += self._balance(Item.SUBSIDIARY_DEBT)
        cash = self._balance(Item.CASH)
        if Mistake.RESTRICTED_CASH in self.mistakes:
            cash += self._balance(Item.RESTRICTED_CASH)
        if self.deal.cash_cap is not None and Mistake.CASH_UNCAPPED not in self.mistakes:
            cash = min(cash, self.deal.cash_cap)
        return Fraction(debt - cash - self._cured(False))

    def _charges(self) -> Fraction:
        charges = self._flow(Item.INTEREST_PAYABLE) - self._flow(Item.INTEREST_INCOME)
        if Mistake.FEES_AS_INTEREST in self.mistakes:
            charges += self._flow(Item.FEE_AMORTISATION)
        return Fraction(charges)

    def _cured(self, as_ebitda: bool) -> int:
        cure = self.deal.cure
        if cure is None or cure.is_ebitda != as_ebitda:
            return 0
        valid = cure.valid_amount(self.ledger, self.deal.quarter)
        if Mistake.CURE in self.mistakes:
            return 0 if valid else cure.notices[-1].amount
        return valid

    def limit(self) -> Decimal:
        tested = self.ledger.ends[self.deal.quarter]
        limit = [limit for first, limit in self.deal.steps if first <= tested][-1]
        if Mistake.FIRST_STEP in self.mistakes:
            limit = self.deal.steps[0][1]
        spike = self.deal.spike
        if spike is not None and spike.applies(self.ledger, self.deal.quarter) != (Mistake.SPIKE in self.mistakes):
            limit += spike.step
        return limit

    def _flow(self, item: Item) -> int:
        return self.ledger.flow(item, self.quarters)

    def _balance(self, item: Item) -> int:
        return self.ledger.amounts[item][self.deal.quarter]
