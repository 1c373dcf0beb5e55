"""What a main job says it found: the claim follows the intervals, and every figure in the table is from the stages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metier.harness.evaluate import Rate
from metier.trainer.main_job.report import Report, Stage

COV, PYM = "finance/CovenantTest-v0", "terminal/PyMutationRepair-v0"


def stage(name: str, passed: int, *, of: int = 80) -> Stage:
    """Half the passes in each of two environments."""

    def rates(count: int) -> dict[str, Rate]:
        return {env: Rate(passed=count // 2, valid=of, requested=of) for env in (COV, PYM)}

    return Stage(name=name, rates=rates(passed), train_s=60.0, train_tokens=1000)


def report(*stages: Stage) -> Report:
    return Report(plan={}, versions={}, stages=list(stages), steps=[{"reward": 0.25}, {"reward": 0.5}])


@pytest.mark.parametrize(("after", "verdict"), [(120, "apart: it rose"), (60, "OVERLAPPING"), (20, "apart: it FELL")])
def test_the_claim_is_made_only_where_the_intervals_are_apart(after: int, verdict: str) -> None:
    said = report(stage("SFT", 48), stage("SFT + GRPO", after)).conclusion()
    assert f"the 95% intervals are {verdict}" in said


@pytest.mark.parametrize(("control", "where"), [(40, "below"), (118, "not apart from"), (150, "above")])
def test_the_control_is_named_beside_it(control: int, where: str) -> None:
    stages = stage("SFT", 48), stage("SFT + GRPO", 120), stage("SFT only, equal compute", control)
    assert f"its interval is {where} GRPO's" in report(*stages).conclusion()


def test_the_table_has_a_line_a_stage() -> None:
    table = report(stage("SFT", 48), stage("SFT + GRPO", 120)).table().splitlines()
    assert [line.split(" | ")[0] for line in table[2:]] == ["| SFT", "| SFT + GRPO"]
    assert len({line.count("|") for line in table}) == 1
    assert "**30% [23, 38] (n=160)**" in table[2]


def test_record_and_plot_are_written(tmp_path: Path) -> None:
    found = report(stage("SFT", 48), stage("SFT + GRPO", 120))
    found.save(tmp_path)
    assert json.loads((tmp_path / "record.json").read_text())["stages"][1]["rates"][COV]["passed"] == 60
    assert found.plot(tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
