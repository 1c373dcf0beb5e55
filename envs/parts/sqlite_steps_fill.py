"""Fill a SQLite database from a plan, the same bytes of rows for the same plan and seed on every machine.

Standard library only and no import of ours: its source is sent into a sandbox. Only `Random.random` is drawn from,
whose sequence Python promises to keep. A plan is a list of tables {"name", "ddl", "rows", "columns"}; a column is
[name, kind, ...]: ["ref", n] uniform in 1..n, ["skewed", n, power] with few common values, ["weighted", values,
weights], ["day", first, days] as ISO text, ["rising", first, days] growing with the row, ["cents", low, high],
["text", length], ["mail", n] a name in mixed case, ["maybe", share, column] NULL for that share of rows. The rowid
column is never among them.
"""

import bisect
import datetime
import itertools
import random
import sqlite3
from typing import Any

_LETTERS = "abcdefghijklmnopqrstuvwxyz "
_POOL = 4000


def fill(database: sqlite3.Connection, tables: list[dict[str, Any]], seed: str) -> None:
    """Create and fill the tables, ids from 1."""
    database.execute("BEGIN")
    for table in tables:
        database.execute(table["ddl"])
        source = random.Random(f"{seed}/{table['name']}")
        names = [column[0] for column in table["columns"]]
        makers = [_maker(column[1:], table["rows"], source.random) for column in table["columns"]]
        rows = ([make(row) for make in makers] for row in range(table["rows"]))
        marks = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO {table['name']}({', '.join(names)}) VALUES ({marks})", rows)
    database.execute("COMMIT")


def _maker(kind: list[Any], rows: int, draw: Any) -> Any:
    """A function of the row's number."""
    match kind:
        case ["ref", count]:
            return lambda row: 1 + int(draw() * count)
        case ["skewed", count, power]:
            return lambda row: 1 + int(draw() ** power * count)
        case ["weighted", values, weights]:
            sums = list(itertools.accumulate(weights))
            return lambda row: values[bisect.bisect(sums, draw() * sums[-1], 0, len(values) - 1)]
        case ["day", first, days]:
            return lambda row: _day(first, int(draw() * days))
        case ["rising", first, days]:
            return lambda row: _day(first, min(days - 1, int((row + draw() * rows / 20) * days / rows)))
        case ["cents", low, high]:
            return lambda row: low + int(draw() * (high - low))
        case ["text", length]:
            pool = "".join(_LETTERS[int(draw() * 27)] for _ in range(_POOL))
            return lambda row: pool[(start := int(draw() * (_POOL - length))) : start + length]
        case ["mail", count]:
            return lambda row: _mail(row, 1 + int(draw() * count), draw())
        case ["maybe", share, inner]:
            make = _maker(inner, rows, draw)
            return lambda row: None if draw() < share else make(row)
        case _:
            raise ValueError(f"no such kind of column: {kind}")


def _day(first: str, offset: int) -> str:
    return (datetime.date.fromisoformat(first) + datetime.timedelta(days=offset)).isoformat()


def _mail(row: int, number: int, luck: float) -> str:
    name = f"person{row}.{number}@example.org"
    return name.title() if luck < 0.2 else name.upper() if luck < 0.3 else name
