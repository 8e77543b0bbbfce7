"""What is told of tool calls: one line for each, and the metrics. Never an argument or a result."""

import asyncio
import logging
import time
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import dataclass

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams
from prometheus_client import Histogram

from common.telemetry import metrics, traces
from common.telemetry.logs import fields
from common.tool_server.refusals import Refusal, Unavailable

log = logging.getLogger(__name__)

CALLS = Histogram(
    "todo_tool_call_seconds", "Tool calls, from request to result", ["tool", "outcome"], buckets=metrics.SECONDS
)


@dataclass
class Call:
    owner: str | None = None  # known once the caller was checked


current: ContextVar[Call | None] = ContextVar("call", default=None)


class Reported(Middleware):
    def __init__(self, tools: Collection[str]) -> None:
        self._tools = tools

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        if not metrics.metered():
            return await call_next(context)
        tool = context.message.name if context.message.name in self._tools else "unknown"
        call, began, error = Call(), time.perf_counter(), None
        token = current.set(call)
        try:
            with traces.span(f"tool {tool}", {"gen_ai.tool.name": tool}):
                return await call_next(context)
        except BaseException as raised:
            error = raised
            raise
        finally:
            current.reset(token)
            _tell(tool, call, error, time.perf_counter() - began)


def _tell(tool: str, call: Call, error: BaseException | None, seconds: float) -> None:
    outcome = _outcome(error)
    CALLS.labels(tool, outcome).observe(seconds)
    kind = error and type(error).__name__
    log.info(
        "tool call",
        extra=fields(tool=tool, owner=call.owner, outcome=outcome, error=kind, seconds=round(seconds, 4)),
    )


def _outcome(error: BaseException | None) -> str:
    match error:
        case None:
            return "ok"
        case Refusal() if not isinstance(error, Unavailable):
            return "refused"
        case asyncio.CancelledError():
            return "cancelled"
        case _:
            return "failed"
