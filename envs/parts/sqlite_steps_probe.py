"""Count what statements cost in SQLite: steps of its virtual machine, read from the engine's own table `sqlite_stmt`.

Standard library only and no import of ours: its source is sent into a sandbox, behind that of `sqlite_steps_fill`. A
count depends on schema, data, statement, parameters and the engine's version, and on nothing else.
"""

import sqlite3
from collections.abc import Callable
from typing import Any


class Counter:
    """Runs statements on one connection and tells what each run took."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        self._seen: dict[str, int] = {}

    def steps(self, sql: str, parameters: dict[str, Any]) -> int:
        """Run to the end; raises sqlite3.Error."""
        self._database.execute(sql, parameters).fetchall()
        asked = self._database.execute("SELECT sum(nstep) FROM sqlite_stmt WHERE sql = ?", (sql,))
        total = int(asked.fetchone()[0])
        taken, self._seen[sql] = total - self._seen.get(sql, 0), total
        return taken


def pages(database: sqlite3.Connection) -> int:
    """Pages of the file."""
    return int(database.execute("PRAGMA page_count").fetchone()[0])


def bound(database: sqlite3.Connection, parameters: dict[str, Any], point: float) -> dict[str, Any]:
    """Values for a run: ["pick", table, column] is that of the row at `point`; other values stand as they are."""
    values: dict[str, Any] = {}
    for name, spec in parameters.items():
        if isinstance(spec, list):
            _, table, column = spec
            count = int(database.execute(f"SELECT max(id) FROM {table}").fetchone()[0])
            row = 1 + int(point * count) % count
            asked = database.execute(f"SELECT {column} FROM {table} WHERE id >= ? AND {column} IS NOT NULL", (row,))
            values[name] = asked.fetchone()[0]
        else:
            values[name] = spec
        point = (point * 7.31 + 0.137) % 1.0
    return values


def measured(
    plain: sqlite3.Connection, indexes: list[str], queries: list[dict[str, Any]], points: list[float]
) -> dict[str, Any]:
    """Apply `indexes` to a copy of a database, and count every query at every point.

    What the indexes do wrong is an `error`. Writes are rolled back.
    """
    database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=400)
    try:
        plain.backup(database)
        before = pages(database)
        for statement in indexes:
            try:
                database.execute(statement)
            except sqlite3.Error as error:
                return {"error": f"{statement[:80]}: {error}"}
        grown = pages(database) - before
        try:
            return {"pages": grown, "steps": counted(database, queries, points)}
        except sqlite3.Error as error:
            # an index on an expression can fail where it must be kept up
            return {"error": f"the workload fails with these indexes: {error}"}
    finally:
        database.close()


def counted(database: sqlite3.Connection, queries: list[dict[str, Any]], points: list[float]) -> dict[str, list[int]]:
    """Steps of every query at every point."""
    database.execute("ANALYZE")
    counter = Counter(database)
    found: dict[str, list[int]] = {}
    for query in queries:
        runs = [bound(database, query["parameters"], point) for point in points]
        database.execute("BEGIN")
        found[query["name"]] = [counter.steps(query["sql"], values) for values in runs]
        database.execute("ROLLBACK")
    return found


def compared(payload: dict[str, Any], fill: Callable[..., None]) -> dict[str, Any]:
    """Fill one database by `fill`, and measure every plan on a copy of it."""
    plain = sqlite3.connect(":memory:", isolation_level=None)
    try:
        fill(plain, payload["tables"], payload["seed"])
        return {
            name: measured(plain, indexes, payload["queries"], payload["points"])
            for name, indexes in payload["plans"].items()
        }
    finally:
        plain.close()
