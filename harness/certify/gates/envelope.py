"""The resource envelope: what an instance, its sandbox and its verifier take, and that this fits what they may have.

Generation is measured on the host, by processor time and by what Python allocates; preparing, a solved episode and the
verifier each in a sandbox that nobody had before, by the kernel's own account of it. A backend that gives a sandbox no
account leaves memory at 0, which means not measured.
"""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Mapping, Sequence

from metier.envs.core import VerifierError

from ...prepare import SETUP_TIMEOUT_S, Preparer, Task, generate
from ..bench import Bench, Cell, found
from ..certificate import Finding
from ..lenses import Usage, measuring

MOST_GENERATE_S = 10.0
MOST_GENERATE_MB = 512.0
FULL = 0.9
"""Of a limit in memory or on disk."""
SLOW = 0.75
"""Of a limit in time, on the machine that certifies."""


async def envelope(bench: Bench, cells: Sequence[Cell]) -> list[Finding]:
    """Measure, keep it for the certificate, and compare with the limits."""
    bench.envelopes.clear()
    findings: list[Finding] = []
    for cell in cells:  # one after the other: they are measured
        measured = await _measure(bench, cell)
        bench.envelopes[cell.level] = measured
        findings += [
            found(cell, what, taken <= most, f"{taken:g} of {most:g}") for what, taken, most in _limits(bench, measured)
        ]
    reds = sum(not finding.ok for finding in findings)
    bench.say(f"envelope: {len(cells)} levels, {reds} red; {bench.envelopes}")
    return findings


async def _measure(bench: Bench, cell: Cell) -> dict[str, float]:
    seconds, megabytes = await asyncio.to_thread(_generate, bench.task(cell))
    taken = {"generate_s": seconds, "generate_mb": megabytes}
    prepared = await bench.prepared(cell)
    if prepared.instance.setup:
        usage = Usage()
        fresh = await Preparer(measuring(bench.backend, usage)).prepare(bench.task(cell), deadline=bench.deadline())
        taken |= {"prepare_s": usage.seconds, "prepare_memory_mb": usage.memory_mb}
        taken |= {"snapshot_mb": fresh.snapshot.size_bytes / (1 << 20) if fresh.snapshot else 0.0}
    usage = Usage()
    began = time.monotonic()
    sandbox = await bench.preparer.fork(prepared, deadline=bench.deadline())
    taken["reset_s"] = time.monotonic() - began
    await sandbox.close()
    try:
        collected = await bench.solution(cell, "oracle")
        await bench.grade(cell, collected, measuring(bench.backend, usage))
    except VerifierError as error:
        bench.say(f"envelope: level {cell.level}: the verifier could not be measured: {error}")
    else:
        solved = bench.usages.get(cell, Usage())
        taken |= {"agent_memory_mb": solved.memory_mb, "agent_disk_mb": solved.disk_mb}
        taken |= {"verify_s": usage.seconds, "verify_memory_mb": usage.memory_mb, "verify_disk_mb": usage.disk_mb}
    return {name: round(value, 3) for name, value in taken.items()}


def _generate(task: Task) -> tuple[float, float]:
    """Processor seconds of one generation, and the most MiB that another one allocated."""
    began = time.thread_time()
    generate(task)
    seconds = time.thread_time() - began
    tracemalloc.start()
    try:
        generate(task)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return seconds, peak / (1 << 20)


def _limits(bench: Bench, measured: Mapping[str, float]) -> list[tuple[str, float, float]]:
    """What was measured, and the most it may be."""
    limits = bench.entry.limits
    disk = float(sum(bench.entry.sandbox().writable_mb.values()))
    most = {
        "generate_s": MOST_GENERATE_S,
        "generate_mb": MOST_GENERATE_MB,
        "prepare_s": SETUP_TIMEOUT_S * SLOW,
        "verify_s": limits.verify_s * SLOW,
        "prepare_memory_mb": limits.memory_mb * FULL,
        "agent_memory_mb": limits.memory_mb * FULL,
        "verify_memory_mb": limits.memory_mb * FULL,
        "snapshot_mb": disk * FULL,
        "agent_disk_mb": disk * FULL,
        "verify_disk_mb": disk * FULL,
    }
    return [(name, measured[name], limit) for name, limit in most.items() if name in measured]
