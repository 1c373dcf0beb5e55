"""A busy machine: processes that keep every core at work, and end with us. One that is busy already stays as it is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator

_LONGEST_S = 600
_BURN = """\
import os, sys, time
owner, end = int(sys.argv[1]), time.monotonic() + int(sys.argv[2])
while os.getppid() == owner and time.monotonic() < end:
    for _ in range(100000):
        pass
"""


@contextlib.asynccontextmanager
async def busy_machine() -> AsyncIterator[None]:
    """At least as many busy processes as there are cores, for as long as it is entered."""
    burning: list[asyncio.subprocess.Process] = []
    idle = len(os.sched_getaffinity(0)) - int(os.getloadavg()[0])
    try:
        for _ in range(max(0, idle)):
            arguments = (sys.executable, "-I", "-S", "-c", _BURN, str(os.getpid()), str(_LONGEST_S))
            burning.append(await asyncio.create_subprocess_exec(*arguments))
        yield
    finally:
        for process in burning:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.gather(*(process.wait() for process in burning))
