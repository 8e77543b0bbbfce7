"""What every tool call passes: the rate limit, cancellation, sentences for errors, one log line and the metrics."""

import asyncio
import hashlib
import json
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.server.dependencies import get_access_token
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams
from prometheus_client import Histogram
from pydantic import ValidationError as PydanticError

from common.rate_limit import RateLimit
from common.telemetry import metrics, traces
from common.telemetry.logs import fields
from common.text import is_storable
from common.tool_server.refusals import (
    ArgumentsInvalid,
    CallCancelled,
    MetaInvalid,
    Refusal,
    TooFast,
    Unavailable,
    UnknownTool,
    shown,
)

log = logging.getLogger(__name__)

CALLS = Histogram(
    "todo_tool_call_seconds", "Tool calls, from request to result", ["tool", "outcome"], buckets=metrics.SECONDS
)
_KIND = "todo/refusal"  # in the result's _meta


@dataclass(eq=False)
class ToolCall:
    """A call that is being worked on; it can be cancelled until it commits."""

    tool: str
    task: asyncio.Task[Any]
    owner: str | None = None  # known once the caller was checked
    began: float = field(default_factory=time.perf_counter)
    is_committing: bool = False
    is_cancelled: bool = False

    def cancel(self) -> None:
        if not (self.is_committing or self.is_cancelled):
            self.is_cancelled = self.task.cancel()


current: ContextVar[ToolCall | None] = ContextVar("tool_call", default=None)
calls_of_request: ContextVar[set[ToolCall] | None] = ContextVar("calls_of_request", default=None)
"""The calls of the HTTP request in hand; the MCP SDK hands no request through to its tools."""


def committing() -> None:
    """From here on the call in hand is not cancelled any more: nobody could say whether it had happened."""
    if (call := current.get()) is not None:
        call.is_committing = True


class ToolCalls(Middleware):
    """The outermost middleware of calls. `explain` makes a sentence of an error that is not the caller's fault.

    `rules` complete the sentence "<argument> must be …", for all tools or for `tool.argument`.
    """

    def __init__(
        self,
        schemas: Mapping[str, Mapping[str, Any]],
        *,
        rules: Mapping[str, str],
        explain: Callable[[Exception], Refusal],
        per_minute: int | None = None,
    ) -> None:
        self._schemas = schemas
        self._rules = rules
        self._explain = explain
        self._limit = RateLimit(per_minute)
        self._running: dict[str, list[ToolCall]] = {}
        self.is_reporting = True
        """Whether calls are logged and counted."""

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        name, task = context.message.name, asyncio.current_task()
        assert context.fastmcp_context is not None
        assert task is not None
        call = ToolCall(name if name in self._schemas else "unknown", task)
        with self._registered(call, name_call(context.fastmcp_context.request_id)):
            try:
                with _reported(call) if self.is_reporting else nullcontext():
                    if wait := self._limit.wait(user_of_request() or ""):
                        raise TooFast(seconds=math.ceil(wait))
                    return await self._make(context, call_next)
            except asyncio.CancelledError:
                # As asyncio.timeout does it: only our own cancellation ends here.
                if not call.is_cancelled or task.uncancel() > 0:
                    raise
                refusal: Refusal = CallCancelled()
            except Refusal as error:
                refusal = error
        return ToolResult(content=str(refusal), meta={_KIND: refusal.kind}, is_error=True)

    async def _make(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Turns what FastMCP itself raises into sentences that say what is allowed."""
        name = context.message.name
        try:
            return await call_next(context)
        except NotFoundError:
            raise UnknownTool(name=shown(name), known=", ".join(self._schemas)) from None
        except ValidationError as error:
            if not isinstance(cause := error.__cause__, PydanticError):
                raise
            raise ArgumentsInvalid(problems="; ".join(self._problems(name, cause))) from None
        except ToolError as error:
            # FastMCP wraps what a tool raised once, and what a dependency of it raised twice; it logs nothing here.
            cause = error.__cause__
            refusal = next((e for e in (cause, cause and cause.__cause__) if isinstance(e, Refusal)), None)
            if refusal is None and isinstance(cause, Exception):
                refusal = self._explain(cause)
            if refusal is None:
                raise
            raise refusal from None

    def _problems(self, tool: str, error: PydanticError) -> list[str]:
        """One clause for each argument that is wrong."""
        clauses: dict[str, str] = {}
        known = list(self._schemas[tool]["properties"])
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            argument = str(problem["loc"][0]) if problem["loc"] else ""
            rule = self._rules.get(f"{tool}.{argument}") or self._rules.get(argument)
            if argument not in known:
                clauses[argument] = f"{tool} has no argument {shown(argument)!r}; its arguments are {', '.join(known)}"
            elif problem["type"].startswith("missing"):
                clauses[argument] = f"{argument} is required and must be {rule}"
            else:
                clauses[argument] = f"{argument} must be {rule}"
        return list(clauses.values())

    def cancel(self, name: str) -> bool:
        """Cancels the call of this name; returns whether this process has it.

        Without sessions two clients of a user may use the same id: then nobody knows which is meant, and none ends.
        """
        same = self._running.get(name, [])
        if len(same) == 1:
            same[0].cancel()
        return bool(same)

    @contextmanager
    def _registered(self, call: ToolCall, name: str) -> Iterator[None]:
        of_request = calls_of_request.get()
        same_name = self._running.setdefault(name, [])
        same_name.append(call)
        if of_request is not None:
            of_request.add(call)
        token = current.set(call)
        try:
            yield
        finally:
            current.reset(token)
            if of_request is not None:
                of_request.discard(call)
            same_name.remove(call)
            if not same_name:
                del self._running[name]


@contextmanager
def _reported(call: ToolCall) -> Iterator[None]:
    """One log line and one observation, without arguments and results."""
    error: BaseException | None = None
    try:
        with traces.span(f"tool {call.tool}", {"gen_ai.tool.name": call.tool}):
            yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        seconds, outcome = time.perf_counter() - call.began, _outcome(error)
        CALLS.labels(call.tool, outcome).observe(seconds)
        kind = error and type(error).__name__
        facts = fields(tool=call.tool, owner=call.owner, outcome=outcome, error=kind, seconds=round(seconds, 4))
        log.info("tool call", extra=facts)


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


def name_call(request_id: object) -> str:
    """What a call is known by in all processes; it says nothing of the user."""
    return hashlib.sha256(json.dumps([user_of_request(), str(request_id)]).encode()).hexdigest()


def user_of_request() -> str | None:
    """Whose token the request carries; None where nobody signs in."""
    token = get_access_token()
    return token.subject if token else None


def read_label(meta: Mapping[str, Any], name: str, *, longest: int) -> str | None:
    """A text of one line of a call's metadata, None where there is none; raises `MetaInvalid`."""
    value = meta.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= longest or not is_storable(value):
        raise MetaInvalid(name=name, longest=longest)
    return value
