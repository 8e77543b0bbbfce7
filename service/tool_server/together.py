from functools import partial
from typing import Any

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams


class Together(Middleware):
    """Several middlewares for tool calls as one, the first outside: FastMCP runs seven functions for each it knows."""

    def __init__(self, *parts: Middleware) -> None:
        other = {name for part in parts for name in vars(type(part)) if name.startswith("on_")} - {"on_call_tool"}
        assert not other, f"nobody would call {', '.join(other)}"
        self._parts = parts

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        inner: Any = call_next
        for part in reversed(self._parts):
            inner = partial(part.on_call_tool, call_next=inner)
        return await inner(context)
