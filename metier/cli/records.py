"""Commands on records: `metier records ls|query|write|flush`, `metier export`, `metier audit`."""

from __future__ import annotations

import csv
import datetime
import decimal
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from metier.envs.core import ConfigError

if TYPE_CHECKING:
    from metier.harness.record import Records
    from metier.harness.record.writer import Written

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Where = Annotated[
    str,
    typer.Option(
        "--records",
        envvar="METIER_RECORDS",
        metavar="URL",
        help="The store: a folder, or a URL such as s3://bucket/records.",
    ),
]
Run = Annotated[list[str] | None, typer.Option("--run", help="Only this run; again for several.")]
DEFAULT = "runs/records"
console = Console()

records = typer.Typer(
    help="Episodes as they were recorded: list, query, and the writer of a broker.", no_args_is_help=True
)


def _open(url: str) -> Records:
    from metier.harness.record import Records

    return Records.open(url)


@records.command("ls")
def ls(store: Where = DEFAULT, as_json: Json = False) -> None:
    """List the runs in a store, with what is unfinished or could not be stored.

    Example: metier records ls --records s3://bucket/records
    """
    from metier.harness.record.query import query

    opened = _open(store)
    sql = """
        SELECT run_id, count(*) AS attempts, count(DISTINCT episode_id) AS episodes,
            count(*) FILTER (WHERE NOT ended) AS unfinished,
            count(*) FILTER (WHERE reward IS NULL AND ended) AS ungraded,
            count(*) FILTER (WHERE passed) AS passed, sum(num_steps)::BIGINT AS steps,
            min(started_at) AS first_at, max(coalesce(ended_at, started_at)) AS last_at
        FROM episodes GROUP BY run_id ORDER BY first_at"""
    rows = query(opened, sql).dicts()
    manifests = opened.manifests()
    for row in rows:
        own = [manifest for manifest in manifests if manifest.run_id == row["run_id"]]
        files = [file for manifest in own for file in (manifest.segment, *manifest.tables.values())]
        row |= {"events": sum(manifest.num_events for manifest in own), "bytes": sum(file.size_bytes for file in files)}
    dead = opened.dead_letters()
    if as_json:
        print(json.dumps({"runs": rows, "dead_letters": dead}, default=_plain))
        return
    for row in rows:
        console.print(f"[bold]{row['run_id']}[/bold]  {row['episodes']} episodes, {row['passed']} passed", end="")
        counts = {name: row[name] for name in ("unfinished", "ungraded") if row[name]}
        more = "".join(f", {count} {name}" for name, count in counts.items())
        console.print(f"{more}; {row['attempts']} attempts, {row['steps'] or 0} steps, {row['events']} events", end="")
        when = f"{_cell(row['first_at'])} to {_cell(row['last_at'])}"
        console.print(f", {row['bytes'] / 2**20:.1f} MiB; {when}", highlight=False, soft_wrap=True)
    if not rows:
        console.print("no episode is stored yet")
    if dead:
        console.print(f"[red]{len(dead)} dead letters[/red]: {store}/dead/{dead[0]}{' …' if len(dead) > 1 else ''}")


@records.command()
def query(
    sql: Annotated[str, typer.Argument(help="DuckDB's SQL; tables: episodes, turns, steps, checks, verdicts, logs.")],
    store: Where = DEFAULT,
    run: Run = None,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV.")] = False,
) -> None:
    """Ask the records anything.

    Examples: metier records query "SELECT env_id, avg(reward) FROM episodes GROUP BY ALL"
              metier records query "SELECT tool, count(*), avg(duration_s) FROM steps GROUP BY ALL" --json
    """
    from metier.harness.record.query import query as ask

    answer = ask(_open(store), sql, run or None)
    if as_json:
        print(json.dumps(answer.dicts(), default=_plain))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    elif answer.columns:
        _table(answer.columns, answer.rows)


