"""A results folder: what was written stays, whatever is killed, full, cut, foreign or hostile."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from metier.harness.evaluate import files, manifest
from metier.harness.evaluate.faults import ResultsError, ResultsInUse, ResultsNotKept, ResultsSchema
from metier.harness.evaluate.folder import ROWS, Results, load, missing, results_for, writing
from metier.harness.evaluate.manifest import Session
from metier.harness.evaluate.plan import PlannedPolicy
from metier.harness.evaluate.report import as_markdown, make_report
from trials import environment, episode, folder, plan, row

PLAN = plan()
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder of three trials, all done, the first with its episode."""
    path = tmp_path / "run"
    with writing(path) as writer:
        writer.begin(PLAN)
        first, *others = PLAN.trials()
        writer.keep(row(first), episode(first))
        for trial in others:
            writer.keep(row(trial, trial.seed == 1), None)
    return path


def contents(path: Path) -> dict[str, bytes]:
    return {str(one.relative_to(path)): one.read_bytes() for one in sorted(path.rglob("*")) if one.is_file()}


def resumed(path: Path) -> Results:
    with writing(path) as writer:
        return writer.begin(PLAN)


# what is kept


def test_what_is_written_is_read_again(made: Path) -> None:
    results = load(made)
    assert results.plan == PLAN and not missing(results)
    first, second, third = (results.rows[trial.key] for trial in PLAN.trials())
    assert (first.passed, second.passed, third.passed) == (True, True, False)
    told = results.episode(first)
    assert told == episode(next(PLAN.trials()))
    with pytest.raises(ResultsError, match="nothing is left of the episode of test/Echo-v0, seed 1"):
        results.episode(second)


def test_a_second_process_does_nothing_to_a_folder_that_is_done(made: Path) -> None:
    before = contents(made)
    assert not missing(resumed(made))
    assert contents(made) == before


def test_the_trials_of_a_larger_plan_are_those_it_lacks(made: Path) -> None:
    larger = plan(environment(seeds="0:4", levels=(0, 1)), samples=2)
    with writing(made) as writer:
        assert writer.found == PLAN
        results = writer.begin(larger)
        assert len(results.rows) == 3 and results.num_other == 0
        assert len(missing(results)) == 16 - 3
    assert load(made).plan == larger
    kept = json.loads((made / "earlier" / f"{PLAN.digest}.json").read_bytes())
    assert kept["plan"] == PLAN.model_dump(mode="json")


def test_other_settings_keep_what_is_there_and_do_not_count_it(made: Path) -> None:
    other = plan(policy=PlannedPolicy(name="openai", settings={"model": "small", "temperature": 0.7}))
    assert results_for(made, other)[0].num_other == 3
    with writing(made) as writer:
        results = writer.begin(other)
        assert (len(results.rows), results.num_other, len(missing(results))) == (0, 3, 3)
    assert make_report(load(made)).rows_of_other_settings == 3
    with writing(made) as writer:  # and back
        assert not missing(writer.begin(PLAN))
    assert set(manifest.load(made).earlier) == {PLAN.digest, other.digest}


def test_a_certificate_that_became_stale_changes_no_key(made: Path) -> None:
    other = plan(environment(certificate="stale"))
    report = make_report(load(made)).written()
    with writing(made) as writer:
        assert not missing(writer.begin(other))
    assert manifest.load(made).earlier == ()
    assert load(made).plan == other
    assert make_report(load(made)).written() == report


def test_an_invalid_trial_may_be_run_again_and_its_last_row_counts(tmp_path: Path) -> None:
    results = folder(tmp_path, PLAN, {0: [None], 1: [True], 2: [False]})
    assert not missing(results)
    (again,) = missing(results, again=True)
    assert again.seed == 0
    with writing(tmp_path) as writer:
        writer.begin(PLAN)
        writer.keep(row(again, True, round=1), episode(again))
    assert (tmp_path / "episodes" / f"{again.key}-1.json.gz").is_file()
    results = load(tmp_path)
    assert results.rows[again.key].passed and not missing(results, again=True)
    assert len((tmp_path / ROWS).read_bytes().splitlines()) == 4


def test_sessions_are_noted_and_no_part_of_a_report(made: Path) -> None:
    report = make_report(load(made)).written()
    with writing(made) as writer:
        writer.begin(PLAN)
        writer.note(Session.here(executor="local", concurrency=3))
    (session,) = manifest.load(made).sessions
    assert (session.executor, session.concurrency, session.host) == ("local", 3, os.uname().nodename)
    assert make_report(load(made)).written() == report


