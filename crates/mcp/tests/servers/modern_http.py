"""A server of 2026-07-28 over streamable HTTP, by the official Python library: modern_http.py PORT."""
import asyncio
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("modern")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


@server.tool()
async def steps(count: int, context: Context) -> str:
    for number in range(count):
        await context.report_progress(number + 1, count)
    return "done"


@server.tool()
async def forever() -> str:
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def fails() -> str:
    raise ValueError("no such luck")


server.run("streamable-http", port=int(sys.argv[1]))
