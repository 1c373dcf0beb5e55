"""finance/CovenantTest without a sandbox's processes: its verifier only reads the answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metier.envs.core import Deadline, HashRng, Instance, SandboxLost, SandboxSpec, Verdict, instance_rng
from metier.envs.finance.covenant_test import terms
from metier.envs.finance.covenant_test.deal import Mistake
from metier.envs.finance.covenant_test.draw import KNOBS, draw
from metier.envs.finance.covenant_test.family import CovenantTest
from metier.envs.finance.covenant_test.grading import grade
from metier.envs.finance.covenant_test.working import working
from metier.envs.registry import render_brief
from metier.harness.sandbox.fake import FakeBackend, FakeSandbox

ENV_ID = "finance/CovenantTest-v0"
LEVELS = range(5)
FAMILY = CovenantTest()


def made(level: int, seed: int) -> Instance:
    return FAMILY.generate(instance_rng(ENV_ID, {}, seed, level), level)


def graded(instance: Instance, answer: str) -> Verdict:
    tested = [terms.Tested.from_json(one) for one in results_of(instance)]
    return grade(answer, tested, evidence=instance.variables["level"] != 0)


def results_of(instance: Instance) -> list[Any]:
    tested = instance.truth["tested"]
    assert isinstance(tested, list)
    return tested


@asynccontextmanager
async def verifier_sandbox() -> AsyncIterator[FakeSandbox]:
    deadline = Deadline.after(60, limit="test", set_by="test")
    async with FakeBackend() as backend:
        yield await backend.acquire(SandboxSpec(image="terminal-python", verifier=True), deadline=deadline)


def last_answer(calls: Any) -> str:
    return str(calls[-1].arguments["answer"])


@pytest.mark.parametrize("level", LEVELS)
def test_instances_repeat_and_differ_by_seed(level: int) -> None:
    assert made(level, 1) == made(level, 1)
    assert len({repr(sorted(made(level, seed).files.items())) for seed in range(40)}) == 40


@pytest.mark.parametrize("level", LEVELS)
def test_right_answers_pass_and_wrong_ones_fail(level: int) -> None:
    for seed in range(12):
        instance = made(level, seed)
        for calls in (FAMILY.oracle(instance), *FAMILY.alternatives(instance).values()):
            assert graded(instance, last_answer(calls)).reward == 1.0
        mutants = FAMILY.mutants(instance)
        assert len(mutants) >= 3
        for name, calls in mutants.items():
            assert not graded(instance, last_answer(calls)).passed, (seed, name)
        assert graded(instance, "").reward == 0.0


@pytest.mark.parametrize("level", LEVELS)
def test_the_answer_lies_in_no_file_and_the_brief_names_every_file(level: int) -> None:
    instance = made(level, 3)
    workspace = b"\n".join(instance.files.values()).decode()
    brief = render_brief(FAMILY, instance, level)
    assert instance.secrets
    assert all(secret not in workspace and secret not in brief for secret in instance.secrets)
    assert all(f"`{path}`" in brief for path in instance.files)


def test_level_0_is_short() -> None:
    for seed in range(30):
        instance = made(0, seed)
        assert len(render_brief(FAMILY, instance, 0)) < 270
        assert sum(map(len, instance.files.values())) < 420
        assert [call.tool for call in FAMILY.oracle(instance)] == ["shell", "shell", "submit"]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
def test_the_working_paper_gives_the_tested_values(level: int) -> None:
    for seed in range(12):
        drawn = draw(HashRng(b"%d" % seed), KNOBS[level])
        printed: list[float] = []
        exec(working(drawn.deal, drawn.ledger), {"print": lambda *values, into=printed: into.extend(values)})
        assert printed == pytest.approx([float(one.value) for one in drawn.tested], rel=1e-12)


def test_both_results_and_every_mistake_occur() -> None:
    drawn = [draw(HashRng(b"%d" % seed), KNOBS[4]) for seed in range(30)]
    statuses = [one.status for deal in drawn for one in deal.tested]
    assert 0.25 < statuses.count("pass") / len(statuses) < 0.75
    assert set().union(*(deal.mistaken for deal in drawn)) == set(Mistake)
    assert (
        len({deal.deal.cure.valid_amount(deal.ledger, deal.deal.quarter) > 0 for deal in drawn if deal.deal.cure}) == 2
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer + " pass",
        lambda answer: answer + "\n" + answer,
        lambda answer: answer.replace("ratio=", "ratio=0"[:-1] + "1"),
        lambda answer: answer.replace("ratio=", "ratio=nan "),
        lambda answer: "The answer: " + answer,
        lambda answer: answer + "\nliquidity: value=1 limit=1 pass clause=1",
        lambda answer: answer.split()[0],
        lambda answer: answer.split()[1],
    ],
)
def test_hedged_doubled_or_broken_answers_are_wrong(change: Any) -> None:
    instance = made(0, 5)
    right = last_answer(FAMILY.oracle(instance))
    assert graded(instance, right).passed
    assert graded(instance, change(right)).reward == 0.0


def test_evidence_counts_from_level_1() -> None:
    instance = made(2, 4)
    right = last_answer(FAMILY.oracle(instance))
    for field in ("limit=", "clause="):
        wrong = " ".join(f"{field}9.99" if word.startswith(field) else word for word in right.split(" "))
        assert not graded(instance, wrong).passed
    first, second = right.splitlines()
    assert graded(instance, first).reward == 0.5
    assert graded(instance, f"{second}\n\n{first.replace('clause=', 'Clause=')}\n").passed


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    assert graded(made(0, 1), text).reward in (0.0, 1.0)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"ratio=1 pass " * 1000, None])
async def test_an_unreadable_answer_is_a_failed_check(data: bytes | None) -> None:
    instance = made(0, 1)
    async with verifier_sandbox() as sandbox:
        if data is not None:
            await sandbox.write("/workspace/answer", data)
        verdict = await FAMILY.verify(sandbox, instance, HashRng(b"hidden"))
    assert (verdict.reward, verdict.passed) == (0.0, False)


async def test_a_lost_sandbox_is_no_wrong_answer() -> None:
    async with verifier_sandbox() as sandbox:
        sandbox.lose()
        with pytest.raises(SandboxLost):
            await FAMILY.verify(sandbox, made(0, 1), HashRng(b"hidden"))
