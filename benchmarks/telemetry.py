"""What telemetry costs an episode: off, metrics, spans into a file, both, in turn within one run.

    python benchmarks/telemetry.py [--episodes 300] [--backend fake docker] [--only NAME] [--json]

An episode prepares, takes four tool calls, submits and is graded; on the fake backend it is nearly all bookkeeping, the
worst case. `off` is measured as two ways: what they differ by is noise. Last, a call that nobody listens to.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from measure import Clock, Row, parser, report

import metier
from metier.envs.core import Deadline, ToolCall
from metier.harness.prepare import Preparer, Task
from metier.harness.runner import run_episode
from metier.harness.sandbox import open_backend
from metier.harness.telemetry import names, signals
from metier.harness.telemetry.metrics import Metrics
from metier.harness.telemetry.tracing import Tracing, exporter_for
from metier.harness.testing import ECHO, FakeBackend, ScriptedPolicy

ENVS = {"fake": "test/Echo-v0", "docker": "terminal/PyMutationRepair-v0", "bubblewrap": "terminal/PyMutationRepair-v0"}
CALLS = {
    "fake": ToolCall(tool="read_file", arguments={"path": "numbers.txt"}),
    "docker": ToolCall(tool="shell", arguments={"command": "true"}),
    "bubblewrap": ToolCall(tool="shell", arguments={"command": "true"}),
}
WARM_UP = 5


async def episodes(name: str, count: int, folder: Path) -> list[Row]:
    """The ways in turn, so that whatever else the machine does meets all of them."""
    metrics = Metrics()
    tracing = Tracing(exporter_for(str(folder / f"{name}.jsonl")))
    ways: dict[str, dict[str, Any]] = {
        "off": {},
        "off, again": {},
        "metrics": {"meter": metrics},
        "spans": {"tracer": tracing},
        "metrics and spans": {"meter": metrics, "tracer": tracing},
    }
    clocks = {way: Clock() for way in ways}
    async with _backend(name) as backend:
        preparer = Preparer(backend)
        order = list(ways)
        for index in range(count + WARM_UP):
            order.append(order.pop(0))  # nobody is always first
            for way in order:
                policy = ScriptedPolicy((*[CALLS[name]] * 4, ToolCall(tool="submit")))
                deadline = Deadline.after(120, limit="episode_s", set_by="benchmark")
                clock = clocks[way] if index >= WARM_UP else Clock()
                with signals.listening(**ways[way]), clock:
                    await run_episode(Task(env_id=ENVS[name], seed=1), policy, backend, preparer, deadline=deadline)
    tracing.close()
    return [Row(what=f"an episode, {name}", way=way, values=clock.values) for way, clock in clocks.items()]


@contextlib.asynccontextmanager
async def _backend(name: str) -> AsyncIterator[Any]:
    async with FakeBackend() if name == "fake" else open_backend(name) as backend:
        yield backend


def silent(times: int = 20_000, rounds: int = 30) -> Row:
    """A span, an attribute and a counter that nobody listens to, in nanoseconds."""
    values: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in range(times):
            with signals.span(names.VERIFY, {names.ENV: "a"}) as span:
                span.set(names.PASSED, True)
            signals.add(names.EPISODES, env="a", outcome="b")
        values.append((time.perf_counter() - began) / times * 1e9)
    return Row(what="a span, an attribute, a count", way="off", values=values, unit="ns")


async def main() -> None:
    arguments = parser(str(__doc__).partition("\n")[0])
    arguments.add_argument("--episodes", type=int, default=300, help="of each way")
    arguments.add_argument("--backend", nargs="+", choices=list(ENVS), default=["fake", "docker"])
    options = arguments.parse_args()
    metier.register_environments(ECHO)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.backend:
            if options.only in name:
                rows += await episodes(name, options.episodes, Path(folder))
    rows.append(silent())
    report("Telemetry", rows, as_json=options.json)


if __name__ == "__main__":
    asyncio.run(main())
