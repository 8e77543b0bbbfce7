"""The ASGI application around a FastMCP server."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastmcp import FastMCP
from fastmcp.tools import Tool
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from common.single_flight import SingleFlight
from common.telemetry import metrics
from common.telemetry.middleware import TelemetryMiddleware
from common.tool_server.overrides import McpHttpMiddleware, keep_schemas

Readiness = Callable[[], Coroutine[Any, Any, JSONResponse]]


def create_http_app(
    server: FastMCP,
    tools: Sequence[Tool],
    *,
    allowed_hosts: Sequence[str],
    allowed_origins: Sequence[str],
    middleware: Sequence[Middleware],
    ready: Readiness,
    observe: Callable[[], object] = lambda: None,
) -> ASGIApp:
    """Serves `server` at /mcp, with /health, /ready and /metrics; `observe` runs whenever the metrics are read."""
    keep_schemas(server, tools)
    _add_probes(server, ready, observe)
    app = server.http_app(
        path="/mcp",
        stateless_http=True,
        json_response=True,
        host_origin_protection=True,
        allowed_hosts=list(allowed_hosts),
        allowed_origins=list(allowed_origins),
        middleware=[*_create_cors(allowed_origins), *middleware],
    )
    return TelemetryMiddleware(McpHttpMiddleware(app), traced=["/mcp"])


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


def _create_cors(origins: Sequence[str]) -> list[Middleware]:
    # FastMCP accepts requests of these origins; these headers let the browser show them the responses.
    if not origins:
        return []
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["POST"],
            allow_headers=["*"],
            expose_headers=["www-authenticate"],
        )
    ]
