"""The bench that gates work at: one environment on one backend, and how to play fixed calls to their verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from metier.envs.core import (
    Collected,
    Deadline,
    GenerationError,
    Json,
    Outcome,
    SandboxBackend,
    SandboxError,
    ToolCall,
    Verdict,
    VerifierError,
)
from metier.envs.entry import Entry

from ..episode import Episode, Step
from ..grading import grade
from ..prepare import Prepared, Preparer, Task
from .certificate import Finding

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One instance of the grid."""

    level: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """How a list of calls ended, or why there is no verdict."""

    step: Step | None = None
    failure: str = ""
    first_wrong: str = ""
    """The first observation that was not ok: where a right solution usually went wrong."""

    @property
    def verdict(self) -> Verdict | None:
        """Of a graded episode."""
        return self.step.verdict if self.step else None

    @property
    def reward(self) -> float | None:
        """Of a graded episode."""
        return self.verdict.reward if self.verdict else None

    @property
    def solved(self) -> bool:
        """Submitted, reward 1, passed."""
        completed = self.step is not None and self.step.outcome is Outcome.COMPLETED
        return completed and self.verdict is not None and self.verdict.passed and self.reward == 1.0

    @property
    def words(self) -> str:
        """What happened, in one line."""
        if self.step is None or self.verdict is None:
            return self.failure
        failing = [check for check in self.verdict.checks if check.score < 1]
        wrong = [f"{check.name} {check.score:g} ({check.evidence[:200]})" for check in failing]
        said = f"reward {self.reward:.3g}, {'passed' if self.verdict.passed else 'not passed'}, {self.step.outcome}"
        parts = [said, *wrong[:4]]
        if self.first_wrong:
            parts.append(f"first wrong observation: {self.first_wrong[:300]}")
        return "; ".join(parts)


@dataclass(slots=True, kw_only=True)
class Bench:
    """One environment under test. Sandbox failures raise: certification needs a machine that works."""

    entry: Entry
    backend: SandboxBackend
    preparer: Preparer
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    progress: Progress | None = None
    at_once: int = 2
    timings_s: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def task(self, cell: Cell) -> Task:
        """The episode of a cell."""
        return Task(env_id=self.entry.id, seed=cell.seed, level=cell.level, options=dict(self.options))

    def deadline(self) -> Deadline:
        """What one episode of certification may take."""
        limits = self.entry.limits
        return Deadline.after(limits.agent_s + limits.verify_s + 600, limit="episode_s", set_by="certify")

    async def prepared(self, cell: Cell) -> Prepared:
        """The cell's instance. Raises GenerationError, SandboxError."""
        return await self.preparer.prepare(self.task(cell), deadline=self.deadline())

    async def start(self, cell: Cell) -> Episode:
        """A fresh episode of the cell."""
        return await Episode.start(self.task(cell), self.backend, self.preparer, deadline=self.deadline())

    async def play(self, cell: Cell, calls: Sequence[ToolCall], *, kind: str = "") -> Played:
        """Run `calls` in order; `kind` names where the times are kept. A broken verifier is a `failure` here."""
        try:
            async with await self.start(cell) as episode:
                first_wrong = ""
                for call in calls:
                    step = await episode.step(call)
                    if not step.result.ok and not step.ended:
                        first_wrong = first_wrong or f"{call.tool}: {step.result.text}"
                    if step.ended:
                        if kind:
                            self._keep(kind, episode)
                        return Played(step=step, first_wrong=first_wrong)
                return Played(failure=f"its {len(calls)} calls do not end with submit", first_wrong=first_wrong)
        except (VerifierError, GenerationError) as error:
            return Played(failure=f"{type(error).__name__}: {error}")

    def _keep(self, kind: str, episode: Episode) -> None:
        for part, seconds in (("reset", episode.reset_s), ("tool", episode.tool_s), ("verify", episode.verify_s)):
            self.timings_s.setdefault(f"{kind} {part}", []).append(seconds)

    async def collect(self, cell: Cell, calls: Sequence[ToolCall]) -> Collected:
        """The artefacts that `calls` leave, not graded; a final submit's answer is among them."""
        async with await self.start(cell) as episode:
            for call in calls:
                if call.tool == "submit":
                    answer = call.arguments.get("answer")
                    if isinstance(answer, str) and answer:
                        await episode.sandbox.write("/workspace/answer", answer.encode())
                    break
                await episode.step(call)
            return await episode.sandbox.collect(episode.prepared.instance.artefacts)

    async def grade(self, cell: Cell, collected: Collected) -> Verdict:
        """The verdict on `collected`. Raises VerifierError."""
        return await grade(self.backend, await self.prepared(cell), collected, seed=cell.seed, deadline=self.deadline())

    async def each(
        self, cells: Iterable[Cell], name: str, check: Callable[[Cell], Awaitable[Sequence[Finding]]]
    ) -> list[Finding]:
        """`check` of every cell, a few at once, with progress; once more where a sandbox failed."""
        slots = asyncio.Semaphore(self.at_once)

        async def one(cell: Cell) -> Sequence[Finding]:
            async with slots:
                try:
                    findings = await check(cell)
                except SandboxError as error:
                    self.say(f"{name}: level {cell.level} seed {cell.seed}: once more, since {error}")
                    findings = await check(cell)
            reds = sum(not finding.ok for finding in findings)
            self.say(f"{name}: level {cell.level} seed {cell.seed}: {len(findings)} tried, {reds} red")
            return findings

        tasks = [asyncio.create_task(one(cell)) for cell in cells]
        try:
            answers = await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return [finding for findings in answers for finding in findings]

    def say(self, words: str) -> None:
        """A line of progress."""
        if self.progress is not None:
            self.progress(f"{self.entry.id}: {words}")

    def with_canary(self, prepared: Prepared, canary: str) -> Prepared:
        """The same instance with a canary in its truth, which nothing in a sandbox may show."""
        truth = {**prepared.instance.truth, "certification canary": canary}
        return replace(prepared, instance=replace(prepared.instance, truth=truth))


def found(cell: Cell, what: str, ok: bool, evidence: str = "") -> Finding:
    """A finding in a cell."""
    return Finding(level=cell.level, seed=cell.seed, what=what, ok=ok, evidence=evidence[:1500])
