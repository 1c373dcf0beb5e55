"""What can go wrong with records, below `RecordError` of the core.

RecordError                 events can be neither sent nor spilled
├── MalformedEvent          this one cannot be read, and will not be next time: a dead letter after `MAX_TRIES`
└── StoreUnavailable        the store or the broker cannot be reached: the same again later
"""

from __future__ import annotations

from metier.envs.core import RecordError

MAX_TRIES = 5
"""Deliveries of an event that cannot be stored, before it becomes a dead letter."""


class MalformedEvent(RecordError):
    """No event: not JSON, not of its schema, of a newer version, or its blob is not what its name says."""


class StoreUnavailable(RecordError):
    """A store or broker did not answer, or refused; what was to be stored is still where it was."""


__all__ = ["MAX_TRIES", "MalformedEvent", "RecordError", "StoreUnavailable"]
