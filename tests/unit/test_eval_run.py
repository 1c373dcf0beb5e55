"""Evaluations of real episodes on scripted sandboxes: what is run, retried, stopped and run again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import adder
import metier
from metier.envs import registry
from metier.envs.core import ConfigError, Outcome, SandboxUnavailable
from metier.envs.suite import Seeds
from metier.harness.certify import environment_digest
from metier.harness.evaluate import trial as trial_module
from metier.harness.evaluate.acting import Acting, acting
from metier.harness.evaluate.archive import Archive
from metier.harness.evaluate.budget import Budget, Meter
from metier.harness.evaluate.faults import ResultsNotKept
from metier.harness.evaluate.folder import ROWS, Results, Writer, load, missing, writing
from metier.harness.evaluate.plan import Plan, Trial
from metier.harness.evaluate.report import make_report
from metier.harness.evaluate.run import Ending, Evaluation, Manner
from metier.harness.evaluate.selection import Asked, make_plan, select
from metier.harness.evaluate.summary import Ended, summarise
from metier.harness.evaluate.tally import Tally
from metier.harness.policy import AssistantTurn, Usage
from metier.harness.prepare import Preparer, Task
from metier.harness.record import Recorder, Records, RecordSettings
from metier.harness.record.store import open_store
from metier.harness.runner import work
from metier.harness.testing import ECHO
from metier.harness.testing.echo.family import Echo
from metier.scheduler import open_executor
from trials import ECHO_ID, environment, plan, results
from trials import row as row_of

metier.register_environments(ECHO)
adder.install()


def of(actor: Acting, seeds: str = "0:6", samples: int = 1, **asked: Any) -> Plan:
    selected = select(Asked(names=[ECHO_ID], seeds=Seeds.parse(seeds), **asked))
    return make_plan(selected, actor.planned, samples=samples, backend="fake", episode_s=30.0, version="0.1.0")


class Session:
    """One process's part of an evaluation, and what it was told."""

    def __init__(self, path: Path, actor: Acting, made: Plan, **budget: Any) -> None:
        self.path = path
        self.actor = actor
        self.plan = made
        self.budget = Budget(**budget)
        self.ran: list[Trial] = []
        self.tally: Tally | None = None

    async def run(
        self,
        *,
        again: bool = False,
        concurrency: int = 3,
        before: Callable[[Writer], None] | None = None,
        archive: Archive | None = None,
    ) -> Ending:
        with writing(self.path) as writer:
            results = writer.begin(self.plan)
            trials = missing(results, again=again)
            self.tally = Tally(results, trials)
            if before is not None:
                before(writer)
            manner = Manner(concurrency=concurrency, budget=self.budget, archive=archive)
            async with open_executor("local", slots={"sandbox": concurrency}) as executor:
                return await Evaluation(writer, results, trials, self.actor, manner, self).run(executor)

    def started(self, trial: Trial) -> None:
        assert self.tally is not None
        self.tally.started(trial)

    def finished(self, trial: Trial, row: Any) -> None:
        assert self.tally is not None
        self.ran.append(trial)
        self.tally.finished(trial, row)

    @property
    def results(self) -> Results:
        return load(self.path)


def session(path: Path, line: str = "adder", seeds: str = "0:6", samples: int = 1, **budget: Any) -> Session:
    actor = acting(line)
    return Session(path, actor, of(actor, seeds, samples), **budget)


def outcomes(results: Results) -> Counter[str]:
    return Counter(str(row.outcome) for row in results.rows.values())


# all of it


async def test_every_trial_is_run_once_and_its_episode_is_kept(tmp_path: Path) -> None:
    one = session(tmp_path, "adder:errs_on=3", samples=2)
    ending = await one.run()
    assert (ending.num_run, ending.num_left, ending.stopped) == (12, 0, "")
    results = one.results
    assert not missing(results) and len(one.ran) == 12
    passed = {trial.seed: results.rows[trial.key].passed for trial in one.plan.trials()}
    assert set(passed.values()) == {True, False}
    for row in results.rows.values():
        episode = results.episode(row)
        assert (episode.passed, episode.seed, episode.sample) == (row.passed, row.seed, row.sample)
        assert (row.spent.num_turns, row.spent.tokens, row.spent.cost_usd) == (3, 330, Decimal("0.03"))
        assert isinstance(episode.conversation[1], AssistantTurn)
        assert {"queue", "run", "reset", "policy", "tool", "verify", "total"} <= row.timings_s.keys()


