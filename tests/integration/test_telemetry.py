"""Telemetry of real things: an episode on Docker, a command scraped while it runs, a worker, a dead collector."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from metier.envs.core import Outcome, SandboxError, SandboxSpec, ToolCall
from metier.harness.evaluate.folder import load
from metier.harness.prepare import Preparer, Task
from metier.harness.runner import run_episode
from metier.harness.sandbox.docker import DockerBackend, answers
from metier.harness.telemetry import metrics, names, signals, tracing
from metier.harness.testing import ScriptedPolicy
from waiting import patience, soon

ROOT = Path(__file__).parents[2]
CLI = ROOT / "tests" / "fixtures" / "adder.py"
ID = "terminal/PyMutationRepair-v0"
SCRIPT = (
    ToolCall(tool="shell", arguments={"command": "ls"}),
    ToolCall(tool="shell", arguments={"command": "sleep 60", "timeout_s": 1}),
    ToolCall(tool="submit"),
)


def sent(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text().splitlines():
        for group in json.loads(line)["resourceSpans"]:
            for scope in group["scopeSpans"]:
                yield from scope["spans"]


def evaluation(out: Path, *more: object, policy: str = "oracle", seeds: str = "0:3") -> list[str]:
    chosen = ("--policy", policy, "--backend", "fake", "--seeds", seeds, "--out", out)
    return [sys.executable, str(CLI), "eval", "test/Echo-v0", *map(str, chosen), *map(str, more)]


@pytest.mark.docker
@pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers")
async def test_an_episode_on_docker_is_seen_whole() -> None:
    exporter, kept = InMemorySpanExporter(), metrics.Metrics()
    listener = tracing.Tracing(exporter, at_once=True)
    with signals.listening(listener, kept):
        async with DockerBackend() as backend:
            preparer = Preparer(backend)
            for sample in range(2):
                task = Task(env_id=ID, seed=1, sample=sample)
                policy = ScriptedPolicy(SCRIPT)
                result = await run_episode(task, policy, backend, preparer, deadline=soon(300))
                assert result.outcome is Outcome.COMPLETED
            text = kept.text()
            standing = {one.metric.name: one.value for one in backend.readings()}
    listener.close()

    spans = exporter.get_finished_spans()
    by_id = {one.context.span_id: one for one in spans if one.context}
    below = Counter((by_id[one.parent.span_id].name, one.name) for one in spans if one.parent)
    root = f"invoke_agent {ID}"
    assert below[root, "execute_tool shell"] == 4 and below[root, "metier.verify"] == 2
    assert below["execute_tool shell", "metier.sandbox.exec"] == 4
    assert below["metier.prepare", "metier.sandbox.acquire"] >= 2
    assert below["metier.verify", "metier.sandbox.acquire"] == 2
    assert below["metier.verify", "metier.sandbox.collect"] == 2
    assert below["metier.verify", "metier.sandbox.exec"] >= 2
    assert below[root, "metier.sandbox.reset"] == 2
    assert not any("sleep" in str(one.attributes) for one in spans), "what is said is in no span"
    late = [one for one in spans if (one.attributes or {}).get(names.TIMED_OUT)]
    assert len(late) == 2
    for one in spans:
        if one.parent and one.start_time and one.end_time:
            parent = by_id[one.parent.span_id]
            assert (parent.start_time or 0) <= one.start_time <= one.end_time <= (parent.end_time or 0)

    def value(name: str, **labels: str) -> float:
        return kept.registry.get_sample_value(name, labels) or 0.0

    acquired = sum(one.name == "metier.sandbox.acquire" for one in spans)
    sources = [value("metier_sandbox_acquire_seconds_count", backend="docker", source=s) for s in ("warm", "cold")]
    assert sum(sources) == acquired and min(sources) > 0
    assert value("metier_exec_timeouts_total", backend="docker") == 2
    assert value("metier_sandbox_reset_seconds_count", backend="docker") >= 2
    assert standing[names.RUNNING.name] == sum(
        standing[metric.name] for metric in (names.LEASED, names.WARM, names.REMOVING)
    )
    assert not re.search(r"metier-[0-9a-f]{12}", text), "no sandbox has a series of its own"


@pytest.mark.docker
@pytest.mark.skipif(not asyncio.run(answers()), reason="no Docker engine answers")
async def test_a_sandbox_that_resists_its_removal_is_told_as_leaked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resist(engine: Any, name: str) -> None:
        raise SandboxError("the engine is on strike")

    kept = metrics.Metrics()
    spec = SandboxSpec(image="terminal-python", memory_mb=256, pids=64, writable_mb={"/workspace": 64, "/tmp": 32})
    with signals.listening(meter=kept):
        async with DockerBackend() as backend:
            sandbox = await backend.acquire(spec, deadline=soon())
            with monkeypatch.context() as broken:
                broken.setattr("metier.harness.sandbox.docker.backend.remove", resist)
                await sandbox.close(reuse=False)
            found = {one.metric.name: one.value for one in backend.readings()}
    assert found == {names.RUNNING.name: 1, names.LEASED.name: 0, names.WARM.name: 0, names.REMOVING.name: 0}
    assert kept.registry.get_sample_value("metier_sandbox_leaks_total", {"backend": "docker"}) == 1


def test_a_command_is_scraped_while_it_runs_and_leaves_its_spans(tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    policy = "adder:wait_s=0.5"
    command = evaluation(tmp_path / "out", "--metrics-port", 0, "--traces", spans, "--concurrency", 1, policy=policy)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as running:
        assert running.stdout is not None
        url = next(line for line in running.stdout if line.startswith("metrics: ")).split()[1]
        assert url.startswith("http://127.0.0.1:")
        deadline = time.monotonic() + 60 * patience()
        ended = ""
        while 'metier_trajectories_total{env="test/Echo-v0",outcome="completed"}' not in ended:
            assert time.monotonic() < deadline and running.poll() is None, ended
            with urllib.request.urlopen(url, timeout=60) as answer:
                ended = answer.read().decode()
        assert "metier_heartbeat_timestamp_seconds" in ended
        assert re.search(r"^metier_trials_running [01]\.0$", ended, re.MULTILINE)
        running.stdout.read()
        assert running.wait(120) == 0
    roots = [one for one in sent(spans) if one["name"].startswith("invoke_agent")]
    assert len(roots) == len(load(tmp_path / "out").rows) == 3


def test_a_taken_port_and_a_wrong_target_are_told_before_a_trial(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for more, words in ((("--metrics-port", port), f"port {port}"), (("--traces", "ftp://x"), "traces go to")):
            command = evaluation(tmp_path / "out", *more)
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
            assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out" / "results.jsonl").exists()


WORKER = """
import asyncio, sys
sys.path.insert(0, "tests/fixtures")
import adder
from metier.envs.core import Deadline
from metier.harness.runner import work
from metier.scheduler import worker
adder.install()

