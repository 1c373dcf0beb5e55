"""Small modules for level 0: a few short functions of one domain, with names and numbers drawn by the seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core import Rng
from ...parts.inputs import Spec
from .project import Project

Span = tuple[int, int]
"""Lowest and highest argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One function: its possible names, its parameters' possible names and spans, and its body.

    In `body`, {a} {b} {c} are the parameters and {k} {m} numbers drawn from `numbers`.
    """

    names: tuple[str, ...]
    parameters: tuple[tuple[tuple[str, ...], Span], ...]
    body: str
    numbers: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Functions that belong in one file."""

    files: tuple[str, ...]
    snippets: tuple[Snippet, ...]


def small_project(rng: Rng) -> Project:
    """A module of two functions of one domain."""
    domain = rng.choice(DOMAINS)
    module = rng.choice(domain.files)
    texts: list[str] = []
    inputs: dict[str, list[Spec]] = {}
    for snippet in rng.sample(domain.snippets, 2):
        values = {"f": rng.choice(snippet.names)}
        for letter, (names, _) in zip("abc", snippet.parameters, strict=False):
            values[letter] = rng.choice([name for name in names if name not in values.values()])
        numbers = [rng.integer(low, high) for low, high in snippet.numbers]
        values |= {letter: str(number) for letter, number in zip("km", numbers, strict=False)}
        signature = ", ".join(values[letter] for letter in "abc" if letter in values)
        lines = [f"def {values['f']}({signature}):", *snippet.body.format(**values).splitlines()]
        texts.append("\n    ".join(lines) + "\n")
        inputs[f"{module}:{values['f']}"] = [_spec(span, numbers) for _, span in snippet.parameters]
    return Project(files={f"{module}.py": "\n\n".join(texts)}, inputs=inputs)


def _spec(span: Span, numbers: Sequence[int]) -> Spec:
    low, high = span
    return {"int": [low, high], "near": [number for number in numbers if low <= number <= high]}


_MONEY = ("amount", "subtotal", "price", "total")
_CUT = ("discount", "rebate", "credit", "voucher")

