"""Draw a deal and its books for a level, so that every mistake of that level leads to another answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

from ...core import GenerationError, Rng
from .deal import Covenant, Deal, Mistake, compute, ebitda
from .events import draw_cure, draw_spike
from .financing import financed
from .ledger import QUARTERS, Ledger, operations, quarter_end, quarter_ends
from .names import borrower, place
from .terms import Tested, is_clear

_ATTEMPTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """What a level turns."""

    covenants: tuple[Covenant, ...]
    """Those to draw from."""
    pick: int
    """How many are drawn."""
    steps: bool = False
    cap: bool = False
    subsidiary: bool = False
    cures: tuple[str, ...] = ()
    """Stories of the cure, one of which is drawn."""
    spike: bool = False
    cash_cap: bool = False
    mistakes: frozenset[Mistake] = frozenset()


_BASIC = frozenset({Mistake.RESTRICTED_CASH, Mistake.SHAREHOLDER_LOAN, Mistake.GAIN_KEPT, Mistake.OTHER_YEAR})
_MIDDLE = _BASIC | {Mistake.FIRST_STEP, Mistake.NO_CAP, Mistake.FEES_AS_INTEREST}
_HARD = _MIDDLE | {Mistake.SUBSIDIARY, Mistake.CURE, Mistake.PREPAYMENTS}
_PAIR = (Covenant.LEVERAGE, Covenant.INTEREST_COVER)
_THREE = (*_PAIR, Covenant.DEBT_SERVICE_COVER)
KNOBS: Mapping[int, Knobs] = {
    1: Knobs(covenants=_PAIR, pick=1, mistakes=_BASIC | {Mistake.FEES_AS_INTEREST}),
    2: Knobs(covenants=_PAIR, pick=2, steps=True, cap=True, mistakes=_MIDDLE),
    3: Knobs(covenants=_THREE, pick=3, steps=True, cap=True, subsidiary=True, cures=("valid", "late"), mistakes=_HARD),
    4: Knobs(
        covenants=(*_THREE, Covenant.LIQUIDITY),
        pick=4,
        steps=True,
        cap=True,
        subsidiary=True,
        cures=("valid", "late", "in a row", "too many"),
        spike=True,
        cash_cap=True,
        mistakes=_HARD | {Mistake.SPIKE, Mistake.CASH_UNCAPPED},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A deal, its books, the right result, and what each mistake would answer."""

    deal: Deal
    ledger: Ledger
    tested: tuple[Tested, ...]
    mistaken: Mapping[Mistake, tuple[Tested, ...]]


def draw(rng: Rng, knobs: Knobs) -> Drawn:
    """A deal without doubtful roundings, in which every mistake that can be made shows.

    Raises:
        GenerationError: none was found.
    """
    for attempt in range(_ATTEMPTS):
        deal, ledger = _attempt(rng.child(f"attempt {attempt}"), knobs)
        tested = compute(deal, ledger)
        if not all(is_clear(one.value, one.limit) and one.value > 0 for one in tested):
            continue
        mistaken = {mistake: compute(deal, ledger, frozenset({mistake})) for mistake in _possible(deal, knobs)}
        if all(_differ(tested, wrong) for wrong in mistaken.values()):
            return Drawn(deal=deal, ledger=ledger, tested=tested, mistaken=mistaken)
    raise GenerationError(f"no clear deal in {_ATTEMPTS} attempts; widen the ranges of its figures")


def _possible(deal: Deal, knobs: Knobs) -> list[Mistake]:
    needs = {
        Mistake.SHAREHOLDER_LOAN: Covenant.LEVERAGE,
        Mistake.RESTRICTED_CASH: Covenant.LEVERAGE,
        Mistake.FEES_AS_INTEREST: Covenant.INTEREST_COVER,
    }
    return [one for one in Mistake if one in knobs.mistakes and needs.get(one, deal.covenants[0]) in deal.covenants]


def _differ(right: tuple[Tested, ...], wrong: tuple[Tested, ...]) -> bool:
    gap = Fraction(3, 200)
    return any(
        abs(one.value - other.value) > gap or one.limit != other.limit for one, other in zip(right, wrong, strict=True)
    )


def _attempt(rng: Rng, knobs: Knobs) -> tuple[Deal, Ledger]:
    ends = quarter_ends(rng.integer(2017, 2026))
    quarter = rng.integer(4, 6) if knobs.subsidiary else QUARTERS - 1
    flows = operations(rng.child("operations"))
    deal = _terms(rng.child("terms"), knobs, ends, quarter)
    events = rng.child("events")
    before = ebitda(deal, Ledger(ends=ends, amounts=flows))
    deal = replace(
        deal,
        cure=draw_cure(events, events.choice(knobs.cures), round(before), ends, quarter) if knobs.cures else None,
        spike=draw_spike(events, ends, quarter) if knobs.spike else None,
    )
    return financed(rng.child("financing"), deal, Ledger(ends=ends, amounts=flows), capped_cash=knobs.cash_cap)


def _terms(rng: Rng, knobs: Knobs, ends: tuple[date, ...], quarter: int) -> Deal:
    return Deal(
        borrower=borrower(rng),
        clause=rng.integer(17, 28),
        covenants=tuple(rng.sample(knobs.covenants, knobs.pick)),
        quarter=quarter,
        steps=_steps(rng, ends, quarter, knobs.steps),
        cover=Decimal(rng.integer(10, 18)) / 4,
        service=Decimal(rng.integer(21, 27)) / 20,
        liquidity=Decimal(0),
        cap_percent=rng.choice((5, 6, 8)) if knobs.cap else None,
        subsidiary=f"{place(rng)} {rng.choice(('Wind', 'Solar', 'Campus', 'Terminal'))} SPV"
        if knobs.subsidiary
        else "",
    )


def _steps(rng: Rng, ends: tuple[date, ...], quarter: int, stepped: bool) -> tuple[tuple[date, Decimal], ...]:
    """The limits of leverage: one, or four that fall, the third binding at `quarter`."""
    first = date(ends[0].year - 2, 12, 31)
    limit = Decimal(rng.integer(10, 17)) / 4
    if not stepped:
        return ((first, limit),)
    quarters = (rng.integer(1, 2), rng.integer(3, quarter), rng.integer(quarter + 1, quarter + 2))
    second, third, fourth = (quarter_end(ends[0].year, index) for index in quarters)
    falls = [Decimal(rng.integer(1, 2)) / 4 for _ in range(3)]
    return (
        (first, limit + falls[0] + falls[1]),
        (second, limit + falls[1]),
        (third, limit),
        (fourth, limit - falls[2]),
    )
