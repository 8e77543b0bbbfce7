"""The backend's FastAPI application."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI

from backend.api import calendar, files, health, memory, page
from backend.api.chatkit import routes as chatkit
from backend.api.edge import Edge
from backend.api.errors import add_error_handlers
from backend.api.frontends import routes as frontends
from backend.api.identity import Identity
from backend.api.interactions import routes as interactions
from backend.api.openapi import create_openapi_router
from backend.api.sse import KEEP_ALIVE_SECONDS
from backend.api.tasks import routes as tasks
from backend.composition import open_services
from backend.conversations.conversations import OPENAPI
from backend.liveness import watchdog
from backend.model.providers import ModelEndpoint
from backend.settings import BackendSettings
from backend.tools.connectors.configuration import Connector
from common.single_flight import SingleFlight
from common.telemetry.middleware import TelemetryMiddleware

_ROUTERS = (
    # Before the run API, which would take its path for a chat's.
    create_openapi_router(f"/chats/{OPENAPI}", interactions.router, frontends.router),
    *(chatkit.router, interactions.router, frontends.router, files.router, memory.router, tasks.router),
    *(calendar.router, calendar.public_router, page.router, health.router),
)


def create_app(
    settings: BackendSettings,
    endpoint: ModelEndpoint,
    *,
    servers: Sequence[Connector] = (),
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
) -> FastAPI:
    """Creates the application with all routes and middleware; its services are opened when it starts.

    `servers` are the other MCP servers. `keep_alive_seconds` is how long a stream of events may be silent.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with watchdog(), open_services(settings, endpoint, servers) as app.state.services:
            yield

    app = FastAPI(title="todo-assistant", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.keep_alive_seconds = keep_alive_seconds
    app.state.identity = Identity(settings)
    app.state.readiness = SingleFlight(health.check_readiness)
    add_error_handlers(app)
    for router in _ROUTERS:
        app.include_router(router)
    app.router.routes.extend(page.routes(settings, endpoint))
    app.add_middleware(Edge, hosts=settings.allowed_hosts, origins=settings.allowed_origins)
    app.add_middleware(TelemetryMiddleware, traced=("/chatkit", "/chats", "/chat"))
    return app
