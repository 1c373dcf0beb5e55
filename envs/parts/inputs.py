"""Draw arguments from a specification that is itself JSON, so that an instance's truth can carry it.

A specification is one of {"int": [low, high], "near": [values]}, {"decimal": [low, high, places], "near": [texts]},
{"date": [first, days]}, {"choice": [values]}, {"list": [spec, least, most]}, {"tuple": [specs]},
{"map": [key, value, least, most]} or {"new": ["package.module:Class", [specs]]}. `near` values are drawn one time in
three, for boundaries. What is drawn is tagged JSON, as in `calls`.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from ..core import Json, Rng
from .differential import Case

Spec: TypeAlias = dict[str, Any]
Inputs: TypeAlias = Mapping[str, Sequence[Spec]]
"""Function path → the specifications of its arguments."""


def draw(spec: Spec, rng: Rng) -> Json:
    """One value.

    Raises:
        ValueError: no such specification.
    """
    near = spec.get("near")
    if near and rng.integer(1, 3) == 1:
        value = rng.choice(near)
        return {"$decimal": value} if "decimal" in spec else value
    match next(iter(spec.items())):
        case "int", [low, high]:
            return rng.integer(low, high)
        case "decimal", [low, high, places]:
            scale = 10**places
            amount = Decimal(rng.integer(int(Decimal(low) * scale), int(Decimal(high) * scale)))
            return {"$decimal": str(amount.scaleb(-places))}
        case "date", [first, days]:
            day = datetime.date.fromisoformat(first) + datetime.timedelta(days=rng.integer(0, days))
            return {"$date": day.isoformat()}
        case "choice", values:
            return rng.choice(values)
        case "list", [item, least, most]:
            return [draw(item, rng) for _ in range(rng.integer(least, most))]
        case "tuple", items:
            return {"$tuple": [draw(item, rng) for item in items]}
        case "map", [key, value, least, most]:
            drawn = {str(name): name for name in (draw(key, rng) for _ in range(rng.integer(least, most)))}
            return {"$map": [[name, draw(value, rng)] for name in drawn.values()]}
        case "new", [path, items]:
            return {"$new": [path, [draw(item, rng) for item in items]]}
        case kind, _:
            raise ValueError(f"{kind} is no argument specification")


def draw_cases(inputs: Inputs, rng: Rng, per_function: int) -> list[Case]:
    """`per_function` calls of every function, in the order of `inputs`."""
    return [(path, [draw(spec, rng) for spec in specs]) for path, specs in inputs.items() for _ in range(per_function)]