async def test_what_the_records_missed_they_get_when_it_is_started_again(tmp_path: Path) -> None:
    store = str(tmp_path / "records")
    one = session(tmp_path / "run", "adder:errs_on=3")
    closed = Recorder.open(RecordSettings(store=store))
    closed.close()  # so that nothing can be recorded
    missing_all = Archive(closed, one.plan, "a" * 32)
    assert (await one.run(archive=missing_all)).num_run == 6
    assert (missing_all.num_missed, missing_all.trouble) == (6, "the recorder is closed; open another one")
    for late in (6, 0):
        with Recorder.open(RecordSettings(store=store)) as recorder:
            archive = Archive(recorder, one.plan, "a" * 32)
            assert archive.catch_up(one.results, Records(open_store(store))) == late
    records = Records.open(store)
    results = one.results
    kept = {result.seed: result for result in map(records.result, records.attempts([archive.run_id]))}
    assert kept == {row.seed: results.episode(row) for row in results.rows.values()}
    assert not records.dead_letters()


async def test_a_second_and_a_third_run_do_nothing(tmp_path: Path) -> None:
    await session(tmp_path).run()
    rows = (tmp_path / ROWS).read_bytes()
    for _ in range(2):
        again = session(tmp_path)
        assert (await again.run()).num_run == 0
        assert again.ran == [] and (tmp_path / ROWS).read_bytes() == rows


async def test_what_was_added_to_a_plan_is_all_that_is_run(tmp_path: Path) -> None:
    await session(tmp_path).run()
    more = session(tmp_path, seeds="0:8", samples=2)
    await more.run()
    assert Counter((trial.seed, trial.sample) for trial in more.ran) == Counter(
        [(seed, 1) for seed in range(8)] + [(6, 0), (7, 0)]
    )


async def test_a_setting_that_matters_runs_everything_again(tmp_path: Path) -> None:
    await session(tmp_path).run()
    other = session(tmp_path, "adder:errs_on=2")
    assert (await other.run()).num_run == 6
    assert other.results.num_other == 6


async def test_trials_start_with_a_seed_of_everything_before_the_next_seed(tmp_path: Path) -> None:
    one = session(tmp_path, seeds="0:4", samples=2)
    await one.run(concurrency=1)
    assert [(trial.seed, trial.sample) for trial in one.ran] == [(seed, n) for seed in range(4) for n in range(2)]


# what fails


