"""The commands `eval`, `report`, `compare` and `suites`."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from metier.envs import registry
from metier.envs.core import ConfigError, Json

from .bridge import build_images, substitutes
from .keeping import Keeping
from .observing import Observing

if TYPE_CHECKING:
    from metier.harness.evaluate.acting import Acting
    from metier.harness.evaluate.folder import Results, Writer
    from metier.harness.evaluate.plan import Plan, Trial
    from metier.harness.evaluate.report import Report
    from metier.harness.evaluate.run import Ending, Manner

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A results folder of `metier eval`.")]
_LIMITS = "Limits"
_WHAT = "What"
_HOW = "How"


def evaluate(
    names: Annotated[list[str], typer.Argument(metavar="SUITE|ID|DIR...", help="See `metier suites` and `metier ls`.")],
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            "-p",
            help="oracle, noop, random:seed=1, openai:URL#MODEL, inside:URL#MODEL, agent, replay:FILE.",
        ),
    ],
    setting: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the policy, such as temperature=0.2; again.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The results folder; runs/eval/NAME-POLICY by default. Resumed if it is there.")
    ] = None,
    samples: Annotated[int, typer.Option("--n", min=1, help="Episodes of each instance.", rich_help_panel=_WHAT)] = 1,
    seeds: Annotated[
        str | None, typer.Option(help="0:50 (50 is not in it), 7, or several with commas.", rich_help_panel=_WHAT)
    ] = None,
    levels: Annotated[
        list[int] | None, typer.Option("--level", help="Again for several.", rich_help_panel=_WHAT)
    ] = None,
    split: Annotated[
        str, typer.Option(help="Of a suite's seeds: public or held-out.", rich_help_panel=_WHAT)
    ] = "public",
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the environments.", rich_help_panel=_WHAT)
    ] = None,
    base: Annotated[
        list[str] | None,
        typer.Option(metavar="IMAGE=NAME", help="For a folder: see metier bridge import.", rich_help_panel=_WHAT),
    ] = None,
    uncertified: Annotated[
        bool, typer.Option("--uncertified", help="Also what has no valid certificate.", rich_help_panel=_WHAT)
    ] = False,
    episode_s: Annotated[
        float, typer.Option(min=1, help="Seconds of an episode, thinking included.", rich_help_panel=_WHAT)
    ] = 3600.0,
    backend: Annotated[str, typer.Option(help="auto, docker or bubblewrap.", rich_help_panel=_WHAT)] = "auto",
    executor: Annotated[str, typer.Option(help="local or ray.", rich_help_panel=_HOW)] = "local",
    workers: Annotated[int, typer.Option(min=1, help="Processes of the ray executor.", rich_help_panel=_HOW)] = 1,
    concurrency: Annotated[
        int | None, typer.Option(min=1, help="Episodes at once; by default, the cores.", rich_help_panel=_HOW)
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, help="Start no trial beyond so many.", rich_help_panel=_LIMITS)
    ] = None,
    max_turns: Annotated[int | None, typer.Option(min=1, help="As --max-tokens.", rich_help_panel=_LIMITS)] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="By the policy's prices.", rich_help_panel=_LIMITS)
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Of this process.", rich_help_panel=_LIMITS)
    ] = None,
    max_failures: Annotated[
        int, typer.Option(min=1, help="Stop after so many failures of ours in a row.", rich_help_panel=_LIMITS)
    ] = 10,
    rerun_invalid: Annotated[
        bool, typer.Option("--rerun-invalid", help="Run again what failures of ours ended.", rich_help_panel=_HOW)
    ] = False,
    records: Annotated[
        str | None,
        typer.Option(
            envvar="METIER_RECORDS", metavar="URL", help="Record every episode there too.", rich_help_panel=_HOW
        ),
    ] = None,
    transport: Annotated[
        str, typer.Option(metavar="URL", help="Of the records: nats://… or redis://…", rich_help_panel=_HOW)
    ] = "",
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics on 127.0.0.1.", rich_help_panel=_HOW)
    ] = None,
    traces: Annotated[
        str | None,
        typer.Option(
            envvar="METIER_TRACES", metavar="URL|FILE", help="Spans, to a collector or file.", rich_help_panel=_HOW
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be run.", rich_help_panel=_HOW)] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 unless every trial is valid.")] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a policy on suites or environments. The results folder keeps every trial that ended, whatever happens.

    The same command again runs exactly what is missing. The exit code is 1 where failures of ours stopped it.

    Examples: metier eval smoke-v0 --policy oracle
              metier eval terminal-v0 --policy openai:http://127.0.0.1:8000/v1#smollm2 --n 4 --out runs/smollm2
              metier eval finance/CovenantTest-v0 --policy noop --seeds 0:50 --level 0 --level 4
              metier eval smoke-v0 --policy oracle --records runs/records --metrics-port 9464 --traces runs/spans.jsonl
              metier eval path/to/harbor-dataset --policy oracle
    """
    from metier.harness.evaluate.acting import acting
    from metier.harness.evaluate.run import Manner
    from metier.harness.evaluate.selection import Asked, Split, select

    console = Console(stderr=True) if as_json else Console()
    if split not in list(Split):
        raise ConfigError(f"--split {split!r}{registry.suggest(split, list(Split))}; there are {', '.join(Split)}")
    asked = Asked(
        names=names,
        seeds=_seeds(seeds),
        levels=levels,
        split=Split(split),
        options=_options(option or ()),
        uncertified=uncertified,
        substitutes=substitutes(base),
    )
    actor = acting(policy, setting or ())
    selected = select(asked)
    for note in selected.notes:
        _say(console, note)
    plan = _plan(selected, actor, samples, backend, episode_s)
    limits = _budget(max_tokens, max_turns, max_cost, max_time, max_failures)
    manner = Manner(concurrency=concurrency or len(os.sched_getaffinity(0)), budget=limits)
    folder = out or Path("runs/eval") / re.sub(r"[^\w.-]+", "-", f"{'-'.join(names)}-{policy}")[:100]
    if dry_run:
        _rehearse(folder, plan, rerun_invalid, console)
        return
    if selected.images:
        build_images(selected.images, plan.conditions.backend)
    keeping = Keeping(records, transport, console)
    with Observing(console, metrics_port, traces).on():
        report, ending = _run(folder, plan, actor, manner, executor, workers, rerun_invalid, keeping, console)
    _tell(folder, report, ending, as_json, console)
    num_invalid = report.overall.requested - report.overall.valid
    if ending.broken or (strict and num_invalid):
        raise typer.Exit(1)


