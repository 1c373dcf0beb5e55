"""The lines of `logging` as records: the only ones that may be dropped."""

from __future__ import annotations

import logging

from .errors import RecordError
from .recorder import Recorder

_OWN = __package__ or ""


class LogHandler(logging.Handler):
    """Records lines about a run; one that says `extra={"episode_id": …}` is about that episode.

    The recorder's own lines are left out: they tell of what cannot be recorded.
    """

    def __init__(self, recorder: Recorder, run_id: str, level: int = logging.INFO) -> None:
        super().__init__(level)
        self._recorder, self._run_id = recorder, run_id

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(_OWN):
            return
        try:
            text = self.format(record)
            episode_id = str(getattr(record, "episode_id", ""))
            self._recorder.log(self._run_id, record.levelname.lower(), text, episode_id=episode_id)
        except RecordError:  # closed: where else should it be told
            pass
        except Exception:
            self.handleError(record)
