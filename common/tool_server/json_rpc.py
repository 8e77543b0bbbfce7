"""What the MCP SDK does not handle of JSON-RPC: invalid ids, batches, costly bodies, clients that cancel or leave."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.server import json_body
from common.server.rate_limit import RateLimit
from common.tool_server.calls import RunningCall, ToolCalls, calls_of_request, get_user_id, name_call

_LARGEST_BODY = 4 * 1024 * 1024  # bytes; the SDK rejects what is larger
_WATCH_AFTER_SECONDS = 0.05  # most calls have ended by then, and need no asyncio task
_BATCH = "Batches are not supported. Send one JSON-RPC message in each request."
_NO_ID = "The id of a request must be text or a whole number. Send it again with such an id."
_REQUESTS_PER_CALL = 4  # clients without a session initialize and list the tools before they call one
_INVALID, _SERVER_ERROR = -32600, -32000  # JSON-RPC 2.0, section 5.1


class JsonRpc:
    """Rejects invalid JSON-RPC with a sentence, and ends the calls of a client that cancels or leaves.

    `per_minute` is the limit of tool calls; that of a user's requests, and of cancellations sent to other processes,
    follows from it.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        calls: ToolCalls,
        per_minute: int | None,
        notify_others: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._app = app
        self._requests = RateLimit(per_minute and per_minute * _REQUESTS_PER_CALL)
        self._notifications = RateLimit(per_minute)
        self._calls = calls
        self._notify_others = notify_others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        received = await _receive_body(receive)
        body = b"".join(message.get("body", b"") for message in received)
        sentence = json_body.find_problem(body)
        message = None if sentence else _parse(body)
        if sentence := sentence or _find_problem(message):
            return await _reject(400, _INVALID, sentence)(scope, receive, send)
        if wait := math.ceil(self._requests.wait(get_user_id() or "")):
            request_id = message.get("id") if isinstance(message, dict) else None
            sentence = f"Too many requests. Try again in {wait} seconds."
            return await _reject(429, _SERVER_ERROR, sentence, request_id, wait)(scope, receive, send)
        if (cancelled := _read_cancellation(message)) is not None:
            await self._cancel(name_call(cancelled.get("requestId")))
        waiting = iter(received)

        async def replay() -> Message:
            return next(waiting, None) or await receive()

        calls: set[RunningCall] = set()
        token = calls_of_request.set(calls)
        try:
            with _cancel_when_client_leaves(calls, receive) if _is_body_complete(received[-1]) else nullcontext():
                await self._app(scope, replay, send)
        finally:
            calls_of_request.reset(token)

    async def _cancel(self, name: str) -> None:
        if self._calls.cancel(name) or self._notify_others is None:
            return
        if not self._notifications.wait(get_user_id() or ""):
            await self._notify_others(name)


async def _receive_body(receive: Receive) -> list[Message]:
    """Returns the messages of the body, at most as many bytes as the SDK accepts."""
    received: list[Message] = []
    size = 0
    while size <= _LARGEST_BODY:
        received.append(await receive())
        size += len(received[-1].get("body", b""))
        if not received[-1].get("more_body", False):
            break
    return received


def _is_body_complete(last: Message) -> bool:
    return last["type"] == "http.request" and not last.get("more_body", False)


def _parse(body: bytes) -> Any:
    """Returns None for a body that is not JSON or larger than the SDK accepts."""
    try:
        return None if len(body) > _LARGEST_BODY else json.loads(body)
    except (ValueError, RecursionError):
        return None


def _find_problem(message: Any) -> str | None:
    if isinstance(message, list):
        return _BATCH
    if not isinstance(message, dict) or "method" not in message or "id" not in message:
        return None
    is_valid = isinstance(message["id"], str | int) and not isinstance(message["id"], bool)
    return None if is_valid else _NO_ID


def _reject(
    status: int, code: int, sentence: str, request_id: object = None, retry_seconds: int | None = None
) -> JSONResponse:
    headers = {"Retry-After": str(retry_seconds)} if retry_seconds else {}
    error = {"code": code, "message": sentence}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status_code=status, headers=headers)


def _read_cancellation(message: Any) -> dict[str, Any] | None:
    if not isinstance(message, dict) or message.get("method") != "notifications/cancelled":
        return None
    return params if isinstance(params := message.get("params"), dict) else None


@contextmanager
def _cancel_when_client_leaves(calls: set[RunningCall], receive: Receive) -> Iterator[None]:
    watch: asyncio.Task[None] | None = None

    async def wait_for_disconnect() -> None:
        if (await receive())["type"] == "http.disconnect":
            for call in tuple(calls):
                call.cancel()

    def begin() -> None:
        nonlocal watch
        watch = asyncio.create_task(wait_for_disconnect())

    timer = asyncio.get_running_loop().call_later(_WATCH_AFTER_SECONDS, begin)
    try:
        yield
    finally:
        timer.cancel()
        if watch is not None:
            watch.cancel()
