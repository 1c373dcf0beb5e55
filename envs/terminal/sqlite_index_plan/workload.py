"""The statements that a workload is drawn from, each with the index that serves it best.

A read's index is part of the reference plan where the level means it to be served; the others are temptations: rare,
or not worth their pages. Two reads may want the same index: one that serves both is then the only one that fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...core import Json, Rng
from ...parts.sqlite_steps import Query
from .schema import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """One index in role words; `share` of the table's rows are in it."""

    table: str
    keys: tuple[str, ...]
    """As written: a column, perhaps with an expression around it or DESC."""
    columns: tuple[str, ...]
    """The same as bare columns, for its size."""
    where: str = ""
    share: float = 1.0

    def statement(self, name: str) -> str:
        """CREATE INDEX, still in role words."""
        where = f" WHERE {self.where}" if self.where else ""
        return f"CREATE INDEX {name} ON @{self.table}@({', '.join(self.keys)}){where}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of statement: its SQL, how often it runs, and its index (none: a write)."""

    name: str
    sql: str
    parameters: Mapping[str, Json]
    per_hour: tuple[int, int]
    index: Index | None = None
    swapped: tuple[str, ...] = ()
    """The index's keys in an order that looks right and is not."""


def _pick(column: str, table: str = "doc") -> list[Json]:
    return ["pick", f"@{table}@", f"@{column}@" if column not in ("id", "mail") else column]


