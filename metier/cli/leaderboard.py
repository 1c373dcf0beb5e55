"""Commands of the leaderboard: `metier leaderboard serve|token|submit|verify|export`."""

from __future__ import annotations

import json
import os
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from metier.envs.core import ConfigError

from .replaying import say, show, verify_folder, verify_queue

if TYPE_CHECKING:
    from metier.harness.leaderboard.boards import Boards
    from metier.harness.leaderboard.contract import About
    from metier.harness.leaderboard.folders import Folders
    from metier.harness.leaderboard.sample import SampleRule
    from metier.harness.leaderboard.store import Store

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Database = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="METIER_LEADERBOARD_DB",
        metavar="URL",
        help="sqlite:///FILE or postgresql://…; by default a file in the store.",
    ),
]
Place = Annotated[
    Path, typer.Option("--store", envvar="METIER_LEADERBOARD_STORE", metavar="DIR", help="Where submissions lie.")
]
BoardNames = Annotated[
    list[str] | None,
    typer.Option("--board", metavar="SUITE[/SPLIT]", help="By default the held-out split of every suite; again."),
]
Share = Annotated[float, typer.Option(min=0, max=1, help="Of a submission's trials, to replay.")]
AtLeast = Annotated[int, typer.Option("--at-least", min=1, help="Trials of each submission, to replay.")]
Backend = Annotated[str, typer.Option(help="auto, docker or bubblewrap.")]
AtOnce = Annotated[int, typer.Option("--concurrency", min=1, help="Replays at once.")]
DEFAULT = Path("leaderboard")

leaderboard = typer.Typer(help="Rank results folders of others, verified by replay.", no_args_is_help=True)
token = typer.Typer(help="Tokens of submitters.", no_args_is_help=True)
leaderboard.add_typer(token, name="token")


