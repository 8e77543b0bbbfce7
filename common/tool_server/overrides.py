"""Changes to the behaviour of FastMCP 4.2 and the MCP SDK 2.3, each with its reason and its test.

Remove an override when its issue is solved.
"""

import json
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

# FastMCP would import these later, when the workspace may no longer read them.
import fastmcp.server.providers.prefab_payload
import fastmcp.server.providers.prefab_synthesis
import fastmcp.server.transforms.catalog  # noqa: F401
from fastmcp import FastMCP
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp.server import _streamable_http_modern
from mcp_types import (
    DiscoverRequest,
    DiscoverResult,
    InitializeRequest,
    InitializeResult,
    JSONRPCError,
    JSONRPCResponse,
    ServerCapabilities,
    ToolsCapability,
)
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from common.server.http_errors import explain_status, list_methods
from common.telemetry import logs
from common.tool_server.errors import to_printable

log = logging.getLogger(__name__)

_BOTH = b"application/json, text/event-stream"
QUIET = ("httpcore2", "httpx2", "mcp", "uvicorn")  # loggers of libraries

_REPLACED = (b"content-type", b"content-length", b"allow")  # headers of a plain text error
_MAX_PATH = 250  # characters of a path in a sentence
_write_escaped = _streamable_http_modern._write
_FOR_CLIENTS = "/mcp is the address for MCP clients, which send POST requests to it."


class StatelessServer(FastMCP):
    """FastMCP looks at every call for what the state of the client's session hides. Here no session has a state.

    The libraries of its store are the fifth part of what a tool server imports. tests/cli/test_loaded_modules.py.
    """

    @property
    def _state_store(self) -> Any:
        return _EmptyStore()


class _EmptyStore:
    async def get(self, *, key: str) -> None:
        return None


class AnnounceOnlyTools(Middleware):
    """FastMCP also announces log messages, which it does not send (PrefectHQ/fastmcp#3446).

    MCP Inspector then asks for them, and shows an error. tests/mcp/test_wire.py.
    """

    async def on_initialize(
        self,
        context: MiddlewareContext[InitializeRequest],
        call_next: CallNext[InitializeRequest, InitializeResult | None],
    ) -> InitializeResult | None:
        result = await call_next(context)
        return result and result.model_copy(update={"capabilities": ServerCapabilities(tools=ToolsCapability())})

    async def on_discover(
        self,
        context: MiddlewareContext[DiscoverRequest],
        call_next: CallNext[DiscoverRequest, DiscoverResult | dict[str, Any]],
    ) -> DiscoverResult | dict[str, Any]:
        result: Any = await call_next(context)
        return result.model_copy(update={"capabilities": ServerCapabilities(tools=ToolsCapability())})


def configure_logs(level: str, format: logs.Format) -> None:
    """Formats logs of libraries like ours, and drops those that quote users. tests/mcp/test_http.py."""
    logs.configure(level, format, quiet=QUIET)
    # FastMCP adds a handler of its own.
    logging.getLogger("fastmcp").handlers.clear()
    logging.getLogger("fastmcp").propagate = True
    # calls.py logs failed tool calls; FastMCP would add tracebacks that quote what users wrote.
    logging.getLogger("fastmcp.server.server").setLevel(logging.CRITICAL)
    # The SDK logs forty lines for each client that disconnects early (modelcontextprotocol/python-sdk#1648).
    logging.getLogger("mcp.server.streamable_http").addFilter(_is_not_disconnect)


def _is_not_disconnect(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], ClientDisconnect)


def write_utf8() -> None:
    """Lets the SDK write letters as they are: it escapes those beyond ASCII, which doubles a list of tasks in Chinese,
    and clients take three times as long to read it. tests/mcp/test_wire.py.
    """
    _streamable_http_modern._write = _write_response


async def _write_response(message: JSONRPCResponse | JSONRPCError, scope: Scope, receive: Receive, send: Send) -> None:
    if isinstance(message, JSONRPCError):
        await _write_escaped(message, scope, receive, send)
        return
    body = message.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    content = text.encode(errors="backslashreplace")  # half of a surrogate pair stays JSON's escape of it
    await Response(content, media_type="application/json")(scope, receive, send)


class McpHttpMiddleware:
    """Accepts requests as RFC 9110 defines them, and explains errors in sentences.

    FastMCP serves /mcp, but not /mcp/. It also takes DELETE, only to answer that there is no session to end. The SDK
    answers 406 without `application/json` in Accept (modelcontextprotocol/python-sdk#2349), although a missing header
    means `*/*`, and 415 to a media type in capitals (python-sdk#2916). tests/mcp/test_http.py.
    """

    def __init__(self, app: Starlette) -> None:
        self._app = app
        for route in app.routes:
            if isinstance(route, Route) and route.path == "/mcp":
                route.methods = {"POST"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = scope["headers"]
        path = "/mcp" if scope["path"] == "/mcp/" else scope["path"]
        if path == "/mcp" and scope["method"] == "POST":
            values = b",".join(value for name, value in headers if name == b"accept").split(b",")
            accepted = {value.split(b";")[0].strip().lower() for value in values} - {b""}
            if not accepted or accepted & {b"*/*", b"application/*", b"application/json"}:
                headers = [*(pair for pair in headers if pair[0] != b"accept"), (b"accept", _BOTH)]
            headers = [(name, value.lower() if name == b"content-type" else value) for name, value in headers]
        scope = {**scope, "headers": headers, "path": path}
        return await self._app(scope, receive, self._explain_errors(scope, receive, send))

    def _explain_errors(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Replaces errors that libraries send as plain text."""
        is_replaced = False

        async def send_explained(message: Message) -> None:
            nonlocal is_replaced
            if message["type"] == "http.response.start" and (status := message["status"]) >= 400:
                headers = message.get("headers", [])
                if Headers(raw=headers).get("content-type", "text/plain").startswith("text/plain"):
                    is_replaced = True
                    response = _render_error(status, scope, self._app.routes)
                    response.raw_headers += [pair for pair in headers if pair[0] not in _REPLACED]  # such as of CORS
                    await response(scope, receive, send)
            if not is_replaced:
                await send(message)

        return send_explained


def _render_error(status: int, scope: Scope, routes: Sequence[BaseRoute]) -> JSONResponse:
    methods = list_methods(scope, routes) if status == HTTPStatus.METHOD_NOT_ALLOWED else []
    headers = {"Allow": ", ".join(methods)} if methods else {}
    return JSONResponse({"error": _explain(status, scope, methods)}, status, headers)


def _explain(status: int, scope: Scope, methods: Sequence[str]) -> str:
    scope = {**scope, "path": to_printable(scope["path"], _MAX_PATH)}
    match status:
        case 404:
            return f"{explain_status(status, scope, methods)} The address for MCP clients is /mcp."
        case 405 if scope["path"] == "/mcp":
            return _FOR_CLIENTS
        case _:
            return explain_status(status, scope, methods)
