"""Which failures are worth another attempt: a table by error class name, since an error crosses processes as its name.

What the machinery broke is tried again; what the caller, the author or the task's own code got wrong is not, because it
would only fail again. A failure that is not in the table is final.
"""

from __future__ import annotations

from collections.abc import Mapping

RETRIES: Mapping[str, int] = {
    "ClusterError": 3,
    "SandboxLost": 2,
    "SandboxUnavailable": 2,
    "PolicyError": 1,
}
"""Error class name → further attempts after the first."""

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 5.0


def pause_s(failure: str, attempts: int, table: Mapping[str, int] = RETRIES) -> float | None:
    """Seconds to wait before the next attempt, or None where `attempts` were enough.

    Example:
        >>> pause_s("SandboxLost", 1), pause_s("SandboxLost", 3), pause_s("VerifierError", 1)
        (0.25, None, None)
    """
    if attempts > table.get(failure, 0):
        return None
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempts - 1))
