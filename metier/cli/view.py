"""The command `view`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer
from rich.console import Console

if TYPE_CHECKING:
    from metier.harness.view import Library, Site


def view(
    places: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Results folders of `metier eval`, or folders that hold some."),
    ],
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="By default 8450, or any that is free.")] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
    export: Annotated[
        Path | None, typer.Option(metavar="SITE", help="Write a static site into this new folder instead.")
    ] = None,
    leaderboard: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A leaderboard.json to show beside the runs.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Look at runs in a browser: tables, episodes with their calls and pictures, verdicts, two of them side by side.

    The page is served on this machine only, follows runs that are still being written, and loads nothing from
    elsewhere. Ctrl-C ends it.

    Examples: metier view runs/a
              metier view runs/before runs/after --port 9000
              metier view runs --export site
    """
    from metier.harness.view import Library, Site

    library = Library(places)
    for run in library.runs():
        if run.problem:
            print(f"metier: {run.name} cannot be shown: {run.problem}", file=sys.stderr)
    site = Site(library, live=export is None, leaderboard=leaderboard)
    if export is None:
        _serve(library, site, port, browser, as_json)
    else:
        _write(site, export, as_json)


def _serve(library: Library, site: Site, port: int | None, browser: bool, as_json: bool) -> None:
    from metier.harness.view import serving

    from .interrupts import run

    async def whole() -> None:
        with serving(site, port) as url:
            runs = [one.name for one in library.runs()]
            page = f"{url}#/run/{quote(runs[0])}" if len(runs) == 1 else url
            if as_json:
                print(json.dumps({"url": page, "runs": runs}), flush=True)
            else:
                print(f"{len(runs)} runs at {page}" if len(runs) > 1 else page, "(Ctrl-C ends it)", flush=True)
            if browser and not as_json:
                _open(page)
            await asyncio.Event().wait()

    run(whole(), last_words=lambda: print("no longer served", file=sys.stderr), leave="nothing is left behind")


def _open(url: str) -> None:
    """In a window: where there is no screen, a browser in the terminal would take that from the command."""
    import webbrowser

    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)


def _write(site: Site, out: Path, as_json: bool) -> None:
    from metier.harness.view import export

    console = Console(stderr=True)
    with console.status("writing") as status:
        number = export(site, out, told=lambda done: status.update(f"writing {out}: {done} files"))
    if as_json:
        print(json.dumps({"site": str(out), "files": number}))
    else:
        print(f"{out}: {number} files; open {out}/index.html, or put the folder on any web server")
