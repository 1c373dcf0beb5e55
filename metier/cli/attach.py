"""The command `attach`: solve rates, once they are known, into the certificates of their environments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from metier.envs import registry


def attach(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A main job's record.json, or episodes/*.jsonl of one.")],
    policy: Annotated[str, typer.Option(help="Whose episodes: the model, and how it was trained.")] = "",
    date: Annotated[str, typer.Option(help="When they were run, YYYY-MM-DD; else when the file was written.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Attach measured solve rates to the certificates of their environments; `metier info` shows them.

    A certificate is worth afterwards what it was worth before.

    Examples: metier attach runs/main-job/record.json
              metier attach runs/main-job/episodes/evaluation-3.jsonl --policy "smollm2-135m, SFT + GRPO"
    """
    from metier.harness.certify import attach_rates, read_rates

    rates = read_rates(path, policy=policy, date=date)
    entries = [registry.get(env_id) for env_id in rates]
    certificates = [attach_rates(entry, rates[entry.id]) for entry in entries]
    if as_json:
        print(json.dumps({one.env_id: [rate.model_dump() for rate in one.solve_rates] for one in certificates}))
        return
    console = Console()
    for certificate in certificates:
        said = f"{len(rates[certificate.env_id])} attached, {len(certificate.solve_rates)} in all"
        console.print(f"{certificate.env_id}: {said}", markup=False, highlight=False, soft_wrap=True)