def report(folder: Folder, as_json: AsJson = False) -> None:
    """Make a folder's report again, from its results alone: the same bytes as `metier eval` left in it.

    Examples: metier report runs/smollm2
              metier report runs/smollm2 --json
    """
    from metier.harness.evaluate.folder import load
    from metier.harness.evaluate.report import as_markdown, make_report

    made = make_report(load(folder))
    _write(made.written() if as_json else as_markdown(made).encode())


def compare(first: Folder, second: Folder, as_json: AsJson = False) -> None:
    """Compare two runs on the instances that both have valid results of: the second beside the first.

    Example: metier compare runs/before runs/after
    """
    from metier.harness.evaluate.compare import compare as compared
    from metier.harness.evaluate.compare import comparison_as_markdown
    from metier.harness.evaluate.folder import load

    made = compared(load(first), load(second))
    _write(made.written() if as_json else comparison_as_markdown(made).encode())


def suites(as_json: AsJson = False) -> None:
    """List the suites, and how many environments each has today.

    Example: metier suites --json
    """
    from metier.harness.evaluate.selection import members

    found: list[dict[str, Any]] = []
    for name in registry.suites():
        suite = registry.suite(name)
        certified = [entry.id for entry, _ in members(suite, False, [])]
        every = [entry.id for entry, _ in members(suite, True, [])]
        found.append(
            suite.model_dump(mode="json")
            | {"members": certified, "uncertified": [one for one in every if one not in certified]}
        )
    if as_json:
        print(json.dumps(found))
        return
    console = Console()
    for one in found:
        levels = one["levels"] if one["levels"] == "all" else ", ".join(map(str, one["levels"]))
        facts = f"{len(one['members'])} environments · levels {levels} · public seeds {one['public_seeds']}"
        if one["held_out_seeds"]:
            facts += f" · held-out {one['held_out_seeds']}"
        if one["uncertified"]:
            facts += f" · {len(one['uncertified'])} more without a valid certificate"
        console.print(f"[bold]{one['suite']}[/bold]  {facts}", highlight=False, soft_wrap=True)
        console.print(f"    {one['summary']}", highlight=False, soft_wrap=True, markup=False)


def _run(
    folder: Path,
    plan: Plan,
    actor: Acting,
    manner: Manner,
    executor: str,
    workers: int,
    again: bool,
    keeping: Keeping,
    console: Console,
) -> tuple[Report, Ending]:
    from metier.harness.evaluate.folder import load, missing, writing
    from metier.harness.evaluate.manifest import Session
    from metier.harness.evaluate.report import as_markdown, make_report
    from metier.harness.evaluate.run import Ending

    with writing(folder) as writer:
        _say_changes(writer.found, plan, console)
        results = writer.begin(plan)
        trials = missing(results, again=again)
        _say(console, _standing(folder, results, trials))
        ending = Ending(num_run=0, num_left=0, stopped="", broken=False)
        with keeping.archive(results, writer.id) as archive:
            if trials:
                writer.note(Session.here(executor=executor, concurrency=manner.concurrency))
                recorded = replace(manner, archive=archive)
                ending = _trials(writer, results, trials, actor, recorded, executor, workers, console)
        made = make_report(load(folder))
        writer.report("report.json", made.written())
        writer.report("report.md", as_markdown(made).encode())
    return made, ending


