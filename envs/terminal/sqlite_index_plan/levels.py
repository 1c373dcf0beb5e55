"""What each level asks: which tables, which reads are worth an index, which are not, and how tight the limit is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core import Rng
from ...parts.sqlite_steps import Query
from .schema import Database, draw
from .workload import KINDS, Index, Kind, statements


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level's knobs."""

    roles: tuple[str, ...]
    served: tuple[str, ...] = ()
    """Reads that the reference plan serves."""
    some: tuple[str, ...] = ()
    drawn: int = 0
    """How many more are served, of `some`."""
    others: tuple[str, ...] = ()
    """Writes, and reads that are not worth an index."""
    room: float
    """The limit as a multiple of the reference plan's size."""


_ON_DOC = ("latest_of_party", "way_of_a_week", "clerk_ranked")
LEVELS = (
    Level(roles=("doc",), some=_ON_DOC, drawn=1, room=1.9),
    Level(roles=("doc",), some=_ON_DOC, drawn=2, others=("new_doc",), room=1.4),
    Level(
        roles=("doc", "line"),
        served=("latest_of_party", "lines_of_party"),
        some=("way_of_a_week", "clerk_ranked", "code_since"),
        drawn=1,
        others=("new_line", "month_report"),
        room=1.12,
    ),
    Level(
        roles=("party", "doc", "line"),
        served=("latest_of_party", "lines_of_party", "still_open", "party_by_mail"),
        some=("way_of_a_week", "code_since"),
        drawn=1,
        others=("new_line", "settle_doc", "month_report"),
        room=1.1,
    ),
    Level(
        roles=("party", "doc", "line", "log"),
        served=(
            "latest_of_party",
            "lines_of_party",
            "still_open",
            "not_done_of_clerk",
            "party_by_mail",
            "log_of_party",
        ),
        some=("way_of_a_week", "clerk_ranked", "code_since"),
        drawn=2,
        others=("new_doc", "new_line", "new_log", "settle_doc", "month_report", "kinds_report", "big_lines_report"),
        room=1.08,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One instance's database, workload, reference plan and limit."""

    database: Database
    queries: tuple[Query, ...]
    served: tuple[Kind, ...]
    limit_pages: int

    @property
    def reference(self) -> tuple[Index, ...]:
        """The indexes of the reads that are served, each once."""
        return tuple(dict.fromkeys(kind.index for kind in self.served if kind.index is not None))


def draw_assignment(level: Level, rng: Rng) -> Assignment:
    """A pure function of its arguments."""
    database = draw(rng.child("database"), level.roles)
    names = [*level.served, *rng.child("served").sample(level.some, level.drawn)]
    served = [kind for name, kind in KINDS.items() if name in names]
    others = [KINDS[name] for name in level.others]
    queries = statements(database, [*served, *others], rng.child("workload"))
    pages = sum(
        size(database, index) for index in dict.fromkeys(kind.index for kind in served if kind.index is not None)
    )
    return Assignment(
        database=database, queries=tuple(queries), served=tuple(served), limit_pages=int(pages * level.room + 1)
    )


def size(database: Database, index: Index) -> int:
    """About how many pages it takes."""
    columns = [database.sql(column) for column in index.columns]
    return database.pages(database.sql(f"@{index.table}@"), columns, index.share)


def plan_text(database: Database, indexes: Sequence[Index]) -> list[str]:
    """CREATE INDEX statements in the trade's words."""
    return [database.sql(index.statement(f"by_{number}")) for number, index in enumerate(indexes, 1)]