# killed, cut


def test_a_line_that_was_cut_anywhere_is_run_again_and_nothing_else_is_lost(made: Path) -> None:
    whole = (made / ROWS).read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    third = list(PLAN.trials())[2]
    for cut in range(last + 1, len(whole)):
        (made / ROWS).write_bytes(whole[:cut])
        if cut == len(whole) - 1:  # only the line feed is missing
            assert not missing(resumed(made))
            assert (made / ROWS).read_bytes() == whole
            continue
        assert len(load(made).rows) == 2  # and a reader changes nothing
        assert (made / ROWS).read_bytes() == whole[:cut]
        assert missing(resumed(made)) == [third]
        assert (made / ROWS).read_bytes() == whole[:last]


def test_zeros_of_a_power_cut_are_a_torn_line(made: Path) -> None:
    whole = (made / ROWS).read_bytes()
    (made / ROWS).write_bytes(whole + whole[:20] + b"\0" * 300)
    assert not missing(resumed(made))
    assert (made / ROWS).read_bytes() == whole


@pytest.mark.parametrize("left", ["nothing", "a lock", "half a manifest", "a folder of episodes"])
def test_a_process_killed_before_its_manifest_leaves_a_folder_that_can_be_used(tmp_path: Path, left: str) -> None:
    if left == "a lock":
        (tmp_path / "lock").write_text("pid 1\n")
    if left == "half a manifest":
        (tmp_path / ".manifest.json.tmp").write_text('{"kind"')
    if left == "a folder of episodes":
        (tmp_path / "episodes").mkdir()
    assert len(missing(resumed(tmp_path))) == 3
    assert not list(tmp_path.glob(".*"))


def test_an_episode_without_its_row_is_written_again(made: Path) -> None:
    """Its process was killed between the two."""
    whole = (made / ROWS).read_bytes().splitlines(keepends=True)
    (made / ROWS).write_bytes(b"".join(whole[1:]))
    left = made / "episodes" / f".{next(PLAN.trials()).key}-0.json.gz.tmp"
    left.write_bytes(b"half")
    (first,) = missing(resumed(made))
    assert not left.exists()
    with writing(made) as writer:
        writer.begin(PLAN)
        writer.keep(row(first), episode(first))
    results = load(made)
    assert results.episode(results.rows[first.key]) == episode(first)


# a full disk


