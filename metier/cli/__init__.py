"""The `metier` command: composes the rooms, decides nothing."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from metier.envs.core import ConfigError, MetierError

from .attach import attach
from .bridge import bridge
from .certify import certify
from .doctor import doctor
from .evaluate import compare, evaluate, report, suites
from .hub import info, ls, play
from .images import images
from .interrupts import watched
from .leaderboard import leaderboard
from .main_job import demo
from .models import models
from .new import new
from .records import audit, export, records
from .view import view

app = typer.Typer(
    name="metier",
    help="Professional sandbox environments for language-model agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def _whole(
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log as JSON, a line an object, as with METIER_LOG=json.")
    ] = False,
) -> None:
    wanted = os.environ.get("METIER_LOG", "")
    if wanted not in ("", "json"):
        raise ConfigError(f"METIER_LOG={wanted!r}: the only form of a log that there is beside the usual one is json")
    if log_json or wanted:
        from metier.harness.telemetry.logs import install

        install()


app.command()(ls)
app.command()(info)
app.command()(play)
app.command()(certify)
app.command("eval")(evaluate)
app.command()(report)
app.command()(compare)
app.command()(suites)
app.command()(view)
app.command()(attach)
app.command()(new)
app.command()(doctor)
app.command()(demo)
app.add_typer(images, name="images")
app.add_typer(bridge, name="bridge")
app.add_typer(models, name="models")
app.add_typer(records, name="records")
app.add_typer(leaderboard, name="leaderboard")
app.command()(export)
app.command()(audit)


def main() -> None:
    """Entry point: an error of ours is one line that says what to do, and exit code 2 for the caller's mistake."""
    try:
        with watched():
            app()
    except MetierError as error:
        print(f"metier: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, ValueError) else 1)


__all__ = ["app", "main"]
