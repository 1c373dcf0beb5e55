"""Every name that telemetry uses: spans, attributes, metrics, labels.

Dashboards and alerts live longer than code, so names are in this module only, and tests compare `deploy/` with it. The
conventions for generative models are still "in development" at OpenTelemetry: `CONVENTIONS` is the version that is
followed. What they have no word for is named `metier.…`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

from metier.envs.core import Outcome

CONVENTIONS = "1.37.0"
SCHEMA_URL = f"https://opentelemetry.io/schemas/{CONVENTIONS}"

# attributes of the conventions
OPERATION = "gen_ai.operation.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT = "gen_ai.agent.name"
MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
FINISH = "gen_ai.response.finish_reasons"
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
ERROR = "error.type"

# attributes of ours
ENV = "metier.env.id"
SEED = "metier.env.seed"
LEVEL = "metier.env.level"
SAMPLE = "metier.env.sample"
OUTCOME = "metier.outcome"
LIMIT = "metier.limit"
REWARD = "metier.reward"
PASSED = "metier.passed"
TURN = "metier.turn.index"
NUM_CALLS = "metier.turn.calls"
TOOL_OK = "metier.tool.ok"
CUT_BYTES = "metier.tool.cut_bytes"
NUM_CHECKS = "metier.verify.checks"
SANDBOX = "metier.sandbox.id"
BACKEND = "metier.sandbox.backend"
IMAGE = "metier.sandbox.image"
SOURCE = "metier.sandbox.source"
VERIFIER = "metier.sandbox.verifier"
SESSION = "metier.sandbox.session"
EXIT_CODE = "metier.sandbox.exit_code"
TIMED_OUT = "metier.sandbox.timed_out"
OOM_KILLED = "metier.sandbox.oom_killed"

# spans: an episode is `invoke_agent ENV`, a turn `chat`, a call `execute_tool TOOL`, as the conventions name them
EPISODE = "invoke_agent"
TURN_SPAN = "chat"
TOOL_SPAN = "execute_tool"
PREPARE = "metier.prepare"
STAY = "metier.stay"
"""An agent that acts inside its sandbox by itself."""
VERIFY = "metier.verify"
SANDBOX_PREFIX = "metier.sandbox."
"""Then the operation: acquire, reset, or what a `Sandbox` does, such as exec."""


class Kind(StrEnum):
    """What a metric is to Prometheus."""

    COUNTER = auto()
    GAUGE = auto()
    HISTOGRAM = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric; `labels` never name a sandbox, an episode, a seed or a run.

    Example:
        >>> EXEC_SECONDS.name, EXEC_SECONDS.labels
        ('metier_sandbox_exec_seconds', ('backend',))
    """

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


_FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_SLOW_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 1800.0, 3600.0)
_SHARE = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"metier_{name}", kind=Kind.COUNTER, text=text, labels=labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name=f"metier_{name}", kind=Kind.GAUGE, text=text, labels=labels)


def _histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name=f"metier_{name}", kind=Kind.HISTOGRAM, text=text, labels=labels, buckets=buckets)


ACQUIRE_SECONDS = _histogram(
    "sandbox_acquire_seconds", "From asking for a sandbox to its lease.", _FAST_S, "backend", "source"
)
RESET_SECONDS = _histogram("sandbox_reset_seconds", "Emptying a sandbox and proving it.", _FAST_S, "backend")
EXEC_SECONDS = _histogram("sandbox_exec_seconds", "A command in a sandbox.", (*_FAST_S, 300.0, 900.0), "backend")
DIRTY_RESETS = _counter("sandbox_dirty_resets_total", "Resets that did not prove a sandbox empty.", "backend")
RUNNING = _gauge("sandbox_running", "Sandboxes that exist, as far as this process knows.", "backend")
LEASED = _gauge("sandbox_leased", "Of those, in use.", "backend")
WARM = _gauge("sandbox_warm", "Of those, ready for the next lease.", "backend")
REMOVING = _gauge("sandbox_removing", "Of those, on their way out.", "backend")
LEAKS = _counter("sandbox_leaks_total", "Sandboxes that could not be removed, and are left to the reaper.", "backend")
OOM = _counter("sandbox_oom_total", "Commands that were killed for memory.", "backend")
EXEC_TIMEOUTS = _counter("exec_timeouts_total", "Commands that were stopped at their time limit.", "backend")
LOST = _counter("sandbox_lost_total", "Calls that failed because their sandbox was gone.", "backend")