@contextmanager
def room(path: Path, more_bytes: int) -> Iterator[None]:
    """The kernel lets a file of this process grow by so much and no further, as a disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + more_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_row_that_finds_no_room_leaves_nothing_of_itself(tmp_path: Path) -> None:
    folder(tmp_path, PLAN, {0: [True]})
    whole = (tmp_path / ROWS).read_bytes()
    second = list(PLAN.trials())[1]
    with writing(tmp_path) as writer:
        writer.begin(PLAN)
        with room(tmp_path / ROWS, 100), pytest.raises(ResultsNotKept, match=r"make room, and run the same command"):
            writer.keep(row(second), None)
        assert (tmp_path / ROWS).read_bytes() == whole
        writer.keep(row(second), None)  # room was made
    assert len(load(tmp_path).rows) == 2


def test_an_episode_that_finds_no_room_leaves_neither_file_nor_row(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    larger = plan(environment(seeds="0:4"))
    before = contents(made)

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with writing(made) as writer:
        results = writer.begin(larger)
        monkeypatch.setattr(files.os, "fsync", full)
        (fourth,) = missing(results)
        with pytest.raises(ResultsNotKept, match="No space left on device"):
            writer.keep(row(fourth), episode(fourth))
        with pytest.raises(ResultsNotKept, match="No space left on device"):
            writer.report("report.md", b"x")
    after = contents(made)
    assert {name: data for name, data in after.items() if name in before and name != "manifest.json"} == {
        name: data for name, data in before.items() if name != "manifest.json"
    }
    assert [name for name in after if name not in before] == [f"earlier/{PLAN.digest}.json"]


# two at once


def test_two_writers_of_one_process_are_refused(made: Path) -> None:
    with writing(made), pytest.raises(ResultsInUse, match=f"another process \\(pid {os.getpid()} on "), writing(made):
        raise AssertionError
    assert len(load(made).rows) == 3


HOLDER = """
import sys
from pathlib import Path
from metier.harness.evaluate.folder import writing
with writing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_refused_until_the_first_is_killed(made: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(made)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(ResultsInUse, match=f"pid {holder.pid} on"), writing(made):
            raise AssertionError
        holder.kill()
        holder.wait()
        assert not missing(resumed(made))


# other versions, other things


def test_a_folder_of_the_first_version_is_read() -> None:
    """As it was written when that version was made, and for good."""
    results = load(FIXTURES / "results_v1")
    assert len(results.rows) == 4 and not missing(results)
    assert [(row.outcome, row.round, len(row.history)) for row in results.rows.values()] == [
        ("completed", 0, 0),
        ("agent_limit", 0, 1),
        ("sandbox_failure", 1, 2),
        ("completed", 1, 0),
    ]
    first = next(iter(results.rows.values()))
    assert results.episode(first).passed
    assert make_report(results).written() == (FIXTURES / "results_v1" / "report.json").read_bytes()


def test_rows_that_cannot_be_replayed_are_marked_and_told(made: Path, tmp_path: Path) -> None:
    """Those of other policies are written as they were before there were such rows."""
    assert b"replayable" not in b"".join(contents(made).values())
    before = make_report(load(made))
    assert b"not_replayable" not in before.written() and "replayable" not in as_markdown(before)
    with writing(tmp_path / "inside") as writer:
        writer.begin(PLAN)
        first, *others = PLAN.trials()
        writer.keep(row(first, replayable=False), episode(first).model_copy(update={"replayable": False}))
        for trial in others:
            writer.keep(row(trial), None)
    results = load(tmp_path / "inside")
    assert [one.replayable for one in results.rows.values()] == [False, True, True]
    assert results.episode(results.rows[first.key]).replayable is False
    report = make_report(results)
    assert report.overall.not_replayable == 1
    assert type(report).model_validate_json(report.written()) == report
    assert "Not replayable: 1 of 3 valid ones, whose agents acted inside the sandbox" in as_markdown(report)


def change(name: str, edit: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    """Edits a JSON file, or the second line of the rows."""

    def apply(path: Path) -> None:
        lines = (path / name).read_text().splitlines(keepends=True) if name == ROWS else [(path / name).read_text()]
        at = 1 if name == ROWS else 0
        value = json.loads(lines[at])
        edit(value)
        lines[at] = json.dumps(value, separators=(",", ":")) + "\n"
        (path / name).write_text("".join(lines))

    return apply


def put(name: str, data: bytes) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        (path / name).write_bytes(data)

    return apply


def insert(line: bytes) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        lines = (path / ROWS).read_bytes().splitlines(keepends=True)
        (path / ROWS).write_bytes(b"".join([lines[0], line, *lines[1:]]))

    return apply


def append(data: bytes) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        (path / ROWS).write_bytes((path / ROWS).read_bytes() + data)

    return apply


def again(path: Path) -> None:
    append((path / ROWS).read_bytes().splitlines(keepends=True)[0])(path)


def link(name: str) -> Callable[[Path], None]:
    def apply(path: Path) -> None:
        target = path.parent / "elsewhere"
        (path / name).rename(target)
        (path / name).symlink_to(target)

    return apply


def pipe(path: Path) -> None:
    (path / ROWS).unlink()
    os.mkfifo(path / ROWS)


WRONG: dict[str, tuple[Callable[[Path], None], type[ResultsError], str]] = {
    "an older manifest": (
        change("manifest.json", lambda one: one.update(schema_version=0)),
        ResultsSchema,
        "version 0",
    ),
    "a newer manifest": (
        change("manifest.json", lambda one: one.update(schema_version=2, news=1)),
        ResultsSchema,
        "has schema version 2 and this harness reads 1: read it with the metier that wrote it",
    ),
    "an older row": (change(ROWS, lambda one: one.update(schema_version=0)), ResultsSchema, r"jsonl:2 has schema ver"),
    "another kind": (change("manifest.json", lambda one: one.update(kind="x")), ResultsError, "is a 'x', not a"),
    "a manifest with more": (change("manifest.json", lambda one: one["plan"].update(x=1)), ResultsError, "plan.x: Ext"),
    "half a manifest": (put("manifest.json", b'{"kind": "metier'), ResultsError, "is no manifest of an evaluation"),
    "a deep manifest": (put("manifest.json", b"[" * 100_000), ResultsError, "is no manifest of an evaluation"),
    "seeds without end": (
        change("manifest.json", lambda one: one["plan"]["environments"][0].update(seeds="9:1")),
        ResultsError,
        "seeds 9:1 hold none",
    ),
    "rubbish": (insert(b"rubbish\n"), ResultsError, r"jsonl:2 is no row of results"),
    "a torn line in the middle": (insert(b'{"schema_version":1,"key":"\n'), ResultsError, r"jsonl:2 is no row"),
    "an empty line": (insert(b"\n"), ResultsError, r"jsonl:2 is no row of results"),
    "a deep line": (insert(b"[" * 200_000 + b"\n"), ResultsError, r"jsonl:2 is no row of results"),
    "bytes that are no text": (insert(b'{"schema_version":1,"key":"\xff"}\n'), ResultsError, r"jsonl:2 is no row"),
    "somebody's last line": (append(b"notes of mine"), ResultsError, r"jsonl:4 is no row"),
    "a field more": (change(ROWS, lambda one: one.update(bonus=1)), ResultsError, r"jsonl:2 .*bonus: Extra inputs"),
    "a reward that is none": (
        change(ROWS, lambda one: one.update(reward=float("nan"))),
        ResultsError,
        r"reward: Input",
    ),
    "a reward of a failure": (
        change(ROWS, lambda one: one.update(outcome="sandbox_failure")),
        ResultsError,
        "they disagree",
    ),
    "a key that leads elsewhere": (change(ROWS, lambda one: one.update(key="../../x")), ResultsError, "key: String"),
    "another trial's key": (
        change(ROWS, lambda one: one.update(key=next(PLAN.trials()).key)),
        ResultsError,
        "jsonl:2: the row is not of the trial that its key names",
    ),
    "a trial twice": (again, ResultsError, r"jsonl:4: the trial was done already"),
    "rows that are a link": (link(ROWS), ResultsError, "no plain file"),
    "a manifest that is a link": (link("manifest.json"), ResultsError, "no plain file"),
    "rows that are a pipe": (pipe, ResultsError, "is no plain file: restore it"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_and_nothing_is_changed(made: Path, name: str) -> None:
    spoil, kind, words = WRONG[name]
    spoil(made)
    before = {path: value for path, value in contents(made).items() if path != "lock"}
    for use in (load, resumed, lambda path: results_for(path, PLAN)):
        with pytest.raises(ResultsError, match=words) as caught:
            use(made)
        assert type(caught.value) is kind
    assert {path: value for path, value in contents(made).items() if path != "lock"} == before


def test_a_line_without_end_is_not_read(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metier.harness.evaluate.folder._MOST_LINE", 2000)
    insert(b'{"schema_version":1,"key":"' + b"a" * 5000 + b'"}\n')(made)
    with pytest.raises(ResultsError, match=r"jsonl:2: a line of more than"):
        load(made)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-4]), "is not the file that its row"),
        (lambda file: file.unlink(), "is missing: restore it"),
        (lambda file: (file.unlink(), file.symlink_to("/etc/hostname")), "no plain file"),
    ],
)
def test_an_episode_that_was_changed_is_refused(made: Path, spoil: Callable[[Path], Any], words: str) -> None:
    results = load(made)
    first = results.rows[next(PLAN.trials()).key]
    spoil(made / "episodes" / f"{first.key}-0.json.gz")
    with pytest.raises(ResultsError, match=words):
        results.episode(first)


def test_a_bomb_is_not_unpacked() -> None:
    bomb = files.packed(b"\0" * (5 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(ResultsError, match="holds more than 1 MiB"):
        files.unpacked(bomb, 1 << 20, "it")
    for damaged in (b"", b"rubbish", bomb[:-10], bomb + b"more"):
        with pytest.raises(ResultsError, match="is damaged"):
            files.unpacked(damaged, 8 << 20, "it")
    assert files.unpacked(files.packed(b"whole"), 100, "it") == b"whole"


@pytest.mark.parametrize("name", ["notes.txt", ROWS, "episodes/a.json.gz", "earlier"])
def test_a_folder_of_other_things_is_not_written_into(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    with pytest.raises(ResultsError, match=r"holds other things .* name a new folder"):
        resumed(tmp_path)
    assert contents(tmp_path) == {name: b"mine"}
    with pytest.raises(ResultsError, match="is no results folder"):
        load(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    for use in (load, resumed):
        with pytest.raises(ResultsError):
            use(tmp_path / "x")
    with pytest.raises(ResultsError, match="is no results folder"):
        load(tmp_path / "nowhere")
