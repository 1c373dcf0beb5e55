"""The episode's MCP server over standard input and output: `python -m metier.harness.policy.agent.bridge URL`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.server import Server
from mcp.server.stdio import stdio_server


async def bridge(url: str) -> None:
    """Passes on what comes in, and gives back what is answered, until the input ends."""
    async with Client(url) as client:

        async def tools(context: Any, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
            return await client.list_tools()

        async def call(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            return await client.call_tool(params.name, params.arguments or {})

        server: Server[Any] = Server("metier", on_list_tools=tools, on_call_tool=call)
        async with stdio_server() as (reads, writes):
            await server.run(reads, writes, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(bridge(sys.argv[1]))
