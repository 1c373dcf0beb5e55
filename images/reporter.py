"""Progress of one image: a line for every step, a sign of life while a step is long, and the tail for an error."""

from __future__ import annotations

import os
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence

from metier.envs.core import SandboxUnavailable

from .stopping import Stop
from .store import Progress

_QUIET_S = 10.0


class Reporter:
    """Turns a builder's output into lines of progress; `tail` keeps what an error message needs."""

    def __init__(self, name: str, progress: Progress, stop: Stop | None = None) -> None:
        self.stop = stop or Stop()
        self._name = name
        self._progress = progress
        self._started = self._spoke = time.monotonic()
        self._tail: deque[str] = deque(maxlen=30)

    @property
    def seconds(self) -> float:
        """Since this image was begun."""
        return time.monotonic() - self._started

    def say(self, text: str) -> None:
        """A line of its own: `[image] text (elapsed)`."""
        self._spoke = time.monotonic()
        short = " ".join(text.split())
        short = short if len(short) <= 100 else short[:97] + "…"
        self._progress(f"[{self._name}] {short} ({self.seconds:.0f} s)")

    def output(self, text: str) -> None:
        """Output of a step: kept for errors, shown now and then."""
        lines = [line for line in text.replace("\r", "\n").splitlines() if line.strip()]
        self._tail.extend(lines)
        if lines and time.monotonic() - self._spoke > _QUIET_S:
            self.say(f"… {lines[-1]}")

    def run(self, command: Sequence[str], *, what: str, environment: Mapping[str, str] | None = None) -> None:
        """Run a command, its output into this reporter; `environment` is added to this process's.

        Raises:
            SandboxUnavailable: it ended with another code than 0; the message begins with `what`.
            Stopped: as `Stop.child`.
        """
        with self.stop.child(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **(environment or {})},
        ) as run:
            assert run.stdout is not None
            for line in run.stdout:
                self.output(line)
        if run.returncode != 0:
            raise SandboxUnavailable(f"{what} ended with {run.returncode}:\n{self.tail()}")

    def tail(self) -> str:
        """The last lines of output."""
        return "\n".join(self._tail)
