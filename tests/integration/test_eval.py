"""`metier eval` as a person and a machine's end treat it: run, killed, interrupted, run twice, out of room.

Where not said otherwise the work is the echo family's on scripted sandboxes, by a policy that errs on some instances.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from metier.harness.evaluate.folder import ROWS, load, missing
from metier.harness.evaluate.plan import Plan
from metier.harness.evaluate.row import Row
from metier.harness.record import Records
from waiting import patience

CLI = Path(__file__).parents[1] / "fixtures" / "adder.py"
ID = "test/Echo-v0"
POLICY = "adder:errs_on=3"


def command(*arguments: object) -> list[str]:
    return [sys.executable, str(CLI), *map(str, arguments)]


def metier(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return done


def evaluation(out: Path, *more: object, policy: str = POLICY, seeds: str = "0:4") -> list[str]:
    return ["eval", ID, "--policy", policy, "--backend", "fake", "--seeds", seeds, "--out", str(out), *map(str, more)]


def whole_lines(out: Path) -> int:
    path = out / ROWS
    return path.read_bytes().count(b"\n") if path.exists() else 0


def timeless(row: Row) -> dict[str, Any]:
    """What must not depend on when and where a trial ran."""
    times = {"timings_s", "started_at", "ended_at", "file"}
    return row.model_dump(mode="json", exclude=times)


def without_seconds(report: Any) -> Any:
    if isinstance(report, dict):
        return {name: without_seconds(value) for name, value in report.items() if name != "seconds"}
    return [without_seconds(one) for one in report] if isinstance(report, list) else report


# a whole evaluation


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of an evaluation."""
    out = tmp_path_factory.mktemp("eval") / "run"
    metier(*evaluation(out, "--n", 3, "--level", 0, "--level", 1))
    return out


def test_the_report_is_made_again_byte_for_byte(done: Path) -> None:
    assert metier("report", done, "--json").stdout == (done / "report.json").read_text()
    assert metier("report", done).stdout == (done / "report.md").read_text()
    report = json.loads((done / "report.json").read_bytes())
    assert report["overall"]["requested"] == report["overall"]["valid"] == 24
    by_hand = [json.loads(line)["passed"] for line in (done / ROWS).read_text().splitlines()]
    assert report["overall"]["pass_rate"] == round(sum(by_hand) / len(by_hand), 6)
    assert 0 < report["overall"]["pass_rate"] < 1
    assert report["overall"]["per_success"]["cost_usd"] is not None


def test_a_second_run_does_no_work_and_says_the_same(done: Path) -> None:
    before = {path: path.read_bytes() for path in done.rglob("*") if path.is_file() and path.name != "lock"}
    again = metier(*evaluation(done, "--n", 3, "--level", 0, "--level", 1, "--json", "--strict"))
    assert "24 trials, 24 done, 0 to run" in again.stderr
    assert again.stdout.encode() == before[done / "report.json"]
    assert {path: path.read_bytes() for path in before} == before


def test_a_setting_that_matters_is_told_before_anything_runs(done: Path) -> None:
    before = {path: path.read_bytes() for path in done.rglob("*") if path.is_file()}
    told = metier(*evaluation(done, "--n", 3, "--dry-run", policy="adder:errs_on=2")).stdout
    assert "another setting than the folder's: policy.settings.errs_on: 3 → 2" in told
    assert "12 trials, 0 done, 12 to run; 24 rows of other settings are kept" in told
    same = metier(*evaluation(done, "--n", 4, "--dry-run", "--concurrency", 7, "--max-tokens", 5)).stdout
    assert "another setting" not in same and "16 trials, 12 done, 4 to run; 12 rows of other settings are kept" in same
    assert {path: path.read_bytes() for path in before} == before


