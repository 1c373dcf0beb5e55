"""An evaluation's records, for a command: opened, brought up to date, closed, with a word about each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console

from metier.envs.core import ConfigError

if TYPE_CHECKING:
    from metier.harness.evaluate.archive import Archive
    from metier.harness.evaluate.folder import Results


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where to, if anywhere."""

    store: str | None
    transport: str
    console: Console

    @contextmanager
    def archive(self, results: Results, folder_id: str) -> Iterator[Archive | None]:
        """The archive of an evaluation, which has by then what the folder has.

        Raises:
            ConfigError: a store or transport of no known kind or not installed, or a transport without a store.
            RecordError: the store cannot be read, or the outbox not be written.
        """
        if not self.store:
            if self.transport:
                raise ConfigError("--transport is the way to a store: name it by --records")
            yield None
            return
        from metier.harness.evaluate.archive import Archive
        from metier.harness.record import Recorder, Records, RecordSettings
        from metier.harness.record.store import open_store

        with Recorder.open(RecordSettings(store=self.store, transport=self.transport)) as recorder:
            archive = Archive(recorder, results.plan, folder_id)
            late = archive.catch_up(results, Records(open_store(self.store)))  # which may be empty
            if late:
                self._say(f"{late} episodes of before are recorded now")
            try:
                yield archive
            finally:
                waiting = recorder.close().outbox_events
                if archive.num_missed:
                    why = f"{archive.num_missed} episodes are not in the records ({archive.trouble})"
                    self._say(f"{why}; mend that, and the same command records them")
                if waiting:
                    self._say(f"{waiting} events wait in the outbox; metier records flush sends them")
                self._say(f"records: run {archive.run_id} in {self.store}")

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
