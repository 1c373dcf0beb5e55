"""The bench that gates work at: one environment on one backend, and how to play fixed calls to their verdict."""

from __future__ import annotations

import asyncio
import hashlib
import io
import secrets
import tarfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from metier.envs.core import (
    Collected,
    Deadline,
    GenerationError,
    Json,
    Outcome,
    Sandbox,
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
from .lenses import BackendLens, Listening, Told, Usage, measuring

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of what was left behind: a verdict, or why there is none."""

    verdict: Verdict | None
    failure: str = ""
    seconds: float = 0.0

    @property
    def floored(self) -> bool:
        """Graded, with reward 0, and not passed."""
        return self.verdict is not None and self.verdict.reward == 0.0 and not self.verdict.passed

    @property
    def words(self) -> str:
        """What happened, in one line."""
        if self.verdict is None:
            return self.failure
        wrong = [f"{one.name} {one.score:g} ({one.evidence[:120]})" for one in self.verdict.checks if one.score < 1]
        said = f"reward {self.verdict.reward:.3g}, {'passed' if self.verdict.passed else 'not passed'}"
        return "; ".join([said, *wrong[:3], f"graded in {self.seconds:.1f} s"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What an agent left behind: artefacts to be graded, or a verdict where its end came before."""

    collected: Collected | None = None
    ended: Verdict | None = None


@dataclass(slots=True, kw_only=True)
class Bench:
    """One environment under test. Sandbox failures raise: certification needs a machine that works.

    What several gates need is made once: the artefacts of a family's own solutions, and the verdict on equal artefacts.
    """

    entry: Entry
    backend: SandboxBackend
    preparer: Preparer
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    progress: Progress | None = None
    at_once: int = 2
    timings_s: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    partial: dict[Cell, str] = field(default_factory=dict[Cell, str])
    """A mutant with some reward: the verdict on it can waver in more ways."""
    envelopes: dict[int, dict[str, float]] = field(default_factory=dict[int, dict[str, float]])
    """Level → what an episode takes."""
    usages: dict[Cell, Usage] = field(default_factory=dict[Cell, Usage])
    """Of the oracle's own sandbox."""
    _left: dict[tuple[Cell, str], asyncio.Future[Collected]] = field(default_factory=dict)
    _judged: dict[tuple[Cell, str], asyncio.Future[Judged]] = field(default_factory=dict)
    _heard: dict[tuple[Cell, str], asyncio.Future[tuple[Judged, Told]]] = field(default_factory=dict)

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

    async def leave(
        self,
        cell: Cell,
        calls: Callable[[Episode], Sequence[ToolCall]],
        files: Mapping[str, bytes] | None = None,
        backend: SandboxBackend | None = None,
    ) -> Left:
        """What `calls` leave behind, with `files` put under /workspace after them; a submit's answer is a file too."""
        backend = backend or self.backend
        preparer = self.preparer if backend is self.backend else Preparer(backend)
        async with await Episode.start(self.task(cell), backend, preparer, deadline=self.deadline()) as episode:
            written = dict(files or {})
            for call in calls(episode):
                if call.tool == "submit":
                    answer = call.arguments.get("answer")
                    written |= (
                        {"answer": answer.encode("utf-8", "replace")} if isinstance(answer, str) and answer else {}
                    )
                    break
                step = await episode.step(call)
                if step.ended:
                    return Left(ended=step.verdict)
            for path, data in written.items():
                try:
                    await episode.sandbox.write(f"/workspace/{path}", data)
                except ConnectionError:
                    raise
                except OSError:
                    continue  # a folder is there, or the disk is full: the agent could not have written it either
            return Left(collected=await episode.sandbox.collect(episode.prepared.instance.artefacts))

    async def solution(self, cell: Cell, name: str) -> Collected:
        """The artefacts of the family's own solution of that name, "oracle" or a mutant's; made once."""
        return await _once(self._left, (cell, name), lambda: self._solution(cell, name))

    async def _solution(self, cell: Cell, name: str) -> Collected:
        prepared = await self.prepared(cell)
        family, instance = prepared.family, prepared.instance
        calls = list(family.oracle(instance) if name == "oracle" else family.mutants(instance)[name])
        backend = self.backend
        if name == "oracle":
            backend = measuring(backend, self.usages.setdefault(cell, Usage()))
        left = await self.leave(cell, lambda _: calls, backend=backend)
        if left.collected is None:
            raise VerifierError(f"{name} ran into a limit of the episode and left nothing to be graded")
        return left.collected

    async def wrong_solution(self, cell: Cell) -> str | None:
        """The mutant to look at more closely: one with some reward if there is one."""
        prepared = await self.prepared(cell)
        return self.partial.get(cell) or next(iter(prepared.family.mutants(prepared.instance)), None)

    async def grade(self, cell: Cell, collected: Collected, backend: SandboxBackend | None = None) -> Verdict:
        """The verdict on `collected`, measured now. Raises VerifierError."""
        prepared = await self.prepared(cell)
        return await grade(backend or self.backend, prepared, collected, seed=cell.seed, deadline=self.deadline())

    async def judge(self, cell: Cell, collected: Collected) -> Judged:
        """The verdict on `collected`, measured once for equal artefacts (that it repeats is a gate of its own)."""
        return await _once(self._judged, (cell, contents(collected)), lambda: self._judge(self.grade(cell, collected)))

    async def heard(self, cell: Cell, name: str) -> tuple[Judged, Told]:
        """The verdict on a solution of the family's own, and what the verifier told its sandbox; measured once."""

        async def listen() -> tuple[Judged, Told]:
            told = Told(canary=f"canary-{secrets.token_hex(12)}")

            def lens(inner: Sandbox) -> Sandbox:
                return Listening(inner, told)

            try:
                collected = await self.solution(cell, name)
            except VerifierError as error:
                return Judged(verdict=None, failure=f"VerifierError: {error}"), told
            prepared = self.with_canary(await self.prepared(cell), told.canary)
            backend = BackendLens(self.backend, lens)
            grading = grade(backend, prepared, collected, seed=cell.seed, deadline=self.deadline())
            return await self._judge(grading), told

        return await _once(self._heard, (cell, name), listen)

    async def _judge(self, grading: Awaitable[Verdict]) -> Judged:
        began = time.monotonic()
        try:
            verdict = await grading
        except VerifierError as error:
            return Judged(verdict=None, failure=f"{type(error).__name__}: {error}", seconds=time.monotonic() - began)
        return Judged(verdict=verdict, seconds=time.monotonic() - began)

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


def ends(cells: Sequence[Cell]) -> list[Cell]:
    """The easiest and the hardest, with one seed."""
    return [cells[0], *([cells[-1]] if cells[-1].level != cells[0].level else [])]


def found(cell: Cell, what: str, ok: bool, evidence: str = "") -> Finding:
    """A finding in a cell."""
    return Finding(level=cell.level, seed=cell.seed, what=what, ok=ok, evidence=evidence[:1500])


def contents(collected: Collected) -> str:
    """Names what was collected, whenever it was."""
    digest = hashlib.sha256(repr(sorted(collected.refused.items())).encode())
    with tarfile.open(fileobj=io.BytesIO(collected.tar)) as tar:
        for member in sorted(tar, key=lambda member: member.name):
            file = tar.extractfile(member) if member.isfile() else None
            data = hashlib.sha256(file.read()).hexdigest() if file else ""
            digest.update(f"{member.name}\0{member.type!r}\0{member.mode}\0{member.linkname}\0{data}\n".encode())
    return digest.hexdigest()


def files_of(collected: Collected) -> dict[str, bytes]:
    """Path under /workspace → bytes, of the regular files."""
    with tarfile.open(fileobj=io.BytesIO(collected.tar)) as tar:
        found = [(member.name.removeprefix("./"), tar.extractfile(member)) for member in tar if member.isfile()]
        return {name: file.read() for name, file in found if file is not None}


K = TypeVar("K")
V = TypeVar("V")


async def _once(kept: dict[K, asyncio.Future[V]], key: K, make: Callable[[], Coroutine[Any, Any, V]]) -> V:
    """What `make` gave the first time it was asked for `key`; a failure is not kept."""
    if key not in kept:
        kept[key] = asyncio.ensure_future(make())
    try:
        return await asyncio.shield(kept[key])
    except BaseException:
        kept.pop(key, None)
        raise
