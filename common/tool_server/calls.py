"""The middleware of every tool call: rate limit, cancellation, errors as sentences, one log line and metrics."""

import asyncio
import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from fastmcp.exceptions import NotFoundError, ToolError, ValidationError
from fastmcp.server.dependencies import get_access_token, get_http_request
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams
from prometheus_client import Histogram
from pydantic import ValidationError as PydanticError

from common.server.rate_limit import RateLimit
from common.telemetry import metrics, traces
from common.telemetry.logs import fields
from common.text import is_storable, join_words
from common.tool_server.errors import (
    ArgumentsInvalid,
    CallCancelled,
    CallError,
    MetaInvalid,
    TooFast,
    Unavailable,
    UnknownTool,
    to_printable,
)

log = logging.getLogger(__name__)

CALLS = Histogram(
    "todo_tool_call_seconds", "Tool calls, from request to result", ["tool", "outcome"], buckets=metrics.SECONDS
)
_MAX_NAMED = 5  # unknown arguments in a sentence
_KIND = "todo/refusal"  # in the _meta of a failed result


@dataclass(eq=False)
class RunningCall:
    """A tool call in progress, which can be cancelled until it commits."""

    tool: str
    task: asyncio.Task[Any]
    owner: str | None = None  # None until the caller is verified
    started_at: float = field(default_factory=time.perf_counter)
    is_committing: bool = False
    is_cancelled: bool = False

    def cancel(self) -> None:
        if not (self.is_committing or self.is_cancelled):
            self.is_cancelled = self.task.cancel()


current: ContextVar[RunningCall | None] = ContextVar("tool_call", default=None)
REQUEST_CALLS = "todo.calls"
"""The key of an HTTP request's scope with the set of its calls in progress."""


def mark_committing() -> None:
    """Protects the current call from cancellation, because it would be unknown whether it was committed."""
    if (call := current.get()) is not None:
        call.is_committing = True


class ToolCalls(Middleware):
    """The outermost middleware of tool calls. `explain` turns an unexpected error into a sentence.

    `rules` complete the sentence "<argument> must be …"; their keys are `argument` or `tool.argument`.
    """

    def __init__(
        self,
        schemas: Mapping[str, Mapping[str, Any]],
        *,
        rules: Mapping[str, str],
        explain: Callable[[Exception], CallError],
        per_minute: int | None = None,
    ) -> None:
        self._schemas = schemas
        self._rules = rules
        self._explain = explain
        self._limit = RateLimit(per_minute)
        self._running: defaultdict[tuple[str | None, str], list[RunningCall]] = defaultdict(list)

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        name, task = context.message.name, asyncio.current_task()
        assert context.fastmcp_context is not None
        assert task is not None
        call = RunningCall(name if name in self._schemas else "unknown", task)
        with self._register(call, context.fastmcp_context.request_id):
            try:
                with _report(call):
                    if wait := self._limit.wait(get_user_id() or ""):
                        raise TooFast(seconds=math.ceil(wait))
                    return await self._run(context, call_next)
            except asyncio.CancelledError:
                # Like asyncio.timeout: only our own cancellation is handled here.
                if not call.is_cancelled or task.uncancel() > 0:
                    raise
                failure: CallError = CallCancelled()
            except CallError as error:
                failure = error
        return ToolResult(content=str(failure), meta={_KIND: failure.kind}, is_error=True)

    async def _run(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        """Replaces FastMCP's errors by sentences that say what is allowed."""
        name = context.message.name
        try:
            return await call_next(context)
        except NotFoundError:
            raise UnknownTool(name=to_printable(name), known=", ".join(self._schemas)) from None
        except ValidationError as error:
            if not isinstance(cause := error.__cause__, PydanticError):
                raise
            raise ArgumentsInvalid(problems="; ".join(self._describe_problems(name, cause))) from None
        except ToolError as error:
            # FastMCP wraps what a tool raised once, and what a dependency of it raised twice; it logs nothing here.
            cause = error.__cause__
            failure = next((e for e in (cause, cause and cause.__cause__) if isinstance(e, CallError)), None)
            if failure is None and isinstance(cause, Exception):
                failure = self._explain(cause)
            if failure is None:
                raise
            raise failure from None

    def _describe_problems(self, tool: str, error: PydanticError) -> list[str]:
        clauses: dict[str, str] = {}
        unknown: list[str] = []
        arguments = list(self._schemas[tool]["properties"])
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            argument = str(problem["loc"][0]) if problem["loc"] else ""
            rule = self._rules.get(f"{tool}.{argument}") or self._rules.get(argument)
            if argument not in arguments:
                unknown.append(repr(to_printable(argument)))
            elif problem["type"].startswith("missing"):
                clauses[argument] = f"{argument} is required and must be {rule}"
            else:
                clauses[argument] = f"{argument} must be {rule}"
        if not unknown:
            return list(clauses.values())
        more = [f"{len(unknown) - _MAX_NAMED} more"] if len(unknown) > _MAX_NAMED else []
        names = join_words([*unknown[:_MAX_NAMED], *more])
        clause = f"{tool} has no argument{'s' if len(unknown) > 1 else ''} {names}"
        return [*clauses.values(), f"{clause}; its arguments are {', '.join(arguments)}"]

    def cancel(self, request_id: object) -> None:
        """Cancels the user's call with this id, if this process has it.

        Without sessions two clients of a user may use the same id: then it is unclear which is meant, and none ends.
        """
        calls = self._running.get((get_user_id(), str(request_id)), [])
        if len(calls) == 1:
            calls[0].cancel()

    @contextmanager
    def _register(self, call: RunningCall, request_id: str) -> Iterator[None]:
        request_calls: set[RunningCall] = get_http_request().scope[REQUEST_CALLS]
        name = get_user_id(), request_id
        self._running[name].append(call)
        request_calls.add(call)
        token = current.set(call)
        try:
            yield
        finally:
            current.reset(token)
            request_calls.discard(call)
            self._running[name].remove(call)
            if not self._running[name]:
                del self._running[name]


@contextmanager
def _report(call: RunningCall) -> Iterator[None]:
    """Writes one log line and counts the call, without its arguments and result."""
    error: BaseException | None = None
    try:
        with traces.span(f"tool {call.tool}", {"gen_ai.tool.name": call.tool}):
            yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        seconds, outcome = time.perf_counter() - call.started_at, _get_outcome(error)
        CALLS.labels(call.tool, outcome).observe(seconds)
        kind = error and type(error).__name__
        owner = call.owner or get_user_id()
        extra = fields(tool=call.tool, owner=owner, outcome=outcome, error=kind, seconds=round(seconds, 4))
        log.info("tool call", extra=extra)


def _get_outcome(error: BaseException | None) -> str:
    match error:
        case None:
            return "ok"
        case CallError() if not isinstance(error, Unavailable):
            return "refused"
        case asyncio.CancelledError():
            return "cancelled"
        case _:
            return "failed"


def get_user_id() -> str | None:
    token = get_access_token()
    return token.subject if token else None


def read_meta_text(meta: Mapping[str, Any], name: str, *, max_length: int) -> str | None:
    """Returns a one-line text of a call's metadata, or None if it is missing; raises `MetaInvalid`."""
    value = meta.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 1 <= len(value) <= max_length or not is_storable(value):
        raise MetaInvalid(name=name, max_length=max_length)
    return value
