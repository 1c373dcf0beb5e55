"""Commands on environments: ls, info, play."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from metier.envs import registry
from metier.envs.core import ConfigError, Deadline

if TYPE_CHECKING:
    from metier.envs.entry import Entry
    from metier.harness.certify import SolveRate

    from .watching import Watcher

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="For example terminal/PyMutationRepair-v0.")]
Backend = Annotated[str, typer.Option(help="auto, docker or bubblewrap.")]
console = Console()


def ls(
    domain: Annotated[str | None, typer.Option(help="Only this domain, as in the id before the slash.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; again for several.")] = None,
    image: Annotated[str | None, typer.Option(help="Only on this image.")] = None,
    certificate: Annotated[
        str | None, typer.Option(help="Only of this worth: valid, partial, stale, red or none.")
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Also those without a valid certificate.")] = False,
    as_json: Json = False,
) -> None:
    """List the environments whose reward is proven by a valid certificate.

    Examples: metier ls --domain blender --all
              metier ls --tag python --json
              metier ls --certificate stale
    """
    from metier.harness.certify import Status, certificate_status

    entries = registry.entries()
    _known("domain", domain, sorted({entry.domain for entry in entries}))
    _known("image", image, sorted({entry.image for entry in entries}))
    for one in tag or ():
        _known("tag", one, sorted({each for entry in entries for each in entry.tags}))
    _known("certificate", certificate, list(Status))
    wanted = Status(certificate) if certificate else None
    matching = [
        entry
        for entry in entries
        if domain in (None, entry.domain) and image in (None, entry.image) and set(tag or ()) <= set(entry.tags)
    ]
    status = {entry.id: certificate_status(entry) for entry in matching}
    if wanted is not None:
        chosen = matching = [entry for entry in matching if status[entry.id] is wanted]
    else:
        chosen = [entry for entry in matching if show_all or status[entry.id] is Status.VALID]
    if as_json:
        print(json.dumps([entry.model_dump(mode="json") | {"certificate": status[entry.id]} for entry in chosen]))
        return
    for entry in chosen:
        facts = f"levels 0-{entry.levels - 1} · image {entry.image} · certificate {status[entry.id]}"
        console.print(f"[bold]{entry.id}[/bold]  {facts}", highlight=False, soft_wrap=True)
        console.print(f"    {entry.summary}", highlight=False, soft_wrap=True, markup=False)
    if hidden := len(matching) - len(chosen):
        console.print(f"{hidden} more without a valid certificate: metier ls --all, then metier certify ID")
    elif not chosen:
        console.print("no environment matches")


def _known(option: str, value: str | None, known: list[str]) -> None:
    """Raises ConfigError for a filter that nothing could pass, since it is a typing mistake."""
    if value is not None and value not in known:
        raise ConfigError(f"--{option} {value!r}{registry.suggest(value, known)}; there are {', '.join(known)}")


def info(env_id: Id, seed: int = 0, level: int = 0, as_json: Json = False) -> None:
    """Show an environment: its entry, and the brief of one instance.

    Example: metier info finance/CovenantTest-v0 --level 2
    """
    from metier.harness.certify import certificate_status
    from metier.harness.evaluate import Rate
    from metier.harness.prepare import Task, generate
    from metier.harness.tools import tool_specs

    prepared = generate(Task(env_id=env_id, seed=seed, level=level))
    entry, instance = prepared.entry, prepared.instance
    if as_json:
        shown = entry.model_dump(mode="json") | {
            "certificate": certificate_status(entry),
            "solve_rates": [rate.model_dump() for rate in _solve_rates(entry)],
            "brief": prepared.brief,
            "files": sorted(instance.files),
            "artefacts": [artefact.path for artefact in instance.artefacts],
        }
        print(json.dumps(shown))
        return
    console.print(f"[bold]{entry.id}[/bold]  {entry.summary}")
    console.print(f"image {entry.image} · levels 0-{entry.levels - 1} · certificate {certificate_status(entry)}")
    console.print(f"limits {entry.limits.model_dump()}")
    for rate in _solve_rates(entry):
        measured = Rate(passed=rate.passed, valid=rate.valid, requested=rate.valid)
        line = f"solve rate, level {rate.level}: {measured} by {rate.policy}, {rate.date}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for spec in tool_specs(entry.tools):
        console.print(f"  [cyan]{spec.name}[/cyan]  {spec.description}")
    console.print(f"\n[bold]brief[/bold] (seed {seed}, level {level})")
    console.print(prepared.brief, markup=False, highlight=False)
    console.print(f"\nfiles: {', '.join(sorted(instance.files)) or 'none'}")
    console.print(f"graded: {', '.join(artefact.path for artefact in instance.artefacts)}")


def _solve_rates(entry: Entry) -> tuple[SolveRate, ...]:
    """What is attached to its certificate, if that can be read."""
    from metier.harness.certify import load

    try:
        certificate = load(entry)
    except ConfigError:
        return ()
    return certificate.solve_rates if certificate is not None else ()


def play(
    env_id: Id,
    seed: int = 0,
    level: int = 0,
    backend: Backend = "auto",
    policy: Annotated[str, typer.Option(help="human, oracle, noop, random.")] = "human",
    out: Annotated[Path, typer.Option(help="Where pictures are saved.")] = Path("runs/play"),
    as_json: Json = False,
) -> None:
    """Do the task yourself in a terminal, or watch the oracle do it.

    Ctrl-C ends the episode ungraded, and takes its sandbox away.

    Examples: metier play terminal/PyMutationRepair-v0
              metier play blender/MeshAssemblySpec-v0 --policy oracle
    """
    from .interrupts import run
    from .watching import Watcher

    watcher = Watcher(Console(stderr=True) if as_json else console, out, echo_calls=policy != "human")
    result = run(_play(env_id, seed, level, backend, policy, watcher, quiet=as_json), last_words=watcher.stopped)
    if as_json:
        print(
            json.dumps({key: result[key] for key in ("outcome", "reward", "passed", "checks", "timings_s", "failure")})
        )
    if result["failure"]:
        raise typer.Exit(1)


async def _play(
    env_id: str, seed: int, level: int, backend: str, policy: str, watcher: Watcher, *, quiet: bool
) -> dict[str, object]:
    from metier.harness.policy import open_policy, settings_for
    from metier.harness.prepare import Preparer, Task
    from metier.harness.runner import run_episode
    from metier.harness.sandbox import open_backend

    actor = open_policy(policy, settings_for(policy, None, env_id=env_id, seed=seed, level=level))
    async with open_backend(backend) as opened:
        result = await run_episode(
            Task(env_id=env_id, seed=seed, level=level),
            actor,
            opened,
            Preparer(opened),
            deadline=Deadline.after(24 * 3600, limit="episode_s", set_by="metier play"),
            watch=None if quiet else watcher,
        )
    if not quiet:
        watcher.verdict(result)
    return result.model_dump(mode="json")
