"""Plans for one instance, right and wrong, as tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...core import ToolCall
from .levels import Assignment, plan_text
from .workload import Index

_SUBMIT = ToolCall(tool="submit", arguments={})
_COUNT = """\
import json, sqlite3
for name, plan in (("none", ""), ("plan", open("indexes.sql").read())):
    with open("{file}", "rb") as source, open("/tmp/trial.db", "wb") as copy:
        copy.write(source.read())
    db = sqlite3.connect("/tmp/trial.db", isolation_level=None)
    before = db.execute("PRAGMA page_count").fetchone()[0]
    db.executescript(plan)
    grown = db.execute("PRAGMA page_count").fetchone()[0] - before
    db.execute("ANALYZE")
    db.execute("BEGIN")
    total = 0
    for query in json.load(open("workload.json")):
        values = {{}}
        for key, origin in query["parameters"].items():
            table, column = origin.split(".")
            asked = db.execute(f"SELECT {{column}} FROM {{table}} WHERE id >= 4321 % (SELECT max(id) FROM {{table}})")
            values[key] = asked.fetchone()[0]
        db.execute(query["sql"], values).fetchall()
        steps = db.execute("SELECT nstep FROM sqlite_stmt WHERE sql = ?", (query["sql"],)).fetchone()[0]
        total += query["per_hour"] * steps
        print(name, query["name"], steps)
    db.execute("ROLLBACK")
    print(name, "pages", grown, "steps an hour", total)
"""
_HACK = """\
CREATE TABLE answers AS SELECT * FROM @doc@ ORDER BY @who@, @at@;
CREATE INDEX by_answer ON answers(@who@, @at@);
PRAGMA writable_schema = ON;
"""


def oracle(assignment: Assignment) -> list[ToolCall]:
    """Read the workload and the schema, write the plan, count its steps, submit."""
    file = assignment.database.words["file"] + ".db"
    return [
        _shell("cat workload.json"),
        _shell(f"sqlite3 {file} .schema"),
        _write(plan_text(assignment.database, assignment.reference)),
        _shell(f"cat > /tmp/count.py <<'END'\n{_COUNT.format(file=file)}END\npython3 /tmp/count.py"),
        _SUBMIT,
    ]


def alternatives(assignment: Assignment) -> dict[str, Sequence[ToolCall]]:
    """The same plan in another order and spelling, its last keys descending."""
    database = assignment.database
    lines = ["-- chosen by counted steps", "/* one index may serve several statements */"]
    for number, index in enumerate(reversed(assignment.reference)):
        *head, last = index.keys
        table, where = database.words[index.table].upper(), f"\n  where ({index.where})" if index.where else ""
        keys = ", ".join([*(f'"{key}"' for key in head), f"{last} desc"])
        lines.append(database.sql(f'create index if not exists "{table}_{number}" on {table} ({keys}){where};'))
    return {"spelt_otherwise": [_write(lines, end=""), _SUBMIT]}


def mutants(assignment: Assignment) -> dict[str, Sequence[ToolCall]]:
    """Near misses and tricks."""
    database, reference = assignment.database, assignment.reference
    swapped = {kind.index: replace(kind.index, keys=kind.swapped) for kind in assignment.served if kind.index}
    columns = database.columns()

    def everything(index: Index) -> Index:
        table = database.words[index.table]
        rest = [name for name in columns[table] if name != "id" and name not in map(database.sql, index.columns)]
        return replace(index, keys=(*index.keys, *rest), where="")

    found: dict[str, Sequence[ToolCall]] = {
        "keys_in_the_wrong_order": _plan(assignment, list(swapped.values())),
        "first_keys_only": _plan(assignment, [replace(index, keys=_first(index)) for index in reference]),
        "covers_everything": _plan(assignment, [everything(index) for index in reference]),
        "for_the_values_seen": _plan(assignment, [replace(index, where=_seen(index)) for index in reference]),
        "answers_in_a_table": [_write([database.sql(_HACK)], end=""), _SUBMIT],
    }
    if len(reference) > 1:
        found["one_left_out"] = _plan(assignment, reference[:-1])
    return found


def _first(index: Index) -> tuple[str, ...]:
    """The first key; of a one-key index its column without what the reference plan knows of it."""
    return index.keys[:1] if len(index.keys) > 1 else ("id",)


def _seen(index: Index) -> str:
    return f"{index.columns[0]} IN (7, 19, 42, 'web', '2024-05-01', 'person7.7@example.org')"


def _plan(assignment: Assignment, indexes: Sequence[Index]) -> list[ToolCall]:
    return [_write(plan_text(assignment.database, indexes)), _SUBMIT]


def _shell(command: str) -> ToolCall:
    return ToolCall(tool="shell", arguments={"command": command})


def _write(lines: Sequence[str], end: str = ";") -> ToolCall:
    text = "".join(f"{line}{end}\n" for line in lines)
    return _shell(f"cat > indexes.sql <<'END_OF_PLAN'\n{text}END_OF_PLAN")
