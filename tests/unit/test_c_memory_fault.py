"""terminal/CMemoryFault on the host: instances, faults, models, and the judgement of measured runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, VerifierError, instance_rng
from metier.envs.parts.c_program import Ended, Measured
from metier.envs.parts.hunks import hunks
from metier.envs.registry import render_brief
from metier.envs.terminal.c_memory_fault.family import CMemoryFault
from metier.envs.terminal.c_memory_fault.fault import Theme
from metier.envs.terminal.c_memory_fault.grading import FLAGS, PLAIN, Exam, examine, grade
from metier.envs.terminal.c_memory_fault.project import THEMES, apply, planted, sources

ENV_ID = "terminal/CMemoryFault-v0"
LEVELS = range(5)
FAMILY = CMemoryFault()
CLEAN = """\
in use at exit: 0 bytes in 0 blocks
total heap usage: 100 allocs, 100 frees, 9,000 bytes allocated
ERROR SUMMARY: 0 errors
"""


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def ended(stdout: str, *, code: int = 0, log: str = CLEAN) -> Ended:
    return Ended(code=code, late=False, stdout=stdout.encode(), stderr="", log=log)


def right_runs(exam: Exam) -> list[Ended]:
    runs = [ended(exam.answers[text]) for text in (*exam.quiet, exam.plenty)]
    for text in (*exam.shows, exam.whole):
        runs += [ended(exam.answers[text]), ended(exam.answers[text])]
    return runs


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(4)}) == 4


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_has_its_number_of_faults_and_shows_no_secret(level: int) -> None:
    for seed in range(8):
        instance = made(level, seed)
        truth: Any = instance.truth
        assert len(truth["faults"]) == (1, 1, 2, 3, 4)[level] == len(set(truth["faults"]))
        shown = render_brief(FAMILY, instance, level) + "".join(data.decode() for data in instance.files.values())
        assert instance.secrets
        assert all(len(secret) > 30 and secret not in shown for secret in instance.secrets)


@pytest.mark.parametrize("level", LEVELS)
def test_attempts_end_with_submit_and_the_oracle_restores_the_program(level: int) -> None:
    instance = made(level, 3)
    truth: Any = instance.truth
    files = dict(truth["faulty"])
    for call in FAMILY.oracle(instance):
        if call.tool == "edit":
            path = str(call.arguments["path"]).removeprefix("src/")
            assert files[path].count(str(call.arguments["old"])) == 1
            files[path] = files[path].replace(str(call.arguments["old"]), str(call.arguments["new"]))
    assert files == truth["right"]
    attempts = [*FAMILY.mutants(instance).values(), *FAMILY.alternatives(instance).values()]
    assert all(calls[-1].tool == "submit" for calls in attempts)
    assert {"own_pool", "nothing_freed", "sanitizers_off", "signals_caught", "padded"} <= FAMILY.mutants(
        instance
    ).keys()


@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_every_fault_can_be_planted_under_every_name(theme: Theme) -> None:
    for seed in range(12):
        names = theme.names(HashRng(b"%d" % seed))
        right = sources(theme, names)
        assert not any("$" in text for text in right.values())
        for fault in theme.faults:
            assert planted(right, [fault], names) != right
            assert apply(right, fault.other, names) is not None
            assert theme.answer(fault.lines(HashRng(b"lines"), names), names)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_models_answer_everyday_commands(seed: int) -> None:
    for theme in THEMES.values():
        rng = HashRng(b"%d" % seed)
        names = theme.names(rng.child("names"))
        lines = theme.talk(rng.child("talk"), names, 60)
        assert theme.answer(lines, names) == theme.answer(list(lines), names)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES.values(), ids=lambda theme: theme.name)
def test_the_right_program_prints_what_the_model_says(theme: Theme, tmp_path: Path) -> None:
    rng = HashRng(b"right")
    names = theme.names(rng)
    right = sources(theme, names)
    for path, text in right.items():
        (tmp_path / path).write_text(text)
    units = [path for path in right if path.endswith(".c")]
    build = ["gcc", *FLAGS, *PLAIN, "-Wall", "-Wextra", "-Werror", *units, "-o", "program"]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=60)
    for seed in range(20):
        lines = theme.talk(rng.child(f"{seed}"), names, 200)
        given_text = "".join(f"{line}\n" for line in lines)
        done = subprocess.run([tmp_path / "program"], input=given_text, capture_output=True, text=True, timeout=20)
        assert (done.returncode, done.stdout) == (0, theme.answer(lines, names))


def test_the_judge_wants_answers_cleanness_and_the_same_heap() -> None:
    exam = examine(made(2, 0).truth, HashRng(b"hidden"))
    ours = Measured(runs=(ended(exam.answers[exam.whole]), ended(exam.answers[exam.plenty])))
    right = right_runs(exam)
    assert grade(exam, ours, Measured(runs=tuple(right))).passed
    at = len(exam.quiet) + 1
    faulty = ended(right[at + 1].stdout.decode(), log=CLEAN.replace("SUMMARY: 0", "SUMMARY: 2"))
    leaking = ended(right[at + 1].stdout.decode(), log=CLEAN.replace("exit: 0 bytes", "exit: 8 bytes"))
    pooled = ended(exam.answers[exam.whole], log=CLEAN.replace("100 allocs", "2 allocs"))
    padded = ended(exam.answers[exam.whole], log=CLEAN.replace("9,000", "19,000"))
    for place, run in ((at + 1, faulty), (at + 1, leaking), (-1, pooled), (-1, padded), (at, ended("", code=99))):
        runs = list(right)
        runs[place] = run
        verdict = grade(exam, ours, Measured(runs=tuple(runs)))
        assert not verdict.passed and 0.0 < verdict.reward < 1.0
    pool = ended(exam.answers[exam.plenty], log=CLEAN.replace("100 allocs", "2 allocs"))
    assert grade(exam, ours, Measured(runs=(*right[: at - 1], pool, *right[at:]))).reward == 0.0
    broken = grade(exam, ours, Measured(runs=(ended("x"), *right[1:])))
    assert (broken.reward, broken.passed) == (0.0, False)
    assert grade(exam, ours, Measured(runs=(), failure="main.c: error")).reward == 0.0


def test_a_right_program_that_is_not_clean_is_our_own_fault() -> None:
    exam = examine(made(0, 0).truth, HashRng(b"hidden"))
    ours = Measured(runs=(ended("x"), ended("x")))
    with pytest.raises(VerifierError):
        grade(exam, ours, Measured(runs=tuple(right_runs(exam))))


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
@settings(max_examples=200, deadline=None)
def test_hunks_lead_from_one_text_to_the_other(before: list[str], after: list[str]) -> None:
    text, wanted = ("".join(f"{line}\n" for line in lines) for lines in (before, after))
    for hunk in hunks(text, wanted):
        assert text.count(hunk.old) == 1
        text = text.replace(hunk.old, hunk.new)
    assert text == wanted
