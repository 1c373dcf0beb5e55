"""The `demo` command: the main job, from oracle episodes to a model that has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

console = Console()
_END_S = 30.0
"""Workers close their sandboxes, then Ray its processes; on a machine whose cores are all taken, seconds each."""


def demo(
    plan: Annotated[Path, typer.Option(help="What to do; see examples/.")] = Path("examples/main_job.yaml"),
    out: Annotated[Path, typer.Option(help="Where the record, the plot and the pictures go.")] = Path("runs/main_job"),
    metrics_port: Annotated[int | None, typer.Option(min=0, max=65535, help="Serve metrics on 127.0.0.1.")] = None,
) -> None:
    """The main job: oracle episodes in five trades, then a small model learns two of them by SFT and GRPO.

    Ctrl-C ends it in order; what was found until then stays.

    Example: metier demo --plan examples/main_job.yaml --out runs/main_job
    """
    from .tuned import restart_tuned

    restart_tuned()
    try:
        from metier.trainer import models
        from metier.trainer.main_job import MainJob, run_main_job
    except ImportError as error:
        from metier.envs.core import ConfigError

        raise ConfigError(
            f"the main job needs the training extras: pip install 'metier[train,ray,vllm]' ({error})"
        ) from error

    from .interrupts import run
    from .narrating import TerminalNarrator
    from .observing import Observing
    from .watching import Watcher

    job, narrator = MainJob.load(plan), TerminalNarrator(console)
    models.get(job.model, narrator.say)  # here an interrupt cuts it off at once, and not only after it
    watcher = Watcher(console, out / "pictures", shown_lines=6)
    with Observing(console, metrics_port).on():
        run(
            run_main_job(job, out, narrator, watch=watcher),
            last_words=lambda: narrator.say(f"\nstopped; what was found until then is in {out}"),
            leave="sandboxes, workers and the engine end by themselves",
            end_s=_END_S,
            threads_hold_nothing=True,
        )
