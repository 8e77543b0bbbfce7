"""The calls that are being worked on, which can be ended until they are committed."""

import asyncio
import contextlib
import hashlib
import json
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from fastmcp.server.dependencies import get_access_token
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools import ToolResult
from mcp_types import CallToolRequestParams

from common.tool_server.refusals import CallCancelled


@dataclass(eq=False)
class Running:
    task: asyncio.Task[Any]
    committing: bool = False
    cancelled: bool = False

    def cancel(self) -> None:
        if not (self.committing or self.cancelled):
            self.cancelled = self.task.cancel()


exchange: ContextVar[set[Running] | None] = ContextVar("exchange", default=None)
"""The calls of the HTTP request in hand."""
_current: ContextVar[Running | None] = ContextVar("running", default=None)


def committing() -> None:
    """From here on the call in hand is not cancelled any more: nobody could say whether it had happened."""
    if (running := _current.get()) is not None:
        running.committing = True


class RunningCalls(Middleware):
    """Knows the calls of this process by their names."""

    def __init__(self) -> None:
        self._running: dict[str, list[Running]] = {}

    async def on_call_tool(
        self,
        context: MiddlewareContext[CallToolRequestParams],
        call_next: CallNext[CallToolRequestParams, ToolResult],
    ) -> ToolResult:
        assert context.fastmcp_context is not None
        with self._known(context.fastmcp_context.request_id) as running:
            try:
                return await call_next(context)
            except asyncio.CancelledError:
                # As asyncio.timeout does it: only our own cancellation ends here.
                if not running.cancelled or running.task.uncancel() > 0:
                    raise
                raise CallCancelled from None

    def cancel(self, name: str) -> bool:
        """End the call of this name, and tell whether it is one of this process.

        Without sessions two clients of a person may use the same id: then nobody knows which is meant, and none ends.
        """
        same = self._running.get(name, [])
        if len(same) == 1:
            same[0].cancel()
        return bool(same)

    @contextlib.contextmanager
    def _known(self, request_id: str) -> Iterator[Running]:
        task = asyncio.current_task()
        assert task is not None
        running, name, calls = Running(task), name_of(request_id), exchange.get()
        self._running.setdefault(name, []).append(running)
        if calls is not None:
            calls.add(running)
        token = _current.set(running)
        try:
            yield running
        finally:
            _current.reset(token)
            if calls is not None:
                calls.discard(running)
            self._running[name].remove(running)
            if not self._running[name]:
                del self._running[name]


def name_of(request_id: object) -> str:
    """What a call is known by in all processes, which tells nothing of its person."""
    return hashlib.sha256(json.dumps([person_of_request(), str(request_id)]).encode()).hexdigest()


def person_of_request() -> str | None:
    """Whose token the request carries; None where nobody is checked."""
    token = get_access_token()
    return token.subject if token else None
