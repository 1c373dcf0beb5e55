"""`metier records|export|audit`: what they print, as text and as JSON, and what a wrong word is answered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from metier.cli import app
from metier.envs.core import ConfigError
from metier.harness.record import Provenance, Recorder, RecordSettings
from metier.harness.record.outbox import Outbox
from metier.harness.record.parcel import Parcel
from record_samples import plain, playing, rich


@pytest.fixture
def store(tmp_path: Path) -> Path:
    made_of = Provenance(environment_digest="ab" * 32, image="i", image_digest="cd" * 32, weights="w7")
    with Recorder.open(RecordSettings(store=str(tmp_path / "store"))) as recorder:
        recorder.record(playing(rich(), provenance=made_of), rich())
        recorder.record(playing(plain(5), run_id="r2", provenance=made_of), plain(5))
        recorder.begin(playing(plain(6), run_id="r2"))
    return tmp_path / "store"


def metier(*words: str, store: Path | None = None) -> Result:
    given = [*words, "--records", str(store)] if store else list(words)
    return CliRunner().invoke(app, given, env={"COLUMNS": "300"}, catch_exceptions=True)


def said(*words: str, store: Path) -> str:
    done = metier(*words, store=store)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_ls_lists_runs_with_what_is_unfinished(store: Path) -> None:
    text = said("records", "ls", store=store)
    assert "r1  1 episodes, 0 passed; 1 attempts, 4 steps, 10 events" in text
    assert "r2  2 episodes, 1 passed, 1 unfinished; 2 attempts" in text
    found = json.loads(said("records", "ls", "--json", store=store))
    assert [(run["run_id"], run["episodes"], run["events"]) for run in found["runs"]] == [("r1", 1, 10), ("r2", 2, 8)]
    assert found["dead_letters"] == []


def test_queries_are_answered_as_table_json_and_csv(store: Path) -> None:
    sql = "SELECT env_id, reward, started_at, cost_usd FROM episodes WHERE run_id = 'r1'"
    assert "test/Echo-v0" in said("records", "query", sql, store=store)
    (row,) = json.loads(said("records", "query", sql, "--json", store=store))
    assert (row["reward"], row["cost_usd"]) == (0.5, "0.000125000000")
    assert row["started_at"].startswith("20")
    assert said("records", "query", "SELECT 1 AS a, 'x,y' AS b", "--csv", store=store) == 'a,b\n1,"x,y"\n'
    only = said("records", "query", "SELECT count(*) AS n FROM episodes", "--run", "r2", "--json", store=store)
    assert json.loads(only) == [{"n": 2}]


def test_exports_say_what_they_wrote_and_left_out(store: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "sft.jsonl")
    assert "1 written to" in said("export", "--format", "sft", "--out", out, store=store)
    text = said("export", "--format", "sft", "--level", "token", "--where", "ended", "--out", out, store=store)
    assert "left out, since it has no token ids: 2" in text
    text = said("export", "--format", "sft", "--where", "false", "--out", out, store=store)
    assert "no episode fulfils the condition" in text
    found = json.loads(said("export", "--format", "atif", "--out", str(tmp_path / "atif"), "--json", store=store))
    assert (found["episodes"], found["written"], len(found["paths"])) == (3, 3, 3)


def test_the_audit_says_what_episodes_were_made_of(store: Path) -> None:
    text = said("audit", "--episodes", store=store)
    assert "test/Echo-v0  2 episodes, 2 graded, 0 unfinished" in text
    assert "w7 6–7" in text and "abab" in text and "r1, r2" in text and "seed=5&level=0&sample=0 attempt 0" in text
    rows = json.loads(said("audit", "--where", "weights_last = 7", "--json", store=store))
    assert [(row["environment_digest"], row["num_episodes"]) for row in rows] == [("ab" * 32, 1)]
    assert "no episode fulfils" in said("audit", "--where", "false", store=store)


def test_what_a_process_left_is_flushed(store: Path) -> None:
    outbox = Outbox.open(store / "outbox")
    line = b'{"schema_version": 99}'
    from metier.harness.record.event import Key

    outbox.put([Parcel(key=Key("r1", "e", 0, 0), trace_id="0" * 32, data=line)])
    outbox.close()
    found = json.loads(said("records", "flush", "--json", store=store))
    assert found == {"found": 1, "left": 0, "trouble": ""}
    assert "1 dead letters" in said("records", "ls", store=store)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("records", "ls", "--records", "nowhere"), "there are no records at nowhere"),
        (("records", "query", "SELECT nope FROM steps"), "tables are episodes, turns"),
        (("records", "query", "SELECT 1", "--run", "r9"), "no run 'r9'"),
        (("records", "flush", "--outbox", "nowhere"), "no outbox in nowhere"),
        (("records", "write", "kafka://h"), "nats://host:4222"),
        (("export", "--format", "atof", "--out", "x"), "did you mean atif?"),
        (("export", "--format", "sft", "--level", "byte", "--out", "x"), "--level 'byte'"),
        (("audit", "--where", "nope"), "tables are"),
    ],
)
def test_a_mistake_is_told(store: Path, words: tuple[str, ...], told: str) -> None:
    done = metier(*words, store=None if "--records" in words else store)
    assert isinstance(done.exception, ConfigError) and told in str(done.exception)


BARE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {'pyarrow', 'duckdb', 'redis', 'nats', 's3fs'}:
            raise ModuleNotFoundError(f'no {name}', name=name)
sys.meta_path.insert(0, Missing())
from metier.cli import main
sys.argv[0] = 'metier'
main()
"""


def test_without_the_extra_the_message_names_it(store: Path) -> None:
    for words in (
        ["records", "query", "SELECT 1"],
        ["records", "write", "nats://127.0.0.1:1"],
        ["records", "write", "redis://127.0.0.1:1"],
        ["records", "flush"],
    ):
        command = [sys.executable, "-c", BARE, *words]
        environment = {**os.environ, "METIER_RECORDS": str(store)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 2, done.stderr
        assert "pip install 'metier[records]'" in done.stderr and "Traceback" not in done.stderr


def test_importing_costs_none_of_its_parts() -> None:
    code = "import sys, metier, metier.cli, metier.harness.record; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"pyarrow", "duckdb", "fsspec", "s3fs", "redis", "nats", "moto"} & set(done.stdout.split())
