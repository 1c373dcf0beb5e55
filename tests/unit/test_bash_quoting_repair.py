"""terminal/BashQuotingRepair on the host: scripts, trees, the model, and runs in the host's own bash."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.registry import render_brief
from metier.envs.terminal.bash_quoting_repair import case_probe
from metier.envs.terminal.bash_quoting_repair.family import BashQuotingRepair, plan_of
from metier.envs.terminal.bash_quoting_repair.grading import difference, draw_cases, judge, request
from metier.envs.terminal.bash_quoting_repair.hostile import LEVELS as CATEGORIES
from metier.envs.terminal.bash_quoting_repair.model import World, expect
from metier.envs.terminal.bash_quoting_repair.script import Plan, written
from metier.envs.terminal.bash_quoting_repair.steps import STEPS

ENV_ID = "terminal/BashQuotingRepair-v0"
FAMILY = BashQuotingRepair()
LEVELS = range(5)
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def run(plan: Plan, text: str, cases: list[Any], folder: Path) -> list[dict[str, Any]]:
    (folder / "script.sh").write_text(text)
    return case_probe.run_all(str(folder / "script.sh"), [request(plan, case) for case in cases])


@given(st.integers(0, 4), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_instances_repeat_and_hide_the_right_functions(level: int, seed: int) -> None:
    instance = made(level, seed)
    assert instance == made(level, seed)
    assert json.dumps(dict(instance.truth))
    plan = plan_of(instance)
    brief = render_brief(FAMILY, instance, level)
    shown = brief + "".join(data.decode("latin-1") for data in instance.files.values())
    assert instance.secrets
    assert not any(secret in shown for secret in instance.secrets)
    assert all(plan.filled(step.duty) in brief for step in plan.steps)
    assert instance.truth["old"] != written(plan, {})


def test_levels_have_more_duties_and_more_that_can_go_wrong() -> None:
    plans = [plan_of(made(level, 0)) for level in LEVELS]
    sizes = [(len(plan.names), len(CATEGORIES[level])) for level, plan in enumerate(plans)]
    assert sizes == sorted(sizes)
    assert [plan.works for plan in plans] == [False, False, False, True, True]
    assert [plan.locks for plan in plans] == [False, False, False, False, True]


@given(st.integers(0, 4), st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
def test_cases_follow_the_hidden_stream_and_the_model_is_pure(level: int, seed: int) -> None:
    plan = plan_of(made(level, 1))
    cases = draw_cases(plan, level, HashRng(b"%d" % seed))
    assert [case.category for case in cases] == list(CATEGORIES[level])
    assert cases == draw_cases(plan, level, HashRng(b"%d" % seed))
    for case in cases:
        names = case.world.source
        assert not any(name.startswith(other + b"/") for name in names for other in names)
        after = expect(plan, copy.deepcopy(case.world))
        assert after == expect(plan, copy.deepcopy(case.world))
        assert json.dumps(request(plan, case))


def test_the_model_does_what_the_duties_say() -> None:
    words = {"LIST": "l", "KEEP": "k", "FOLDER": "f", "SPOOL": "s", "OLD": "a", "NEW": "b", "EXT": "x", "SUB": "t"}
    words |= {"FEED": "feed", "MANIFEST": "m", "TOOL": "tool", "LOCK": ".lock", "SELF": "me", "SRC": "S", "DST": "D"}
    plan = Plan(names=tuple(step.name for step in STEPS), words=words, works=True, locks=True)
    source = {b"l": b"gone\n\n x", b"k": b"*\n", b"gone": b"", b" x": b"", b"f/*": b"", b"f/y": b"", b"s/q": b""}
    source |= {b"s/d/z.x": b"12", b"n.a": b"1", b"o.a": b"2", b"o.b": b"3"}
    world = World(source=dict(source), folders={b"f", b"s", b"s/d"}, tool_lines=(b"b", b"a", b"b"))
    after = expect(plan, copy.deepcopy(world))
    assert after.source == {b"l": b"gone\n\n x", b"k": b"*\n", b"f/*": b"", b"n.b": b"1", b"o.a": b"2", b"o.b": b"3"}
    assert after.target == {b"t/s/d/z.x": b"12", b"feed": b"a\nb\n", b"m": b"2 s/d/z.x\0"}
    assert after.folders == {b"f"}
    assert after.printed == b"left: 6\n"
    failed = expect(plan, World(source=dict(source), folders={b"f"}, tool_status=9))
    assert failed.status == 9
    assert b"m" not in failed.target
    assert expect(plan, World(source=dict(source), locked=True)).source == source


@needs_bash
@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_right_scripts_pass_and_near_misses_do_not(level: int, tmp_path: Path) -> None:
    instance = made(level, 3)
    plan, old = plan_of(instance), str(instance.truth["old"])
    cases = draw_cases(plan, level, HashRng(b"hidden"))
    before = run(plan, old, cases, tmp_path)
    assert judge(plan, cases, before, before).reward == 0.0
    assert not difference(plan, cases[0], before[0])  # plain names were right before
    for forms in (plan.all_as("right"), plan.all_as("other")):
        verdict = judge(plan, cases, before, run(plan, written(plan, forms), cases, tmp_path))
        assert verdict.passed, verdict
    near = run(plan, written(plan, plan.all_as("near")), cases, tmp_path)
    assert not judge(plan, cases, before, near).passed


@needs_bash
def test_a_script_that_does_nothing_fails_the_gate(tmp_path: Path) -> None:
    instance = made(0, 0)
    plan = plan_of(instance)
    cases = draw_cases(plan, 0, HashRng(b"hidden"))
    before = run(plan, str(instance.truth["old"]), cases, tmp_path)
    verdict = judge(plan, cases, before, run(plan, "exit 0\n", cases, tmp_path))
    assert verdict.reward == 0.0
    assert any(check.gate and check.score == 0.0 for check in verdict.checks)


def test_a_forged_answer_is_a_wrong_one() -> None:
    plan = plan_of(made(4, 0))
    case = draw_cases(plan, 4, HashRng(b"hidden"))[0]
    for answer in ({}, {"status": 0}, {"status": 0, "source": []}, {"failure": "did not end"}):
        assert difference(plan, case, answer)


def test_every_attempt_ends_with_submit() -> None:
    for level in LEVELS:
        instance = made(level, 0)
        attempts = {**FAMILY.mutants(instance), **FAMILY.alternatives(instance), "oracle": FAMILY.oracle(instance)}
        assert all(calls[-1].tool == "submit" for calls in attempts.values())
        assert {"quoted_by_rote", "always_exit_0", "does_nothing", "knows_the_sample"} <= attempts.keys()
