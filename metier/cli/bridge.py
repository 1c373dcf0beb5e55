"""Commands on bridges: `metier bridge import` and `metier bridge export`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, cast

import typer
from rich.console import Console

from metier.envs import registry
from metier.envs.core import ConfigError

bridge = typer.Typer(help="Other people's tasks in, instances out: Harbor and Terminal-Bench.", no_args_is_help=True)
Base = Annotated[
    list[str] | None,
    typer.Option("--base", metavar="IMAGE=NAME", help="One of our images in place of a base that is missing; again."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
_END_S = 60.0


@bridge.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="A task's folder, or a dataset's.")],
    out: Annotated[
        Path | None, typer.Option(help="Make a package of them in this folder, to be installed; else in the cache.")
    ] = None,
    base: Base = None,
    build: Annotated[bool, typer.Option("--build", help="Build their images as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import tasks of Harbor or Terminal-Bench as environments, and say what of each is not carried.

    Examples: metier bridge import path/to/dataset --build
              metier bridge import path/to/task --base python:3.13-slim=terminal-python
              metier bridge import path/to/dataset --out my_tasks && pip install ./my_tasks
    """
    from metier.harness.bridges import ImportSettings, import_tasks

    imported = import_tasks(source, out, ImportSettings(substitutes=substitutes(base)))
    if imported.environments:
        registry.add_package(imported.registry)
    if build:
        build_images(imported.images)
    if as_json:
        refused = [{"task": one.task, "reason": one.reason, "message": one.message} for one in imported.refused]
        said = {"registry": str(imported.registry), "images": imported.images, "notes": imported.notes}
        print(json.dumps(said | {"environments": imported.environments, "refused": refused}))
    else:
        console = Console()
        for line in imported.told():
            _say(console, line)
        for env_id in imported.environments:
            console.print(f"[bold]{env_id}[/bold]", highlight=False)
        if imported.environments and out is None:
            _say(console, f"to use them: export {registry.NAMED}={imported.registry}")
        elif imported.environments:
            _say(console, f"to use them: pip install {out}, or export {registry.NAMED}={imported.registry}")
    if not imported.environments:
        raise typer.Exit(1)


@bridge.command("export")
def export_(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="See `metier ls`.")],
    out: Annotated[Path, typer.Option(help="The task's folder; it must not be there yet.")],
    seed: Annotated[int, typer.Option(help="Of the instance.")] = 0,
    level: Annotated[int, typer.Option(help="0 is the easiest.")] = 0,
    option: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Of the environment; again.")] = None,
    organisation: Annotated[str, typer.Option("--org", help="Before the task's name.")] = "metier",
    as_json: AsJson = False,
) -> None:
    """Write an instance as a Harbor task folder that grades as we do, and say what it does not carry.

    Examples: metier bridge export finance/CovenantTest-v0 --seed 7 --level 2 --out tasks/covenant-7
              harbor run -p tasks/covenant-7 -a oracle
    """
    from metier.harness.bridges import ExportSettings, export_task
    from metier.harness.evaluate.acting import parsed

    options = dict(parsed(one) for one in option or ())
    settings = ExportSettings(env_id=env_id, seed=seed, level=level, options=options, organisation=organisation)
    exported = export_task(settings, out)
    if as_json:
        print(json.dumps({"folder": str(exported.folder), "name": exported.name, "notes": exported.notes}))
        return
    console = Console()
    _say(console, f"{exported.name} is in {exported.folder}; not carried, or otherwise:")
    for note in exported.notes:
        _say(console, f"  {note}")


def substitutes(given: Sequence[str] | None) -> dict[str, str]:
    """Of `--base IMAGE=NAME`. Raises ConfigError."""
    found: dict[str, str] = {}
    for one in given or ():
        image, _, name = one.rpartition("=")
        if not image or not name:
            raise ConfigError(f"--base {one!r}: write it as python:3.13-slim=terminal-python")
        found[image] = name
    return found


def build_images(names: Sequence[str], engine: str = "auto") -> None:
    """Those that are not there; a step that fails is told with its place."""
    import metier.images

    from .interrupts import run_blocking

    stop = metier.images.Stop()
    chosen = cast(Literal["auto", "docker", "bubblewrap"], engine)
    run_blocking(
        lambda: metier.images.build(list(dict.fromkeys(names)), engine=chosen, stop=stop),
        stop=stop.now,
        kill=stop.kill,
        leave="the next build removes what this one left in the cache",
        end_s=_END_S,
    )


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
