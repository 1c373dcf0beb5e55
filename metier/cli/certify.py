"""The command `certify`: run the gates, show them as they turn out, write the certificates."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from metier.envs import registry
from metier.envs.core import ConfigError


def certify(
    env_ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="All environments by default.")] = None,
    all_ids: Annotated[bool, typer.Option("--all", help="Every environment of the registry.")] = False,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds at each level.")] = 1,
    backend: Annotated[str, typer.Option(help="auto, docker or bubblewrap.")] = "auto",
    force: Annotated[bool, typer.Option("--force", help="Again, whatever an earlier certificate shows.")] = False,
    gates: Annotated[
        list[str] | None, typer.Option("--gate", metavar="NAME", help="Only this gate; nothing is written.")
    ] = None,
    levels: Annotated[list[int] | None, typer.Option("--level", help="Only this level; nothing is written.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Prove that an environment's reward can be trusted: run the gates in real sandboxes, write certificate.json.

    A valid certificate is left alone, and a run that was cut short goes on where it stopped, unless --force. The exit
    code is 1 if anything is red.

    Examples: metier certify finance/CovenantTest-v0 --seeds 3
              metier certify --all
              metier certify finance/CovenantTest-v0 --gate brief --gate levels --level 4
    """
    from metier.harness.certify import certify_all

    from .interrupts import run

    if all_ids and env_ids:
        raise ConfigError("give ids or --all, not both")
    console = Console(stderr=as_json)

    def progress(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    names = env_ids or [entry.id for entry in registry.entries()]
    whole = not gates and levels is None
    certificates = run(
        certify_all(names, seeds=seeds, backend=backend, progress=progress, force=force, levels=levels, gates=gates),
        last_words=lambda: progress(
            "stopped; the gates that were through are kept, and the same command goes on after them"
            if whole
            else "stopped; nothing is written"
        ),
    )
    if as_json:
        print(json.dumps([certificate.model_dump(mode="json") for certificate in certificates]))
    if not all(certificate.green for certificate in certificates):
        raise typer.Exit(1)
