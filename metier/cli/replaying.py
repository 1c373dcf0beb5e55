"""What commands of the leaderboard show: a board, and replays as they go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from metier.harness.leaderboard.contract import Board, BoardRow, End
    from metier.harness.leaderboard.folders import Folders
    from metier.harness.leaderboard.sample import SampleRule
    from metier.harness.leaderboard.store import Store


def verify_folder(folder: Path, rule: SampleRule, backend: str, concurrency: int, as_json: bool) -> None:
    """Replay a sample of somebody's own folder. Raises typer.Exit: something does not agree."""
    from metier.harness.backends import Backends
    from metier.harness.evaluate.folder import load
    from metier.harness.leaderboard import serving
    from metier.harness.leaderboard.verification import replayed_of

    from .interrupts import run

    results = load(folder)
    console = Console(stderr=True)

    async def whole() -> Any:
        backends = Backends()
        try:
            bench = await serving.bench(backends, serving.Replaying(backend=backend, concurrency=concurrency))
            with Progress(TextColumn("replaying"), BarColumn(), MofNCompleteColumn(), console=console) as progress:
                task = progress.add_task("replaying", total=None)
                return await replayed_of(
                    results, rule, bench, lambda done, of: progress.update(task, completed=done, total=of)
                )
        finally:
            await backends.close()

    made = run(whole())
    if as_json:
        print(made.model_dump_json())
    else:
        print(f"{made.agreed} of {made.replayed} replays agree")
    for one in made.disagreed:
        say(
            console, f"{one.env_id} level {one.level} seed {one.seed}: recorded {one.recorded}, replayed {one.replayed}"
        )
    if made.agreed < made.replayed:
        raise typer.Exit(1)


def verify_queue(
    opened: Store,
    folders: Folders,
    only: str | None,
    backend: str,
    concurrency: int,
    as_json: bool,
) -> None:
    """Replay what is queued. Raises typer.Exit: not all of it is verified."""
    from metier.harness.backends import Backends
    from metier.harness.leaderboard import serving
    from metier.harness.leaderboard.contract import State, Verification
    from metier.harness.leaderboard.store import Submission
    from metier.harness.leaderboard.verification import Verifier

    from .interrupts import run

    console = Console(stderr=True)

    def tell(submission: Submission, so_far: Verification) -> None:
        say(
            console,
            f"{submission.id} {submission.row.name}: {so_far.replayed}/{so_far.to_replay} replayed, "
            f"{so_far.replayed - so_far.agreed} disagree",
        )

    async def whole() -> dict[str, State]:
        backends = Backends()
        try:
            bench = await serving.bench(backends, serving.Replaying(backend=backend, concurrency=concurrency))
            return await Verifier(opened, folders, tell).drain(bench, only)
        finally:
            await backends.close()

    ended = run(whole(), last_words=lambda: say(console, "stopped; replays that ended are kept"))
    if as_json:
        print(json.dumps(ended))
    else:
        for submission, state in ended.items():
            print(f"{submission}  {state}")
        if not ended:
            print("nothing is queued")
    if any(state is not State.VERIFIED for state in ended.values()):
        raise typer.Exit(1)


def show(made: Board) -> None:
    """A table a group."""
    console = Console()
    for group in made.groups:
        terms = group.terms
        today = "" if group.current else ", of other environments than today's"
        title = f"{terms.suite} ({terms.split}), {terms.requested} trials, hub secret {terms.secret_fingerprint}{today}"
        table = Table("rank", "name", "model", "passed", "cost", "replays", title=title, title_justify="left")
        for row in group.rows:
            table.add_row(*_cells(row))
        console.print(table, markup=False)


def _cells(row: BoardRow) -> list[str]:
    from rich.markup import escape

    whole = row.overall
    rate = "" if whole.pass_rate is None else f"{100 * whole.pass_rate:.1f}%"
    interval = f"[{100 * whole.pass_rate_low:.1f}, {100 * whole.pass_rate_high:.1f}]"
    cost = "" if row.cost_usd is None else f"${row.cost_usd}"
    cells = [
        "" if row.rank is None else str(row.rank),
        row.name,
        row.model,
        f"{rate} {interval} of {whole.valid}",
        cost,
        f"{row.verification.agreed}/{row.verification.replayed} agree"
        if not row.not_ranked
        else "; ".join(row.not_ranked),
    ]
    return [escape(cell) for cell in cells]


def _end(one: End) -> str:
    return f"{one.outcome} with reward {one.reward:g}" if one.reward is not None else str(one.outcome)


def say(console: Console, text: str) -> None:
    """A line as it is, whatever is in it."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
