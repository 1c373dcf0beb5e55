"""The `demo` command: the main job, from oracle episodes to a model that has learned."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

console = Console()


def demo(
    plan: Annotated[Path, typer.Option(help="What to do; see examples/.")] = Path("examples/main_job.yaml"),
    out: Annotated[Path, typer.Option(help="Where the record, the plot and the pictures go.")] = Path("runs/main_job"),
) -> None:
    """The main job: oracle episodes in five trades, then a small model learns two of them by SFT and GRPO.

    Example: metier demo --plan examples/main_job.yaml --out runs/main_job
    """
    from .tuned import restart_tuned

    restart_tuned()
    try:
        from metier.trainer.main_job import MainJob, run_main_job
    except ImportError as error:
        from metier.envs.core import ConfigError

        raise ConfigError(
            f"the main job needs the training extras: pip install 'metier[train,ray,vllm]' ({error})"
        ) from error

    from .narrating import TerminalNarrator
    from .watching import Watcher

    watcher = Watcher(console, out / "pictures", shown_lines=6)
    asyncio.run(run_main_job(MainJob.load(plan), out, TerminalNarrator(console), watch=watcher))