@leaderboard.command()
def serve(
    db: Database = None,
    store: Place = DEFAULT,
    host: Annotated[str, typer.Option(help="For others than this machine, put a TLS proxy before it.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    board: BoardNames = None,
    max_mb: Annotated[int, typer.Option(min=1, help="MiB of an upload.")] = 512,
    max_files: Annotated[int, typer.Option(min=4, help="Of an upload.")] = 20_000,
    per_hour: Annotated[int, typer.Option(min=1, help="Uploads of a token.")] = 6,
    sample: Share = 0.1,
    at_least: AtLeast = 20,
    verify_here: Annotated[
        bool, typer.Option("--verify/--no-verify", help="Replay in this process; else by `metier leaderboard verify`.")
    ] = True,
    backend: Backend = "auto",
    concurrency: AtOnce = 2,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Believe a proxy on this machine in who asks.")
    ] = False,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve metrics on 127.0.0.1, apart from the board.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve the board, take submissions in and replay a sample of each with the hub secret in METIER_HUB_SECRET.

    Ctrl-C ends it in order; killed at any moment, it goes on where it was when it is started again.

    Examples: metier leaderboard serve
              metier leaderboard serve --db postgresql://board@db/board --store /srv/board --port 8080 --behind-proxy
              metier leaderboard serve --board terminal-v0 --board smoke-v0/public
    """
    _needs()
    from metier.harness.leaderboard import serving
    from metier.harness.leaderboard.app import Manner
    from metier.harness.leaderboard.contract import Limits

    from .interrupts import run
    from .observing import Observing

    opened, folders, boards = _opened(db, store, board)
    limits = Limits(upload_bytes=max_mb << 20, files=max_files, uploads_per_hour=per_hour)
    sock = serving.listening(host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"
    named = [f"{one.suite}/{one.split}" for one in boards]
    if as_json:
        print(json.dumps({"url": url, "boards": named}), flush=True)
    else:
        print(f"{url} ranks {', '.join(named) or 'nothing'}", flush=True)
    serving.log_to_stderr()
    replaying = serving.Replaying(backend=backend, concurrency=concurrency) if verify_here else None
    whole = serving.serve(
        sock,
        opened,
        folders,
        boards,
        Manner(limits=limits, rule=_rule(sample, at_least)),
        replaying=replaying,
        behind_proxy=behind_proxy,
    )
    try:
        with Observing(Console(stderr=True), metrics_port).on():
            run(whole, last_words=lambda: print("stopped; what was taken in is kept", file=sys.stderr))
    finally:
        whole.close()
        opened.close()


@token.command("add")
def add_token(
    submitter: Annotated[str, typer.Argument(help="As rows will name them.")],
    db: Database = None,
    store: Place = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Make a token for a submitter. It is shown once: only its hash is kept.

    Example: metier leaderboard token add "The Example Lab"
    """
    if not (submitter.isprintable() and 1 <= len(submitter.strip()) <= 80):
        raise ConfigError(f"{submitter!r} is no name of a submitter: 1 to 80 printable characters")
    opened = _store(db, store)
    made = opened.add_token(submitter.strip())
    if as_json:
        print(json.dumps({"id": made.id, "submitter": submitter.strip(), "token": made.token}))
        return
    print(made.token)
    print(f"shown this once; {submitter.strip()} keeps it in METIER_LEADERBOARD_TOKEN", file=sys.stderr)


@token.command("ls")
def list_tokens(db: Database = None, store: Place = DEFAULT, as_json: AsJson = False) -> None:
    """List tokens by their public part.

    Example: metier leaderboard token ls
    """
    every = _store(db, store).tokens()
    if as_json:
        print(json.dumps([{name: getattr(one, name) for name in one.__slots__} for one in every]))
        return
    for one in every:
        end = f"  revoked {one.revoked_at}" if one.revoked_at else ""
        print(f"{one.id}  {one.submitter}  since {one.created_at}{end}")


@token.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `token ls` shows it.")],
    db: Database = None,
    store: Place = DEFAULT,
) -> None:
    """End a token; the rows that it brought stay.

    Example: metier leaderboard token revoke 1a2b3c4d
    """
    _store(db, store).revoke(token_id)
    print(f"{token_id} is revoked")


@leaderboard.command()
def submit(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A results folder of `metier eval SUITE`.")],
    to: Annotated[str, typer.Option(metavar="URL", help="The server; https, unless it is this machine.")],
    suite: Annotated[str, typer.Option(help="Whose whole split the results are of.")],
    name: Annotated[str, typer.Option(help="How the row is called.")],
    agent: Annotated[str, typer.Option(help="The program around the model.")],
    model: Annotated[str, typer.Option(help="With its version.")],
    commit: Annotated[str, typer.Option(help="Of the agent's code, hexadecimal; a + for changes.")],
    command: Annotated[str, typer.Option(help="That made the results.")],
    contact: Annotated[str, typer.Option(help="Never published.")],
    split: Annotated[str, typer.Option(help="held-out or public.")] = "held-out",
    cost_usd: Annotated[
        str | None, typer.Option(metavar="USD", help="In all, where the policy's turns had no price.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check it here, send nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send results to a leaderboard. The token is read from METIER_LEADERBOARD_TOKEN.

    Only what counts is sent: no rows of other settings, no host names. Transcripts are published; texts that look like
    tokens are removed by the server, and their number is told. The same results again change nothing.

    Example: metier leaderboard submit runs/a --to https://board.example.org --suite terminal-v0 --name Small
             --agent "one shell" --model smollm2-135m --commit 0a1b2c3 --command "metier eval terminal-v0 …"
             --contact me@example.org --cost-usd 0.12
    """
    from metier.harness.leaderboard.client import Client, prepared
    from metier.harness.leaderboard.faults import Refusal
    from metier.harness.leaderboard.tokens import ENV

    console = Console(stderr=True)
    about = _about(
        {"name": name, "agent": agent, "model": model, "commit": commit, "command": command, "contact": contact},
        suite,
        split,
        cost_usd,
    )
    held = os.environ.get(ENV, "").strip()
    try:
        with Client(to, held) as client:
            if not held and not dry_run:
                raise ConfigError(f"put the token that the leaderboard's maintainer gave you into the variable {ENV}")
            packed = prepared(folder, about, client.info())
            say(console, f"{folder}: {len(packed.episodes)} episodes, {packed.size:,} bytes")
            if dry_run:
                say(console, "nothing was sent; its episodes are checked by the server")
                return
            with Progress(
                TextColumn("sending"), BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=console
            ) as progress:
                task = progress.add_task("sending", total=packed.size)
                receipt = client.send(packed, lambda sent: progress.update(task, completed=sent))
    except Refusal as refusal:
        if as_json:
            print(json.dumps({"refused": refusal.reason.value, "message": refusal.message}))
        say(console, f"refused ({refusal.reason}): {refusal.message}")
        raise typer.Exit(1) from None
    if as_json:
        print(receipt.model_dump_json())
        return
    print(f"{receipt.id}  {receipt.state}{'' if receipt.new else ', as it was here already'}")
    if receipt.secrets_removed:
        say(console, f"{receipt.secrets_removed} texts looked like secrets and are not published: revoke them")
    for reason in receipt.not_ranked:
        say(console, f"not ranked: {reason}")
    say(console, f"{to.rstrip('/')}/api/v1/submissions/{receipt.id} says how its replays go")


@leaderboard.command()
def verify(
    what: Annotated[
        str | None, typer.Argument(metavar="[ID|DIR]", help="A submission, or a results folder of your own.")
    ] = None,
    db: Database = None,
    store: Place = DEFAULT,
    sample: Share = 0.1,
    at_least: AtLeast = 20,
    again: Annotated[bool, typer.Option("--again", help="Also a submission whose replays were given up.")] = False,
    backend: Backend = "auto",
    concurrency: AtOnce = 2,
    as_json: AsJson = False,
) -> None:
    """Replay recorded calls in fresh sandboxes and compare the verdicts: what is queued, a submission, or a folder.

    A folder needs no server: replay your own before you submit it (--sample and --at-least are for that; of a
    submission the server has said how many). The exit code is 1 where something does not agree,
    or replays could not be had.

    Examples: metier leaderboard verify
              metier leaderboard verify 4f9c0a… --again
              metier leaderboard verify runs/a --sample 1
    """
    _needs()
    if what is not None and Path(what).is_dir():
        verify_folder(Path(what), _rule(sample, at_least), backend, concurrency, as_json)
        return
    opened, folders = _store(db, store), _folders(store)
    if what is not None:
        if opened.find(what) is None:
            raise ConfigError(f"{what} is neither a submission nor a results folder")
        if again:
            opened.queue_again(what)
    verify_queue(opened, folders, what, backend, concurrency, as_json)


@leaderboard.command()
def export(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    db: Database = None,
    store: Place = DEFAULT,
    board: BoardNames = None,
    as_json: AsJson = False,
) -> None:
    """Write the board as static files: leaderboard.json, every submission's published folder, and the page.

    Example: metier leaderboard export site
    """
    from metier.harness.leaderboard.export import export as written

    opened, folders, boards = _opened(db, store, board)
    console = Console(stderr=True)
    with Progress(TextColumn("writing"), BarColumn(), MofNCompleteColumn(), console=console) as progress:
        task = progress.add_task("writing", total=None)
        made = written(
            opened,
            folders,
            boards,
            out,
            lambda done, of: progress.update(task, completed=done, total=of),
        )
    if as_json:
        print(made.written().decode(), end="")
        return
    show(made)
    say(console, f"all of it is in {out}")


def _about(words: dict[str, str], suite: str, split: str, cost_usd: str | None) -> About:
    import pydantic

    from metier.harness.leaderboard.contract import About

    try:
        cost = None if cost_usd is None else Decimal(cost_usd)
        return About.model_validate({**words, "suite": suite, "split": split, "cost_usd": cost})
    except InvalidOperation:
        raise ConfigError(f"--cost-usd {cost_usd!r} is no amount: write it as 0.12") from None
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        option = ".".join(map(str, first["loc"])).replace("_", "-")
        raise ConfigError(f"--{option}: {first['msg']}") from None


def _opened(db: str | None, store: Path, names: list[str] | None) -> tuple[Store, Folders, Boards]:
    from metier.harness.leaderboard.boards import Boards

    boards = Boards(names or ())
    return _store(db, store), _folders(store), boards


def _store(db: str | None, store: Path) -> Store:
    _needs()
    from metier.harness.leaderboard.store import Store

    _folders(store)
    return Store(db or f"sqlite:///{store / 'board.sqlite'}")


def _folders(store: Path) -> Folders:
    from metier.harness.leaderboard.folders import Folders

    return Folders(store)


def _rule(share: float, at_least: int) -> SampleRule:
    from metier.harness.leaderboard.sample import SampleRule

    return SampleRule(share=share, at_least=at_least)


def _needs() -> None:
    """Raises ConfigError: a part is not installed."""
    import importlib.util

    for name in ("fastapi", "sqlalchemy", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"the leaderboard needs {name}: install metier[leaderboard]")
