"""terminal/CMakeTargetRepair on the host: instances, faults, and the judgement of seen facts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, instance_rng
from metier.envs.registry import render_brief
from metier.envs.terminal.cmake_target_repair.downstream import expected, package_consumer, vendoring
from metier.envs.terminal.cmake_target_repair.family import CMakeTargetRepair
from metier.envs.terminal.cmake_target_repair.faults import FAULTS, apply, planted
from metier.envs.terminal.cmake_target_repair.grading import grade
from metier.envs.terminal.cmake_target_repair.levels import LEVELS, build
from metier.envs.terminal.cmake_target_repair.measuring import Seen
from metier.envs.terminal.cmake_target_repair.project import Project

ENV_ID = "terminal/CMakeTargetRepair-v0"
FAMILY = CMakeTargetRepair()
NUMBERS = range(len(LEVELS))
INPUTS = [17, 400, 9001]


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


@pytest.mark.parametrize("level", NUMBERS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(4)}) == 4


@pytest.mark.parametrize("level", NUMBERS)
def test_nothing_is_left_unfilled_and_no_secret_is_shown(level: int) -> None:
    for seed in range(12):
        instance = made(level, seed)
        brief = render_brief(FAMILY, instance, level)
        shown = brief + "\n".join(data.decode() for data in instance.files.values())
        assert "<<P" not in shown and ">>" not in brief
        assert instance.secrets
        assert all(len(secret) > 20 and secret not in shown for secret in instance.secrets)
        assert all(artefact.path in brief for artefact in instance.artefacts)


@pytest.mark.parametrize("level", NUMBERS)
def test_the_oracle_restores_the_files_and_every_attempt_ends_with_submit(level: int) -> None:
    for seed in range(4):
        instance = made(level, seed)
        files = {path: data.decode() for path, data in instance.files.items()}
        for call in FAMILY.oracle(instance):
            if call.tool == "edit":
                path = str(call.arguments["path"])
                assert files[path].count(str(call.arguments["old"])) == 1
                files[path] = files[path].replace(str(call.arguments["old"]), str(call.arguments["new"]))
        truth: Any = instance.truth
        right = Project(shape=LEVELS[level].shape, names=truth["names"], numbers=truth["numbers"]).cmake
        assert {path: files[path] for path in right} == right
        mutants = FAMILY.mutants(instance)
        assert {"prebuilt_library", "everything_for_everybody", "headers_edited"} <= mutants.keys()
        attempts = [*mutants.values(), *FAMILY.alternatives(instance).values()]
        assert all(calls[-1].tool == "submit" for calls in attempts)


@pytest.mark.parametrize("level", NUMBERS)
def test_every_fault_of_a_level_applies_and_spoils_some_fact(level: int) -> None:
    knobs = LEVELS[level]
    project = Project.draw(HashRng(b"faults"), knobs.shape)
    facts = expected(project, INPUTS)
    known = {fault.name: fault for fault in FAULTS}
    for name in knobs.faults:
        fault = known[name]
        assert fault.needs(knobs.shape)
        assert planted(project, [fault]) != project.cmake
        assert apply(project, project.cmake, fault.other) is not None
        assert any(re.match(project.fill(fault.spoils), fact) for fact in facts)


def test_every_fault_occurs_at_some_level() -> None:
    assert {fault.name for fault in FAULTS} == {name for level in LEVELS for name in level.faults}


@given(st.integers(0, 10**6), st.sampled_from(NUMBERS))
@settings(max_examples=60, deadline=None)
def test_faults_of_an_instance_are_planted_and_mended_together(seed: int, level: int) -> None:
    project, faults = build(LEVELS[level], HashRng(b"%d" % seed))
    assert len(faults) == LEVELS[level].count
    assert planted(project, faults) != project.cmake
    files = project.cmake
    for fault in faults:
        files = apply(project, files, fault.other)
    assert files.keys() == project.cmake.keys()


@pytest.mark.parametrize("level", NUMBERS)
def test_only_all_facts_pass_and_what_was_right_is_a_gate(level: int) -> None:
    project, faults = build(LEVELS[level], HashRng(b"grade"))
    facts = expected(project, INPUTS)
    assert grade(project, faults, INPUTS, Seen(facts=facts, problems={})).passed
    assert grade(project, faults, INPUTS, Seen(facts={}, problems={"static": ["nothing"]})).reward == 0.0
    patterns = [re.compile(project.fill(fault.spoils)) for fault in faults]
    for fact in facts:
        wrong = grade(project, faults, INPUTS, Seen(facts={**facts, fact: "other"}, problems={}))
        assert not wrong.passed
        if not any(pattern.match(fact) for pattern in patterns):
            assert wrong.reward == 0.0


def test_consumers_use_every_library_and_know_no_expected_value() -> None:
    project = Project.draw(HashRng(b"consumers"), LEVELS[4].shape)
    texts = "\n".join([*package_consumer(project).values(), *vendoring(project).values()])
    facts = expected(project, INPUTS)
    assert all(f"{project.names['P']}::{project.names[role]}" in texts for role in project.libraries)
    assert all(value not in texts for name, value in facts.items() if ":value_" in name and len(value) > 4)