_BY_PARTY = Index(table="doc", keys=("@who@", "@at@"), columns=("@who@", "@at@"))
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="latest_of_party",
            sql="SELECT id, @sum@, @at@ FROM @doc@ WHERE @who@ = :party ORDER BY @at@ DESC LIMIT 12",
            parameters={"party": _pick("who")},
            per_hour=(400, 700),
            index=_BY_PARTY,
            swapped=("@at@", "@who@"),
        ),
        Kind(
            name="way_of_a_week",
            sql="SELECT id, @sum@ FROM @doc@ WHERE @way@ = :way AND @at@ >= :day AND @at@ < date(:day, '+7 days')",
            parameters={"way": _pick("way"), "day": _pick("at")},
            per_hour=(250, 400),
            index=Index(table="doc", keys=("@way@", "@at@"), columns=("@way@", "@at@")),
            swapped=("@at@", "@way@"),
        ),
        Kind(
            name="clerk_ranked",
            sql="SELECT id, @at@ FROM @doc@ WHERE @clerk@ = :clerk AND @rank@ = 1 AND @sum@ >= :least "
            "ORDER BY @sum@ LIMIT 10",
            parameters={"clerk": _pick("clerk"), "least": _pick("sum")},
            per_hour=(250, 400),
            index=Index(table="doc", keys=("@clerk@", "@rank@", "@sum@"), columns=("@clerk@", "@rank@", "@sum@")),
            swapped=("@sum@", "@clerk@", "@rank@"),
        ),
        Kind(
            name="lines_of_party",
            sql="SELECT l.@code@, l.@qty@ FROM @doc@ AS d JOIN @line@ AS l ON l.@of@ = d.id "
            "WHERE d.@who@ = :party AND d.@at@ >= date(:day, '-120 days')",
            parameters={"party": _pick("who"), "day": _pick("at")},
            per_hour=(150, 300),
            index=Index(table="line", keys=("@of@",), columns=("@of@",)),
            swapped=("@when@", "@of@"),
        ),
        Kind(
            name="code_since",
            sql="SELECT @of@, @qty@ FROM @line@ WHERE @code@ = :code AND @when@ >= :day ORDER BY @when@ LIMIT 40",
            parameters={"code": _pick("code", "line"), "day": _pick("when", "line")},
            per_hour=(200, 400),
            index=Index(table="line", keys=("@code@", "@when@"), columns=("@code@", "@when@")),
            swapped=("@when@", "@code@"),
        ),
        Kind(
            name="still_open",
            sql="SELECT id, @who@ FROM @doc@ WHERE @state@ = '@open1@' AND @at@ >= :day ORDER BY @at@ LIMIT 25",
            parameters={"day": _pick("at")},
            per_hour=(600, 900),
            index=Index(table="doc", keys=("@at@",), columns=("@at@",), where="@state@ = '@open1@'", share=0.03),
            swapped=("@who@",),
        ),
        Kind(
            name="not_done_of_clerk",
            sql="SELECT id, @at@ FROM @doc@ WHERE @done@ IS NULL AND @clerk@ = :clerk ORDER BY @at@",
            parameters={"clerk": _pick("clerk")},
            per_hour=(300, 500),
            index=Index(
                table="doc", keys=("@clerk@", "@at@"), columns=("@clerk@", "@at@"), where="@done@ IS NULL", share=0.04
            ),
            swapped=("@at@", "@clerk@"),
        ),
        Kind(
            name="party_by_mail",
            sql="SELECT id, @town@ FROM @party@ WHERE lower(mail) = lower(:mail)",
            parameters={"mail": _pick("mail", "party")},
            per_hour=(900, 1500),
            index=Index(table="party", keys=("lower(mail)",), columns=("mail",)),
            swapped=("mail",),
        ),
        Kind(
            name="log_of_party",
            sql="SELECT id, @when@ FROM @log@ WHERE @who@ = :party AND @kind@ = :kind ORDER BY @when@ DESC LIMIT 8",
            parameters={"party": _pick("who", "log"), "kind": _pick("kind", "log")},
            per_hour=(400, 700),
            index=Index(table="log", keys=("@who@", "@kind@", "@when@"), columns=("@who@", "@kind@", "@when@")),
            swapped=("@when@", "@kind@", "@who@"),
        ),
        Kind(
            name="month_report",
            sql="SELECT @way@, count(*), sum(@sum@) FROM @doc@ WHERE @at@ >= :day AND @at@ < date(:day, '+30 days') "
            "GROUP BY @way@",
            parameters={"day": _pick("at")},
            per_hour=(1, 1),
            index=Index(table="doc", keys=("@at@", "@way@", "@sum@"), columns=("@at@", "@way@", "@sum@")),
        ),
        Kind(
            name="kinds_report",
            sql="SELECT @kind@, count(*) FROM @log@ WHERE @when@ >= :day GROUP BY @kind@",
            parameters={"day": _pick("when", "log")},
            per_hour=(1, 1),
            index=Index(table="log", keys=("@when@", "@kind@"), columns=("@when@", "@kind@")),
        ),
        Kind(
            name="big_lines_report",
            sql="SELECT @of@, @code@ FROM @line@ WHERE @qty@ > 880 AND @when@ >= :day",
            parameters={"day": _pick("when", "line")},
            per_hour=(1, 1),
            index=Index(table="line", keys=("@qty@", "@when@"), columns=("@qty@", "@when@")),
        ),
        Kind(
            name="new_doc",
            sql="INSERT INTO @doc@(@who@, @state@, @way@, @rank@, @clerk@, @at@, @sum@, remark) "
            "VALUES (:party, '@open1@', :way, 2, :clerk, :day, 1999, 'new')",
            parameters={"party": _pick("who"), "way": _pick("way"), "clerk": _pick("clerk"), "day": _pick("at")},
            per_hour=(300, 500),
        ),
        Kind(
            name="new_line",
            sql="INSERT INTO @line@(@of@, @code@, @qty@, @when@, detail) VALUES (:doc, :code, 3, :day, 'new')",
            parameters={"doc": _pick("id"), "code": _pick("code", "line"), "day": _pick("when", "line")},
            per_hour=(800, 1200),
        ),
        Kind(
            name="new_log",
            sql="INSERT INTO @log@(@who@, @kind@, @when@, payload) VALUES (:party, :kind, :day, 'new')",
            parameters={"party": _pick("who", "log"), "kind": _pick("kind", "log"), "day": _pick("when", "log")},
            per_hour=(1500, 2500),
        ),
        Kind(
            name="settle_doc",
            sql="UPDATE @doc@ SET @state@ = '@closed@', @done@ = :day WHERE id = :doc",
            parameters={"doc": _pick("id"), "day": _pick("at")},
            per_hour=(300, 500),
        ),
    )
}


def statements(database: Database, kinds: Sequence[Kind], rng: Rng) -> list[Query]:
    """The workload, in random order, under neutral names."""
    queries: list[Query] = []
    for kind in rng.shuffled(kinds):
        parameters: dict[str, Json] = {}
        for name, spec in kind.parameters.items():
            parameters[name] = [database.sql(str(part)) for part in spec] if isinstance(spec, list) else spec
        queries.append(
            Query(
                name=kind.name,
                sql=database.sql(kind.sql),
                per_hour=rng.integer(*kind.per_hour),
                parameters=parameters,
            )
        )
    return queries
