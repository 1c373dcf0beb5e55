"""terminal/SqliteIndexPlan on the host: the drawing, the strict parser, and plans measured by SQLite itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import Instance, ToolCall, instance_rng
from metier.envs.parts import sqlite_steps_fill, sqlite_steps_probe
from metier.envs.parts.sqlite_steps import Cost, PlanError, costs, parse_plan
from metier.envs.registry import render_brief
from metier.envs.terminal.sqlite_index_plan import grading
from metier.envs.terminal.sqlite_index_plan.family import SqliteIndexPlan, assignment_of

ENV_ID = "terminal/SqliteIndexPlan-v0"
FAMILY = SqliteIndexPlan()
TABLES = {"t": ["id", "x", "day"], "u": ["id", "mail"]}


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def plan_in(calls: Any) -> str:
    """The text that an attempt writes to indexes.sql."""
    command = next(str(call.arguments["command"]) for call in calls if "END_OF_PLAN" in str(call.arguments))
    return command.split("END_OF_PLAN'\n", 1)[1].removesuffix("END_OF_PLAN")


def measured(instance: Instance, plans: dict[str, list[str]]) -> dict[str, Cost]:
    truth: Any = instance.truth
    payload = {
        "tables": truth["tables"],
        "queries": truth["queries"],
        "plans": plans,
        "seed": "s",
        "points": [0.1, 0.7],
    }
    return costs(sqlite_steps_probe.compared(payload, sqlite_steps_fill.fill))


@given(st.integers(0, 4), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_instances_repeat_and_their_reference_fits(level: int, seed: int) -> None:
    instance = made(level, seed)
    assert instance == made(level, seed)
    assignment = assignment_of(instance)
    truth: Any = instance.truth
    assert parse_plan(";".join(truth["reference"]), truth["columns"])
    assert [query.name for query in assignment.queries] == [query["name"] for query in truth["queries"]]
    brief = render_brief(FAMILY, instance, level)
    assert str(truth["limit_pages"]) in brief
    shown = brief + instance.files["workload.json"].decode()
    assert not any(secret in shown for secret in instance.secrets)


def test_levels_differ_in_tables_and_statements() -> None:
    shapes = [(len(made(level, 1).truth["tables"]), len(made(level, 1).truth["queries"])) for level in range(5)]  # type: ignore[arg-type]
    assert shapes == sorted(set(shapes))


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE a AS SELECT 1",
        "CREATE UNIQUE INDEX a ON t(x)",
        "CREATE INDEX a ON sqlite_master(name)",
        "CREATE INDEX a ON t(x); PRAGMA writable_schema=1",
        "CREATE INDEX a ON t(x) WHERE x IN (SELECT id FROM u)",
        "CREATE INDEX a ON t(random())",
        "CREATE INDEX a ON t(mail)",
        "CREATE INDEX a ON t((x)",
        "CREATE INDEX a ON t(x) WHERE",
        "CREATE INDEX a ON t(x) junk",
        "CREATE INDEX a ON t()) WHERE x > 0",
        "CREATE INDEX main.a ON t(x)",
        "CREATE INDEX a ON t(x) /* open",
        "CREATE INDEX 'a' ON t(x)",
        "\x00",
        "1\n" * 9,
        "EXPLAIN CREATE INDEX a ON t(x)",
    ],
)
def test_anything_but_an_index_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        parse_plan(text, TABLES)


def test_indexes_in_many_spellings_are_taken() -> None:
    text = """-- first
    create index if not exists "one" on T (lower(x) collate nocase desc, [day]) where (x > '2024');
    ;CREATE INDEX two ON u(mail) /* last */"""
    assert parse_plan(text, TABLES) == [
        'CREATE INDEX "one" ON "t" ( lower ( "x" ) COLLATE NOCASE DESC , "day" ) WHERE ( "x" > \'2024\' )',
        'CREATE INDEX "two" ON "u" ( "mail" )',
    ]
    assert parse_plan("", TABLES) == []


@given(st.text(max_size=200))
def test_the_parser_never_breaks(text: str) -> None:
    try:
        parse_plan(text, TABLES)
    except PlanError:
        pass


@pytest.mark.parametrize("level", [0, 3])
def test_right_plans_pass_and_wrong_ones_do_not(level: int) -> None:
    instance = made(level, 3)
    truth: Any = instance.truth
    columns, queries = truth["columns"], grading.queries_of(truth)
    tried = {**FAMILY.mutants(instance), **FAMILY.alternatives(instance)}
    tried.pop("answers_in_a_table")
    plans = {name: parse_plan(plan_in(calls), columns) for name, calls in tried.items()}
    found = measured(instance, {"none": [], "reference": truth["reference"], **plans})
    for name in tried:
        verdict = grading.judge({**found, "plan": found[name]}, queries, truth["limit_pages"])
        assert verdict.passed == (name == "spelt_otherwise"), (name, verdict)
    assert grading.judge({**found, "plan": found["none"]}, queries, truth["limit_pages"]).reward == 0.0
    assert grading.judge({**found, "plan": found["reference"]}, queries, truth["limit_pages"]).passed


def test_counts_repeat_and_an_error_of_a_plan_is_told() -> None:
    instance = made(0, 0)
    table = next(iter(instance.truth["columns"]))  # type: ignore[call-overload]
    plans = {"none": [], "again": [], "broken": [f"CREATE INDEX a ON {table}(nothing)"]}
    found = measured(instance, plans)
    assert found["none"].steps == found["again"].steps
    assert "nothing" in found["broken"].error
    verdict = grading.judge({**found, "reference": found["none"], "plan": found["broken"]}, [], 10)
    assert (verdict.reward, verdict.passed) == (0.0, False)


def test_an_index_on_which_the_workload_fails_is_the_plans_fault() -> None:
    instance = made(1, 3)
    truth: Any = instance.truth
    table = truth["tables"][0]
    # only a row beyond those that are there already makes it overflow
    trap = f"CREATE INDEX h ON {table['name']} (abs(-9223372036854775807 - (id > {table['rows']})))"
    found = measured(instance, {"none": [], "reference": truth["reference"], "trap": [trap]})
    assert "the workload fails with these indexes: integer overflow" in found["trap"].error
    assert grading.judge({**found, "plan": found["trap"]}, grading.queries_of(truth), 10**6).reward == 0.0


def test_the_score_pays_for_orders_of_magnitude() -> None:
    assert grading.score(1e6, 1e4, 1e6) == 0.0
    assert grading.score(1e6, 1e4, 1e5) == pytest.approx(0.5)
    assert grading.score(1e6, 1e4, 1.05e4) == 1.0
    assert grading.score(1e6, 1e4, 1.06e4) < 1.0
    assert grading.score(1e6, 1e4, 1e9) == 0.0


def test_the_hack_is_refused_and_every_attempt_submits() -> None:
    instance = made(4, 0)
    truth: Any = instance.truth
    with pytest.raises(PlanError):
        parse_plan(plan_in(FAMILY.mutants(instance)["answers_in_a_table"]), truth["columns"])
    attempts = [FAMILY.oracle(instance), *FAMILY.mutants(instance).values(), *FAMILY.alternatives(instance).values()]
    assert all(calls[-1] == ToolCall(tool="submit", arguments={}) for calls in attempts)
    assert json.dumps(dict(instance.truth))
