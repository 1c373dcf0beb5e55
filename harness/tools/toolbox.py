"""One episode's tools: validates a call, runs it through the sandbox, and words the observation."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

import jsonschema
import jsonschema.exceptions

from metier.envs.core import (
    Deadline,
    ExecResult,
    Json,
    MetierError,
    Sandbox,
    SandboxLost,
    ToolCall,
    ToolResult,
    ToolSpec,
    TradeTools,
)
from metier.envs.registry import suggest

from ..sandbox import RequestRefused
from .door import shortened, unfit
from .pictures import flaw
from .specs import SUBMIT, tool_specs
from .truncate import cut_text, valid_text

DEFAULT_TIMEOUT_S = 60
VIEW_TIMEOUT_S = 120
READ_LIMIT_BYTES = 4 * 1024 * 1024
SCHEMA_CHARACTERS = 300
"""Of what a schema says is wrong, which repeats the value."""
_VIEW = """\
import sys as _sys
_sys.path.insert(0, "/opt/metier") if "/opt/metier" not in _sys.path else None
import view as _view
_view.render({source!r}, {out!r})
"""
_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What a tool has to say, before it is cut."""

    text: str
    remark: str = ""
    """Ours and short: shown whole, on a line of its own after the text."""
    kept: bool = False
    """Where the text is cut, the whole goes into a file that the agent can read."""
    images: tuple[bytes, ...] = ()
    cut_bytes: int = 0
    """Already left out of the text."""
    ok: bool = True


def _refused(text: str) -> _Said:
    return _Said(text=text, ok=False)


