"""What a program is told of a refused call beside its sentence: of which kind it is."""

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams

from mcp_server.errors import TaskError

_KIND = "todo/refusal"  # in the result's _meta


class Refusals(Middleware):
    """Outside of all others, which tell refusals by raising them."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        try:
            return await call_next(context)
        except TaskError as refusal:
            return ToolResult(content=str(refusal), meta={_KIND: refusal.kind}, is_error=True)
