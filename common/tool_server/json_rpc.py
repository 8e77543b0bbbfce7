"""What the MCP SDK does not handle of JSON-RPC: invalid ids, batches, costly bodies, clients that cancel or leave."""

import asyncio
import json
import math
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from common.server import json_body
from common.server.rate_limit import RateLimit
from common.tool_server.calls import REQUEST_CALLS, RunningCall, ToolCalls, get_user_id
from common.tool_server.errors import TooManyAtOnce
from common.tool_server.simultaneous_calls import SimultaneousCalls

_BATCH = "Batches are not supported. Send one JSON-RPC message in each request."
_NO_MESSAGE = 'This is no JSON-RPC message. Send an object with "jsonrpc": "2.0" and the name of a method.'
_NO_ID = "The id of a request must be text or a whole number. Send it again with such an id."
_NO_PARAMS = "The params of a request must be an object. Send it again with such params, or without any."
_NOT_JSON = object()
_REQUESTS_PER_CALL = 4  # clients without a session initialize and list the tools before they call one
_MEMBERS = {"method", "result", "error"}  # one of which each message has
_INVALID, _SERVER_ERROR = -32600, -32000  # JSON-RPC 2.0, section 5.1


class JsonRpc:
    """Rejects invalid JSON-RPC with a sentence, and ends the calls of a client that cancels or leaves.

    `per_minute` is the limit of tool calls; that of a user's requests follows from it. `at_once` limits the requests
    that are worked on at the same time.
    """

    def __init__(self, app: ASGIApp, *, calls: ToolCalls, per_minute: int | None, at_once: SimultaneousCalls) -> None:
        self._app = app
        self._at_once = at_once
        self._requests = RateLimit(per_minute and per_minute * _REQUESTS_PER_CALL)
        self._calls = calls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/mcp" or scope["method"] != "POST":
            return await self._app(scope, receive, send)
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return None
        if wait := math.ceil(self._requests.wait(get_user_id() or "")):  # before the body is parsed, which takes longer
            sentence = f"Too many requests. Try again in {wait} seconds."
            return await _reject(429, _SERVER_ERROR, sentence, retry_seconds=wait)(scope, receive, send)
        sentence = json_body.find_problem(body)
        message = None if sentence else _parse(body)
        request_id = message.get("id") if isinstance(message, dict) and _is_id(message.get("id")) else None
        if sentence := sentence or _find_problem(message):
            return await _reject(400, _INVALID, sentence, request_id)(scope, receive, send)
        if (cancelled := _read_cancellation(message)) is not None:  # before it could wait for the call that it cancels
            self._calls.cancel(cancelled.get("requestId"))
        try:
            async with self._at_once.hold():
                await self._serve(body, scope, receive, send)
        except TooManyAtOnce as error:
            return await _reject(429, _SERVER_ERROR, str(error), request_id, 1)(scope, receive, send)
        return None

    async def _serve(self, body: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return messages.pop() if messages else await receive()

        calls: set[RunningCall] = set()
        scope[REQUEST_CALLS] = calls
        watch = asyncio.create_task(_cancel_when_client_leaves(calls, receive))
        try:
            await self._app(scope, replay, send)
        finally:
            watch.cancel()


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _find_problem(message: Any) -> str | None:
    if isinstance(message, list):
        return _BATCH
    if message is _NOT_JSON:
        return None  # the SDK says what is wrong with it
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not message.keys() & _MEMBERS:
        return _NO_MESSAGE
    if "method" in message and "id" in message and not _is_id(message["id"]):
        return _NO_ID
    return None if isinstance(message.get("params"), dict | None) else _NO_PARAMS


def _is_id(value: Any) -> bool:
    if isinstance(value, str):  # JSON can escape half of a surrogate pair, which no response can repeat in UTF-8
        return not any("\ud800" <= character <= "\udfff" for character in value)
    return isinstance(value, int) and not isinstance(value, bool)


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


async def _cancel_when_client_leaves(calls: set[RunningCall], receive: Receive) -> None:
    if (await receive())["type"] == "http.disconnect":
        for call in tuple(calls):
            call.cancel()
