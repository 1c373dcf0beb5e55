"""Commands on images: build, ls, prune."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Literal, cast

import typer
from rich.console import Console
from rich.table import Table

images = typer.Typer(help="Container images: one for each trade's tools.", no_args_is_help=True)
console = Console()
_END_S = 60.0
"""A half-made root file system is many thousand files."""


@images.command()
def build(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="All images by default.")] = None,
    engine: Annotated[str, typer.Option(help="auto, docker or bubblewrap.")] = "auto",
) -> None:
    """Build images, each after what it grows from; cached by content, and proven by its smoke test.

    Ctrl-C removes what is being built; images that were finished stay.

    Example: metier images build blender
    """
    import metier.images
    from metier.envs.core import ConfigError

    from .interrupts import run_blocking

    if engine not in ("auto", "docker", "bubblewrap"):
        raise ConfigError(f"--engine is auto, docker or bubblewrap, not {engine!r}")
    chosen = cast(Literal["auto", "docker", "bubblewrap"], engine)
    stop = metier.images.Stop()
    run_blocking(
        lambda: metier.images.build(names or None, engine=chosen, stop=stop),
        stop=stop.now,
        kill=stop.kill,
        last_words=lambda: metier.images.to_stderr(
            "stopped; what was being built is removed, finished images stay, and the same command goes on after them"
        ),
        leave="the next build removes what this one left in the cache",
        end_s=_END_S,
    )


@images.command()
def ls(as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False) -> None:
    """Show size, age, digest, and the environments that use each image."""
    import metier.images
    from metier.envs import registry

    listed = metier.images.ls()
    users: dict[str, list[str]] = {each.name: [] for each in listed}
    for entry in registry.entries():
        users.setdefault(entry.image, []).append(entry.id)
    if as_json:
        print(json.dumps([asdict(each) | {"environments": users[each.name]} for each in listed]))
        return
    table = Table("image", "digest", "docker MiB", "rootfs MiB", "age", "environments")
    for each in listed:
        age = "not built" if each.age_s is None else f"{each.age_s / 3600:.1f} h"
        sizes = [str(size) if size else "-" for size in (each.docker_mb, each.rootfs_mb)]
        table.add_row(each.name, each.digest[:12], *sizes, age, "\n".join(users[each.name]))
    console.print(table)


@images.command()
def prune() -> None:
    """Remove images that no recipe names any more."""
    import metier.images

    metier.images.prune()
