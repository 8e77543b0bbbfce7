"""How many calls one person may make."""

import math

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams

from common.tool_server import reports
from common.tool_server.refusals import TooFast
from common.tool_server.running_calls import person_of_request
from common.workers import Pace


class Paced(Middleware):
    """Refuses the calls of a person who makes more of them in a minute than is allowed."""

    def __init__(self, per_minute: int | None) -> None:
        self._pace = Pace(per_minute)

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        by_a_person = reports.current.get() is not None  # else the process warms up
        if by_a_person and (wait := self._pace.wait(person_of_request() or "")):
            raise TooFast(seconds=math.ceil(wait))
        return await call_next(context)