async def main():
    payload = {"env_id": "test/Echo-v0", "seed": 1, "backend": "fake", "trace_id": "ab" * 16}
    await work(payload, deadline=Deadline.after(60, limit="t", set_by="test"))
    await worker.close_resources()

asyncio.run(main())
"""


def test_a_worker_exports_what_its_environment_asks_for(tmp_path: Path) -> None:
    spans = tmp_path / "spans.jsonl"
    environment = {**os.environ, "METIER_TRACES": str(spans)}
    subprocess.run([sys.executable, "-c", WORKER], check=True, cwd=ROOT, env=environment, timeout=120)
    assert {one["traceId"] for one in sent(spans)} == {"ab" * 16}


def test_a_collector_that_is_away_stops_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        command = evaluation(tmp_path / "out", "--traces", url)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(load(tmp_path / "out").rows) == 3


def test_logs_of_a_command_are_json(tmp_path: Path) -> None:
    silent = evaluation(tmp_path / "out", "--traces", "http://127.0.0.1:9")  # whose exporter says that nobody is there
    environment = {**os.environ, "METIER_LOG": "json"}
    done = subprocess.run(silent, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines and all({"at", "level", "logger", "text", "trace_id"} <= set(line) for line in lines)
    wrong = subprocess.run(
        silent, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "METIER_LOG": "xml"}
    )
    assert wrong.returncode == 2 and "METIER_LOG" in wrong.stderr
