"""What happened under the agreement: cures that count or do not, and an acquisition."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from ...core import Rng
from .deal import Cure, CureNotice, Spike
from .ledger import quarter_end
from .names import place


def draw_cure(rng: Rng, story: str, ebitda: int, ends: tuple[date, ...], quarter: int) -> Cure:
    """A cure for the date tested, and those before it; `story` says why it counts or does not."""
    days, most = rng.choice((15, 20, 30)), rng.choice((2, 3))
    is_ebitda = bool(rng.integer(0, 1))
    amount = ebitda * rng.integer(5, 9) // 100 * (1 if is_ebitda else 4) // 100 * 100
    if story == "in a row":
        past = [quarter - 1]
    elif story == "too many":
        past = [quarter - 2 * back for back in range(most, 0, -1)]
    else:
        past = [quarter - 2] if rng.integer(0, 1) else []

    def notice(index: int, late: bool, money: int) -> CureNotice:
        tested = quarter_end(ends[0].year, index)
        after = rng.integer(days + 1, days + 6) if late else rng.integer(4, days)
        return CureNotice(tested=tested, received=tested + timedelta(days=after), amount=money)

    notices = [notice(index, False, amount * rng.integer(60, 130) // 10_000 * 100) for index in past]
    return Cure(
        is_ebitda=is_ebitda,
        days=days,
        most=most,
        notices=(*notices, notice(quarter, story == "late", amount)),
    )


def draw_spike(rng: Rng, ends: tuple[date, ...], quarter: int) -> Spike:
    """An acquisition that may be too small or too long ago for the step-up."""
    threshold = rng.integer(8, 30) * 1000
    return Spike(
        step=Decimal(rng.choice(("0.25", "0.50"))),
        threshold=threshold,
        target=f"{place(rng)} Holdings Ltd",
        completed=ends[quarter - rng.integer(0, 2)] - timedelta(days=rng.integer(5, 80)),
        price=threshold * rng.choice((70, 85, 110, 125, 140)) // 100 + rng.integer(1, 9) * 100,
    )
