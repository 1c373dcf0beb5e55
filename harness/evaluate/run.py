"""Run what a folder's plan lacks: trials go to an executor, and each end is on the disk before it counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, cast

from metier.envs.core import ConfigError
from metier.scheduler.contract import Executor, WorkItem, WorkResult

from ..result import EpisodeResult
from ..telemetry import names, signals
from ..telemetry.identity import run_name, trial_trace
from .acting import Acting
from .archive import Archive
from .budget import Budget, Meter
from .folder import Results, Writer
from .plan import Plan, Trial
from .row import Row, ended, row_of
from .trial import item_of


class Watch(Protocol):
    """Is told how an evaluation goes."""

    def started(self, trial: Trial) -> None: ...

    def finished(self, trial: Trial, row: Row) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an evaluation ended."""

    num_run: int
    """Trials that ended in this process."""
    num_left: int
    """Trials that were not started, or did not end."""
    stopped: str
    """Why no further trial was started; empty where all were."""
    broken: bool
    """Whether that was because too many failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How trials are run; nothing of it changes what they mean."""

    concurrency: int
    budget: Budget
    archive: Archive | None = None
    """Is told of every end too, once the folder has it."""


class Evaluation:
    """One process's part of an evaluation."""

    def __init__(
        self, writer: Writer, results: Results, trials: Sequence[Trial], acting: Acting, manner: Manner, watch: Watch
    ) -> None:
        """`trials` are those to run; `results` what the folder had before."""
        self._writer = writer
        self._results = results
        self._trials = trials
        self._acting = acting
        self._manner = manner
        self._watch = watch
        self._meter = Meter(manner.budget, results.rows.values())
        self._running: dict[str, tuple[Trial, WorkItem, float]] = {}
        self._stopped = ""
        self._broken = False
        self._wrong: ConfigError | None = None
        self._num_run = 0
        self._run_id = run_name(writer.id, results.plan.digest)

    @property
    def _plan(self) -> Plan:
        return self._results.plan

    async def run(self, executor: Executor) -> Ending:
        """To the end, or until a budget is used up; what has ended is on the disk also where this raises.

        Raises:
            ConfigError: a trial's environment, policy or worker is wrong; what ran beside it was played to its end.
            ResultsNotKept: the disk is full, or gone.
        """
        ends = executor.map(self._items(), in_flight=self._manner.concurrency)
        async with aclosing(cast("AsyncGenerator[WorkResult]", ends)):  # which cancels what runs
            async for done in ends:
                trial, item, started_at = self._running.pop(done.key)
                if done.failure == "ConfigError":
                    self._wrong = self._wrong or ConfigError(done.message)
                elif done.failure != "CancelledError":  # a trial that was cancelled has not ended
                    await self._keep(trial, item, started_at, done)
        if self._wrong is not None:
            raise self._wrong
        return Ending(
            num_run=self._num_run,
            num_left=len(self._trials) - self._num_run,
            stopped=self._stopped,
            broken=self._broken,
        )

    async def _items(self) -> AsyncIterator[WorkItem]:
        for trial in self._trials:
            self._stopped = self._meter.broken() or self._meter.used_up()
            self._broken = bool(self._meter.broken())
            if self._stopped or self._wrong is not None:
                return
            trace_id = trial_trace(self._run_id, trial.key, self._round_of(trial))
            item = item_of(trial, self._plan, self._acting, trace_id=trace_id)
            self._running[trial.key] = trial, item, time.time()
            signals.put(names.RUNNING_TRIALS, len(self._running))
            self._watch.started(trial)
            yield item

    async def _keep(self, trial: Trial, item: WorkItem, started_at: float, done: WorkResult) -> None:
        episode = ended(item.payload, done)
        row = row_of(
            trial,
            episode,
            done,
            started_at=started_at,
            ended_at=time.time(),
            round_=self._round_of(trial),
        )
        # off the loop, which serves sandboxes; and to its end, whoever interrupts
        writing = asyncio.ensure_future(asyncio.to_thread(self._write, row, episode))
        try:
            await asyncio.wait({writing})
        except asyncio.CancelledError:
            await asyncio.wait({writing})
            if writing.exception() is None:
                self._count(trial, writing.result())
            raise
        self._count(trial, writing.result())

    def _round_of(self, trial: Trial) -> int:
        before = self._results.rows.get(trial.key)
        return 0 if before is None else before.round + 1

    def _write(self, row: Row, episode: EpisodeResult) -> Row:
        kept = self._writer.keep(row, episode if episode.conversation else None)
        if self._manner.archive is not None:
            self._manner.archive.keep(kept, episode)
        return kept

    def _count(self, trial: Trial, row: Row) -> None:
        self._num_run += 1
        self._meter.count(row)
        _signal(row)
        signals.put(names.RUNNING_TRIALS, len(self._running))
        self._watch.finished(trial, row)


def _signal(row: Row) -> None:
    """A trial's end, to whoever watches metrics."""
    signals.add(names.TRAJECTORIES, env=row.env_id, outcome=row.outcome)
    if row.reward is not None:
        signals.observe(names.REWARDS, row.reward, env=row.env_id)
    for tried in row.history:
        signals.add(names.INFRA_ERRORS, kind=tried.failure)
        signals.add(names.RETRIES, kind=tried.failure)
    if not row.valid:
        signals.add(names.INFRA_ERRORS, kind=row.failure.partition(":")[0])
