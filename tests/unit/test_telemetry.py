"""Telemetry: an episode's spans, an evaluation's metrics, bounded labels, clean logs, and nothing where it is off."""

from __future__ import annotations

import contextlib
import http.server
import io
import json
import logging
import re
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

import adder
import metier
from echo_episode import ID, LOSE, READ, SUBMIT, Stage, Turns, turn
from metier.envs.core import ConfigError, Outcome, PolicyError, SandboxLost, ToolCall
from metier.envs.suite import Seeds
from metier.harness.evaluate.acting import acting
from metier.harness.evaluate.archive import Archive
from metier.harness.evaluate.budget import Budget
from metier.harness.evaluate.folder import missing, writing
from metier.harness.evaluate.run import Evaluation, Manner
from metier.harness.evaluate.selection import Asked, make_plan, select
from metier.harness.record import Playing, Recorder, Records, RecordSettings
from metier.harness.record.query import query
from metier.harness.record.recording import EpisodeRecording
from metier.harness.record.store import open_store
from metier.harness.telemetry import metrics, names, signals, tracing
from metier.harness.telemetry.identity import in_trace, trace_id
from metier.harness.telemetry.logs import HIDDEN, JsonFormatter, clean
from metier.harness.testing import ECHO
from metier.scheduler import open_executor
from record_samples import Kept

metier.register_environments(ECHO)
adder.install()


class Nobody:
    """A display that shows nothing."""

    def started(self, trial: Any) -> None:
        pass

    def finished(self, trial: Any, row: Any) -> None:
        pass


@contextlib.contextmanager
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    kept = tracing.Tracing(exporter, at_once=True)
    with signals.listening(tracer=kept):
        yield exporter
    kept.close()


@contextlib.contextmanager
def counting() -> Iterator[metrics.Metrics]:
    kept = metrics.Metrics()
    with signals.listening(meter=kept):
        yield kept


def tree(exporter: InMemorySpanExporter) -> dict[str, str]:
    """Span name → its parent's, for spans whose names differ."""
    by_id = {one.context.span_id: one.name for one in exporter.get_finished_spans() if one.context}
    return {one.name: by_id[one.parent.span_id] if one.parent else "" for one in exporter.get_finished_spans()}


def value(kept: metrics.Metrics, name: str, **labels: str) -> float:
    return kept.registry.get_sample_value(name, labels) or 0.0


async def evaluation(path: Path, policy: str, seeds: str, records: Path | None = None) -> str:
    """Runs one on scripted sandboxes; its run's name."""
    actor = acting(policy)
    selected = select(Asked(names=[ID], seeds=Seeds.parse(seeds)))
    plan = make_plan(selected, actor.planned, samples=1, backend="fake", episode_s=30.0, version="0.1.0")
    with writing(path) as writer, contextlib.ExitStack() as stack:
        results = writer.begin(plan)
        archive = None
        if records is not None:
            recorder = stack.enter_context(Recorder.open(RecordSettings(store=str(records))))
            archive = Archive(recorder, plan, writer.id)
        manner = Manner(concurrency=2, budget=Budget(failures_in_a_row=100), archive=archive)
        async with open_executor("local", slots={"sandbox": 2}) as executor:
            await Evaluation(writer, results, missing(results), actor, manner, Nobody()).run(executor)
        return archive.run_id if archive else ""


# spans


async def test_an_episode_is_a_tree_of_spans() -> None:
    with spans() as exporter:
        await Stage().play(Turns(turn(READ, ToolCall(tool="rm -rf", id="c7")), turn(SUBMIT)))
    root = f"invoke_agent {ID}"
    assert tree(exporter) == {
        root: "",
        "metier.prepare": root,
        "chat turns": root,
        "execute_tool read_file": root,
        "execute_tool unknown": root,
        "execute_tool submit": root,
        "metier.verify": root,
    }
    assert len({one.context.trace_id for one in exporter.get_finished_spans() if one.context}) == 1
    told = {one.name: dict(one.attributes or {}) for one in exporter.get_finished_spans()}
    assert told[root][names.OUTCOME] == "completed"
    assert (told[root][names.REWARD], told[root][names.PASSED], told[root][names.SEED]) == (0.0, False, 3)
    assert told["execute_tool unknown"] | {names.CUT_BYTES: 0} == {
        names.OPERATION: "execute_tool",
        names.TOOL: "unknown",
        names.TOOL_CALL: "c7",
        names.TOOL_OK: False,
        names.CUT_BYTES: 0,
    }
    assert told["metier.verify"][names.NUM_CHECKS] == 1


@pytest.mark.parametrize(
    ("policy", "broken", "outcome", "error"),
    [
        (Turns(PolicyError("https://me:hunter22@host is down")), "chat turns", "policy_failure", "PolicyError"),
        (Turns(turn(LOSE)), "execute_tool lose", "sandbox_failure", "SandboxLost"),
    ],
)
async def test_a_failure_is_on_its_span_and_on_the_episode(
    policy: Turns, broken: str, outcome: str, error: str
) -> None:
    with spans() as exporter:
        await Stage().play(policy)
    told = {one.name: one for one in exporter.get_finished_spans()}
    for name in (broken, f"invoke_agent {ID}"):
        assert (told[name].attributes or {})[names.ERROR] == error
        assert not told[name].status.is_ok and "hunter22" not in str(told[name].status.description)
    assert (told[f"invoke_agent {ID}"].attributes or {})[names.OUTCOME] == outcome