async def test_a_lost_sandbox_is_tried_again_and_its_attempts_are_told(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    one = session(tmp_path / "run", f"adder:lost=2,marks={marks}", seeds="0:2")
    await one.run()
    for row in one.results.rows.values():
        assert row.passed
        assert [(each.failure, each.spent.num_turns, each.spent.output_tokens) for each in row.history] == [
            ("SandboxLost", 2, 20)
        ] * 2
        assert row.history[0].message == "lost on request; start another episode"
        assert (row.spent.output_tokens, row.spent_in_all.output_tokens) == (30, 70)


async def test_what_fails_for_good_is_invalid_and_keeps_what_was_said(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    line = f"adder:lost=3,marks={marks}"
    one = session(tmp_path / "run", line, seeds="0:2")
    await one.run()
    results = one.results
    assert outcomes(results) == {"sandbox_failure": 2}
    for row in results.rows.values():
        assert row.failure == "SandboxLost: lost on request; start another episode"
        assert (row.reward, row.passed, len(row.history)) == (None, None, 2)
        assert len(results.episode(row).conversation) == 4
    made = summarise("x", [Ended(trial=each, row=results.rows[each.key]) for each in one.plan.trials()], 1)
    assert (made.requested, made.valid, made.invalid, made.pass_rate) == (2, 0, {"sandbox_failure": 2}, None)
    assert (await session(tmp_path / "run", line, seeds="0:2").run()).num_run == 0
    again = session(tmp_path / "run", line, seeds="0:2")
    assert (await again.run(again=True)).num_run == 2  # the sandbox holds at the fourth attempt
    assert outcomes(again.results) == {"completed": 2}
    assert all(row.round == 1 for row in again.results.rows.values())


async def test_an_endpoint_that_is_down_stops_the_evaluation_before_it_is_all_invalid(tmp_path: Path) -> None:
    one = session(tmp_path, "adder:down=nobody answers", seeds="0:50", failures_in_a_row=4)
    ending = await one.run(concurrency=1)
    assert (ending.num_run, ending.num_left, ending.broken) == (4, 46, True)
    assert ending.stopped == "4 trials in a row failed, the last with PolicyError: nobody answers"
    assert outcomes(one.results) == {"policy_failure": 4}


async def test_a_verifier_that_breaks_is_no_reward_of_nothing_and_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def verify(*_: object) -> Any:
        raise FileNotFoundError("the reference program could not be fetched")

    monkeypatch.setattr(Echo, "verify", verify)
    one = session(tmp_path)
    await one.run()
    assert outcomes(one.results) == {"verifier_failure": 6}
    assert all((each.reward, each.history) == (None, ()) for each in one.results.rows.values())
    overall = make_report(one.results).overall
    assert (overall.valid, overall.pass_rate, overall.reward.value) == (0, None, None)


async def test_a_machine_that_fails_in_nine_resets_of_ten_shows_a_tenth_as_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = Preparer.prepare

    async def fails(self: Preparer, task: Task, *, deadline: Any) -> Any:
        if task.seed % 10:
            raise SandboxUnavailable("all slots are held")
        return await prepare(self, task, deadline=deadline)

    monkeypatch.setattr(Preparer, "prepare", fails)
    one = session(tmp_path, seeds="0:30", failures_in_a_row=None)
    await one.run(concurrency=30)
    overall = make_report(one.results).overall
    assert (overall.requested, overall.valid, overall.invalid) == (30, 3, {"sandbox_failure": 27})
    assert (overall.passed, overall.pass_rate) == (3, 1.0)
    lost = [each for each in one.results.rows.values() if not each.valid]
    assert {(each.failure, len(each.history), each.file) for each in lost} == {
        ("SandboxUnavailable: all slots are held", 2, None)
    }


async def test_a_callers_mistake_stops_it_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuses_one(payload: dict[str, Any], *, deadline: Any) -> Any:
        if payload["seed"] == 1:
            raise ConfigError("this machine has no GPU")
        return await work(payload, deadline=deadline)

    monkeypatch.setattr("metier.harness.runner.work", refuses_one)
    one = session(tmp_path, "adder:wait_s=0.2", seeds="0:30")
    with pytest.raises(ConfigError, match="this machine has no GPU"):
        await one.run()
    assert {0, 2} <= {trial.seed for trial in one.ran}  # those beside it were played to their end
    assert len(one.ran) < 10
    assert len(one.results.rows) == len(one.ran)
    monkeypatch.undo()
    rest = session(tmp_path, "adder:wait_s=0.2", seeds="0:30")
    await rest.run(concurrency=20)
    assert not missing(rest.results)
    assert not {trial.key for trial in one.ran} & {trial.key for trial in rest.ran}


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("_digest", lambda _: "d" * 64, "another version of it"),
        ("secret_fingerprint", lambda: "x", "METIER_HUB_SECRET"),
    ],
)
async def test_a_worker_of_another_version_or_hub_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: Any, words: str
) -> None:
    one = session(tmp_path)
    monkeypatch.setattr(trial_module, name, value)
    with pytest.raises(ConfigError, match=words):
        await one.run()
    assert not one.results.rows


async def test_the_episodes_time_is_each_attempts_own(tmp_path: Path) -> None:
    actor = acting("adder:wait_s=20")
    made = of(actor, "0:1")
    made = made.model_copy(update={"conditions": made.conditions.model_copy(update={"episode_s": 0.4})})
    one = Session(tmp_path, actor, made)
    await asyncio.wait_for(one.run(), 30)
    (row,) = one.results.rows.values()
    assert (row.outcome, row.limit, row.reward) == (Outcome.AGENT_LIMIT, "time", 0.0)


async def test_a_full_disk_stops_it_and_the_rest_is_run_later(tmp_path: Path) -> None:
    kept: list[Any] = []

    def fills_up(writer: Writer) -> None:
        keep = writer.keep

        def once_full(row: Any, episode: Any) -> Any:
            if len(kept) == 2:
                raise ResultsNotKept("no room: make room, and run the same command again")
            kept.append(row)
            return keep(row, episode)

        writer.keep = once_full

    one = session(tmp_path, "adder:wait_s=0.05", seeds="0:20")
    with pytest.raises(ResultsNotKept, match="make room"):
        await one.run(before=fills_up)
    assert len(one.results.rows) == 2
    rest = session(tmp_path, "adder:wait_s=0.05", seeds="0:20")
    assert (await rest.run(concurrency=10)).num_run == 18