def test_two_runs_are_compared(done: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    metier(*evaluation(other, "--level", 0, "--level", 1, policy="oracle", seeds="1:5"))
    made = json.loads(metier("compare", done, other, "--json").stdout)
    assert (made["overall"]["instances"], made["only_first"], made["only_second"]) == (6, 2, 2)
    assert made["overall"]["second_pass"] == 1.0 and made["overall"]["worse"] == 0
    assert "oracle beside adder (errs_on 3)" in metier("compare", done, other).stdout


def test_strict_refuses_what_is_invalid_and_what_is_missing(tmp_path: Path) -> None:
    down = evaluation(tmp_path / "down", "--max-failures", 2, "--concurrency", 1, policy="adder:down=nobody answers")
    told = metier(*down, code=1)  # also without --strict: something is down
    assert "stopped: 2 trials in a row failed, the last with PolicyError: nobody answers" in told.stdout
    assert "2 trials are left, and the same command runs them" in told.stdout
    assert "Requested 4, valid 0, invalid 2 (2 policy_failure), missing 2." in told.stdout
    short = evaluation(tmp_path / "short", "--max-turns", 1, "--concurrency", 1, "--json")
    assert json.loads(metier(*short).stdout)["overall"]["missing"] == 3
    assert "3 of 1 turns are used" in metier(*short, "--strict", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "smoke-v9", "-p", "noop"], "did you mean smoke-v0"),
        (["eval", ID, "-p", "nop"], "did you mean noop"),
        (["eval", ID, "-p", "noop", "--seeds", "5:1"], "seeds 5:1 hold none"),
        (["eval", ID, "-p", "noop", "--split", "heldout"], "did you mean held-out"),
        (["eval", ID, "-p", "noop", "--executor", "rya", "--backend", "fake", "--out", "@"], "did you mean 'ray'"),
        (["eval", ID, "-p", "noop", "--max-cost", "much"], "--max: cost_usd: Input should be a valid decimal"),
        (["eval", ID, "-p", "noop", "--episode-s", "inf", "--backend", "fake"], "a number of seconds"),
        (["report", "nowhere"], "nowhere is no results folder"),
        (["eval", ID, "-p", "noop", "--backend", "fake", "--out", str(Path(__file__).parent)], "holds other things"),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(arguments: list[str], words: str, tmp_path: Path) -> None:
    told = metier(*(str(tmp_path / "x") if one == "@" else one for one in arguments), code=2).stderr
    assert words in told and told.startswith("metier: ") and len(told.strip().splitlines()) == 1


def test_suites_are_listed() -> None:
    listed = json.loads(metier("suites", "--json").stdout)
    assert {"all-v0", "smoke-v0"} <= {one["suite"] for one in listed}
    (smoke,) = [one for one in listed if one["suite"] == "smoke-v0"]
    assert smoke["members"] and smoke["public_seeds"] == "3000000:3000002"
    assert "public seeds 3000000:3000002" in metier("suites").stdout


# killed


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for one in started:
        if one.poll() is None:
            one.kill()
        one.wait()


@pytest.mark.slow
def test_killed_at_ten_random_points_it_gives_what_an_uninterrupted_run_gives(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    slow = f"{POLICY},wait_s=0.1"
    arguments = ("--n", 2, "--level", 0, "--level", 2, "--concurrency", 5)
    whole, killed, store = tmp_path / "whole", tmp_path / "killed", tmp_path / "records"
    recorded = evaluation(killed, *arguments, "--records", store, policy=slow, seeds="0:50")
    metier(*evaluation(whole, *arguments, policy=slow, seeds="0:50"))
    for point in range(10):
        before = whole_lines(killed)
        log = tmp_path / f"killed-{point}"
        with log.open("wb") as out:
            one = subprocess.Popen(command(*recorded), stdout=out, stderr=out)
        processes.append(one)
        # the first ones while they begin, the others among their trials, in the middle of anything
        wanted = before if point < 2 else before + chance.randint(0, 25)
        until = time.monotonic() + 60 * patience()
        while whole_lines(killed) < wanted or (point >= 2 and b"to run" not in log.read_bytes()):
            assert one.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 2.0 if point < 2 else 0.2))
        one.send_signal(signal.SIGKILL)
        one.wait()
    kept = whole_lines(killed)
    assert 0 < kept < 200
    left = killed / ROWS
    if not left.read_bytes().endswith(b"\n"):
        print("the last kill tore a line")
    last = metier(*recorded)
    assert f"200 trials, {kept} done, {200 - kept} to run" in last.stdout
    ours, theirs = load(killed), load(whole)
    assert ours.plan == theirs.plan and not missing(ours) and ours.num_other == 0
    assert whole_lines(killed) == 200  # no trial twice
    assert {key: timeless(row) for key, row in ours.rows.items()} == {
        key: timeless(row) for key, row in theirs.rows.items()
    }
    for key, row in ours.rows.items():
        assert ours.episode(row).conversation == theirs.episode(theirs.rows[key]).conversation
    reports = [json.loads((out / "report.json").read_bytes()) for out in (killed, whole)]
    assert without_seconds(reports[0]) == without_seconds(reports[1])
    rows = left.read_bytes()
    third = metier(*recorded)
    assert "200 trials, 200 done, 0 to run" in third.stdout and left.read_bytes() == rows
    assert not list(killed.rglob(".*.tmp"))
    records = Records.open(store)
    assert not records.dead_letters()
    stored = {(one.env_id, one.seed, one.level, one.sample): one for one in map(records.result, records.attempts())}
    assert len(stored) == sum(1 for _ in records.attempts()) == 200
    for row in ours.rows.values():
        assert stored[row.env_id, row.seed, row.level, row.sample] == ours.episode(row)


