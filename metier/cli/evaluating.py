"""An evaluation in a terminal: a table that lives where there is a terminal, and a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from metier.harness.evaluate.plan import Trial
from metier.harness.evaluate.row import Row
from metier.harness.evaluate.tally import DomainTally, Tally

_LINE_EVERY_S = 10.0
_PER_SECOND = 4


class Display:
    """Implements `metier.harness.evaluate.run.Watch`; shows a tally."""

    def __init__(self, console: Console, tally: Tally) -> None:
        self._console = console
        self._tally = tally
        self._told = time.monotonic()
        self._told_failures: set[str] = set()

    @contextmanager
    def showing(self) -> Iterator[None]:
        """The display is there meanwhile."""
        if not self._console.is_terminal:
            yield
            return
        with Live(
            get_renderable=self._renderable, console=self._console, refresh_per_second=_PER_SECOND, transient=True
        ):
            yield

    def started(self, trial: Trial) -> None:
        self._tally.started(trial)

    def finished(self, trial: Trial, row: Row) -> None:
        self._tally.finished(trial, row)
        if not row.valid and row.failure not in self._told_failures:
            self._told_failures.add(row.failure)  # each once: a machine that is down says the same a thousand times
            where = f"{trial.env_id} level {trial.level} seed {trial.seed}"
            self._console.print(f"[yellow]{where}: {row.outcome}: {escape(row.failure[:300])}", soft_wrap=True)
        if self._console.is_terminal:
            return
        last = self._tally.num_ended_here == self._tally.num_to_run
        if last or time.monotonic() - self._told >= _LINE_EVERY_S:
            self._told = time.monotonic()
            self._console.print(line(self._tally), markup=False, highlight=False, soft_wrap=True)

    def _renderable(self) -> RenderableType:
        table = Table("domain", "ended", "running", "pass rate so far", "failed", box=None, pad_edge=False)
        domains = sorted(self._tally.domains.items())
        for name, one in domains if len(domains) == 1 else [*domains, ("all", self._tally.whole)]:
            table.add_row(name, f"{one.num_ended}/{one.requested}", str(one.running), _rate(one), _failures(one))
        whole = self._tally.whole
        bar = ProgressBar(total=max(1, whole.requested), completed=whole.num_ended, width=40)
        return Group(table, bar, Text(_pace(self._tally)))


def line(tally: Tally) -> str:
    """The whole in one line."""
    whole = tally.whole
    domains = ", ".join(f"{name} {_rate(one)}" for name, one in sorted(tally.domains.items()) if one.valid)
    failures = _failures(whole)
    parts = [
        f"{whole.num_ended}/{whole.requested} ended, {whole.running} running",
        f"passed: {domains}" if domains else "",
        f"failed: {failures}" if failures else "",
        _pace(tally),
    ]
    return "  ".join(part for part in parts if part)


def _rate(one: DomainTally) -> str:
    return f"{100 * one.rate.rate:.0f}% of {one.valid}" if one.valid else ""


def _failures(one: DomainTally) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(one.invalid.items()))


def _pace(tally: Tally) -> str:
    left = tally.left_s
    ahead = "" if left is None else f", about {_clock(left)} left"
    return f"{_clock(tally.elapsed_s)} elapsed{ahead}, {tally.tokens_per_s:.0f} tokens/s"


def _clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