class Toolbox:
    """The tools of one episode, bound to its sandbox.

    Every call is answered with an observation, whatever the agent sent: valid Unicode of at most `TEXT_LIMIT_BYTES`
    and our own remarks, with pictures that open. Only what is nobody's answer raises: a lost sandbox (SandboxLost), or
    another MetierError of the family's own tools.
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
        if not isinstance(call.tool, str) or not call.tool:
            return f"No tool was called. Answer with one tool call; the tools are {names}."
        spec = self._by_name.get(call.tool)
        if spec is None:
            name = shortened(call.tool)
            return f"There is no tool '{name}'{suggest(name, list(self._by_name))}; the tools are {names}."
        if (wrong := unfit(call.arguments)) is not None:
            return f"{call.tool}: {wrong}."
        arguments = dict(call.arguments)
        schema: Any = spec.parameters
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(arguments))
        if error is None:
            return None
        at = "".join(f".{part}" for part in error.absolute_path)
        said = error.message[:SCHEMA_CHARACTERS]
        return f"{call.tool}{shortened(at)}: {said}. Its arguments: {json.dumps(schema.get('properties', {}))}"

    async def call(self, call: ToolCall, *, deadline: Deadline) -> ToolResult:
        """The observation of a call; `deadline` bounds it beside its own timeout. `submit` is the episode's, not ours.

        Raises:
            SandboxLost: the sandbox is gone.
            MetierError: the family's own tools failed, and said whose fault it was.
        """
        wrong = self.problem(call)
        return await self._shown(_refused(wrong) if wrong is not None else await self._answer(call, deadline))

    async def _shown(self, said: _Said) -> ToolResult:
        """The one place where observations are made: valid text, cut once, with what was left out counted."""
        text = valid_text(said.text)
        shown, cut = cut_text(text)
        if cut and said.kept and (path := await self._kept(text)):
            shown, cut = cut_text(text, where=path, whole=not said.cut_bytes)
        if said.remark:
            shown = f"{shown}{'' if not shown or shown.endswith(chr(10)) else chr(10)}[{said.remark}]"
        return ToolResult(text=shown, images=said.images, cut_bytes=cut + said.cut_bytes, ok=said.ok)

    async def _kept(self, text: str) -> str:
        """Where the whole of a text lies; empty where the sandbox has no room for it."""
        self._outputs += 1
        path = f"/tmp/output-{self._outputs}.txt"
        wrong = await self._tried(path, self._sandbox.write(path, text.encode()))
        return "" if isinstance(wrong, _Said) else path

    async def _answer(self, call: ToolCall, deadline: Deadline) -> _Said:
        arguments = call.arguments
        match call.tool:
            case "shell":
                return await self._run(str(arguments["command"]), "shell", arguments, deadline)
            case "python":
                return await self._run(str(arguments["code"]), "python", arguments, deadline)
            case "read_file":
                return await self._read_file(str(arguments["path"]), _integer(arguments.get("start"), 1))
            case "edit":
                return await self._edit(str(arguments["path"]), str(arguments["old"]), str(arguments["new"]))
            case "view":
                path = arguments.get("path")
                return await self._view(str(path) if path else None, deadline)
            case _:
                assert self._trade is not None
                return await self._traded(self._trade, call)

    async def _tried(self, what: str, doing: Awaitable[T]) -> T | _Said:
        """What the sandbox gives back, or its refusal in words."""
        try:
            return await doing
        except SandboxLost:
            raise
        except OSError as error:
            return _refused(f"{what}: {error.strerror or error}")
        except ValueError as error:  # RequestRefused is one too
            return _refused(f"{what}: {error}")

    async def _run(self, source: str, session: Any, arguments: Mapping[str, Json], deadline: Deadline) -> _Said:
        wanted_s = float(_integer(arguments.get("timeout_s"), DEFAULT_TIMEOUT_S))
        return await self._exec(source, session, deadline.within(wanted_s, "timeout_s", session))

    async def _exec(self, source: str, session: Any, limit: Deadline) -> _Said:
        """Runs it until `limit`, which the observation names where it fired."""
        left_s = limit.left_s()
        result = await self._tried(
            session, self._sandbox.exec(source, session=session, timeout_s=max(0.1, left_s), output_kib=256)
        )
        return result if isinstance(result, _Said) else self._worded(result, f"{round(left_s, 1):g} s ({limit.limit})")

    def _worded(self, result: ExecResult, limit: str) -> _Said:
        remarks: list[str] = []
        if result.timed_out:
            remarks.append(f"stopped after {limit}")
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
        return _Said(
            text=(result.stdout + result.stderr).decode("utf-8", "replace"),
            remark="; ".join(remarks),
            kept=True,
            cut_bytes=result.cut_bytes,
            ok=result.ok,
        )

    async def _read(self, path: str) -> str | _Said:
        if ".." in path.split("/"):
            return _climbing(path)
        data = await self._tried(path, self._sandbox.read(_absolute(path), max_bytes=READ_LIMIT_BYTES))
        return data if isinstance(data, _Said) else data.decode("utf-8", "replace")

    async def _read_file(self, path: str, start: int) -> _Said:
        text = await self._read(path)
        if isinstance(text, _Said):
            return text
        lines = text.splitlines(keepends=True)
        if start > max(1, len(lines)):
            return _refused(f"{path} has {len(lines)} lines; start {start} is past its end.")
        return _Said(text="".join(lines[start - 1 :]))

    async def _edit(self, path: str, old: str, new: str) -> _Said:
        if not old:
            return await self._write(path, new, f"wrote {path}")
        text = await self._read(path)
        if isinstance(text, _Said):
            return text
        count = text.count(old)
        if count != 1:
            what = "does not occur" if count == 0 else f"occurs {count} times"
            return _refused(f"`old` {what} in {path}; it must occur exactly once. Nothing was changed.")
        return await self._write(path, text.replace(old, new), f"edited {path}")

    async def _write(self, path: str, text: str, done: str) -> _Said:
        if ".." in path.split("/"):
            return _climbing(path)
        wrong = await self._tried(path, self._sandbox.write(_absolute(path), text.encode("utf-8", "replace")))
        return wrong if isinstance(wrong, _Said) else _Said(text=done)

    async def _view(self, path: str | None, deadline: Deadline) -> _Said:
        self._outputs += 1
        out = f"/tmp/view-{self._outputs}.png"
        source = _VIEW.format(source=None if path is None else _absolute(path), out=out)
        ran = await self._exec(source, "python", deadline.within(VIEW_TIMEOUT_S, "the limit of view", "view"))
        if not ran.ok:
            return dataclasses.replace(ran, text=f"no picture: {ran.text.strip()}")
        png = await self._tried("no picture", self._sandbox.read(out, max_bytes=READ_LIMIT_BYTES))
        if isinstance(png, _Said):
            return png
        if wrong := flaw(png):
            return _refused(f"no picture: the viewer wrote {wrong}")
        return _Said(text=f"picture of {path or 'the live scene'}", images=(png,))

    async def _traded(self, trade: TradeTools, call: ToolCall) -> _Said:
        """A call of the family's own tools. A fault of theirs is told and logged: no agent may gain by finding one."""
        try:
            result = await trade.call(call)
        except RequestRefused as error:
            return _refused(f"{call.tool}: {error}")
        except MetierError:
            raise
        except Exception as error:
            _log.exception("the tool %s of the environment broke", call.tool)
            return _refused(f"{call.tool} failed: {type(error).__name__}: {error}")
        flaws = [flaw(image) for image in result.images]
        bad = [wrong for wrong in flaws if wrong]
        return _Said(
            text=result.text,
            remark=f"{len(bad)} pictures were left out: {bad[0]}" if bad else "",
            images=tuple(image for image, wrong in zip(result.images, flaws, strict=True) if not wrong),
            cut_bytes=result.cut_bytes,
            ok=result.ok and not bad,
        )


def _climbing(path: str) -> _Said:
    return _refused(f"{path}: a path may not hold '..'; give it from / or from /workspace on. Nothing was done.")


def _absolute(path: str) -> str:
    return path if path.startswith("/") else f"/workspace/{path}"


def _integer(value: Json, default: int) -> int:
    """An argument that its schema calls an integer; JSON's 5.0 is one."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else default