async def test_a_cancelled_evaluation_keeps_what_has_ended_and_no_more(tmp_path: Path) -> None:
    one = session(tmp_path, "adder:wait_s=0.3", seeds="0:30")
    running = asyncio.create_task(one.run())
    while len(one.ran) < 4:
        await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert outcomes(one.results) == {"completed": len(one.results.rows)}
    assert len(one.ran) == len(one.results.rows)
    num_kept = len(one.results.rows)
    rest = session(tmp_path, "adder:wait_s=0.3", seeds="0:30")
    assert (await rest.run(concurrency=30)).num_run == 30 - num_kept


# budgets


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"tokens": 1000}, "1320 of 1000 tokens are used"),
        ({"turns": 12}, "12 of 12 turns are used"),
        ({"cost_usd": "0.10"}, "0.12 of 0.10 US dollars are used"),
    ],
)
async def test_a_budget_starts_no_further_trial_and_says_so(tmp_path: Path, budget: Any, words: str) -> None:
    one = session(tmp_path, seeds="0:20", **budget)
    ending = await one.run(concurrency=1)
    assert (ending.num_run, ending.num_left, ending.stopped, ending.broken) == (4, 16, words, False)
    again = session(tmp_path, seeds="0:20", **budget)
    ending = await again.run(concurrency=1)  # what was used before still counts
    assert (ending.num_run, ending.stopped) == (0, words)
    assert (await session(tmp_path, seeds="0:20").run(concurrency=10)).num_run == 16


@pytest.mark.parametrize(
    ("budget", "usage", "words"),
    [
        ({"tokens": 1000}, Usage(num_requests=1), "the endpoint counts no tokens"),
        ({"cost_usd": "9"}, Usage(num_requests=1, prompt_tokens=5), "the policy has no prices"),
    ],
)
async def test_a_budget_that_cannot_be_kept_is_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: Any, usage: Usage, words: str
) -> None:
    monkeypatch.setattr(adder, "USAGE", usage)
    one = session(tmp_path, **budget)
    ending = await one.run(concurrency=1)
    assert ending.num_run == 1 and ending.stopped.startswith(words)
    free = session(tmp_path / "free", "noop", **budget)  # which asks nobody
    assert (await free.run()).stopped == ""


async def test_time_is_this_processs_own_and_what_runs_is_played_to_its_end(tmp_path: Path) -> None:
    one = session(tmp_path, "adder:wait_s=0.4", seeds="0:50", wall_s=0.2)
    ending = await one.run(concurrency=2)
    assert ending.num_run in (2, 4)
    assert "of 0.2 seconds are over" in ending.stopped


def test_failures_in_a_row_are_broken_by_a_valid_trial_and_by_no_environments_own() -> None:
    made = plan(environment(seeds=Seeds.parse("0:9")))
    trials = list(made.trials())
    meter = Meter(Budget(failures_in_a_row=2), [])
    for passed in (None, True, None):
        meter.count(row_of(trials[0], passed))
        assert not meter.broken()
    for _ in range(5):
        meter.count(row_of(trials[0], None, outcome=Outcome.GENERATION_FAILURE))
    assert not meter.broken()
    meter.count(row_of(trials[0], None))
    assert meter.broken() == "2 trials in a row failed, the last with SandboxLost: gone"
    patient = Meter(Budget(failures_in_a_row=None), [])
    for _ in range(100):
        patient.count(row_of(trials[0], None))
    assert not patient.broken()


# how it goes


def test_a_tally_tells_domains_failures_pace_and_what_is_left() -> None:
    now = 0.0
    made = plan(environment(seeds=Seeds.parse("0:4")), environment(id="cad/Other-v0"))
    before = results(made, {0: [True]})
    todo = missing(before)
    tally = Tally(before, todo, clock=lambda: now)
    assert (tally.num_to_run, tally.left_s) == (5, None)
    assert (tally.domains["test"].num_ended, tally.domains["cad"].num_ended) == (1, 1)
    first, second, *_ = todo
    tally.started(first)
    tally.started(second)
    assert tally.whole.running == 2
    now = 10.0
    tally.finished(first, row_of(first, False))
    tally.finished(second, row_of(second, None))
    assert (tally.whole.running, tally.whole.passed, tally.whole.valid) == (0, 2, 3)
    assert tally.whole.invalid == {"sandbox_failure": 1}
    assert tally.left_s == 15.0
    assert tally.tokens_per_s == 2.0
    now = 100.0
    assert tally.tokens_per_s == 0.0


def test_the_digest_in_a_plan_is_the_certificates() -> None:
    (one,) = of(acting("noop")).environments
    assert one.digest == environment_digest(registry.get(ECHO_ID))
