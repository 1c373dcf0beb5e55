"""The MCP server of one episode: the environment's tools on a loopback port, at an address that nobody can guess."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import secrets
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import Server

from metier.envs.core import ToolCall, ToolSpec

from ...tools.truncate import valid_text

MOST_REQUEST_BYTES = 16 * 2**20
"""More than any call may have (`metier.harness.tools.door`), which then says so."""
INSTRUCTIONS = "Do the task with these tools only, one call after another, then call `submit`."
_STOP_S = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A call of the agent, which waits for its observation."""

    call: ToolCall
    answer: asyncio.Future[types.CallToolResult]

    def tell(self, text: str, images: Sequence[bytes] = ()) -> None:
        """Its observation; no more than once."""
        if not self.answer.done():
            shown = [types.ImageContent(data=base64.b64encode(png).decode(), mime_type="image/png") for png in images]
            self.answer.set_result(types.CallToolResult(content=[types.TextContent(text=text), *shown]))


class Door:
    """Where the agent comes in; `asked` has its calls, in their order."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self.asked: asyncio.Queue[Asked] = asyncio.Queue()
        self._tools = tools
        self._waiting: set[asyncio.Future[types.CallToolResult]] = set()
        self._over = False
        self._socket = socket.create_server(("127.0.0.1", 0))
        path = f"/{secrets.token_urlsafe(24)}/mcp"
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}{path}"
        app = Server(
            "metier", instructions=INSTRUCTIONS, on_list_tools=self._list, on_call_tool=self._call
        ).streamable_http_app(streamable_http_path=path, max_request_body_size=MOST_REQUEST_BYTES)
        self._server = _Quiet(
            uvicorn.Config(app, log_config=None, log_level="critical", lifespan="on", timeout_graceful_shutdown=1)
        )
        self._serving: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen."""
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.01)

    def end(self) -> None:
        """The episode is over, as every call is told from now on, and those that wait."""
        self._over = True
        for answer in self._waiting:
            if not answer.done():
                answer.set_result(_over())

    def abandon(self) -> None:
        """Ends the server without waiting for it, also where its loop is about to end."""
        self.end()
        self._server.should_exit = True
        for listening in getattr(self._server, "servers", []):
            listening.close()

    async def close(self) -> None:
        """Ends all connections; bounded."""
        self.abandon()
        if self._serving is not None:
            await asyncio.wait({self._serving}, timeout=_STOP_S)
            self._serving.cancel()
        self._socket.close()

    async def _list(self, context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=spec.name, description=spec.description, input_schema=_schema(spec))
                for spec in self._tools
            ]
        )

    async def _call(self, context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if self._over:
            return _over()
        answer: asyncio.Future[types.CallToolResult] = asyncio.get_running_loop().create_future()
        self._waiting.add(answer)
        try:
            call = ToolCall(tool=valid_text(params.name), arguments=params.arguments or {})
            self.asked.put_nowait(Asked(call, answer))
            return await answer
        finally:
            self._waiting.discard(answer)


class _Quiet(uvicorn.Server):
    """Leaves the signals of the process to those who own it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _schema(spec: ToolSpec) -> dict[str, Any]:
    return dict(spec.parameters) if isinstance(spec.parameters, dict) else {"type": "object"}


def _over() -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text="The episode is over.")], is_error=True)
