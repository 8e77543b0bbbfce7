from functools import partial
from typing import Any

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams


class Together(Middleware):
    """Several middlewares for tool calls as one, the first outside: FastMCP runs seven functions for each it knows."""

    def __init__(self, *parts: Middleware) -> None:
        never = {name for part in parts for name in _hooks(type(part))} - {"on_call_tool"}
        assert not never, f"nobody would call {', '.join(never)}"
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


def _hooks(kind: type[Middleware]) -> set[str]:
    """What it has other than a middleware that does nothing."""
    names = {name for name in dir(Middleware) if name.startswith("on_")} | {"__call__"}
    return {name for name in names if getattr(kind, name) is not getattr(Middleware, name)}