def _trials(
    writer: Writer,
    results: Results,
    trials: list[Trial],
    actor: Acting,
    manner: Manner,
    executor: str,
    workers: int,
    console: Console,
) -> Ending:
    from metier.harness.evaluate.run import Evaluation
    from metier.harness.evaluate.selection import check_promises
    from metier.harness.evaluate.tally import Tally
    from metier.harness.telemetry import signals
    from metier.scheduler import open_executor

    from .evaluating import Display
    from .interrupts import run

    tally = Tally(results, trials)
    display = Display(console, tally)
    settings: dict[str, Any] = {"slots": {"sandbox": manner.concurrency}}
    if executor == "ray":
        settings["workers"] = workers

    async def whole() -> Ending:
        await check_promises(results.plan.conditions.backend, {trial.env_id for trial in trials})
        async with signals.beating(), open_executor(executor, **settings) as opened:
            return await Evaluation(writer, results, trials, actor, manner, display).run(opened)

    def last_words() -> None:
        kept = f"{tally.num_ended_here} of {len(trials)} trials ended and are kept"
        _say(console, f"stopped; {kept}, and the same command runs the others")

    with display.showing():
        return run(whole(), last_words=last_words)


def _rehearse(folder: Path, plan: Plan, again: bool, console: Console) -> None:
    """Says what a run would do; writes nothing."""
    from metier.harness.evaluate.folder import missing, results_for
    from metier.harness.evaluate.plan import differences

    results, before = results_for(folder, plan)
    for line in differences(before, plan) if before else ():
        _say(console, f"another setting than the folder's: {line}")
    _say(console, _standing(folder, results, missing(results, again=again)))


def _say_changes(before: Plan | None, plan: Plan, console: Console) -> None:
    from metier.harness.evaluate.plan import differences

    lines = differences(before, plan) if before else []
    for line in lines:
        _say(console, f"another setting than the folder's: {line}")
    if lines:
        _say(console, "so its trials have new keys; results of the earlier settings stay in it and are not counted")


def _standing(folder: Path, results: Results, trials: list[Trial]) -> str:
    total = results.plan.num_trials
    others = f"; {results.num_other} rows of other settings are kept" if results.num_other else ""
    return f"{folder}: {total} trials, {total - len(trials)} done, {len(trials)} to run{others}"


def _tell(folder: Path, report: Report, ending: Ending, as_json: bool, console: Console) -> None:
    from metier.harness.evaluate.report import as_markdown

    if ending.stopped:
        _say(console, f"stopped: {ending.stopped}; {ending.num_left} trials are left, and the same command runs them")
    if ending.broken:
        _say(console, "mend that first; --rerun-invalid runs the trials again that it ended")
    _write(report.written() if as_json else as_markdown(report).encode())
    _say(console, f"all of it is in {folder}/report.json, and metier report {folder} makes it again")


def _plan(selected: Any, actor: Acting, samples: int, backend: str, episode_s: float) -> Plan:
    import asyncio

    import metier
    from metier.harness.evaluate.selection import backend_of, make_plan

    return make_plan(
        selected,
        actor.planned,
        samples=samples,
        backend=asyncio.run(backend_of(backend)),
        episode_s=episode_s,
        version=metier.__version__,
    )


def _seeds(text: str | None) -> Any:
    from metier.envs.suite import Seeds

    return None if text is None else Seeds.parse(text)


def _options(given: Any) -> dict[str, Json]:
    from metier.harness.evaluate.acting import parsed

    return dict(parsed(one) for one in given)


def _budget(tokens: int | None, turns: int | None, cost: str | None, wall_s: float | None, failures: int) -> Any:
    from pydantic import ValidationError

    from metier.harness.evaluate.budget import Budget

    try:
        return Budget.model_validate(
            {"tokens": tokens, "turns": turns, "cost_usd": cost, "wall_s": wall_s, "failures_in_a_row": failures}
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"--max: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _write(data: bytes) -> None:
    """To the standard output: the very bytes, unless a person reads them at a terminal."""
    sys.stdout.flush()
    if sys.stdout.isatty() and not data.startswith(b"{"):
        from rich.markdown import Markdown

        Console().print(Markdown(data.decode()))
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
