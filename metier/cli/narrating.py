"""A main job in a terminal: phases with their time, a live bar where there is a terminal, lines where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_LINE_EVERY_S = 10.0


class TerminalNarrator:
    """Implements `metier.trainer.main_job.narrator.Narrator`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()

    def _clock(self) -> str:
        elapsed = int(time.monotonic() - self._began)
        return f"{elapsed // 60:02d}:{elapsed % 60:02d}"

    def phase(self, title: str) -> None:
        self._console.rule(f"[bold]{self._clock()}  {escape(title)}", align="left")

    def say(self, text: str) -> None:
        self._console.print(escape(text), highlight=False, soft_wrap=True)

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[str], None]]:
        if self._console.is_terminal:
            with self._bar() as bar:
                task = bar.add_task(what, total=total, note="")
                yield lambda note: bar.update(task, advance=1, note=note)
            return
        done = 0
        told = time.monotonic()

        def advance(note: str) -> None:
            nonlocal done, told
            done += 1
            if done == total or time.monotonic() - told > _LINE_EVERY_S:
                told = time.monotonic()
                self._console.print(f"  {self._clock()}  {what} {done}/{total} {escape(note)}", highlight=False)

        yield advance

    def _bar(self) -> Progress:
        return Progress(
            TextColumn("  {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=self._console,
        )
