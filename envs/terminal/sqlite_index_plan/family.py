"""terminal/SqliteIndexPlan: choose indexes for a workload under a size limit.

Cost is counted in steps of SQLite's virtual machine on a database and with parameters that the agent has not seen, so
clocks and machines do not matter; the plan is parsed on the host, so only CREATE INDEX ever runs. The reference plan
is known from how the workload is drawn (`workload`), its size from the widths of the columns (`schema`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ...core import Artefact, Family, Instance, Json, Rng, Sandbox, ToolCall, Verdict
from ...parts.sqlite_steps import Query, filling_script
from . import attempts
from .grading import examine
from .levels import LEVELS, Assignment, draw_assignment, plan_text
from .schema import Database
from .workload import KINDS


@dataclass(frozen=True)
class SqliteIndexPlan(Family):
    """Write a file of CREATE INDEX statements.

    Levels turn what the limit leaves room for: 0 one statement, one index; 1 two of them, and inserts; 2 a join, where
    one index must serve two statements; 3 skewed data, where a full index does not fit and a partial one does, and an
    index on an expression; 4 four tables, heavy writes, and rare statements that are not worth their pages.
    """

    def generate(self, rng: Rng, level: int) -> Instance:
        assignment = draw_assignment(LEVELS[level], rng)
        database = assignment.database
        file = database.words["file"] + ".db"
        reference = plan_text(database, assignment.reference)
        workload = json.dumps([_shown(query) for query in assignment.queries], indent=2) + "\n"
        filling = {"tables": database.plan_tables(), "seed": f"shown {rng.child('rows').integer(0, 1 << 60):x}"}
        return Instance(
            variables={
                "file": file,
                "limit": assignment.limit_pages,
                "statements": len(assignment.queries),
                "rows": {str(table["name"]): table["rows"] for table in database.tables},
            },
            files={
                "workload.json": workload.encode(),
                ".setup/fill.py": filling_script(f"/workspace/{file}").encode(),
                ".setup/tables.json": json.dumps(filling).encode(),
            },
            setup=("python3 -I .setup/fill.py < .setup/tables.json", "rm -r .setup"),
            artefacts=(Artefact(path="indexes.sql", max_mb=1),),
            truth={
                "words": dict(database.words),
                "tables": database.plan_tables(),
                "columns": cast(Json, database.columns()),
                "queries": [_as_json(query) for query in assignment.queries],
                "served": [kind.name for kind in assignment.served],
                "reference": list(reference),
                "limit_pages": assignment.limit_pages,
            },
            secrets=tuple(statement.partition(" ON ")[2] for statement in reference),
        )

    def oracle(self, instance: Instance) -> Sequence[ToolCall]:
        return attempts.oracle(assignment_of(instance))

    def mutants(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.mutants(assignment_of(instance))

    def alternatives(self, instance: Instance) -> Mapping[str, Sequence[ToolCall]]:
        return attempts.alternatives(assignment_of(instance))

    async def verify(self, sandbox: Sandbox, instance: Instance, hidden: Rng) -> Verdict:
        return await examine(sandbox, cast("Mapping[str, Any]", instance.truth), hidden)


def assignment_of(instance: Instance) -> Assignment:
    """What was drawn, from the instance's truth."""
    truth = cast("Mapping[str, Any]", instance.truth)
    return Assignment(
        database=Database(words=truth["words"], tables=tuple(truth["tables"])),
        queries=tuple(Query(**query) for query in truth["queries"]),
        served=tuple(KINDS[name] for name in truth["served"]),
        limit_pages=truth["limit_pages"],
    )


def _shown(query: Query) -> dict[str, Json]:
    """A statement as the agent gets it: where values come from, in words."""
    origins: dict[str, Json] = {}
    for name, spec in query.parameters.items():
        assert isinstance(spec, list)
        origins[name] = f"{spec[1]}.{spec[2]}"
    return {"name": query.name, "per_hour": query.per_hour, "sql": query.sql, "parameters": origins}


def _as_json(query: Query) -> dict[str, Json]:
    return {
        "name": query.name,
        "sql": query.sql,
        "per_hour": query.per_hour,
        "parameters": dict(query.parameters),
    }