def test_attributes_are_those_of_the_conventions() -> None:
    known = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI_")}
    ours = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    assert ours and ours <= known


async def test_spans_and_records_of_a_trial_have_one_trace(tmp_path: Path) -> None:
    with spans() as exporter:
        run = await evaluation(tmp_path / "a", "oracle", "0:3", tmp_path / "records")
    traced = {
        (one.attributes or {})[names.SEED]: f"{one.context.trace_id:032x}"
        for one in exporter.get_finished_spans()
        if one.name.startswith("invoke_agent") and one.context
    }
    sql = "SELECT seed, trace_id FROM episodes"
    answer = query(Records(open_store(str(tmp_path / "records"))), sql, [run])
    assert dict(answer.rows) == traced and len(set(traced.values())) == 3


async def test_a_recording_begun_within_a_trace_is_of_it() -> None:
    with in_trace() as trace, spans() as exporter:
        recording = EpisodeRecording(Kept(), Playing(run_id="r", env_id=ID, seed=3))
        await Stage().play(Turns(turn(SUBMIT)))
    assert recording.trace_id == trace
    assert {f"{one.context.trace_id:032x}" for one in exporter.get_finished_spans() if one.context} == {trace}


class Receiver(http.server.BaseHTTPRequestHandler):
    """A collector's door."""

    got: list[tuple[str, ExportTraceServiceRequest]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, ExportTraceServiceRequest.FromString(body)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[tuple[str, list[tuple[str, ExportTraceServiceRequest]]]]:
    got: list[tuple[str, ExportTraceServiceRequest]] = []
    door = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Door", (Receiver,), {"got": got}))
    thread = threading.Thread(target=door.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{door.server_port}", got
    door.shutdown()
    door.server_close()
    thread.join()


async def test_a_collector_is_told_over_otlp(collector: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url, got = collector
    with tracing.exporting(url) as target:
        assert target == url
        await Stage().play(Turns(turn(SUBMIT)))
    path, request = got[0]
    sent = [span for group in request.resource_spans for scope in group.scope_spans for span in scope.spans]
    assert path == "/v1/traces"
    assert Counter(span.name for span in sent)[f"invoke_agent {ID}"] == 1
    assert {scope.schema_url for group in request.resource_spans for scope in group.scope_spans} == {names.SCHEMA_URL}
    told = {one.key for group in request.resource_spans for one in group.resource.attributes}
    assert "service.name" in told and not {one for one in told if one.startswith("host.")}


async def test_a_file_has_otlp_as_json(tmp_path: Path) -> None:
    path = tmp_path / "new" / "spans.jsonl"
    with in_trace("ab" * 16), tracing.exporting(str(path)):
        await Stage().play(Turns(turn(SUBMIT)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    sent = [one for line in lines for group in line["resourceSpans"] for s in group["scopeSpans"] for one in s["spans"]]
    assert {one["traceId"] for one in sent} == {"ab" * 16}
    assert all(re.fullmatch("[0-9a-f]{16}", one["spanId"]) for one in sent)


def test_where_no_span_can_go_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (str(tmp_path / "file" / "spans"), "ftp://host/x"):
        with pytest.raises(ConfigError, match="traces"), tracing.exporting(target):
            pass
    assert not signals.traced()


# metrics


async def test_metrics_after_an_evaluation_with_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from metier.harness.testing.echo.family import Echo

    real, tries = Echo.verify, Counter[int]()

    async def verify(self: Echo, sandbox: Any, instance: Any, hidden: Any) -> Any:
        total = instance.truth["sum"]
        tries[total] += 1
        if len(tries) == 1 and tries[total] == 1:  # the first instance's first try: retried, and then well
            raise SandboxLost("gone")
        if len(tries) == 2 and list(tries)[1] == total:  # the second one's every try
            raise RuntimeError("broken")
        return await real(self, sandbox, instance, hidden)

    monkeypatch.setattr(Echo, "verify", verify)
    with counting() as kept:
        await evaluation(tmp_path, "oracle", "0:6")
    trials = {outcome: value(kept, "metier_trajectories_total", env=ID, outcome=outcome) for outcome in Outcome}
    assert {str(outcome): count for outcome, count in trials.items() if count} == {
        "completed": 5.0,
        "verifier_failure": 1.0,
    }
    assert value(kept, "metier_infra_errors_total", kind="SandboxLost") == 1
    assert value(kept, "metier_retries_total", kind="SandboxLost") == 1
    assert value(kept, "metier_infra_errors_total", kind="VerifierError") == 1
    assert value(kept, "metier_retries_total", kind="VerifierError") == 0
    assert value(kept, "metier_episodes_total", env=ID, outcome="sandbox_failure") == 1
    assert value(kept, "metier_reward_count", env=ID) == value(kept, "metier_reward_sum", env=ID) == 5
    assert value(kept, "metier_tool_calls_total", tool="read_file", ok="true") == 7
    assert value(kept, "metier_trials_running") == 0


async def test_metrics_are_served_while_it_runs(tmp_path: Path) -> None:
    with metrics.serving(0) as url, Recorder.open(RecordSettings(store=str(tmp_path))) as recorder:
        recorder.log("r1", "info", "hello")
        async with signals.beating():
            await Stage().play(Turns(turn(SUBMIT)))
            with urllib.request.urlopen(url, timeout=10) as answer:
                text = answer.read().decode()
        port = url.rsplit(":", 1)[1].partition("/")[0]
        with pytest.raises(ConfigError, match=f"port {port}: Address already in use; give another --metrics-port"):
            metrics.serving(int(port)).__enter__()
    assert f'metier_episodes_total{{env="{ID}",outcome="completed"}} 1.0' in text
    for name in (
        "metier_heartbeat_timestamp_seconds",
        "metier_queue_lag",
        "metier_outbox_bytes",
        "metier_disk_free_bytes",
    ):
        assert re.search(rf"^{name} [0-9.e+]+$", text, re.MULTILINE)


_anything = st.one_of(st.text(max_size=40), st.from_regex(r"metier-[0-9a-f]{12}", fullmatch=True), st.uuids().map(str))


@settings(deadline=None)
@given(st.lists(_anything, max_size=60))
def test_labels_have_few_values_whatever_comes(given_values: list[str]) -> None:
    labels = metrics.Labels()
    for label in {label for metric in names.METRICS.values() for label in metric.labels}:
        found = {labels.bounded(label, one) for one in [*given_values, *(f"a{n}" for n in range(5))]}
        assert not any(re.search(r"[0-9a-f]{12}", one) for one in found)


def test_labels_that_come_in_thousands_are_others() -> None:
    labels = metrics.Labels()
    for label in {label for metric in names.METRICS.values() for label in metric.labels}:
        many = {labels.bounded(label, "".join(chr(97 + int(d)) for d in str(n))) for n in range(3000)}
        assert len(many) <= names.MOST_VALUES + 1


def test_no_metric_is_labelled_by_what_has_no_bound() -> None:
    for metric in names.METRICS.values():
        assert set(metric.labels) <= set(names.VOCABULARIES) | set(names.PATTERNS)
        assert re.fullmatch(r"metier_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is names.Kind.COUNTER)


def test_a_broken_metric_breaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with counting(), caplog.at_level(logging.WARNING):
        signals.add(names.EPISODES, env="x")
        signals.add(names.EPISODES, env="x")
    assert len(caplog.records) == 1


async def test_a_training_step_tells_how_long_the_engine_idled() -> None:
    logs = pytest.importorskip("metier.trainer.logs")
    told: Mapping[str, float] = {"seconds/generate": 6.0, "seconds/train": 3.0, "seconds/update": 1.0, "reward": 0.25}
    with counting() as kept:
        assert "metier_train_reward" not in kept.text(), "what is not known is not 0"
        logs._signal(told)
        logs._signal({"loss": 1.0})
    assert value(kept, "metier_engine_idle_share") == pytest.approx(0.4)
    assert value(kept, "metier_train_reward") == 0.25


# logs


def test_log_lines_are_json_with_their_trace_and_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "correct horse battery")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    log = logging.getLogger("metier.test.telemetry")
    log.addHandler(handler)
    log.propagate = False
    with in_trace("ab" * 16):
        try:
            raise ValueError("sk-" + "a" * 30)
        except ValueError:
            log.exception("key %s\nand \ud800", "correct horse battery", extra={"episode_id": "e1", "api_key": "short"})
    log.error("outside")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert (first["trace_id"], first["level"], first["episode_id"]) == ("ab" * 16, "error", "e1")
    assert first["text"] == f"key {HIDDEN}\nand \ufffd" and first["api_key"] == HIDDEN
    assert "ValueError" in first["error"] and "a" * 30 not in first["error"]
    assert second["trace_id"] == ""


@settings(deadline=None)
@given(st.text(max_size=200))
def test_what_is_no_secret_is_logged_as_it_is(text: str) -> None:
    if text.isalpha() and len(text) < 8:
        assert clean(text) == text.encode("utf-8", "replace").decode()


# off


def test_where_nobody_listens_nothing_is_imported() -> None:
    program = """
import asyncio, sys
sys.path.insert(0, "tests/fixtures")
from echo_episode import Stage, Turns, turn, READ, SUBMIT
result = asyncio.run(Stage().play(Turns(turn(READ), turn(SUBMIT))))
assert result.reward == 0.0
bad = [name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "prometheus_client")]
assert not bad, bad
"""
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root, timeout=120)


def test_there_is_no_trace_outside_of_episodes() -> None:
    assert trace_id() == ""
    with in_trace() as outer, in_trace() as inner:
        assert outer == inner and re.fullmatch("[0-9a-f]{32}", outer)
        for none in ("0" * 32, "xyz", "a" * 33):
            with in_trace(none) as kept:
                assert kept == outer
    with signals.span("nothing") as span:
        span.set("a", object())