@records.command()
def write(
    transport: Annotated[str, typer.Argument(metavar="URL", help="nats://host:4222 or redis://host:6379.")],
    store: Where = DEFAULT,
    name: Annotated[
        str, typer.Option(help="This writer's own name, the same over restarts; default: the machine's.")
    ] = "",
    flush_s: Annotated[float, typer.Option(help="How long an event may wait for others, in seconds.")] = 5.0,
    idle_s: Annotated[float | None, typer.Option(help="End after this long without an event; default: never.")] = None,
    takeover_s: Annotated[
        float | None, typer.Option(help="Silence after which others get what a writer was given.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Store what arrives at a broker; run as many as you like. Ctrl-C ends it, and what it had in hand comes again.

    Example: metier records write nats://queue:4222 --records s3://bucket/records
    """
    from .interrupts import run

    written = run(_write(transport, store, name, flush_s, idle_s, takeover_s))
    if as_json:
        print(json.dumps({field: getattr(written, field) for field in written.__dataclass_fields__}))
    else:
        console.print(
            f"{written.stored} events stored, {written.known} of them came again, {written.buried} dead letters"
        )


async def _write(
    transport: str, store: str, name: str, flush_s: float, idle_s: float | None, takeover_s: float | None
) -> Written:
    from metier.harness.record.sink import Sink
    from metier.harness.record.store import open_store
    from metier.harness.record.transport import open_consumer
    from metier.harness.record.writer import Writer, WriterSettings

    sink = Sink(open_store(store))
    settings = WriterSettings(flush_s=flush_s, touch_s=min(15.0, (takeover_s or 60.0) / 4))
    consumer = open_consumer(transport, name=name, idle_s=takeover_s)
    try:
        return await Writer(consumer, sink, settings).run(idle_s=idle_s)
    finally:
        await consumer.close()


@records.command()
def flush(
    store: Where = DEFAULT,
    outbox: Annotated[Path | None, typer.Option(help="The outbox's folder; default: in the store's folder.")] = None,
    transport: Annotated[
        str, typer.Option(help="As the recording process had it; default: straight to the store.")
    ] = "",
    wait_s: Annotated[float, typer.Option(help="Give up after this many seconds.")] = 600.0,
    as_json: Json = False,
) -> None:
    """Store what processes that have gone left in an outbox; the next recorder that opens it does so too.

    Example: metier records flush --records runs/records
    """
    from metier.harness.record import Recorder, RecordSettings

    settings = RecordSettings(store=store, outbox=outbox, transport=transport)
    if not settings.outbox_folder.is_dir():
        raise ConfigError(f"no outbox in {settings.outbox_folder}; name it with --outbox")
    recorder = Recorder.open(settings)
    waiting = recorder.stats().outbox_events
    stats = recorder.close(wait_s)
    if as_json:
        print(json.dumps({"found": waiting, "left": stats.outbox_events, "trouble": stats.trouble}))
    else:
        console.print(f"{waiting - stats.outbox_events} of {waiting} events stored {stats.trouble}", markup=False)
    if stats.outbox_events:
        raise typer.Exit(1)


@records.command()
def compact(
    store: Where = DEFAULT,
    run: Run = None,
    as_json: Json = False,
) -> None:
    """Take the many small files of long runs together, beside whoever writes or reads; `prune` then frees the old ones.

    Example: metier records compact --run nightly-17
    """
    from metier.harness.record.keeping import compact as take_together

    opened = _open(store)
    done = {run_id: take_together(opened, run_id) for run_id in run or opened.runs()}
    if as_json:
        print(json.dumps(done))
        return
    for run_id, count in done.items():
        console.print(f"{run_id}: {count} commits taken together")


@records.command()
def prune(
    store: Where = DEFAULT,
    older_than_days: Annotated[
        float | None, typer.Option(min=0, help="Also runs whose last commit is older; default: no run.")
    ] = None,
    run: Run = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; otherwise only tell.")] = False,
    as_json: Json = False,
) -> None:
    """Remove old runs, and files that nothing names any more (after a day). Without --yes it only tells.

    Examples: metier records prune
              metier records prune --older-than-days 90 --yes
    """
    from metier.harness.record.keeping import prune as remove_old

    opened = _open(store)
    older_than_s = None if older_than_days is None else older_than_days * 86400
    pruned = remove_old(opened, older_than_s=older_than_s, run_ids=frozenset(run) if run else None, remove=yes)
    if as_json:
        print(json.dumps({"runs": pruned.runs, "paths": pruned.paths, "removed": yes}))
        return
    for run_id in pruned.runs:
        console.print(f"run {run_id}", highlight=False)
    console.print(f"{len(pruned.paths)} files {'removed' if yes else 'would be removed; say --yes to do it'}")


def export(
    form: Annotated[str, typer.Option("--format", help="sft, preference, atif or inspect.")],
    out: Annotated[Path, typer.Option(help="A file for sft and preference, a folder for the others.")],
    store: Where = DEFAULT,
    run: Run = None,
    where: Annotated[
        str, typer.Option(help="A condition on `episodes`; default: passed for sft, graded for preference.")
    ] = "",
    level: Annotated[str, typer.Option(help="chat, or token for the ids that an engine saw.")] = "chat",
    min_margin: Annotated[float, typer.Option(help="preference: rewards of a pair are at least this far apart.")] = 0.1,
    pairs: Annotated[int, typer.Option(min=1, help="preference: at most so many pairs an instance.")] = 1,
    as_json: Json = False,
) -> None:
    """Write recorded episodes in another format, and say what it could not carry.

    Examples: metier export --format sft --out sft.jsonl --where "passed AND num_steps < 20"
              metier export --format inspect --out logs/
    """
    from metier.envs.registry import suggest
    from metier.harness.record.export import ExportSettings, Format
    from metier.harness.record.export import export as run_export
    from metier.harness.record.export.tuning import Level

    for option, value, known in (("--format", form, Format), ("--level", level, Level)):
        if value not in list(known):
            raise ConfigError(f"{option} {value!r}{suggest(value, list(known))}; there are {', '.join(known)}")
    settings = ExportSettings(
        level=Level(level), where=where, run_ids=tuple(run or ()), min_margin=min_margin, pairs=pairs
    )
    opened = _open(store)
    with Progress(console=Console(stderr=True), transient=True, disable=as_json) as progress:
        bar = progress.add_task("episodes", total=None)
        exported = run_export(
            opened,
            Format(form),
            out,
            settings,
            progress=lambda done, of: progress.update(bar, completed=done, total=of),
        )
    if as_json:
        said = {"episodes": exported.num_chosen, "written": exported.num_written, "left_out": exported.left_out.counts}
        print(json.dumps(said | {"paths": [str(path) for path in exported.paths]}))
        return
    console.print(f"{exported.num_written} written to {out} from {exported.num_chosen} episodes", soft_wrap=True)
    for why, count in exported.left_out.counts.items():
        if count:
            console.print(f"left out, since it {why}: {count}")
    if not exported.num_chosen:
        console.print("no episode fulfils the condition; see `metier records ls`")


def audit(
    store: Where = DEFAULT,
    run: Run = None,
    where: Annotated[
        str, typer.Option(help="A condition on `episodes`, such as \"image_digest LIKE 'ab12%'\".")
    ] = "true",
    episodes: Annotated[bool, typer.Option("--episodes", help="Name each episode.")] = False,
    as_json: Json = False,
) -> None:
    """Which episodes used which environment digest, image and weights.

    Examples: metier audit --where "env_id = 'finance/CovenantTest-v0'"
              metier audit --where "weights_last >= 40" --episodes --json
    """
    from metier.harness.record.audit import audit as ask

    rows = ask(_open(store), where=where or "true", run_ids=run or None, list_episodes=episodes)
    if as_json:
        print(json.dumps(rows, default=_plain))
        return
    for row in rows:
        span = f"{row['weights_first']}–{row['weights_last']}" if row["weights_first"] is not None else ""
        console.print(f"[bold]{row['env_id']}[/bold]  {row['num_episodes']} episodes", end="")
        console.print(f", {row['num_graded']} graded, {row['num_unfinished']} unfinished", highlight=False)
        made_of = {
            "environment": row["environment_digest"][:16],
            "image": f"{row['image']} {row['image_digest'][:16]}",
            "hub secret": row["hub_fingerprint"],
            "backend": row["backend"],
            "policy": row["policy"],
            "weights": " ".join(filter(None, (row["weights"], span))),
            "metier": f"{row['metier_version']} {row['commit'][:12]}",
            "runs": ", ".join(row["runs"]),
            "when": f"{row['first_at']:%Y-%m-%d %H:%M} to {row['last_at']:%Y-%m-%d %H:%M}",
        }
        for name, value in made_of.items():
            if value.strip():
                console.print(f"    {name:12} {value}", markup=False, highlight=False, soft_wrap=True)
        for episode in row.get("episodes", []):
            console.print(f"    {episode}", markup=False, highlight=False, soft_wrap=True)
    if not rows:
        console.print("no episode fulfils the condition")


def _table(columns: Any, rows: Any) -> None:
    table = Table(*map(str, columns))
    for row in rows:
        table.add_row(*("" if value is None else _cell(value) for value in row))
    console.print(table, markup=False)
    console.print(f"{len(rows)} rows" if len(rows) != 1 else "1 row")


def _cell(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _plain(value: Any) -> Any:
    """What JSON has no type for: moments, and money as a decimal string."""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    return str(value) if isinstance(value, decimal.Decimal) else repr(value)
