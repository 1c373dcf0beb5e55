"""Count instructions under Callgrind: the whole process, less what the same process needs without the work.

Nothing outside the count is left to hide in: constructors, exit handlers and lazy tables are all in it, and the
program's own idea of time is never asked. Counts repeat exactly on one machine; only ratios of counts from the same
probe are compared. A run that forked, ended badly or wrote something else than a count gives none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .c_program import Ended, Run

_UNDER = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-fd={log}")
_COLLECTED = re.compile(r"^==(\d+)== Collected : (\d+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Instructions of a whole process and what it wrote; without a count, why."""

    instructions: int | None
    stdout: bytes = b""
    failure: str = ""


def counting(stdin: bytes, *, seconds: float) -> Run:
    """A run of the plain build under Callgrind."""
    return Run(stdin=stdin, under=_UNDER, seconds=seconds)


def counted(ended: Ended | None) -> Counted:
    """What such a run says."""
    if ended is None:
        return Counted(instructions=None, failure="was not run, since earlier runs did not end")
    if ended.late:
        return Counted(instructions=None, failure="did not end in time")
    if ended.code != 0:
        how = f"signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
        return Counted(instructions=None, stdout=ended.stdout, failure=f"ended with {how}")
    found = _COLLECTED.findall(ended.log)
    if len(found) != 1:
        return Counted(instructions=None, stdout=ended.stdout, failure=f"was {len(found)} counted processes, not one")
    return Counted(instructions=int(found[0][1]), stdout=ended.stdout)
