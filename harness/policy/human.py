"""A person at a terminal.

Lines are awaited on the event loop: a thread that waits in `input` could not be stopped, and Ctrl-C would wait for it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Sequence

from metier.envs.core import Deadline, ToolCall, ToolSpec

from .contract import AssistantTurn, Message, Stop, write_call

_HELP = """\
A line that begins with / names a tool: /submit [answer], /view [path], /read_file PATH, /python (code until a line with
a single dot), /edit PATH (old text, a dot, new text, a dot), or /call {"tool": …, "arguments": …}.
Any other line runs in the shell (in Python where there is no shell). End of input submits, Ctrl-C leaves ungraded."""


class HumanPolicy:
    """Asks the person for each call; end of input submits, also in the middle of a call.

    What has been typed and not yet read waits in the terminal, and is all that is kept between calls.
    """

    def __init__(self) -> None:
        self._keyboard = Keyboard(_standard_input())

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        if len(conversation) == 1:
            brief = conversation[0]
            print(f"\n{brief.text}\n\nTools: {', '.join(spec.name for spec in tools)}\n{_HELP}\n")
        try:
            async with asyncio.timeout(deadline.left_s()):
                call = await self._ask({spec.name for spec in tools})
        except TimeoutError:
            print(f"\ntime is up: {deadline.limit}", flush=True)
            return AssistantTurn(text="", stop=Stop.ABORT, notes=(f"cut by {deadline.limit}",))
        return AssistantTurn(text=write_call(call), calls=(call,))

    async def _ask(self, names: set[str]) -> ToolCall:
        try:
            while True:
                print("> ", end="", flush=True)
                line = await self._keyboard.line()
                if line.strip():
                    call = await self._parse(line, names)
                    if isinstance(call, ToolCall):
                        return call
                    print(call)
        except EOFError:
            print("end of input: submitted", flush=True)
            return ToolCall(tool="submit")

    async def _parse(self, line: str, names: set[str]) -> ToolCall | str:
        if not line.startswith("/"):
            tool, name = ("shell", "command") if "shell" in names else ("python", "code")
            return ToolCall(tool=tool, arguments={name: line})
        command, _, rest = line[1:].partition(" ")
        match command:
            case "help":
                return _HELP
            case "submit":
                return ToolCall(tool="submit", arguments={"answer": rest} if rest else {})
            case "view":
                return ToolCall(tool="view", arguments={"path": rest} if rest else {})
            case "read_file":
                return ToolCall(tool="read_file", arguments={"path": rest})
            case "python":
                return ToolCall(tool="python", arguments={"code": rest or await self._block("code")})
            case "edit":
                old, new = await self._block("old text"), await self._block("new text")
                return ToolCall(tool="edit", arguments={"path": rest, "old": old, "new": new})
            case "call":
                try:
                    parsed = json.loads(rest)
                    return ToolCall(tool=str(parsed["tool"]), arguments=dict(parsed.get("arguments", {})))
                except (ValueError, KeyError, TypeError) as error:
                    return f"not a call: {error}"
            case _:
                return f"unknown command /{command}; {_HELP}"

    async def _block(self, what: str) -> str:
        print(f"{what}, then a line with a single dot:", flush=True)
        lines: list[str] = []
        while (line := await self._keyboard.line()) != ".":
            lines.append(line)
        return "\n".join(lines)


class Keyboard:
    """Lines from a descriptor, -1 for one that has ended. Waiting for one can be cancelled."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._kept = b""
        self._ended = fd < 0

    async def line(self) -> str:
        """The next line, less its end. Raises EOFError."""
        while b"\n" not in self._kept and not self._ended:
            data = await self._more()
            self._ended = not data
            self._kept += data
        if not self._kept:
            raise EOFError
        line, _, self._kept = self._kept.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    async def _more(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        try:
            loop.add_reader(self._fd, ready.set)
        except OSError:  # a regular file, which has never to be waited for
            ready.set()
        try:
            await ready.wait()
            return os.read(self._fd, 1 << 16)
        except OSError:  # its terminal is gone
            return b""
        finally:
            loop.remove_reader(self._fd)


def _standard_input() -> int:
    try:
        return -1 if sys.stdin is None else sys.stdin.fileno()  # None: closed by whoever started us
    except (OSError, ValueError):
        return -1
