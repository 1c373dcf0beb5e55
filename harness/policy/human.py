"""A person at a terminal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from metier.envs.core import Deadline, PolicyError, ToolCall, ToolSpec

from .contract import AssistantTurn, Message, write_call

_HELP = """\
A line that begins with / names a tool: /submit [answer], /view [path], /read_file PATH, /python (code until a line with
a single dot), /edit PATH (old text, a dot, new text, a dot), or /call {"tool": …, "arguments": …}.
Any other line runs in the shell (in Python where there is no shell)."""


class HumanPolicy:
    """Asks the person for each call; end of input submits."""

    async def act(
        self, conversation: Sequence[Message | AssistantTurn], tools: Sequence[ToolSpec], *, deadline: Deadline
    ) -> AssistantTurn:
        if len(conversation) == 1:
            brief = conversation[0]
            print(f"\n{brief.text}\n\nTools: {', '.join(spec.name for spec in tools)}\n{_HELP}\n")
        call = await asyncio.to_thread(self._ask, {spec.name for spec in tools})
        return AssistantTurn(text=write_call(call), calls=(call,))

    def _ask(self, names: set[str]) -> ToolCall:
        while True:
            try:
                line = input("> ")
            except EOFError:
                return ToolCall(tool="submit")
            except KeyboardInterrupt as error:
                raise PolicyError("stopped by the person") from error
            if line.strip():
                call = _parse(line, names)
                if isinstance(call, ToolCall):
                    return call
                print(call)


def _parse(line: str, names: set[str]) -> ToolCall | str:
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
            return ToolCall(tool="python", arguments={"code": rest or _block("code")})
        case "edit":
            return ToolCall(tool="edit", arguments={"path": rest, "old": _block("old text"), "new": _block("new text")})
        case "call":
            try:
                parsed = json.loads(rest)
                return ToolCall(tool=str(parsed["tool"]), arguments=dict(parsed.get("arguments", {})))
            except (ValueError, KeyError, TypeError) as error:
                return f"not a call: {error}"
        case _:
            return f"unknown command /{command}; {_HELP}"


def _block(what: str) -> str:
    print(f"{what}, then a line with a single dot:")
    lines: list[str] = []
    while (line := input()) != ".":
        lines.append(line)
    return "\n".join(lines)
