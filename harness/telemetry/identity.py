"""The trace id of the episode that this code works for: one for its spans, its log lines and its records.

A trial of an evaluation has the same one however often it is recorded or tried, so it is derived and not drawn.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")
_current: ContextVar[str] = ContextVar("metier_trace_id", default="")


def run_name(folder_id: str, plan_digest: str) -> str:
    """The run that an evaluation of a plan in a results folder is, in records and traces."""
    return f"eval-{folder_id[:12]}-{plan_digest[:12]}"


def trial_trace(run_id: str, key: str, round_: int) -> str:
    """The trace of a trial's n-th round: 32 hexadecimal digits.

    Example:
        >>> trial_trace("eval-a-b", "c" * 64, 0)
        'dda7dfb8b77b4677212364a6f845bbd4'
    """
    return hashlib.sha256(f"{run_id}/{key}/{round_}".encode()).hexdigest()[:32]


def trace_id() -> str:
    """The current one; empty outside of episodes."""
    return _current.get()


@contextmanager
def in_trace(given: str = "") -> Iterator[str]:
    """In the given trace, else (or where that is none) in the one that it is in already, else in a new one."""
    token = _current.set((given if _TRACE.fullmatch(given) else "") or _current.get() or uuid.uuid4().hex)
    try:
        yield _current.get()
    finally:
        _current.reset(token)
