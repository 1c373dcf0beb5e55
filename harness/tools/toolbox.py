"""One episode's tools: validates a call, runs it through the sandbox, and words the observation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import jsonschema.exceptions

from metier.envs.core import ExecResult, Json, Sandbox, ToolCall, ToolResult, ToolSpec, TradeTools
from metier.envs.registry import suggest

from .specs import SUBMIT, tool_specs
from .truncate import cut_text

DEFAULT_TIMEOUT_S = 60
READ_LIMIT_BYTES = 4 * 1024 * 1024
_VIEW = """\
import sys as _sys
_sys.path.insert(0, "/opt/metier") if "/opt/metier" not in _sys.path else None
import view as _view
_view.render({source!r}, {out!r})
"""


class Toolbox:
    """The tools of one episode, bound to its sandbox.

    Every method answers with an observation whatever the agent sent; only a lost sandbox raises (SandboxError).
    """

    def __init__(self, names: Sequence[str], sandbox: Sandbox, trade: TradeTools | None = None) -> None:
        self._sandbox = sandbox
        self._trade = trade
        self._outputs = 0
        self.specs: tuple[ToolSpec, ...] = tool_specs(names)
        if trade is not None:
            self.specs = (*self.specs[:-1], *trade.specs, SUBMIT)
        self._by_name = {spec.name: spec for spec in self.specs}

    def problem(self, call: ToolCall) -> str | None:
        """Why a call cannot be run, in words that say how to go on; None for a valid one."""
        names = ", ".join(self._by_name)
        if not call.tool:
            return f"No tool was called. Answer with one tool call; the tools are {names}."
        spec = self._by_name.get(call.tool)
        if spec is None:
            return f"There is no tool {call.tool!r}{suggest(call.tool, list(self._by_name))}; the tools are {names}."
        arguments = dict(call.arguments)
        schema: Any = spec.parameters
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(arguments))
        if error is None:
            return None
        at = "".join(f".{part}" for part in error.absolute_path)
        return f"{call.tool}{at}: {error.message[:300]}. Its arguments: {json.dumps(schema['properties'])}"

    async def call(self, call: ToolCall, *, left_s: float) -> ToolResult:
        """The observation of a call; `left_s` bounds it beside its own timeout. `submit` is the episode's, not ours."""
        wrong = self.problem(call)
        if wrong is not None:
            return ToolResult(text=wrong, ok=False)
        arguments = call.arguments
        match call.tool:
            case "shell":
                return await self._run(str(arguments["command"]), "shell", arguments, left_s)
            case "python":
                return await self._run(str(arguments["code"]), "python", arguments, left_s)
            case "read_file":
                return await self._read_file(str(arguments["path"]), _integer(arguments.get("start"), 1))
            case "edit":
                return await self._edit(str(arguments["path"]), str(arguments["old"]), str(arguments["new"]))
            case "view":
                path = arguments.get("path")
                return await self._view(str(path) if path else None, left_s)
            case _:
                assert self._trade is not None
                return await self._trade.call(call)

    async def _run(self, source: str, session: Any, arguments: Mapping[str, Json], left_s: float) -> ToolResult:
        wanted_s = float(_integer(arguments.get("timeout_s"), DEFAULT_TIMEOUT_S))
        result = await self._sandbox.exec(
            source, session=session, timeout_s=max(0.1, min(wanted_s, left_s)), output_kib=256
        )
        return await self._worded(result, min(wanted_s, left_s))

    async def _worded(self, result: ExecResult, limit_s: float) -> ToolResult:
        text = (result.stdout + result.stderr).decode("utf-8", "replace")
        remarks: list[str] = []
        if result.timed_out:
            remarks.append(f"stopped after {limit_s:g} s (timeout_s)")
        elif result.oom_killed:
            remarks.append(f"killed: over the memory limit of {self._sandbox.spec.memory_mb} MiB")
        elif result.signal is not None:
            remarks.append(f"ended by signal {result.signal}")
        elif result.exit_code:
            remarks.append(f"exit code {result.exit_code}")
        if result.background_open:
            remarks.append("still running in the background")
        if result.cut_bytes:
            remarks.append(f"{result.cut_bytes} bytes of output were not kept")
        shown, cut = await self._cut(text)
        if remarks:
            shown = f"{shown}{'' if not shown or shown.endswith(chr(10)) else chr(10)}[{'; '.join(remarks)}]"
        return ToolResult(text=shown, cut_bytes=cut + result.cut_bytes, ok=result.ok)

    async def _cut(self, text: str) -> tuple[str, int]:
        """Cut for the observation; the whole stays in a file the agent can read, where the sandbox has room for it."""
        shown, cut = cut_text(text)
        if not cut:
            return shown, 0
        self._outputs += 1
        path = f"/tmp/output-{self._outputs}.txt"
        try:
            await self._sandbox.write(path, text.encode("utf-8", "replace"))
        except OSError as error:
            if isinstance(error, ConnectionError):
                raise
            return shown, cut
        return cut_text(text, where=path)

    async def _read(self, path: str) -> str | ToolResult:
        try:
            return (await self._sandbox.read(_absolute(path), max_bytes=READ_LIMIT_BYTES)).decode("utf-8", "replace")
        except ConnectionError:
            raise
        except OSError as error:
            return ToolResult(text=f"{path}: {error.strerror or error}", ok=False)
        except ValueError as error:
            return ToolResult(text=f"{path}: {error}", ok=False)

    async def _read_file(self, path: str, start: int) -> ToolResult:
        text = await self._read(path)
        if isinstance(text, ToolResult):
            return text
        lines = text.splitlines(keepends=True)
        if start > max(1, len(lines)):
            return ToolResult(text=f"{path} has {len(lines)} lines; start {start} is past its end.", ok=False)
        shown, cut = cut_text("".join(lines[start - 1 :]))
        return ToolResult(text=shown, cut_bytes=cut)

    async def _edit(self, path: str, old: str, new: str) -> ToolResult:
        if not old:
            return await self._write(path, new, f"wrote {path}")
        text = await self._read(path)
        if isinstance(text, ToolResult):
            return text
        count = text.count(old)
        if count != 1:
            what = "does not occur" if count == 0 else f"occurs {count} times"
            return ToolResult(
                text=f"`old` {what} in {path}; it must occur exactly once. Nothing was changed.", ok=False
            )
        return await self._write(path, text.replace(old, new), f"edited {path}")

    async def _write(self, path: str, text: str, done: str) -> ToolResult:
        try:
            await self._sandbox.write(_absolute(path), text.encode("utf-8", "replace"))
        except ConnectionError:
            raise
        except OSError as error:
            return ToolResult(text=f"{path}: {error.strerror or error}", ok=False)
        return ToolResult(text=done)

    async def _view(self, path: str | None, left_s: float) -> ToolResult:
        self._outputs += 1
        out = f"/tmp/view-{self._outputs}.png"
        source = _VIEW.format(source=None if path is None else _absolute(path), out=out)
        result = await self._sandbox.exec(source, session="python", timeout_s=max(0.1, min(120.0, left_s)))
        if not result.ok:
            worded = await self._worded(result, min(120.0, left_s))
            return ToolResult(text=f"no picture: {worded.text.strip()}", ok=False)
        try:
            png = await self._sandbox.read(out, max_bytes=READ_LIMIT_BYTES)
        except ConnectionError:
            raise
        except (OSError, ValueError) as error:
            return ToolResult(text=f"no picture: {error}", ok=False)
        if not png.startswith(b"\x89PNG\r\n\x1a\n"):
            return ToolResult(text="no picture: the viewer wrote no PNG", ok=False)
        return ToolResult(text=f"picture of {path or 'the live scene'}", images=(png,))


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/workspace/{path}"


def _integer(value: Json, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
