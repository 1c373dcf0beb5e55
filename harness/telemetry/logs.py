"""`logging` as JSON, a line an object: time, level, logger, text, the trace of its episode, and an error's traceback.

Secrets are removed: what has the shape of one (as the leaderboard removes them), passwords in addresses, and the values
of environment variables that are named like secrets.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import re
import sys
from typing import TextIO

from ..tools.truncate import valid_text
from .identity import trace_id

ASKED = "METIER_LOG"
HIDDEN = "(not logged)"
_NAMED = re.compile(r"(SECRET|PASSWORD|PASSWD|TOKEN|API_?KEY|CREDENTIALS?|PRIVATE_?KEY)$", re.I)
_SHORTEST = 8
"""Shorter values of a variable would match by accident."""
_USUAL = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def clean(text: str) -> str:
    """The text without secrets.

    Example:
        >>> clean("GET https://me:hunter22@host/v1")
        'GET https://(removed: looks like a secret)@host/v1'
    """
    from ..leaderboard.scrub import scrubbed

    text = valid_text(text)
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and _NAMED.search(name):
            text = text.replace(value, HIDDEN)
    return scrubbed(text).value


class JsonFormatter(logging.Formatter):
    """One line of JSON a record; what is given as `extra` is in it as text."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, object] = {
            "at": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "text": clean(record.getMessage()),
            "trace_id": trace_id(),
        }
        for name, value in record.__dict__.items():
            if name not in _USUAL:
                line.setdefault(name, HIDDEN if _NAMED.search(name) else clean(str(value)))
        if record.exc_info:
            line["error"] = clean(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


def install(stream: TextIO | None = None, level: int = logging.INFO) -> logging.Handler:
    """All of `logging` as JSON to `stream`, the standard error by default."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(root.level or level, level))
    return handler
