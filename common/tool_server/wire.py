"""What the MCP library leaves open on the wire: ids that are none, batches, who leaves, and what is announced."""

import asyncio
import contextlib
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp_types import (
    DiscoverRequest,
    DiscoverResult,
    InitializeRequest,
    InitializeResult,
    ServerCapabilities,
    ToolsCapability,
)
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common import json_body
from common.rate_limit import RateLimit
from common.telemetry import request_id
from common.tool_server.running_calls import Running, RunningCalls, exchange, name_of, person_of_request

_LARGEST_BODY = 4 * 1024 * 1024  # bytes; the library refuses what is larger
_WATCHED_AFTER = 0.05  # seconds: most calls have ended by then, and cost no task of their own
_BATCH = "Batches are not supported. Send one JSON-RPC message in each request."
_TOO_FAST = "Too many requests. Try again in {} seconds."
_REQUESTS_PER_CALL = 4  # clients that keep nothing greet, announce themselves and list the tools before they call one
_INVALID, _SERVER_ERROR = -32600, -32000  # JSON-RPC 2.0, section 5.1
_NO_ID = "The id of a request must be text or a whole number. Send it again with such an id."


class Announced(Middleware):
    """Announces what is delivered: tools, which never change while the server runs, and no log messages."""

    async def on_initialize(
        self,
        context: MiddlewareContext[InitializeRequest],
        call_next: CallNext[InitializeRequest, InitializeResult | None],
    ) -> InitializeResult | None:
        result = await call_next(context)
        return result and result.model_copy(update={"capabilities": _delivered()})

    async def on_discover(
        self,
        context: MiddlewareContext[DiscoverRequest],
        call_next: CallNext[DiscoverRequest, DiscoverResult | dict[str, Any]],
    ) -> DiscoverResult | dict[str, Any]:
        result = await call_next(context)
        assert isinstance(result, DiscoverResult), "no other middleware answers"
        return result.model_copy(update={"capabilities": _delivered()})


def _delivered() -> ServerCapabilities:
    return ServerCapabilities(tools=ToolsCapability())


class Wire:
    """Refuses what JSON-RPC forbids with a sentence, and ends the calls of a client that cancels or leaves."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        calls: RunningCalls,
        per_minute: int | None,
        tell_others: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`per_minute` tool calls of one person bound their requests, and the cancellations told to other processes."""
        self._app = app
        self._requests = RateLimit(per_minute and per_minute * _REQUESTS_PER_CALL)
        self._told = RateLimit(per_minute)
        self._calls = calls
        self._tell_others = tell_others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        received = await _read(receive)
        body = b"".join(message.get("body", b"") for message in received)
        if sentence := json_body.problem(body):
            return await _refused(400, None, _INVALID, sentence)(scope, receive, send)
        message = _parsed(body)
        if refusal := self._refusal(message):
            return await refusal(scope, receive, send)
        if _is_cancellation(message):
            await self._cancel(name_of(message["params"].get("requestId")))
        whole = received[-1]["type"] == "http.request" and not received[-1].get("more_body", False)
        waiting = iter(received)

        async def replay() -> Message:
            return next(waiting, None) or await receive()

        running: set[Running] = set()
        token = exchange.set(running)
        try:
            with _ended_by_leaving(running, receive) if whole else contextlib.nullcontext():
                await self._app(scope, replay, send)
        finally:
            exchange.reset(token)

    def _refusal(self, message: Any) -> JSONResponse | None:
        if problem := _problem(message):
            return _refused(400, None, _INVALID, problem)
        if request_id.current.get() is None:  # the process warms up
            return None
        if wait := math.ceil(self._requests.wait(person_of_request() or "")):
            answer_to = message.get("id") if isinstance(message, dict) else None
            return _refused(429, answer_to, _SERVER_ERROR, _TOO_FAST.format(wait), **{"Retry-After": str(wait)})
        return None

    async def _cancel(self, name: str) -> None:
        """End the call here, or in whichever process it runs."""
        if self._calls.cancel(name) or self._tell_others is None or self._told.wait(person_of_request() or ""):
            return
        await self._tell_others(name)


async def _read(receive: Receive) -> list[Message]:
    """The messages of the body, up to its end, the client's leaving or the size that the library refuses."""
    received: list[Message] = []
    size = 0
    while size <= _LARGEST_BODY:
        received.append(await receive())
        size += len(received[-1].get("body", b""))
        if received[-1]["type"] != "http.request" or not received[-1].get("more_body", False):
            break
    return received


def _parsed(body: bytes) -> Any:
    """The JSON of the body; None for what is none, or larger than the library reads, which is answered without it."""
    try:
        return None if len(body) > _LARGEST_BODY else json.loads(body)
    except (ValueError, RecursionError):
        return None


def _problem(message: Any) -> str | None:
    if isinstance(message, list):
        return _BATCH
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return None
    valid = isinstance(message["id"], str | int) and not isinstance(message["id"], bool)
    return None if valid else _NO_ID


def _refused(status: int, answer_to: object, code: int, sentence: str, **headers: str) -> JSONResponse:
    error = {"code": code, "message": sentence}
    return JSONResponse({"jsonrpc": "2.0", "id": answer_to, "error": error}, status_code=status, headers=headers)


def _is_cancellation(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.get("method") == "notifications/cancelled"
        and isinstance(message.get("params"), dict)
    )


@contextlib.contextmanager
def _ended_by_leaving(running: set[Running], receive: Receive) -> Iterator[None]:
    """End the calls when the client of a request, whose body is complete, closes its connection."""
    watch: asyncio.Task[None] | None = None

    async def wait_for_leaving() -> None:
        if (await receive())["type"] == "http.disconnect":
            for call in tuple(running):
                call.cancel()

    def begin() -> None:
        nonlocal watch
        watch = asyncio.create_task(wait_for_leaving())

    timer = asyncio.get_running_loop().call_later(_WATCHED_AFTER, begin)
    try:
        yield
    finally:
        timer.cancel()
        if watch is not None:
            watch.cancel()
