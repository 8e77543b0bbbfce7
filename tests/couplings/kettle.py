"""A small MCP server, and the connection of an agent to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Context, FastMCP
from fastmcp.server.middleware import Middleware

from backend.tools.connection import Connection
from tests.serving import serve


def kettle(*middleware: Middleware) -> FastMCP:
    server = FastMCP("kettle", middleware=middleware)

    @server.tool
    async def boil(cups: int, context: Context) -> dict[str, int]:
        if cups > 9:
            raise ValueError("too small")
        meta: Any = (context.request_context and context.request_context.meta) or {}
        return {"degrees": 100, "seen": meta.get("number", 0)}

    return server


@asynccontextmanager
async def attached(server: FastMCP, **options: Any) -> AsyncIterator[Connection]:
    async with serve(server.http_app(stateless_http=True, json_response=True)) as url:
        connection = Connection("kettle", f"{url}/mcp", resend_seconds=0.1, answer_seconds=5, **options)
        await connection.connect()
        try:
            yield connection
        finally:
            await connection.cleanup()
