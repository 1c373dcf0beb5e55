"""Solve rates are attached to a certificate and shown, and change nothing of what it is worth."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from typer.testing import CliRunner

from certified_echo import ID, certificate, weighed_echo
from metier.cli import app
from metier.envs import registry
from metier.envs.core import ConfigError, Outcome
from metier.harness.certify import (
    SolveRate,
    Status,
    attach_rates,
    certificate_status,
    environment_digest,
    load,
    read_rates,
    save,
)
from metier.harness.certify.gates import GATES
from metier.harness.certify.run import _with_rates
from metier.harness.result import EpisodeResult

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "experiments" / "2026-12-01-main-job" / "record.json"
SFT = SolveRate(policy="tiny, SFT", level=0, passed=3, valid=8, date="2026-12-01")


@pytest.fixture
def weighed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with weighed_echo(tmp_path, monkeypatch) as package:
        yield package


def valid_certificate() -> Any:
    """Valid today, as far as anybody can tell from it."""
    entry = registry.get(ID)
    gates: Any = [
        {"name": gate.name, "version": gate.version, "claim": gate.claim, "green": True, "tried": 1, "seconds": 1.0}
        for gate in GATES
    ]
    return certificate(environment_digest=environment_digest(entry), gates=gates)


def lines(path: Path, *results: tuple[int, Outcome, bool]) -> Path:
    """Episodes as a main job keeps them."""
    with path.open("w") as file:
        for seed, (level, outcome, passed) in enumerate(results):
            graded = {"reward": float(passed), "passed": passed} if outcome.graded else {}
            result = EpisodeResult(env_id=ID, seed=seed, level=level, sample=0, outcome=outcome, **graded)
            file.write(json.dumps(result.model_dump(mode="json")) + "\n")
    return path


def test_attaching_changes_neither_the_digest_nor_what_the_certificate_is_worth(weighed: Path) -> None:
    entry = registry.get(ID)
    before = valid_certificate()
    save(entry, before)
    digest = environment_digest(entry)
    assert certificate_status(entry) is Status.VALID
    attach_rates(entry, [SFT])
    assert certificate_status(entry) is Status.VALID
    assert environment_digest(entry) == digest
    after = load(entry)
    assert after is not None
    assert after.solve_rates == (SFT,)
    assert after.model_copy(update={"solve_rates": ()}) == before


def test_the_same_measurement_replaces_itself_and_others_stay_in_order(weighed: Path) -> None:
    entry = registry.get(ID)
    save(entry, certificate())
    later = SFT.model_copy(update={"date": "2026-12-02"})
    harder = SFT.model_copy(update={"level": 2})
    attach_rates(entry, [harder, later])
    corrected = SFT.model_copy(update={"passed": 4})
    attach_rates(entry, [SFT])
    assert attach_rates(entry, [corrected]).solve_rates == (corrected, later, harder)


def test_certifying_again_keeps_them(weighed: Path) -> None:
    entry = registry.get(ID)
    assert _with_rates(entry, certificate()).solve_rates == ()
    save(entry, certificate(solve_rates=(SFT,)))
    assert _with_rates(entry, certificate(made_at="2026-12-03T00:00:00+00:00")).solve_rates == (SFT,)


def test_what_cannot_be_attached_is_said(weighed: Path) -> None:
    entry = registry.get(ID)
    with pytest.raises(ConfigError, match="no certificate to attach solve rates to: run `metier certify"):
        attach_rates(entry, [SFT])
    save(entry, certificate())
    with pytest.raises(ConfigError, match="levels 0 to 2, not 7"):
        attach_rates(entry, [SFT.model_copy(update={"level": 7})])
    assert load(entry) == certificate()
    with pytest.raises(pydantic.ValidationError, match="9 passed of 8"):
        SolveRate(policy="p", level=0, passed=9, valid=8, date="2026-12-01")


def test_a_main_jobs_record_tells_whose_they_are() -> None:
    rates = read_rates(RECORD, date="2026-12-01")
    assert set(rates) == {"finance/CovenantTest-v0", "terminal/PyMutationRepair-v0"}
    record = json.loads(RECORD.read_text())
    stages = {stage["name"]: stage["rates"] for stage in record["stages"]}
    for env_id, found in rates.items():
        assert {rate.policy for rate in found} == {f"smollm2-135m, {name}" for name in stages}
        for rate in found:
            counted = stages[rate.policy.removeprefix("smollm2-135m, ")][env_id]
            assert (rate.passed, rate.valid) == (counted["passed"], counted["valid"])
            assert (rate.level, rate.date) == (0, "2026-12-01")


def test_episodes_are_counted_by_level_and_failures_of_ours_are_left_out(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "evaluation-1.jsonl",
        (0, Outcome.COMPLETED, True),
        (0, Outcome.COMPLETED, False),
        (0, Outcome.AGENT_LIMIT, False),
        (0, Outcome.SANDBOX_FAILURE, False),
        (2, Outcome.COMPLETED, True),
    )
    found = read_rates(path, policy="tiny", date="2026-12-01")[ID]
    assert [(rate.level, rate.passed, rate.valid) for rate in found] == [(0, 1, 3), (2, 1, 1)]
    written = read_rates(path, policy="tiny")[ID][0].date
    assert len(written) == 10 and written >= "2026-01-01"


TWO_LEVELS = {
    "plan": {"model": "m", "tasks": [{"id": ID}, {"id": ID, "level": 1}]},
    "stages": [{"name": "SFT", "rates": {ID: {"passed": 1, "valid": 2}}}],
}


@pytest.mark.parametrize(
    ("name", "content", "options", "words"),
    [
        ("none.json", None, {}, "holds no solve rates"),
        ("other.json", '{"plan": {}}', {}, "give a main job's record.json"),
        ("binary.json", "\udcff", {}, "holds no solve rates"),
        ("two.json", json.dumps(TWO_LEVELS), {}, "counts all levels of test/Weighed-v0 together"),
        ("empty.jsonl", "\n", {"policy": "p"}, "no valid episode"),
        ("unsaid.jsonl", "\n", {}, "give --policy"),
        ("odd.jsonl", '{"env_id": 1}', {"policy": "p"}, "holds no solve rates"),
        ("dated.json", json.dumps(TWO_LEVELS), {"date": "yesterday"}, "'yesterday' is no day; write YYYY-MM-DD"),
    ],
)
def test_a_file_that_holds_none_is_refused_in_words(
    tmp_path: Path, name: str, content: str | None, options: dict[str, str], words: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ConfigError, match=words):
        read_rates(tmp_path / name, **options)


def test_the_commands_attach_and_show_them(weighed: Path, tmp_path: Path) -> None:
    save(registry.get(ID), certificate())
    path = lines(tmp_path / "evaluation-1.jsonl", *[(1, Outcome.COMPLETED, seed < 3) for seed in range(8)])
    command = ["attach", str(path), "--policy", "tiny, SFT", "--date", "2026-12-01"]
    done = CliRunner().invoke(app, command)
    assert done.output == f"{ID}: 1 attached, 1 in all\n"
    attached = {"policy": "tiny, SFT", "level": 1, "passed": 3, "valid": 8, "date": "2026-12-01"}
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).output) == {ID: [attached]}
    assert json.loads(CliRunner().invoke(app, ["info", ID, "--json"]).output)["solve_rates"] == [attached]
    shown = CliRunner().invoke(app, ["info", ID]).output
    assert "solve rate, level 1: 38% [14, 69] (n=8) by tiny, SFT, 2026-12-01" in shown