EPISODES = _counter("episodes_total", "Episodes that ended, retried ones included, by outcome.", "env", "outcome")
EPISODE_SECONDS = _histogram("episode_seconds", "An episode from its reset to its verdict.", _SLOW_S, "env")
TURN_SECONDS = _histogram("turn_seconds", "The policy's part of a turn.", _SLOW_S, "policy")
VERIFY_SECONDS = _histogram("verify_seconds", "Grading.", _SLOW_S, "env")
TOOL_CALLS = _counter("tool_calls_total", "Tool calls; what the agent got wrong is not ok.", "tool", "ok")
TOKENS = _counter("tokens_total", "Tokens that policies told of.", "direction")
TRAJECTORIES = _counter("trajectories_total", "Trials that ended, after all retries, by outcome.", "env", "outcome")
REWARDS = _histogram("reward", "Rewards of graded trials.", _SHARE, "env")
INFRA_ERRORS = _counter("infra_errors_total", "Attempts at a trial that failed by our fault, by error.", "kind")
RETRIES = _counter("retries_total", "Of those, the ones that were tried again.", "kind")
RUNNING_TRIALS = _gauge("trials_running", "Trials under way.")
HEARTBEAT = _gauge("heartbeat_timestamp_seconds", "When the event loop last had time for this, since 1970.")

QUEUE_LAG = _gauge("queue_lag", "Recorded events that are not in the store yet.")
QUEUE_OLDEST = _gauge("queue_oldest_seconds", "Age of the oldest of them.")
OUTBOX_BYTES = _gauge("outbox_bytes", "Bytes of the outbox.")
UPLOADS_FAILED = _counter("uploads_failed_total", "Times that outbox, broker or store could not be written.")
DROPPED_LOGS = _counter("dropped_logs_total", "Lines of logs that were dropped for want of room.")
DEAD_LETTERS = _counter("dead_letters_total", "Events that no store would take.")

ENGINE_IDLE = _gauge("engine_idle_share", "Of a training step, the part in which the engine generated nothing.")
TRAIN_REWARD = _gauge("train_reward", "Mean reward of the last training step.")

DISK_FREE = _gauge("disk_free_bytes", "Room left on the disk of the caches.")
DISK_SIZE = _gauge("disk_size_bytes", "Of that disk.")

METRICS: Mapping[str, Metric] = {one.name: one for one in list(globals().values()) if isinstance(one, Metric)}
"""All of them."""

VOCABULARIES: Mapping[str, frozenset[str]] = {
    "outcome": frozenset(Outcome),
    "source": frozenset({"warm", "cold"}),
    "ok": frozenset({"true", "false"}),
    "direction": frozenset({"input", "output"}),
}
"""Labels whose values are a closed set."""
PATTERNS: Mapping[str, re.Pattern[str]] = {
    "backend": re.compile(r"[a-z]{1,24}"),
    "kind": re.compile(r"[A-Z][A-Za-z]{1,40}"),
    "env": re.compile(r"[A-Za-z0-9_.-]{1,60}/[A-Za-z0-9_.]{1,80}-v\d{1,4}"),
    "policy": re.compile(r"[a-z_-]{1,24}"),
    "tool": re.compile(r"[a-z_]{1,40}"),
}
"""What other labels' values look like; anything else is `OTHER`."""
MOST_VALUES = 200
"""Of a label: what comes later is `OTHER`, whatever it is."""
OTHER = "other"
