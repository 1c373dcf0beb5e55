"""Exports, read by those whose formats they are: Harbor's validator and Inspect's reader, each beside us only."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from metier.envs.core import Outcome, ToolSpec
from metier.harness.record import Provenance, Recorder, Records, RecordSettings
from metier.harness.record.export import Format, export
from peers import HARBOR, INSPECT, files_of, harbor, python_with
from record_samples import PICTURE, plain, playing, rich


@pytest.fixture
def records(tmp_path: Path) -> Records:
    """Episodes of every kind: rich, plain, failed and retried, without a turn, unfinished."""
    shell = ToolSpec(name="shell", description="Run bash.", parameters={"type": "object", "properties": {}})
    made: dict[str, Any] = {
        "tools": (shell,),
        "policy": "openai",
        "settings": {"model": "some/model", "temperature": 0.5},
        "provenance": Provenance(environment_digest="ab" * 32, metier_version="0.1.0", commit="ef" * 20),
    }
    failed = plain(1).model_copy(
        update={"outcome": Outcome.SANDBOX_FAILURE, "reward": None, "passed": None, "failure": "SandboxLost: gone"}
    )
    empty = failed.model_copy(update={"seed": 2, "conversation": (), "steps": ()})
    with Recorder.open(RecordSettings(store=str(tmp_path / "store"))) as recorder:
        for result in (rich(), rich(sample=0), failed, plain(1), empty):
            recorder.record(playing(result, **made), result)
        recorder.begin(playing(plain(7), **made)).follow(plain(7).conversation[:2], ())
        recorder.record(playing(plain(8), options={"unit": "mm"}, **made), plain(8))
    return Records.open(tmp_path / "store")


VALIDATE = """
import sys
sys.path[:0] = filter(None, sys.argv[1:2])
from harbor.utils.trajectory_validator import TrajectoryValidator
for path in sys.argv[2:]:
    validator = TrajectoryValidator()
    if not validator.validate(path):
        print(path, validator.errors)
"""


@pytest.mark.slow
def test_harbors_own_validator_takes_every_document(records: Records, tmp_path: Path) -> None:
    paths = export(records, Format.ATIF, tmp_path / "atif").paths
    assert len(paths) == 7
    own = harbor()  # else its files under this Python, which its validator runs with
    python, files = (str(own), "") if own else (sys.executable, str(files_of(HARBOR)))
    command = [python, "-c", VALIDATE, files, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    broken = json.loads(paths[0].read_text())
    broken["steps"][0]["step_id"] = 7
    paths[0].write_text(json.dumps(broken))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "step_id" in done.stdout, "it does look"


READ = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries
path = sys.argv[1]
log = read_eval_log(path, resolve_attachments=True)
def shown(content):
    return content if isinstance(content, str) else [getattr(part, "text", None) or part.type for part in content]
samples = {
    f"{one.id}/{one.epoch}": {
        "roles": [message.role for message in one.messages],
        "calls": [[call.id, call.function] for m in one.messages for call in getattr(m, "tool_calls", None) or []],
        "texts": [shown(message.content) for message in one.messages],
        "score": one.scores["metier"].value if one.scores else None,
        "error": one.error.message if one.error else None,
        "limit": one.limit.type if one.limit else None,
        "retries": len(one.error_retries or []),
        "tokens": sum(usage.total_tokens for usage in one.model_usage.values()),
        "images": [p.image for m in one.messages if type(m.content) is list for p in m.content if p.type == "image"],
    }
    for one in log.samples
}
print(json.dumps({
    "status": log.status, "task": log.eval.task, "model": log.eval.model, "commit": log.eval.revision.commit,
    "metrics": {name: metric.value for name, metric in log.results.scores[0].metrics.items()},
    "scored": [log.results.scores[0].scored_samples, log.results.scores[0].unscored_samples],
    "samples": samples,
    "summaries": [[one.id, one.epoch, one.completed] for one in read_eval_log_sample_summaries(path)],
    "header": read_eval_log(path, header_only=True).eval.task,
    "one": read_eval_log_sample(path, "seed-1-level-0", 1).uuid,
    "listed": len(list_eval_logs(sys.argv[2])),
}))
"""


@pytest.mark.slow
def test_inspects_own_reader_takes_the_log(records: Records, tmp_path: Path) -> None:
    import base64

    (path,) = export(records, Format.INSPECT, tmp_path / "logs").paths
    command = [str(python_with(INSPECT)), "-c", READ, str(path), str(path.parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    log = json.loads(done.stdout.splitlines()[-1])
    assert (log["status"], log["task"], log["model"]) == ("success", "test/Echo-v0", "some/model")
    assert (log["header"], log["listed"], log["commit"]) == ("test/Echo-v0", 1, "ef" * 20)
    samples = log["samples"]
    assert set(samples) > {"seed-3-level-1/3", "seed-3-level-1/1", "seed-1-level-0/1", "seed-2-level-0/1"}
    rich_one = samples["seed-3-level-1/3"]
    assert (rich_one["score"], rich_one["limit"], rich_one["tokens"]) == (0.5, "turn", 12)
    assert rich_one["calls"][:2] == [["a", "shell"], ["b", "render"]]
    encoded = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
    assert rich_one["images"][0] == encoded and len(rich_one["images"]) == 3
    retried = samples["seed-1-level-0/1"]
    assert (retried["score"], retried["retries"], retried["error"]) == (1.0, 1, None)
    assert samples["seed-2-level-0/1"]["error"] == "SandboxLost: gone"
    assert log["scored"] == [4, 2] and log["metrics"]["pass_rate"] == 0.5
    assert len(log["summaries"]) == 6 and len([1 for _, _, completed in log["summaries"] if not completed]) == 2
