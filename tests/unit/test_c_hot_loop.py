"""terminal/CHotLoop on the host: instances, models of the kernels, and the marks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metier.envs.core import HashRng, Instance, VerifierError, instance_rng
from metier.envs.parts.c_program import Ended, Measured
from metier.envs.parts.callgrind import counted
from metier.envs.registry import render_brief
from metier.envs.terminal.c_hot_loop import driver
from metier.envs.terminal.c_hot_loop.family import CHotLoop
from metier.envs.terminal.c_hot_loop.grading import KERNELS, economy, exactness, examine, progress
from metier.envs.terminal.c_hot_loop.kernel import Kernel

ENV_ID = "terminal/CHotLoop-v0"
LEVELS = range(5)
FAMILY = CHotLoop()
COUNT = "==12== Callgrind\n==12== Collected : 1234\n"


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def ended(stdout: bytes = b"", *, code: int = 0, late: bool = False, log: str = "") -> Ended:
    return Ended(code=code, late=late, stdout=stdout, stderr="", log=log)


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert (
        len({made(level, seed).files["kernel.h"] + made(level, seed).files["data/large.in"] for seed in range(3)}) == 3
    )


@pytest.mark.parametrize("level", LEVELS)
def test_no_secret_is_shown_and_the_brief_names_what_is_graded(level: int) -> None:
    instance = made(level, 2)
    brief = render_brief(FAMILY, instance, level)
    shown = brief + "".join(data.decode("latin-1") for data in instance.files.values())
    assert "kernel.c" in brief and str(instance.variables["function"]) in brief
    assert all(len(secret) > 60 and secret not in shown for secret in instance.secrets)


@pytest.mark.parametrize("level", LEVELS)
def test_every_attempt_ends_with_submit(level: int) -> None:
    instance = made(level, 0)
    mutants = FAMILY.mutants(instance)
    assert {"work_before_main", "work_in_a_child", "sees_the_counter", "answers_remembered"} <= mutants.keys()
    assert all(calls[-1].tool == "submit" for calls in [FAMILY.oracle(instance), *mutants.values()])


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_versions_have_text_of_their_own_and_inputs_their_sizes(kernel: Kernel) -> None:
    rng = HashRng(b"kernel")
    constants = {**kernel.constants(rng), "fn": kernel.functions[0]}
    texts = [
        kernel.source(text, constants) for text in (kernel.naive, kernel.fast, kernel.other, kernel.lazy, kernel.wrong)
    ]
    assert len(set(texts)) == 5
    assert all("$" not in text and kernel.prototype(constants) in text for text in texts)
    for given_input in [*kernel.edges(rng, constants), kernel.shape(rng, constants)]:
        assert len(kernel.expected(constants, given_input)) % 1 == 0
        assert len(kernel.encode(given_input)) >= 4 * len(kernel.scalars)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda kernel: kernel.name)
def test_the_c_agrees_with_the_model_and_the_wrong_one_does_not(kernel: Kernel, tmp_path: Path) -> None:
    rng = HashRng(b"agree")
    constants = {**kernel.constants(rng), "fn": kernel.functions[0]}
    (tmp_path / "kernel.h").write_text(driver.header(kernel, constants))
    (tmp_path / "main.c").write_text(driver.main(kernel, constants))
    inputs = [*kernel.edges(rng.child("edges"), constants), kernel.shape(rng.child("large"), constants)]
    for name in ("naive", "fast", "other", "lazy", "wrong"):
        (tmp_path / "kernel.c").write_text(kernel.source(getattr(kernel, name), constants))
        build = ["gcc", *driver.FLAGS, "-Werror", "main.c", "kernel.c", "-o", name]
        subprocess.run(build, cwd=tmp_path, check=True, timeout=60)
        right = [
            subprocess.run([tmp_path / name], input=kernel.encode(one), capture_output=True, timeout=60).stdout
            == kernel.expected(constants, one)
            for one in inputs
        ]
        assert all(right) is (name != "wrong"), (name, right)


@given(st.integers(2, 10**9), st.integers(1, 10**6), st.integers(1, 10**9))
@settings(max_examples=200, deadline=None)
def test_progress_lies_between_the_marks_and_never_falls_with_fewer_instructions(
    naive: int, fast: int, count: int
) -> None:
    if fast * 2 >= naive:
        return
    here = progress(naive, fast, count, 1.35)
    assert 0.0 <= here <= 1.0
    assert progress(naive, fast, max(1, count // 2), 1.35) >= here
    assert progress(naive, fast, naive, 1.35) == 0.0
    assert progress(naive, fast, fast, 1.35) == 1.0


def test_only_exact_bytes_pass_the_gate() -> None:
    exam = examine(made(1, 0).truth, HashRng(b"hidden"))
    right = [ended(wanted) for wanted in exam.expected]
    ours = Measured(runs=tuple(right))
    assert exactness(exam, ours, ours).score == 1.0
    for bad in (
        ended(b""),
        ended(exam.expected[-1] + b"\0"),
        ended(exam.expected[-1], code=-11),
        ended(late=True),
        None,
    ):
        assert exactness(exam, ours, Measured(runs=(*right[:-1], bad))).score == 0.0
    assert exactness(exam, ours, Measured(runs=(), failure="does not build")).score == 0.0


def test_a_naive_kernel_that_runs_out_of_time_is_our_own_fault() -> None:
    exam = examine(made(1, 0).truth, HashRng(b"hidden"))
    right = [ended(wanted) for wanted in exam.expected]
    starved = Measured(runs=(*right[:-1], ended(late=True)))
    with pytest.raises(VerifierError):
        exactness(exam, starved, starved)
    measured = [Measured(runs=(ended(log=COUNT), ended(log=COUNT)))] * 4
    measured[1] = Measured(runs=(ended(log=COUNT), ended(late=True)))
    with pytest.raises(VerifierError):
        economy(exam, measured, 1.35)


def test_held_out_inputs_follow_the_hidden_stream() -> None:
    truth = made(3, 0).truth
    assert examine(truth, HashRng(b"a")) == examine(truth, HashRng(b"a"))
    assert examine(truth, HashRng(b"a")).inputs != examine(truth, HashRng(b"b")).inputs


def test_a_count_is_that_of_one_process_that_ended_well() -> None:
    one = COUNT
    assert counted(ended(b"x", log=one)).instructions == 1234
    assert counted(ended(b"x", log=one + "==13== Collected : 5\n")).instructions is None
    assert counted(ended(b"x", log="")).instructions is None
    assert counted(ended(b"x", log=one, code=1)).instructions is None
    assert counted(ended(b"x", log=one, late=True)).instructions is None
    assert counted(None).instructions is None
