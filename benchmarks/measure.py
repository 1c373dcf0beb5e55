"""What all benchmarks share: timing one thing many times, and one table, or JSON, of what came out.

A benchmark prints what it measured on the machine it ran on, with that machine's load, beside named peers measured in
the same run. It asserts no number. A peer that is not there is named with what it would need.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One thing done in one way, and what each time took (or, for rates, gave)."""

    what: str
    way: str
    values: Sequence[float] = ()
    unit: str = "ms"
    note: str = ""
    """Why there are no values."""

    def percentile(self, share: float) -> float:
        """The value below which `share` of all lie."""
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Clock:
    """Collects how long `with clock:` bodies took, in milliseconds."""

    values: list[float] = field(default_factory=list)
    _began: float = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.values.append((time.perf_counter() - self._began) * 1e3)


async def timed(step: Callable[[], Awaitable[object]], times: int, *, warm_up: int = 3) -> list[float]:
    """Milliseconds of each of `times` steps, one after the other, after a few unmeasured ones."""
    for _ in range(warm_up):
        await step()
    clock = Clock()
    for _ in range(times):
        with clock:
            await step()
    return clock.values


async def rate(steps: Iterable[Callable[[], Awaitable[object]]], rounds: int) -> float:
    """Steps a second of all together, each seat taking its next step as soon as its last one is done."""

    async def seat(step: Callable[[], Awaitable[object]]) -> None:
        for _ in range(rounds):
            await step()

    seats = list(steps)
    await asyncio.gather(*(step() for step in seats))
    began = time.perf_counter()
    await asyncio.gather(*(seat(step) for step in seats))
    return len(seats) * rounds / (time.perf_counter() - began)


def parser(description: str) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.add_argument("--only", default="", help="only what has this in its name")
    made.add_argument("--image", default="terminal-python", help="what all sandboxes and containers are made of")
    return made


def report(title: str, rows: Sequence[Row], *, as_json: bool) -> None:
    """The table, or the same as JSON."""
    load = os.getloadavg()[0]
    if as_json:
        found = [
            {"what": row.what, "way": row.way, "unit": row.unit, "note": row.note, "count": len(row.values)}
            | ({"p50": row.percentile(0.5), "p95": row.percentile(0.95)} if row.values else {})
            for row in rows
        ]
        print(json.dumps({"title": title, "cores": os.cpu_count(), "load": load, "rows": found}, indent=1))
        return
    table = Table(title=f"{title} ({os.cpu_count()} cores, load {load:.1f} at the end)")
    for name in ("what", "way"):
        table.add_column(name)
    for name in ("p50", "p95", "count"):
        table.add_column(name, justify="right")
    table.add_column("unit")
    last = ""
    for row in rows:
        if row.what != last and last:
            table.add_section()
        shown = [_short(row.percentile(share)) for share in (0.5, 0.95)] if row.values else ["–", "–"]
        count = str(len(row.values)) if row.values else ""
        table.add_row(
            row.what if row.what != last else "", row.way, *shown, count, row.unit if row.values else row.note
        )
        last = row.what
    Console().print(table)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
