"""Show an episode as it goes: each call, its observation, its pictures (saved, their paths printed), the verdict."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from metier.envs.core import ToolCall
from metier.harness.episode import Episode, Step
from metier.harness.result import EpisodeResult

_SHOWN_LINES = 12


class Watcher:
    """A `Watch` that prints to a console."""

    def __init__(
        self, console: Console, out: Path, *, echo_calls: bool = True, shown_lines: int = _SHOWN_LINES
    ) -> None:
        self._console = console
        self._out = out
        self._echo = echo_calls
        self._lines = shown_lines
        self._steps = 0
        self.pictures: list[Path] = []

    def __call__(self, episode: Episode, call: ToolCall, step: Step) -> None:
        self._steps = episode.num_steps
        if self._echo:
            title = f"{episode.num_steps}. {call.tool or '(no call)'}"
            body = "\n".join(
                f"{name}: {value}" if name != "code" else str(value) for name, value in call.arguments.items()
            )
            self._console.print(Panel(Text(self._short(body)), title=title, title_align="left", border_style="cyan"))
        if step.result.text:
            self._console.print(Text(self._short(step.result.text), style="" if step.result.ok else "yellow"))
        for picture in step.result.images:
            task = episode.task
            name = f"{task.env_id.replace('/', '-')}-seed{task.seed}-level{task.level}-step{episode.num_steps}.png"
            self._keep(self._out / name, picture)

    def _keep(self, path: Path, picture: bytes) -> None:
        """Saved whole or not at all; an episode does not end for want of room for its pictures."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture)
        except OSError as error:
            with contextlib.suppress(OSError):
                path.unlink()
            self._console.print(f"picture not kept: {error}; name another folder with --out", markup=False)
            return
        self.pictures.append(path)
        self._console.print(f"[magenta]picture:[/magenta] {path}")

    def stopped(self) -> None:
        """The end of an episode that a person or a signal cut short."""
        kept = f"{len(self.pictures)} pictures in {self._out}" if self.pictures else "no pictures were saved"
        self._console.print(
            f"\nstopped after {self._steps} steps, ungraded; {kept}", markup=False, highlight=False, soft_wrap=True
        )

    def _short(self, text: str) -> str:
        lines = text.rstrip("\n").splitlines()
        if len(lines) <= self._lines:
            return "\n".join(lines)
        return "\n".join([*lines[: self._lines - 1], f"… {len(lines) - self._lines + 1} more lines"])

    def verdict(self, result: EpisodeResult) -> None:
        """The end of an episode."""
        if result.failure:
            self._console.print(f"[red]{result.outcome}[/red]: {result.failure}")
            return
        table = Table("check", "score", "evidence", title=f"{result.env_id} · {result.outcome}", title_justify="left")
        for check in result.checks:
            table.add_row(f"{check.name}{' (gate)' if check.gate else ''}", f"{check.score:g}", check.evidence[:100])
        self._console.print(table)
        colour = "green" if result.passed else "red"
        self._console.print(
            f"[{colour}]reward {result.reward:.3f}, {'passed' if result.passed else 'not passed'}[/{colour}]"
        )
