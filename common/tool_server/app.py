"""The ASGI application of an MCP server."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.auth import AuthProvider
from fastmcp.server.middleware import Middleware as CallMiddleware
from fastmcp.tools import Tool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from common import VERSION
from common.server.address_turns import AddressTurns
from common.server.edge import Edge
from common.settings import ProcessSettings
from common.single_flight import SingleFlight
from common.telemetry import metrics
from common.telemetry.middleware import TelemetryMiddleware
from common.tool_server.calls import ToolCalls
from common.tool_server.errors import CallError
from common.tool_server.json_rpc import JsonRpc
from common.tool_server.open_responses import LimitOpenResponses
from common.tool_server.overrides import AnnounceOnlyTools, McpHttpMiddleware, StatelessServer, write_utf8
from common.tool_server.simultaneous_calls import SimultaneousCalls

Lifespan = Callable[[FastMCP], AbstractAsyncContextManager[dict[str, Any]]]
Readiness = Callable[[], Coroutine[Any, Any, JSONResponse]]
_CORS = {"allow_methods": ["POST"], "allow_headers": ["*"], "expose_headers": ["www-authenticate"]}


def create_tool_app(
    name: str,
    settings: ProcessSettings,
    *,
    instructions: str,
    tools: Sequence[Tool],
    rules: Mapping[str, str],
    explain: Callable[[Exception], CallError],
    lifespan: Lifespan,
    auth: AuthProvider | None,
    token_middleware: Sequence[Middleware],
    add_routes: Callable[[FastMCP], None],
    ready: Readiness,
    observe: Callable[[], object] = lambda: None,
    call_middleware: Sequence[CallMiddleware] = (),
    per_minute: int | None = None,
    at_once: SimultaneousCalls | None = None,
    open_responses: int | None = None,
    at_once_by_address: int | None = None,
    loopback_origins: bool = False,
    this_machine_only: bool = False,
) -> ASGIApp:
    """Serves `tools` at /mcp, with /health, /ready and /metrics; `observe` runs whenever the metrics are read.

    `rules` and `explain` are those of `ToolCalls`; `per_minute` limits each user's calls, `at_once` those at the same
    time, `open_responses` the responses of each user that are not read yet, and `at_once_by_address` the requests of an
    address that are not known to be a user's. `loopback_origins` and `this_machine_only` are
    those of `Edge`.
    """
    write_utf8()
    schemas = {tool.name: tool.parameters for tool in tools}
    calls = ToolCalls(schemas, rules=rules, explain=explain, per_minute=per_minute)
    server = StatelessServer(
        name,
        version=VERSION,
        instructions=instructions,
        tools=tools,
        middleware=[AnnounceOnlyTools(), calls, *call_middleware],
        lifespan=lifespan,
        auth=auth,
        on_duplicate="error",
        mask_error_details=True,
        cache_ttl=300,
        cache_scope="public",
    )
    add_routes(server)
    _add_probes(server, ready, observe)
    at_once = at_once or SimultaneousCalls(None)
    json_rpc = Middleware(JsonRpc, calls=calls, per_minute=per_minute, at_once=at_once)
    limit_open = Middleware(LimitOpenResponses, most=open_responses)
    app = server.http_app(
        path="/mcp",
        stateless_http=True,
        json_response=True,
        host_origin_protection=False,  # `Edge` does that
        middleware=[*token_middleware, json_rpc, limit_open],
    )
    edge = Edge(
        McpHttpMiddleware(app),
        hosts=settings.allowed_hosts,
        origins=settings.allowed_origins,
        cors=_CORS,
        loopback_origins=loopback_origins,
        this_machine_only=this_machine_only,
    )
    return AddressTurns(TelemetryMiddleware(edge, traced=["/mcp"]), at_once_by_address)


def _add_probes(server: FastMCP, ready: Readiness, observe: Callable[[], object]) -> None:
    @server.custom_route("/health", methods=["GET"])
    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    check = SingleFlight(ready)

    @server.custom_route("/ready", methods=["GET"])
    async def readiness(_: Request) -> JSONResponse:
        return await check()

    @server.custom_route("/metrics", methods=["GET"])
    async def prometheus(_: Request) -> Response:
        observe()
        return metrics.render_metrics()
