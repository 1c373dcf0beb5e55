"""finance/ThreeStatement on the host: figures that tie, formulas as cells, and the grader on planted results."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.finance.three_statement import attempts, repair
from metier.envs.finance.three_statement.conventions import Conventions, draw_conventions
from metier.envs.finance.three_statement.expressions import Frame, Places, as_cells, solve
from metier.envs.finance.three_statement.family import ThreeStatement
from metier.envs.finance.three_statement.figures import Company, Mood, draw_company, forecast, forecast_of
from metier.envs.finance.three_statement.grading import TYPED_OVER, Exam, exam, grade, reads
from metier.envs.finance.three_statement.layout import Layout
from metier.envs.finance.three_statement.lines import assumptions, lines
from metier.envs.parts.spreadsheet import Recalculated
from metier.envs.parts.workbook_file import column
from metier.envs.registry import render_brief

FAMILY = ThreeStatement()
LEVELS = range(5)
Computed = Mapping[str, Sequence[float]]


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng("finance/ThreeStatement-v0", {}, seed, level), level)


def parts_of(instance: Instance) -> tuple[Conventions, Company]:
    truth: Mapping[str, Any] = instance.truth
    return Conventions.from_json(truth["on"]), Company.from_json(truth["company"])


def examined(instance: Instance, seed: int = 0) -> tuple[Conventions, list[Company], Exam]:
    on, company = parts_of(instance)
    hidden = [draw_company(HashRng(b"hidden %d" % seed).child(mood), on, mood) for mood in Mood]
    return on, [company, *hidden], exam(on, company, hidden)


def result(on: Conventions, runs: Sequence[Computed]) -> Recalculated:
    """What a workbook that computes these would give; the last run has a total of assets typed over."""
    typed = {name: list(values) for name, values in runs[1].items()}
    typed["total_assets"][-1] = TYPED_OVER
    typed["balance_check"][-1] = TYPED_OVER - typed["total_equity_and_liabilities"][-1]
    return Recalculated(runs=tuple({name: tuple(run[name]) for name in reads(on)} for run in (*runs, typed)))


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(10)}) == 10


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 4), st.sampled_from(list(Mood)))
def test_accounts_and_forecasts_balance(seed: int, level: int, mood: Mood) -> None:
    rng = HashRng(b"%d" % seed)
    on = draw_conventions(rng.child("conventions"), level)
    company = draw_company(rng.child("company"), on, mood)
    past = company.accounts
    assert past["total_assets"] == past["total_equity_and_liabilities"]
    for at in range(on.history):
        assets = ("cash", "receivables", "inventory", "ppe")
        assert sum(past[name][at] for name in assets) == past["total_assets"][at]
    computed = forecast(on, company)
    assert max(map(abs, computed["balance_check"])) < 1e-6
    if on.facility != "none":
        least = company.assumptions["minimum_cash"][0]
        assert min(computed["cash"]) >= least - 1e-6 and min(computed["revolver"]) >= 0
    if on.facility == "sweep":
        assert min(computed["sweep"]) >= 0 and min(computed["term_loan"]) >= -1e-6
    if on.tax != "plain":
        assert min(computed["tax_losses"]) >= 0


def test_levels_turn_knobs() -> None:
    drawn = {level: [draw_conventions(HashRng(b"%d" % seed), level) for seed in range(30)] for level in LEVELS}
    assert not any(on.circular for level in (0, 1, 2) for on in drawn[level])
    assert all(on.circular for level in (3, 4) for on in drawn[level])
    assert {on.facility for on in drawn[4]} == {"sweep"} and {on.per_year for on in drawn[4]} == {2, 4}
    sizes = [len(lines(drawn[level][0])) for level in LEVELS]
    assert sizes[0] < sizes[3] < sizes[4]
    assert len({repr(on) for on in drawn[4]}) > 15


def test_a_circle_is_solved() -> None:
    formulas = {"debt": "debt[-1]-paid", "paid": "50-interest", "interest": "(debt[-1]+debt)/2*rate"}
    solved = solve(Frame(history=1, periods=2), formulas, {"debt": [1000.0], "rate": 0.1})
    first = (1000 * 1.05 - 50) / 0.95
    assert solved["debt"] == pytest.approx([first, (first * 1.05 - 50) / 0.95])


@pytest.mark.parametrize(
    ("formula", "cells"),
    [
        ("a-(b-b[-1])", "{c}a-({c}b-{p}b)"),
        ("a/(b*2)", "{c}a/({c}b*2)"),
        ("(a[-1]+a)/2*b", "({p}a+{c}a)/2*{c}b"),
        ("MAX(0,-a)", "MAX(0,-{c}a)"),
        ("IF(period<=a,opening(b)/a,0)", "IF({c}period<={c}a,ob/{c}a,0)"),
        ("mean_ratio(a,b)", "SUMPRODUCT(ha/hb)/COUNT(hb)"),
        ("past(a,0,b-1)", "SUMPRODUCT(ua*({c}period-uperiod>=0)*({c}period-uperiod<={c}b-1))"),
    ],
)
def test_formulas_become_cells(formula: str, cells: str) -> None:
    places = Places(
        this=lambda name: "{c}" + name,
        before=lambda name: "{p}" + name,
        opening=lambda name: f"o{name}",
        history=lambda name: f"h{name}",
        until_now=lambda name: f"u{name}",
    )
    assert as_cells(formula, places) == cells


@pytest.mark.parametrize("level", LEVELS)
def test_right_results_pass_and_wrong_models_fail(level: int) -> None:
    for seed in range(3):
        instance = made(level, seed)
        on, companies, questions = examined(instance, seed)
        right = [forecast(on, company) for company in companies]
        assert grade(on, questions, result(on, right)).reward == 1.0
        for name, changes in attempts.wrong_formulas(on).items():
            formulas = {**attempts.right_formulas(on), **changes}
            wrong = [forecast_of(on, company, formulas) for company in companies]
            verdict = grade(on, questions, result(on, wrong))
            assert not verdict.passed and 0 < verdict.reward < 1, (seed, name)
        assert grade(on, questions, result(on, [right[0]] * len(right))).reward < 0.2


def test_what_cannot_be_probed_earns_nothing() -> None:
    on, _, questions = examined(made(2, 1))
    for bad in (
        Recalculated(failure="it is no .xlsx file: BadZipFile"),
        Recalculated(wrong={"tax_rate": "is no defined name of the workbook"}),
        Recalculated(),
    ):
        verdict = grade(on, questions, bad)
        assert (verdict.reward, verdict.passed) == (0.0, False) and verdict.checks[0].evidence


def test_a_missing_line_or_an_error_is_a_failed_line() -> None:
    on, companies, questions = examined(made(2, 1))
    right = [forecast(on, company) for company in companies]
    whole = result(on, right)
    runs = [dict(run) for run in whole.runs]
    for run in runs:
        run["tax"] = ("Err:522", *run["tax"][1:])
        del run["ebitda"]
    verdict = grade(on, questions, Recalculated(runs=tuple(runs), wrong={"ebitda": "is no defined name"}))
    assert not verdict.passed and verdict.reward > 0.5
    income = next(check for check in verdict.checks if check.name == "income statement")
    assert "Err:522" in income.evidence and "is no defined name" in income.evidence


def test_a_typed_balance_check_is_found() -> None:
    on, companies, questions = examined(made(1, 2))
    whole = result(on, [forecast(on, company) for company in companies])
    last = {**whole.runs[-1], "balance_check": (0.0,) * on.periods}
    verdict = grade(on, questions, Recalculated(runs=(*whole.runs[:-1], last)))
    assert not verdict.passed and [check.name for check in verdict.checks if check.score < 1] == ["check is live"]


def test_level_0_grades_the_row_and_keeps_the_rest() -> None:
    for seed in range(12):
        instance = made(0, seed)
        on, companies, questions = examined(instance, seed)
        truth: Mapping[str, Any] = instance.truth
        fault = repair.Fault(**truth["fault"])
        broken = repair.broken_lines(on, companies, companies[0], fault)
        assert fault.line in broken and "total_assets" in reads(on)
        right = [forecast(on, company) for company in companies]
        assert grade(on, questions, result(on, right), broken=broken, row=fault.line).passed
        spoilt = [{**run, "capex_total": [0.0]} for run in right]
        spoilt[1] = {**spoilt[1], "gross_profit": [0.0] * on.periods}
        spoilt_verdict = grade(on, questions, result(on, spoilt), broken={"cash"}, row="cash")
        assert spoilt_verdict.reward == 0.0


@pytest.mark.parametrize("level", LEVELS)
def test_names_cover_what_the_brief_promises(level: int) -> None:
    instance = made(level, 4)
    on, _ = parts_of(instance)
    names = Layout.of(on).names()
    promised = {f"hist_{line.name}" for line in lines(on) if line.past} | {one.name for one in assumptions(on)}
    assert names.keys() == promised | reads(on).keys()
    assert all(re.fullmatch(r"[a-z_]+", name) for name in names)
    brief = render_brief(FAMILY, instance, level)
    assert "model.xlsx" in brief and "{{" not in brief
    if level:
        memo = instance.files["memo.md"].decode()
        assert all(f"`{name}`" in memo for name in reads(on)) and "{%" not in memo
        told = memo + instance.files["assumptions.csv"].decode()
        assert all(one.name in told for one in assumptions(on))
    else:
        assert len(brief) < 420


def test_the_workbook_of_level_0_is_an_xlsx_file() -> None:
    with zipfile.ZipFile(io.BytesIO(made(0, 1).files["model.xlsx"])) as archive:
        assert archive.testzip() is None and "xl/workbook.xml" in archive.namelist()
        assert b"definedName" in archive.read("xl/workbook.xml")
    assert [column(number) for number in (1, 26, 27, 703)] == ["A", "Z", "AA", "AAA"]


@pytest.mark.parametrize("level", LEVELS)
def test_solutions_end_with_submit(level: int) -> None:
    instance = made(level, 2)
    solutions = {**FAMILY.mutants(instance), **FAMILY.alternatives(instance), "oracle": FAMILY.oracle(instance)}
    assert len(FAMILY.mutants(instance)) >= 4
    assert all(calls[-1].tool == "submit" for calls in solutions.values())