DOMAINS: tuple[Domain, ...] = (
    Domain(
        files=("pricing", "quotes", "checkout"),
        snippets=(
            Snippet(
                names=("net_total", "amount_due", "to_pay"),
                parameters=((_MONEY, (100, 900)), (_CUT, (5, 95))),
                body="return {a} - {b}",
            ),
            Snippet(
                names=("line_total", "order_value", "basket_sum"),
                parameters=(
                    (("price", "unit_price", "rate"), (3, 90)),
                    (("quantity", "units", "count"), (2, 12)),
                    (("fee", "handling", "shipping"), (1, 30)),
                ),
                body="goods = {a} * {b}\nreturn goods + {c}",
            ),
            Snippet(
                names=("capped_discount", "best_discount", "allowed_cut"),
                parameters=((_MONEY, (40, 900)), (("percent", "rate"), (5, 40))),
                body="cut = {a} * {b} / 100\nreturn min(cut, {k})",
                numbers=((30, 90),),
            ),
            Snippet(
                names=("shipping_fee", "delivery_fee", "postage"),
                parameters=((_MONEY, (10, 160)),),
                body="if {a} >= {k}:\n    return 0\nreturn {m}",
                numbers=((50, 90), (4, 19)),
            ),
        ),
    ),
    Domain(
        files=("payroll", "wages", "timesheet"),
        snippets=(
            Snippet(
                names=("overtime_hours", "extra_hours", "hours_over"),
                parameters=((("hours", "worked", "logged"), (20, 60)),),
                body="extra = {a} - {k}\nreturn max(extra, 0)",
                numbers=((35, 42),),
            ),
            Snippet(
                names=("gross_pay", "base_pay", "week_pay"),
                parameters=(
                    (("hours", "worked", "logged"), (10, 45)),
                    (("rate", "wage", "hourly"), (11, 60)),
                    (("bonus", "allowance", "extra"), (5, 200)),
                ),
                body="pay = {a} * {b}\nreturn pay + {c}",
            ),
            Snippet(
                names=("net_pay", "take_home", "payout"),
                parameters=(
                    (("gross", "salary", "pay"), (900, 4000)),
                    (("tax", "withheld"), (50, 700)),
                    (("pension", "dues"), (10, 90)),
                ),
                body="after_tax = {a} - {b}\nreturn after_tax - {c}",
            ),
            Snippet(
                names=("is_full_time", "has_benefits", "gets_leave"),
                parameters=((("hours", "weekly_hours", "contract"), (20, 42)),),
                body="return {a} >= {k}",
                numbers=((28, 36),),
            ),
        ),
    ),
    Domain(
        files=("stock", "inventory", "warehouse"),
        snippets=(
            Snippet(
                names=("free_stock", "available", "sellable"),
                parameters=((("on_hand", "stock", "counted"), (50, 400)), (("reserved", "held", "blocked"), (1, 49))),
                body="return {a} - {b}",
            ),
            Snippet(
                names=("needs_reorder", "is_low", "below_minimum"),
                parameters=((("stock", "on_hand", "level"), (5, 60)),),
                body="return {a} < {k}",
                numbers=((15, 45),),
            ),
            Snippet(
                names=("reorder_quantity", "order_size", "refill"),
                parameters=((("stock", "on_hand", "level"), (5, 90)), (("target", "maximum", "goal"), (40, 150))),
                body="missing = {b} - {a}\nreturn max(missing, {k})",
                numbers=((5, 30),),
            ),
            Snippet(
                names=("pallets", "full_boxes", "whole_cases"),
                parameters=((("units", "items", "pieces"), (30, 400)), (("per_pallet", "size", "capacity"), (4, 24))),
                body="return {a} // {b}",
            ),
        ),
    ),
    Domain(
        files=("lending", "library", "returns"),
        snippets=(
            Snippet(
                names=("late_fee", "fine", "overdue_charge"),
                parameters=((("days", "late_days", "overdue"), (1, 60)), (("rate", "daily", "per_day"), (2, 9))),
                body="fee = {a} * {b}\nreturn min(fee, {k})",
                numbers=((40, 150),),
            ),
            Snippet(
                names=("can_borrow", "may_lend", "allowed"),
                parameters=((("loans", "open_loans", "items"), (0, 14)),),
                body="return {a} < {k}",
                numbers=((4, 9),),
            ),
            Snippet(
                names=("due_day", "return_day", "deadline"),
                parameters=((("start", "issued", "day"), (1, 300)), (("weeks", "term"), (1, 8))),
                body="days = {b} * 7\nreturn {a} + days",
            ),
            Snippet(
                names=("shelf_number", "bay", "aisle"),
                parameters=((("position", "slot", "index"), (20, 400)),),
                body="return {a} // {k} + 1",
                numbers=((6, 18),),
            ),
        ),
    ),
    Domain(
        files=("energy", "meter", "tariff"),
        snippets=(
            Snippet(
                names=("usage", "consumption", "units_used"),
                parameters=(
                    (("current", "latest", "reading"), (500, 999)),
                    (("previous", "last", "earlier"), (50, 480)),
                ),
                body="return {a} - {b}",
            ),
            Snippet(
                names=("energy_bill", "monthly_bill", "bill"),
                parameters=((("units", "kwh", "used"), (40, 400)), (("rate", "price", "tariff"), (2, 9))),
                body="energy = {a} * {b}\nreturn energy + {k}",
                numbers=((8, 60),),
            ),
            Snippet(
                names=("peak_share", "peak_percent", "peak_part"),
                parameters=((("peak", "daytime", "high"), (10, 90)), (("total", "units", "overall"), (100, 400))),
                body="return {a} * 100 / {b}",
            ),
            Snippet(
                names=("is_high_use", "over_limit", "needs_alert"),
                parameters=((("units", "kwh", "used"), (80, 400)),),
                body="return {a} > {k}",
                numbers=((150, 320),),
            ),
        ),
    ),
    Domain(
        files=("travel", "trips", "mileage"),
        snippets=(
            Snippet(
                names=("mileage_claim", "car_claim", "distance_pay"),
                parameters=((("miles", "km", "distance"), (20, 400)), (("tolls", "parking", "extras"), (2, 40))),
                body="travel = {a} * {k}\nreturn travel + {b}",
                numbers=((2, 9),),
            ),
            Snippet(
                names=("average_speed", "speed", "pace"),
                parameters=((("distance", "km", "miles"), (60, 600)), (("hours", "duration"), (2, 9))),
                body="return {a} / {b}",
            ),
            Snippet(
                names=("fuel_left", "range_left", "remaining"),
                parameters=((("tank", "fuel", "charge"), (200, 700)), (("used", "driven", "spent"), (10, 190))),
                body="left = {a} - {b}\nreturn max(left, {k})",
                numbers=((5, 60),),
            ),
            Snippet(
                names=("meal_allowance", "per_diem", "daily_cap"),
                parameters=((("cost", "spent", "receipts"), (10, 120)),),
                body="return min({a}, {k})",
                numbers=((30, 80),),
            ),
        ),
    ),
    Domain(
        files=("grading", "exams", "marks"),
        snippets=(
            Snippet(
                names=("percent", "score_percent", "mark"),
                parameters=(
                    (("points", "correct", "earned"), (5, 60)),
                    (("maximum", "possible", "questions"), (60, 120)),
                ),
                body="return {a} * 100 / {b}",
            ),
            Snippet(
                names=("has_passed", "is_pass", "passes"),
                parameters=((("score", "points", "result"), (20, 95)),),
                body="return {a} >= {k}",
                numbers=((40, 65),),
            ),
            Snippet(
                names=("final_score", "adjusted", "end_result"),
                parameters=((("score", "points", "raw"), (30, 98)), (("bonus", "extra"), (1, 20))),
                body="total = {a} + {b}\nreturn min(total, 100)",
            ),
            Snippet(
                names=("after_penalty", "late_score", "reduced"),
                parameters=((("score", "points", "raw"), (20, 98)), (("days", "late"), (1, 9))),
                body="penalty = {b} * {k}\nreturn {a} - penalty",
                numbers=((2, 6),),
            ),
        ),
    ),
    Domain(
        files=("rooms", "booking", "hotel"),
        snippets=(
            Snippet(
                names=("stay_price", "room_total", "stay_cost"),
                parameters=(
                    (("nights", "days", "length"), (1, 14)),
                    (("rate", "price", "per_night"), (45, 220)),
                    (("tax", "cleaning", "resort_fee"), (5, 60)),
                ),
                body="room = {a} * {b}\nreturn room + {c}",
            ),
            Snippet(
                names=("deposit", "prepayment", "down_payment"),
                parameters=((("total", "price", "cost"), (90, 990)),),
                body="part = {a} / {k}\nreturn max(part, {m})",
                numbers=((2, 5), (50, 120)),
            ),
            Snippet(
                names=("free_rooms", "vacant", "rooms_left"),
                parameters=((("rooms", "capacity", "doors"), (40, 300)), (("booked", "taken", "sold"), (1, 39))),
                body="return {a} - {b}",
            ),
            Snippet(
                names=("is_long_stay", "gets_upgrade", "has_discount"),
                parameters=((("nights", "days", "length"), (1, 20)),),
                body="return {a} > {k}",
                numbers=((4, 12),),
            ),
        ),
    ),
)
