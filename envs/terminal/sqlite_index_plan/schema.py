"""The database: four tables in the words of some trade, how their columns are filled, and how large an index on them
is.

Roles stay the same in every trade: a party has documents, a document has lines, and a log grows beside them. `@word@`
in SQL stands for the trade's own word.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core import Json, Rng

PAGE_BYTES = 4096
_WORD = re.compile(r"@(\w+)@")

_NAMES = "file party doc line log who of at done state way code kind clerk sum qty town rank when open1 open2 closed"
_TRADES = (
    """shop customer orders order_item event customer_id order_id placed_on shipped_on status channel sku action
    picker_id total_cents quantity city urgency seen_on open held delivered""",
    """clinic patient visit result access patient_id visit_id visited_on billed_on stage ward assay purpose
    doctor_id fee_cents reading town triage read_on waiting referred closed""",
    """freight shipper consignment parcel scan shipper_id consignment_id booked_on cleared_on state route tariff gate
    agent_id freight_cents weight_g port priority passed_on stuck customs released""",
    """estate tenant ticket task reading tenant_id ticket_id reported_on settled_on phase building trade_code meter
    janitor_id cost_cents minutes district severity read_on new blocked done""",
)
"""The words for `_NAMES`, trade by trade."""
_WAYS = (("web", "store", "phone", "partner"), ("er", "icu", "day", "home"), ("sea", "rail", "road", "air"))
_KINDS = (("view", "login", "return", "refund", "rating"), ("in", "out", "weigh", "x-ray", "seal"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """The tables of an instance."""

    words: Mapping[str, str]
    tables: tuple[Mapping[str, Any], ...]
    """As `sqlite_steps_fill` takes them."""

    def sql(self, text: str) -> str:
        """In the trade's words."""
        return _WORD.sub(lambda match: self.words[match[1]], text)

    def columns(self) -> dict[str, list[str]]:
        """Table → its columns, the id among them."""
        return {table["name"]: ["id", *(column[0] for column in table["columns"])] for table in self.tables}

    def plan_tables(self) -> list[Json]:
        """The tables as JSON."""
        return [dict(table) for table in self.tables]

    def rows(self, table: str) -> int:
        """Of a table, by the trade's name."""
        return next(int(one["rows"]) for one in self.tables if one["name"] == table)

    def pages(self, table: str, columns: Sequence[str], share: float = 1.0) -> int:
        """About how many pages an index takes; `share` of the rows are in it."""
        found = next(one for one in self.tables if one["name"] == table)
        widths = {column[0]: _width(column[1:]) for column in found["columns"]}
        # a cell: its pointer, its length, the record's header, a row id of two bytes, and the values
        cell = 2 + 1 + 2 + len(columns) + 2 + sum(widths[column] for column in columns)
        leaves = math.ceil(found["rows"] * share / math.floor((PAGE_BYTES - 8) / cell))
        return max(1, leaves + (1 if leaves > 1 else 0))


def draw(rng: Rng, roles: Sequence[str]) -> Database:
    """A trade's database with the tables of `roles`."""
    words: dict[str, str] = dict(zip(_NAMES.split(), rng.choice(_TRADES).split(), strict=True))
    tables = [_table(role, words, rng.child(role)) for role in ("party", "doc", "line", "log") if role in roles]
    return Database(words=words, tables=tuple(tables))


def _table(role: str, words: Mapping[str, str], rng: Rng) -> dict[str, Any]:
    first = f"202{rng.integer(1, 4)}-0{rng.integer(1, 9)}-01"
    parties, docs = 1500, 9000
    ways, kinds = rng.choice(_WAYS), rng.choice(_KINDS)
    states = [words[name] for name in ("closed", "open1", "open2")]
    columns: dict[str, list[list[Any]]] = {
        "party": [["mail", "mail", 90], ["@town@", "weighted", _TOWNS, _TOWN_SHARES], ["joined_on", "day", first, 900],
                  ["about", "text", 40]],
        "doc": [["@who@", "skewed", parties, 2.2],
                ["@state@", "weighted", states, [95, 3, 2]],
                ["@way@", "weighted", [*ways], [60, 25, 10, 5]], ["@rank@", "weighted", [1, 2, 3, 4], [70, 20, 8, 2]],
                ["@clerk@", "ref", 45], ["@at@", "rising", first, 700], ["@done@", "maybe", 0.04, ["day", first, 800]],
                ["@sum@", "cents", 500, 90000], ["remark", "text", 60]],
        "line": [["@of@", "ref", docs], ["@code@", "skewed", 400, 2.0], ["@qty@", "cents", 1, 900],
                 ["@when@", "rising", first, 720], ["detail", "text", 30]],
        "log": [["@who@", "skewed", parties, 1.8], ["@kind@", "weighted", [*kinds], [50, 25, 15, 8, 2]],
                ["@when@", "rising", first, 730], ["payload", "text", 45]],
    }  # fmt: skip
    rows = {"party": parties, "doc": docs, "line": 15000, "log": 12000}
    named = [[words[column[0].strip("@")] if "@" in column[0] else column[0], *column[1:]] for column in columns[role]]
    types = ", ".join(f"{column[0]} {_type(column[1:])}" for column in named)
    return {
        "name": words[role],
        "ddl": f"CREATE TABLE {words[role]}(id INTEGER PRIMARY KEY, {types})",
        "rows": rows[role],
        "columns": named,
    }


_TOWNS = [
    "Aldera",
    "Brackwell",
    "Corvin",
    "Dunmere",
    "Estray",
    "Farholt",
    "Glenrow",
    "Hartsea",
    "Ivory Bay",
    "Kesswick",
]
_TOWN_SHARES = [30, 20, 15, 10, 8, 6, 4, 3, 2, 2]


def _type(kind: Sequence[Any]) -> str:
    if kind[0] == "maybe":
        return _type(kind[2])
    if kind[0] in ("ref", "skewed", "cents") or (kind[0] == "weighted" and isinstance(kind[1][0], int)):
        return "INTEGER"
    return "TEXT"


def _width(kind: Sequence[Any]) -> float:
    """Mean bytes of a value in a record."""
    match kind:
        case ["day" | "rising", *_]:
            return 10.0
        case ["text", length]:
            return float(length)
        case ["mail", _]:
            return 25.0
        case ["weighted", values, weights]:
            if isinstance(values[0], int):
                return 0.9
            return sum(len(value) * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)
        case ["maybe", share, inner]:
            return (1 - share) * _width(inner)
        case ["cents", _, high] if high > 32768:
            return 2.6
        case ["ref" | "skewed", count, *_] if count < 128:
            return 1.0
        case _:
            return 1.9
