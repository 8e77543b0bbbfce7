"""How many calls one person may make."""

import math

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams

from common.rate_limit import RateLimit
from common.tool_server import reports
from common.tool_server.refusals import TooFast
from common.tool_server.running_calls import person_of_request


class Paced(Middleware):
    """Refuses the calls of a person who makes more of them in a minute than is allowed."""

    def __init__(self, per_minute: int | None) -> None:
        self._limit = RateLimit(per_minute)

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        by_a_person = reports.current.get() is not None  # else the process warms up
        if by_a_person and (wait := self._limit.wait(person_of_request() or "")):
            raise TooFast(seconds=math.ceil(wait))
        return await call_next(context)
