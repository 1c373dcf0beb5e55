"""What an evaluation's trials become in the records: each end of a trial is an attempt, stored once.

A trial counts as done once its folder has it; the records follow. What they lack of it, because this process was killed
or their disk was full, they get from the folder when the same evaluation is started again.
"""

from __future__ import annotations

from collections.abc import Mapping

from metier.envs.core import Json

from ..record import Playing, Recorder, RecordError, Records, provenance
from ..record.query import query
from ..result import EpisodeResult
from ..telemetry.identity import run_name, trial_trace
from .folder import Results
from .plan import Plan
from .row import Row


class Archive:
    """Records the trials of one plan in one results folder."""

    def __init__(self, recorder: Recorder, plan: Plan, folder_id: str) -> None:
        """`folder_id` tells two folders with the same plan apart."""
        self._recorder = recorder
        self._plan = plan
        self._options: Mapping[str, Mapping[str, Json]] = {one.id: one.options for one in plan.environments}
        self.run_id = run_name(folder_id, plan.digest)
        self.num_missed = 0
        """Ends that could not be recorded."""
        self.trouble = ""
        """Why the last of them could not."""

    def catch_up(self, results: Results, stored: Records) -> int:
        """Record what the folder has and the records lack; how many those were. Blocks.

        Raises:
            ResultsError: an episode's file is missing or damaged.
            RecordError: the records cannot be read.
        """
        has = _ended(stored, self.run_id)
        lacking = [row for row in results.rows.values() if (self._playing(row).episode, row.round) not in has]
        for row in lacking:
            self.keep(row, results.episode(row) if row.file is not None else _without_words(row))
        return len(lacking)

    def keep(self, row: Row, episode: EpisodeResult) -> None:
        """Record a trial's end. Whatever is wrong with the records does not touch the evaluation: it is counted."""
        try:
            self._recorder.record(self._playing(row), episode)
        except RecordError as error:
            self.num_missed += 1
            self.trouble = str(error)

    def _playing(self, row: Row) -> Playing:
        return Playing(
            run_id=self.run_id,
            env_id=row.env_id,
            seed=row.seed,
            level=row.level,
            sample=row.sample,
            options=self._options[row.env_id],
            policy=self._plan.policy.name,
            settings=self._plan.policy.settings,
            provenance=provenance(row.env_id, backend=self._plan.conditions.backend),
            attempt=row.round,
            # the same each time that the row is recorded, so that the records see one episode
            trace_id=trial_trace(self.run_id, row.key, row.round),
        )


def _ended(stored: Records, run_id: str) -> set[tuple[str, int]]:
    if run_id not in stored.runs():
        return set()
    answer = query(stored, "SELECT episode_id, attempt FROM episodes WHERE ended", [run_id])
    return {(episode, attempt) for episode, attempt in answer.rows}


def _without_words(row: Row) -> EpisodeResult:
    """The episode of a row whose file there is none of: nothing had been said in it."""
    said = {name: getattr(row, name) for name in EpisodeResult.model_fields if name in Row.model_fields}
    return EpisodeResult.model_validate({**said, "steps": row.steps or ()})
