"""finance/XbrlCalcCheck on the host: statements that tie, faults that show, and the grader on planted readings."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, Verdict, instance_rng
from metier.envs.finance.xbrl_calc_check.accounts import draw_accounts
from metier.envs.finance.xbrl_calc_check.catalogue import Size
from metier.envs.finance.xbrl_calc_check.family import XbrlCalcCheck
from metier.envs.finance.xbrl_calc_check.faults import Fault
from metier.envs.finance.xbrl_calc_check.filing import Filing, filing_from_json
from metier.envs.finance.xbrl_calc_check.grading import grade
from metier.envs.finance.xbrl_calc_check.render import SUMMATION, render, role_uri
from metier.envs.finance.xbrl_calc_check.statements import printed
from metier.envs.parts.xbrl import Filing as Read
from metier.envs.parts.xbrl import normal
from metier.envs.registry import render_brief

FAMILY = XbrlCalcCheck()
LEVELS = range(5)
WHOLE = Size(statements=("balance", "income", "cash", "segments"), years=3, optional=4, repeats=6)


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng("finance/XbrlCalcCheck-v0", {}, seed, level), level)


def parts_of(instance: Instance) -> tuple[Filing, Filing, tuple[Fault, ...]]:
    truth: Mapping[str, Any] = instance.truth
    faults = tuple(Fault.from_json(one) for one in truth["faults"])
    return filing_from_json(truth["right"]), filing_from_json(truth["faulty"]), faults


def reading(filing: Filing, **changes: Any) -> Read:
    """What Arelle would read of it."""
    links = {
        (SUMMATION, role_uri(filing, arc.role), arc.parent, arc.child, str(arc.weight), "1", "None")
        for arc in filing.arcs
    }
    links.add(("http://www.xbrl.org/2003/arcrole/concept-label", "role", "Cash", "label", "label", "en", "Cash"))
    return replace(Read(facts=filing.said(), links=frozenset(links), concepts=frozenset({("Cash",)})), **changes)


def graded(instance: Instance, filing: Filing, **changes: Any) -> Verdict:
    right, faulty, faults = parts_of(instance)
    return grade(right, faults, reading(faulty), reading(filing, **changes))


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(6)}) == 6


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
@example(28424)
def test_the_right_filing_adds_up_within_its_rounding(seed: int) -> None:
    filing = draw_accounts(
        HashRng(b"%d" % seed), WHOLE, prefix="abc", company="Abc SE", currency="EUR", year=2025
    ).filing
    values = {(fact.concept, fact.context): int(fact.value) for fact in filing.facts if fact.decimals == "-3"}
    for parent in {arc.parent for arc in filing.arcs}:
        for (concept, context), value in values.items():
            if concept != parent or filing.contexts[context].dimensions:
                continue
            below = {(arc.child, arc.weight) for arc in filing.arcs if arc.parent == parent}
            total = sum(values[child, context] * weight for child, weight in below)
            assert abs(total - value) <= 500 * (len(below) + 1), parent
    for year in ("2025", "2024"):
        change = values["NetChangeInCash", f"FY{year}"]
        assert abs(values["Cash", f"YE{year}"] - values["Cash", f"YE{int(year) - 1}"] - change) <= 1500
        assert values["Assets", f"YE{year}"] == values["EquityAndLiabilities", f"YE{year}"]
        assert values["RetainedEarnings", f"YE{year}"] > 0
    assert min(value for (name, _), value in values.items() if name not in _MAY_BE_NEGATIVE) > 0


_MAY_BE_NEGATIVE = {
    *("CashFromOperations", "CashFromInvesting", "CashFromFinancing", "NetChangeInCash"),
    *("OperatingProfit", "ProfitBeforeTax", "ProfitForTheYear"),  # a year can end in a loss
}


@pytest.mark.parametrize("level", LEVELS)
def test_every_fault_shows_by_itself(level: int) -> None:
    for seed in range(4):
        instance = made(level, seed)
        right, faulty, faults = parts_of(instance)
        seen: set[object] = set()
        for fault in faults:
            assert (fault.keys or fault.arcs) and not seen & {*fault.keys, *fault.arcs}
            seen |= {*fault.keys, *fault.arcs}
        verdict = graded(instance, faulty, codes=("calc11e:inconsistentCalculationUsingRounding",))
        assert verdict.reward == 0.0 and all(check.score == 1.0 for check in verdict.checks if check.gate)
        assert graded(instance, right).reward == 1.0


@pytest.mark.parametrize("level", LEVELS)
def test_files_are_xml_and_the_statements_print_every_figure(level: int) -> None:
    instance = made(level, 3)
    right, _, _ = parts_of(instance)
    for path, data in instance.files.items():
        if path.endswith((".xml", ".xsd")):
            ET.fromstring(data)
    document = instance.files["statements.txt"].decode()
    for fact in right.facts:
        if fact.decimals == "-3":
            assert f"{abs(int(fact.value)) // 1000:,}" in document
    brief = render_brief(FAMILY, instance, level)
    assert right.entry in brief and "{{" not in brief
    assert (len(brief) < 260) == (level == 0)
    workspace = b"\n".join(instance.files.values()).decode()
    assert instance.secrets and not any(secret in workspace or secret in brief for secret in instance.secrets)


def test_the_edits_of_the_oracle_give_the_right_files() -> None:
    for level in LEVELS:
        instance = made(level, 5)
        right, faulty, _ = parts_of(instance)
        files = render(faulty)
        for call in FAMILY.oracle(instance):
            if call.tool == "edit":
                name = str(call.arguments["path"]).rpartition("/")[2]
                assert files[name].count(str(call.arguments["old"])) == 1
                files[name] = files[name].replace(str(call.arguments["old"]), str(call.arguments["new"]))
        assert files == render(right)


@pytest.mark.parametrize("level", LEVELS)
def test_deleting_losing_or_loosening_earns_nothing(level: int) -> None:
    instance = made(level, 2)
    right, _, faults = parts_of(instance)
    touched = {key for fault in faults for key in fault.keys}
    deleted = replace(right, facts=tuple(fact for fact in right.facts if right.key(fact) not in touched))
    assert graded(instance, deleted).passed is False
    kept = next(fact for fact in right.facts if right.key(fact) not in touched)
    lost = replace(right, facts=tuple(fact for fact in right.facts if fact != kept))
    loose = replace(right, facts=tuple(fact._replace(decimals="-9") for fact in right.facts))
    for filing in (lost, loose, replace(right, arcs=())):
        assert graded(instance, filing).reward == 0.0
    assert graded(instance, right, strangers=("Cash",)).reward == 0.0
    assert graded(instance, right, concepts=frozenset()).reward == 0.0
    assert graded(instance, right, failure="there is no instance").reward == 0.0


def test_one_repair_earns_its_share_and_a_duplicate_may_be_made_to_agree() -> None:
    instance = next(one for one in (made(2, seed) for seed in range(40)) if _kinds(one) >= {"duplicate"})
    right, faulty, faults = parts_of(instance)
    fault = next(fault for fault in faults if fault.kind == "duplicate")
    (wanted,) = right.said()[fault.keys[0]]
    both = {**right.said(), fault.keys[0]: (wanted, wanted)}
    assert graded(instance, right, facts=both).passed
    mended = {**faulty.said(), fault.keys[0]: (wanted,)}
    verdict = graded(instance, faulty, facts=mended, codes=("x",), messages=("[x] y",))
    assert 0 < verdict.reward < 0.5


def _kinds(instance: Instance) -> set[str]:
    return {fault.kind for fault in parts_of(instance)[2]}


def test_every_kind_of_fault_occurs() -> None:
    kinds = set().union(*(_kinds(made(level, seed)) for level in (2, 3, 4) for seed in range(8)))
    assert len(kinds) == 13


def test_statements_are_printed_with_parentheses_for_what_is_subtracted() -> None:
    accounts = draw_accounts(HashRng(b"1"), WHOLE, prefix="abc", company="Abc SE", currency="EUR", year=2025)
    text = printed(accounts.filing, accounts.statements)
    cost = next(line for line in text.splitlines() if "Cost of sales" in line)
    assert cost.count("(") == 3
    assert [normal(value) for value in ("1000", "1.50", "-0", "x")] == ["1000", "1.5", "-0", "x"]
