"""One deadline object, passed down: whoever waits asks it how long, and its error names the limit that fired."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .errors import DeadlineExceeded


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A moment of `time.monotonic()`, passed down; crosses processes as seconds left.

    Example:
        >>> episode = Deadline.after(600, limit="episode_s", set_by="runner")
        >>> call = episode.within(30, limit="timeout_s", set_by="shell tool")
        >>> call.left_s() <= 30
        True
    """

    at: float
    """`time.monotonic()` at which it fires."""
    limit: str
    """The name of the limit, as its owner would write it in a configuration."""
    set_by: str
    """Who set it."""
    since: float = field(default_factory=time.monotonic)
    """`time.monotonic()` when it was set, for the elapsed time in messages."""

    @classmethod
    def after(cls, seconds: float, *, limit: str, set_by: str) -> Deadline:
        """A deadline `seconds` from now."""
        now = time.monotonic()
        return cls(at=now + seconds, limit=limit, set_by=set_by, since=now)

    def left_s(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.at - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether it has fired."""
        return self.left_s() <= 0.0

    def within(self, seconds: float, limit: str, set_by: str) -> Deadline:
        """The earlier of this and `seconds` from now."""
        now = time.monotonic()
        if now + seconds >= self.at:
            return self
        return Deadline(at=now + seconds, limit=limit, set_by=set_by, since=now)

    def error(self, doing: str) -> DeadlineExceeded:
        """The error that names this deadline, the elapsed time and what was being done."""
        elapsed_s = time.monotonic() - self.since
        return DeadlineExceeded(
            f"{doing}: {self.limit} (set by {self.set_by}) fired after {elapsed_s:.1f} s; "
            f"raise {self.limit} if the work is rightly longer"
        )

    def check(self, doing: str) -> None:
        """Raises DeadlineExceeded once the deadline has fired."""
        if self.expired:
            raise self.error(doing)
