"""The agent's process: started in a folder of its own, on a leash that ends it with all that it started."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from metier.envs.core import PolicyError

from . import leash
from .settings import AgentSettings

TAIL_BYTES = 4096
"""Of what it prints, the last are kept, for the words of an error."""
TASK = "{brief}\n\nWork only through the tools of the MCP server `metier`; call its tool `submit` when you are done.\n"
_END_S = 5.0


class AgentProcess:
    """One agent at work."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._leash: int | None = None
        self._tail = b""

    @property
    def last_words(self) -> str:
        """The end of what it printed."""
        return self._tail.decode("utf-8", "replace").strip()

    async def start(self, brief: str, url: str) -> None:
        """Raises PolicyError where it cannot be started."""
        folder = Path(tempfile.mkdtemp(prefix="metier-agent-"))
        work = folder / "work"
        work.mkdir()
        known = _placed(folder, brief, url, work)
        command = [word.format_map(known) for word in self._settings.command]
        held, self._leash = os.pipe()
        starting = asyncio.create_task(self._spawn(command, work, url, held))
        try:
            # one that is cancelled in the middle would be killed before it can clean up
            self._process = await asyncio.shield(starting)
        except (OSError, ValueError) as error:  # such as a brief that is longer than a command may be
            self.kill()
            shutil.rmtree(folder, ignore_errors=True)
            raise PolicyError(f"the agent {command[0]!r} cannot be started: {error}; give it {{brief_file}}") from None
        self._reading = asyncio.create_task(self._read())

    async def _spawn(self, command: list[str], work: Path, url: str, held: int) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-IS", leash.__file__, str(held), str(work.parent)),
                *command,
                pass_fds=[held],
                cwd=work,
                env={**os.environ, **self._settings.env, "METIER_MCP_URL": url},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            os.close(held)

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        while data := await self._process.stdout.read(65_536):
            self._tail = (self._tail + data)[-TAIL_BYTES:]

    async def ended(self) -> int:
        """Waits for its end, and gives its exit code."""
        assert self._process is not None
        code = await self._process.wait()
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=_END_S)
        return code

    def kill(self) -> None:
        """Lets go of the leash, which ends it and what it started. Idempotent; does not wait."""
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    async def close(self, linger_s: float = 0.0) -> None:
        """Lets it end by itself for so long, then ends it."""
        if self._process is not None and linger_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), linger_s)
        self.kill()
        if self._process is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended(), _END_S)


def _placed(folder: Path, brief: str, url: str, work: Path) -> dict[str, str]:
    """What the placeholders stand for."""
    task = TASK.format(brief=brief)
    http = {"type": "http", "url": url}
    stdio = {"command": sys.executable, "args": ["-m", "metier.harness.policy.agent.bridge", url]}
    files = {
        "brief_file": task,
        "config": json.dumps({"mcpServers": {"metier": http}}),
        "stdio_config": json.dumps({"mcpServers": {"metier": stdio}}),
    }
    known = {"brief": task, "url": url, "folder": str(work)}
    for name, content in files.items():
        path = folder / ("brief.txt" if name == "brief_file" else f"{name}.json")
        path.write_text(content, "utf-8")
        known[name] = str(path)
    return known
