"""A plan against the reference plan and against none, on a database that nobody has seen, in counted steps.

Score of the workload: log(none / plan) / log(none / reference), 1 from 5% above the reference on; so a plan is paid
for the orders of magnitude that it saves, and no plan earns exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ...core import Check, Rng, Sandbox, Verdict, VerifierError
from ...parts.sqlite_steps import Cost, PlanError, Query, measure, parse_plan

PATH = "/workspace/indexes.sql"
SLACK = 1.05
NUM_RUNS = 6
_MEASURE_S = 130.0


async def examine(sandbox: Sandbox, truth: Mapping[str, Any], hidden: Rng) -> Verdict:
    """Parse, measure, judge."""
    queries = queries_of(truth)
    try:
        text = (await sandbox.read(PATH, max_bytes=1 << 20)).decode("utf-8")
        plan = parse_plan(text, truth["columns"])
    except ConnectionError:
        raise
    except (OSError, UnicodeDecodeError, PlanError, ValueError) as error:
        return Verdict.of(_refused(str(error)))
    rng = hidden.child("database")
    measured = await measure(
        sandbox,
        truth["tables"],
        queries,
        {"none": [], "reference": truth["reference"], "plan": plan},
        seed=f"{rng.integer(0, 1 << 60):x}",
        points=[rng.fraction() for _ in range(NUM_RUNS)],
        timeout_s=_MEASURE_S,
    )
    if isinstance(measured, str):
        raise VerifierError(f"measuring three index plans {measured}")
    if error := measured["none"].error or measured["reference"].error:
        raise VerifierError(f"the reference plan is broken: {error}")
    return judge(measured, queries, truth["limit_pages"])


def judge(measured: Mapping[str, Cost], queries: Sequence[Query], limit_pages: int) -> Verdict:
    """A gate on the size, a check on the workload."""
    plan = measured["plan"]
    if plan.error:
        return Verdict.of(_refused(plan.error))
    none, reference, cost = (measured[name].per_hour(queries) for name in ("none", "reference", "plan"))
    size = Check(
        name="size",
        score=1.0 if plan.pages <= limit_pages else 0.0,
        gate=True,
        evidence=f"{plan.pages} pages; the limit is {limit_pages}",
    )
    worst = max(queries, key=lambda query: query.per_hour * plan.steps[query.name])
    evidence = (
        f"{cost:,.0f} steps an hour; {none:,.0f} without an index, {reference:,.0f} with the reference plan; "
        f"most for {worst.name}: {worst.per_hour} times {plan.steps[worst.name]:,.0f}"
    )
    return Verdict.of(size, Check(name="workload", score=score(none, reference, cost), evidence=evidence))


def score(none: float, reference: float, cost: float) -> float:
    """In [0, 1]."""
    if cost <= SLACK * reference:
        return 1.0
    return min(0.999, max(0.0, math.log(none / cost) / math.log(none / reference)))


def queries_of(truth: Mapping[str, Any]) -> list[Query]:
    """The workload, from an instance's truth."""
    return [Query(**cast("Mapping[str, Any]", one)) for one in truth["queries"]]


def _refused(why: str) -> Check:
    return Check(name="statements", score=0.0, gate=True, evidence=why[:400])