def test_a_second_process_is_refused_and_the_first_goes_on(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    out = tmp_path / "run"
    slow = evaluation(out, policy="adder:wait_s=0.2", seeds="0:20")
    first = subprocess.Popen(command(*slow), stdout=subprocess.DEVNULL)
    processes.append(first)
    until = time.monotonic() + 60 * patience()
    while not whole_lines(out):
        assert first.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    first.send_signal(signal.SIGSTOP)  # so that it is surely there
    told = metier(*slow, code=2).stderr
    assert f"metier: ResultsInUse: {out} is being written by another process (pid {first.pid} on" in told
    assert json.loads(metier("report", out, "--json").stdout)["overall"]["requested"] == 20  # whoever reads, may
    first.send_signal(signal.SIGCONT)
    assert first.wait(120 * patience()) == 0
    assert not missing(load(out))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_evaluation_ends_in_order_and_goes_on_later(
    tmp_path: Path, processes: list[subprocess.Popen[bytes]], number: signal.Signals, code: int
) -> None:
    out, log = tmp_path / "run", tmp_path / "log"
    slow = evaluation(out, policy="adder:wait_s=0.3", seeds="0:30")
    with log.open("wb") as told:
        one = subprocess.Popen(command(*slow), stdout=told, stderr=told)
    processes.append(one)
    until = time.monotonic() + 60 * patience()
    while whole_lines(out) < 3:
        assert one.poll() is None and time.monotonic() < until, log.read_text()
        time.sleep(0.01)
    one.send_signal(number)
    assert one.wait(60 * patience()) == code
    kept = whole_lines(out)
    assert f"stopped; {kept} of 30 trials ended and are kept, and the same command runs the others" in log.read_text()
    assert "Traceback" not in log.read_text()
    assert {str(row.outcome) for row in load(out).rows.values()} == {"completed"}
    told = metier(*evaluation(out, "--concurrency", 30, policy="adder:wait_s=0.3", seeds="0:30")).stdout
    assert f"30 trials, {kept} done, {30 - kept} to run" in told


# a full disk

FULL = """
set -e
mount -t tmpfs -o size=160k none "$1"
shift
code=0
"$@" || code=$?
echo "code $code"
mount -o remount,size=16m "$disk"
code=0
"$@" || code=$?
echo "code $code"
cp -r "$disk/run" "$kept"
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root mounts a small disk")
def test_a_full_disk_is_told_and_the_evaluation_goes_on_where_there_is_room(tmp_path: Path) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    run = command(*evaluation(disk / "run", policy=POLICY, seeds="0:60"))
    ended = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", FULL, "sh", str(disk), *run],
        env={**os.environ, "disk": str(disk), "kept": str(kept)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=600,
    )
    print(ended.stdout)
    first, _, second = ended.stdout.partition("code 1\n")
    assert "metier: ResultsNotKept: " in first and "No space left on device" in first
    assert "make room, and run the same command again" in first and "Traceback" not in ended.stdout
    assert second.rstrip().endswith("code 0")
    num_done = int(second.partition(" trials, ")[2].partition(" done")[0])
    assert 0 < num_done < 60 and f"60 trials, {num_done} done, {60 - num_done} to run" in second
    results = load(kept)
    assert not missing(results)
    assert all(results.episode(row).passed == row.passed for row in results.rows.values())


# in real sandboxes

SEEDS = "3100000:3100002"
TRADES = ["terminal/PyMutationRepair-v0", "finance/CovenantTest-v0"]


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", "ray"])
def test_real_trades_pay_the_oracle_and_nobody_else(tmp_path: Path, executor: str) -> None:
    for policy, passed in (("oracle", 4), ("noop", 0), ("random", 0)):
        if executor == "ray" and policy != "oracle":
            continue
        out = tmp_path / policy
        where = ["--backend", "docker", "--executor", executor, "--concurrency", 2, "--out", out]
        told = metier("eval", *TRADES, "--policy", policy, "--seeds", SEEDS, *where, "--strict", "--json")
        overall = json.loads(told.stdout)["overall"]
        assert (overall["requested"], overall["valid"], overall["passed"]) == (4, 4, passed)
        assert Plan.model_validate(json.loads((out / "manifest.json").read_bytes())["plan"]).num_trials == 4


@pytest.mark.docker
@pytest.mark.slow
def test_what_was_evaluated_is_played_again_from_its_folder(tmp_path: Path) -> None:
    """The rows hold what the policy `replay` needs."""
    out, again = tmp_path / "first", tmp_path / "again"
    common = ["--backend", "docker", "--seeds", SEEDS, "--json"]
    metier("eval", TRADES[1], "--policy", "oracle", "--out", out, *common)
    told = metier("eval", TRADES[1], "--policy", f"replay:{out / ROWS}", "--out", again, *common)
    assert json.loads(told.stdout)["overall"]["passed"] == 2
