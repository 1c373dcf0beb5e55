"""Call a library by name on JSON arguments and write its results as JSON: the same on the host and in a sandbox.

Standard library only, no import of ours and none from the future: a probe sends this module's own source into the
sandbox. A value that JSON lacks is a tagged object: {"$decimal": "1.50"}, {"$date": "2025-01-31"}, {"$tuple": [...]},
{"$map": [[key, value], ...]}, {"$new": ["package.module:Class", [arguments]]}, and an exception
{"$raises": "ValueError"}.
"""

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

MAX_TEXT = 2000
"""Longer texts are cut, so that a wild result stays a small wrong answer."""


def decode(value: Any, find: Callable[[str], Any]) -> Any:
    """The Python value of tagged JSON; `find` resolves "module:name"."""
    if isinstance(value, list):
        return [decode(item, find) for item in value]
    if not isinstance(value, dict):
        return value
    if "$decimal" in value:
        return decimal.Decimal(value["$decimal"])
    if "$date" in value:
        return datetime.date.fromisoformat(value["$date"])
    if "$tuple" in value:
        return tuple(decode(item, find) for item in value["$tuple"])
    if "$map" in value:
        return {decode(key, find): decode(item, find) for key, item in value["$map"]}
    if "$new" in value:
        path, arguments = value["$new"]
        return find(path)(*decode(arguments, find))
    return {key: decode(item, find) for key, item in value.items()}


def encode(value: Any, depth: int = 0) -> Any:
    """Tagged JSON of a result; what has no tag becomes {"$other": its type}."""
    if depth > 12:
        return {"$other": "too deep"}
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 53 else {"$other": "a huge int"}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, str):
        return str(value)[:MAX_TEXT]
    if isinstance(value, decimal.Decimal):
        return {"$decimal": str(value)}
    if type(value) is datetime.date:
        return {"$date": value.isoformat()}
    if isinstance(value, list):
        return [encode(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {"$map": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in value.items()]}
    fields = getattr(type(value), "__dataclass_fields__", None) or getattr(type(value), "_fields", None)
    if fields:
        path = type(value).__module__ + ":" + type(value).__qualname__
        return {"$new": [path, [encode(getattr(value, name), depth + 1) for name in fields]]}
    if isinstance(value, tuple):
        return {"$tuple": [encode(item, depth + 1) for item in value]}
    return {"$other": type(value).__name__}


def outcome(case: Any, find: Callable[[str], Any]) -> Any:
    """What [path, arguments] returns, encoded; whatever it raises is an outcome too."""
    path, arguments = case
    try:
        return encode(find(path)(*decode(arguments, find)))
    except BaseException as error:  # SystemExit included: the program under test must not end the driver
        return {"$raises": type(error).__name__}
