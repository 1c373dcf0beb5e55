"""Generated packages for levels 1 to 4: three templates of real back-office code, their constants drawn by the seed.

A template's modules stand in the order of their imports, so that any first few of them are a package of their own. Each
docstring states the whole contract, constants included: from it and the bug report every repair can be decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import jinja2

from ...core import Rng
from ...parts.inputs import Spec
from .project import Project

Constants = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """One library: the names its package may have, its modules, and how its functions are called."""

    folder: str
    names: tuple[str, ...]
    summary: str
    modules: tuple[str, ...]
    constants: Callable[[Rng], Constants]
    inputs: Callable[[str, Constants], Mapping[str, Sequence[Spec]]]
    """Package name and constants → "module:function" → arguments."""


def library(rng: Rng, num_modules: int) -> Project:
    """A package of the first `num_modules` modules of a template."""
    template = rng.choice(TEMPLATES)
    package = rng.choice(template.names)
    constants = template.constants(rng.child("constants"))
    modules = template.modules[:num_modules]
    files = {f"{package}/__init__.py": f'"""{template.summary}"""\n'}
    for module in modules:
        files[f"{package}/{module}.py"] = _template(f"{template.folder}/{module}.py.j2").render(**constants)
    inputs = {
        f"{package}.{function}": list(specs)
        for function, specs in template.inputs(package, constants).items()
        if function.partition(":")[0] in modules
    }
    return Project(files=files, inputs=inputs)


@cache
def _template(name: str) -> jinja2.Template:
    path = resources.files(__name__.rpartition(".")[0]) / "assets" / name
    return jinja2.Template(path.read_text(), undefined=jinja2.StrictUndefined, keep_trailing_newline=True)


def _int(low: int, high: int, *near: int) -> Spec:
    return {"int": [low, high], "near": [value for value in near if low <= value <= high]}


def _flag() -> Spec:
    return {"choice": [True, False]}


def _many(item: Spec, least: int, most: int) -> Spec:
    return {"list": [item, least, most]}


def _pair(*items: Spec) -> Spec:
    return {"tuple": list(items)}


def _billing_constants(rng: Rng) -> Constants:
    first = rng.integer(8, 15)
    steps = [first, first * rng.integer(2, 4), first * rng.integer(5, 9)]
    percents = [rng.integer(2, 4), rng.integer(5, 9), rng.integer(10, 16)]
    tiers = [f"({least}, {percent})" for least, percent in zip(reversed(steps), reversed(percents), strict=True)]
    rates = dict(zip(("book", "food", "medicine"), rng.sample(range(12), 3), strict=True))
    edges = [rng.choice((15, 30)), 60, rng.choice((90, 120))]
    return {
        "least": steps,
        "tiers": ", ".join(tiers),
        "per_year": rng.integer(1, 3),
        "grace": rng.integer(1, 3),
        "loyalty_cap": rng.integer(6, 12),
        "discount_cap": rng.integer(20, 60) * 100,
        "rates": "{" + ", ".join(f'"{category}": {rate}' for category, rate in rates.items()) + "}",
        "standard": rng.integer(15, 25),
        "shipping_base": rng.integer(20, 60) * 10,
        "shipping_piece": rng.integer(5, 40),
        "free_from": rng.integer(40, 90) * 100,
        "interest": rng.integer(2, 5),
        "period": rng.choice((7, 10, 14)),
        "days_free": rng.choice((5, 14, 30)),
        "tolerance": rng.integer(2, 9),
        "skonto": rng.integer(2, 4),
        "skonto_days": rng.choice((7, 10, 14)),
        "edge_days": edges,
        "edges": ", ".join(map(str, edges)),
        "reserve_step": rng.integer(5, 20),
    }


def _billing_inputs(package: str, c: Constants) -> Mapping[str, Sequence[Spec]]:
    cents = _int(-500, 20_000, 0, 50, 150)
    positive = _int(0, 30_000, c["free_from"])
    quantity = _int(1, 120, *c["least"])
    years = _int(0, 14, c["grace"], c["grace"] + 1)
    category: Spec = {"choice": ["book", "food", "medicine", "toys"]}
    line: Spec = {"new": [f"{package}.invoice:Line", [category, quantity, _int(5, 900)]]}
    lines = _many(line, 0, 4)
    items = _many(_pair(_int(0, 200, *c["edge_days"], *(day + 1 for day in c["edge_days"])), _int(1, 9_000)), 0, 5)
    amounts = _many(_int(1, 5_000), 0, 5)
    return {
        "money:percent_of": [cents, _int(0, 40)],
        "money:split_evenly": [_int(0, 2_000), _int(0, 7)],
        "money:clamp": [_int(-90, 900), _int(0, 200), _int(201, 600)],
        "money:to_text": [_int(-3_000, 9_000, 5, -5)],
        "money:round_to": [_int(0, 5_000), {"choice": [5, 10, 50]}],
        "discounts:volume_percent": [quantity],
        "discounts:loyalty_percent": [years, _flag()],
        "discounts:line_discount": [positive, quantity],
        "discounts:order_discount": [_int(0, 90_000), years, _flag()],
        "tax:rate_of": [category],
        "tax:tax_on": [cents, category, _flag()],
        "tax:net_of": [positive, category],
        "tax:tax_by_category": [_many(_pair(category, _int(-400, 9_000)), 0, 5), _flag()],
        "invoice:line_net": [line],
        "invoice:shipping": [lines],
        "invoice:tax": [lines, _flag()],
        "invoice:invoice_total": [lines, years, _flag(), _flag()],
        "payments:allocate": [_int(0, 12_000), amounts],
        "payments:overpaid": [_int(0, 12_000), amounts],
        "payments:late_interest": [_int(100, 20_000), _int(0, 90, c["days_free"], c["days_free"] + c["period"])],
        "payments:is_settled": [_int(100, 140), _int(90, 140)],
        "payments:early_payment": [_int(100, 20_000), _int(0, 30, c["skonto_days"])],
        "aging:bucket": [_int(0, 200, *c["edge_days"], *(day + 1 for day in c["edge_days"]))],
        "aging:aging": [items],
        "aging:reserve": [items],
        "aging:credit_left": [_int(0, 30_000), items],
        "aging:statement": [items, _int(0, 12_000)],
    }


def _stockroom_constants(rng: Rng) -> Constants:
    first = rng.integer(60, 75)
    return {
        "per_box": rng.integer(6, 24),
        "boxes": rng.integer(8, 30),
        "safety": rng.integer(20, 60),
        "least_safety": rng.integer(5, 20),
        "cover_cap": rng.choice((90, 180, 365)),
        "target_days": rng.integer(7, 21),
        "shelf": rng.integer(3, 9),
        "shares": f"{first}, {first + rng.integer(12, 20)}",
        "down": rng.integer(8, 20),
        "idle": rng.choice((30, 60, 90)),
        "window": rng.choice((7, 10, 14)),
        "urgent_days": rng.integer(5, 12),
    }


def _stockroom_inputs(package: str, c: Constants) -> Mapping[str, Sequence[Spec]]:
    box = c["per_box"]
    pieces = _int(0, 900, box, box - 1, box * 3, box * c["boxes"])
    move: Spec = {"new": [f"{package}.movements:Movement", [_int(1, 30), _int(-60, 90), _int(50, 900)]]}
    moves = _many(move, 0, 6)
    batch: Spec = {
        "new": [f"{package}.picking:Batch", [{"choice": ["A1", "B7", "C2", "D4", "E9"]}, _int(1, 40), _int(0, 60)]]
    }
    batches = _many(batch, 0, 5)
    day = _int(1, 30)
    daily, lead = _int(0, 40), _int(1, 14)
    named = _pair({"choice": ["bolts", "nuts", "seals", "pumps", "hoses"]}, _int(0, 300), _int(0, 40))
    valued = _pair({"choice": ["bolts", "nuts", "seals", "pumps", "hoses", "belts"]}, _int(1, 900))
    return {
        "units:boxes_for": [pieces],
        "units:loose_pieces": [pieces],
        "units:pallets_for": [_int(0, 6_000, box * c["boxes"], box * c["boxes"] + 1)],
        "units:round_up_to_boxes": [pieces],
        "units:describe": [pieces],
        "movements:on_hand": [moves, day],
        "movements:lowest": [moves],
        "movements:average_cost": [moves],
        "movements:daily_use": [moves, _int(1, 12), _int(13, 30)],
        "reorder:safety_stock": [daily, lead],
        "reorder:reorder_point": [daily, lead],
        "reorder:days_of_cover": [_int(0, 900), _int(0, 30, 0, 1)],
        "reorder:must_order": [_int(0, 400), _int(0, 200), daily, lead],
        "reorder:order_quantity": [_int(0, 200), _int(0, 60), daily, lead],
        "valuation:stock_value": [moves, day],
        "valuation:write_down": [_int(100, 9_000), _int(0, 700, c["idle"], c["idle"] * 2)],
        "valuation:classes": [_many(valued, 1, 6)],
        "planning:proposal": [moves, _int(14, 30), _int(0, 30), lead],
        "planning:summary": [moves, _int(14, 30), _int(0, 30), lead],
        "planning:urgent": [_many(named, 0, 5)],
        "picking:sellable": [batches, _int(1, 30)],
        "picking:pick": [batches, _int(0, 120), _int(1, 30)],
        "picking:shortage": [batches, _int(0, 150), _int(1, 30)],
        "picking:write_off": [batches, _int(5, 40)],
    }


def _rota_constants(rng: Rng) -> Constants:
    short_from = rng.choice((240, 300, 360))
    return {
        "step": rng.choice((5, 10, 15)),
        "night_start": rng.choice((1260, 1320, 1380)),
        "night_end": rng.choice((300, 330, 360)),
        "short_from": short_from,
        "short_break": rng.choice((15, 20, 30)),
        "long_from": short_from + rng.choice((120, 150, 180)),
        "long_break": rng.choice((45, 50, 60)),
        "rest": rng.choice((600, 630, 660)),
        "weekly": rng.choice((2160, 2280, 2400)),
        "night": rng.choice((20, 25, 30)),
        "weekend": rng.choice((40, 50, 60)),
        "over": rng.choice((25, 30, 50)),
        "per_km": rng.integer(15, 38),
        "km_free": rng.integer(5, 20),
        "allowance_cap": rng.integer(60, 160) * 100,
        "run": rng.integer(4, 6),
        "over_limit": rng.choice((120, 240, 300)),
        "deduction": rng.integer(15, 35),
        "deduction_free": rng.integer(100, 300) * 100,
    }


def _rota_inputs(package: str, c: Constants) -> Mapping[str, Sequence[Spec]]:
    minute = _int(0, 1439, c["night_start"], c["night_end"])
    start: Spec = {"choice": [300, 345, 360, 475, 480, 660, 840, 1080, 1260, 1320, 1337]}
    end: Spec = {"choice": [120, 300, 342, 360, 720, 845, 960, 1020, 1200, 1318, 1380]}
    shift: Spec = {"new": [f"{package}.shifts:Shift", [_int(0, 6, 4, 5), start, end]]}
    shifts = _many(shift, 0, 7)
    rate, distance = _int(1_200, 4_800), _int(0, 90, c["km_free"])
    clock: Spec = {"choice": ["00:00", "05:45", "07:30", "12:09", "19:59", "23:15"]}
    return {
        "clock:minutes": [clock],
        "clock:text": [_int(0, 3_000, 1440, 600)],
        "clock:length": [minute, minute],
        "clock:overlap": [_int(0, 600), _int(601, 1_400), _int(0, 900), _int(901, 1_440)],
        "clock:rounded": [_int(0, 700)],
        "shifts:unpaid_break": [
            _int(60, 700, c["short_from"], c["short_from"] + 1, c["long_from"], c["long_from"] + 1)
        ],
        "shifts:worked": [shift],
        "shifts:night_minutes": [shift],
        "shifts:is_weekend": [shift],
        "rules:begins": [shift],
        "rules:rest_between": [shift, shift],
        "rules:short_rests": [shifts],
        "rules:overtime": [_many(shift, 3, 7)],
        "rules:days_in_a_row": [_many(_int(1, 14), 0, 9)],
        "pay:for_minutes": [_int(0, 700), rate],
        "pay:supplement": [shift, rate],
        "pay:shift_pay": [shift, rate],
        "pay:week_pay": [_many(shift, 1, 7), rate],
        "pay:allowance": [_int(0, 6), distance],
        "payslip:warnings": [_many(shift, 2, 8)],
        "payslip:gross": [shifts, rate, distance],
        "payslip:deductions": [_int(0, 90_000, c["deduction_free"])],
        "payslip:payslip": [shifts, rate, distance],
    }


TEMPLATES = (
    Template(
        folder="billing",
        names=("billing", "invoicing", "receivables"),
        summary="Invoices, tax, discounts and open items.",
        modules=("money", "discounts", "tax", "invoice", "payments", "aging"),
        constants=_billing_constants,
        inputs=_billing_inputs,
    ),
    Template(
        folder="stockroom",
        names=("stockroom", "inventory", "depot"),
        summary="Stock movements, reordering, picking and valuation.",
        modules=("units", "movements", "reorder", "valuation", "planning", "picking"),
        constants=_stockroom_constants,
        inputs=_stockroom_inputs,
    ),
    Template(
        folder="rota",
        names=("rota", "shiftplan", "roster"),
        summary="Shifts, working-time rules and pay.",
        modules=("clock", "shifts", "rules", "pay", "payslip"),
        constants=_rota_constants,
        inputs=_rota_inputs,
    ),
)
