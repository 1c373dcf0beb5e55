"""A tether: a shell that clears away after this process as soon as it is gone, however it went.

It waits on a pipe whose other end only this process holds, in a session of its own, so that no signal of a terminal
reaches it. Tie one before making what it removes: then no moment is left in which a kill would leave it behind.
"""

from __future__ import annotations

import subprocess


class Tether:
    """Runs a shell script, with its arguments as $1, $2, … once this process has ended."""

    def __init__(self, script: str, *arguments: str) -> None:
        """
        Raises:
            OSError: no shell could be started.
        """
        self._shell = subprocess.Popen(
            ["sh", "-c", f"read -r _\n{script}", "sh", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    def cut(self) -> None:
        """End it without running its script: what it is for is gone already. Idempotent."""
        self._shell.kill()
        self._shell.communicate()
