"""What the backend is made of, and what lives as long as its process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI

from backend.api import health, memory, page, session
from backend.api.calendar import routes as calendar
from backend.api.calendar.service import CalendarService
from backend.api.chatkit import routes as chatkit
from backend.api.edge import Edge
from backend.api.errors import add_error_handlers
from backend.api.files import routes as files
from backend.api.frontends import routes as frontends
from backend.api.identity import Identity
from backend.api.interactions import routes as interactions
from backend.api.openapi import create_openapi_router
from backend.api.services import Services
from backend.api.sse import KEEP_ALIVE_SECONDS
from backend.api.tasks import routes as tasks
from backend.api.tasks.service import TaskListService
from backend.calendar.feed import Feeds
from backend.conversations.errors import from_database
from backend.conversations.ids import OPENAPI
from backend.core import open_core
from backend.model.chat_model import ChatModel
from backend.model.providers import Endpoint
from backend.settings import Settings
from backend.tools.caller_token import CallerToken
from backend.tools.connectors.configuration import usable
from backend.tools.connectors.connectors import Connectors, limits_with, reach_with
from backend.tools.connectors.server import Server
from backend.tools.consent.policy import Policy
from backend.tools.tasks.tools import TaskTools
from backend.tools.workspace.files import FolderFiles
from backend.tools.workspace.tools import WorkspaceTools
from service.single_flight import SingleFlight
from service.telemetry import traces
from service.telemetry.middleware import Watched
from service.workers import Pace

_ROUTERS = (
    # Before the run API, which would take its path for a chat's.
    create_openapi_router(f"/chats/{OPENAPI}", interactions.router, frontends.router),
    *(chatkit.router, interactions.router, frontends.router, files.router, memory.router, tasks.router),
    *(calendar.router, calendar.public_router, session.router, health.router),
)


def create_app(
    settings: Settings,
    endpoint: Endpoint,
    *,
    servers: Sequence[Server] = (),
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
) -> FastAPI:
    """`servers` are the other MCP servers.

    `keep_alive_seconds` is how long a stream of events may be silent.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.services = services = await _open_services(settings, endpoint, servers, stack)
            policy = _policy(settings, servers, services.workspace)
            app.state.core = await stack.enter_async_context(open_core(settings, services, policy))
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
    app.add_middleware(Watched, traced=("/chatkit", "/chats", "/chat"))
    return app


async def _open_services(
    settings: Settings, endpoint: Endpoint, servers: Sequence[Server], stack: AsyncExitStack
) -> Services:
    """Everything that is closed when the stack is, the last first."""
    await stack.enter_async_context(traces.exporting("backend", settings.otel_exporter_otlp_endpoint))
    database = await stack.enter_async_context(settings.create_database(translate_error=from_database))
    model = ChatModel(endpoint)
    stack.push_async_callback(model.client.close)
    tools, workspace = await _tools(settings, stack), await _workspace(settings, servers, stack)
    connectors = Connectors(servers, database)
    stack.push_async_callback(connectors.close)
    feeds = Feeds(database, tools, time_zone=settings.time_zone)
    calendar_pace = Pace(settings.limit_calendar_reads_per_minute)
    return Services(
        database,
        model,
        tools,
        workspace,
        FolderFiles(workspace) if workspace else None,
        connectors,
        CalendarService(database, feeds, calendar_pace, settings.backend_url),
        TaskListService(database, tools),
        pace=Pace(settings.limit_requests_per_minute),
        polls=Pace(settings.limit_requests_per_minute),
    )


def _policy(settings: Settings, servers: Sequence[Server], workspace: WorkspaceTools | None) -> Policy:
    read_only = [server.name for server in servers if server.read_only]
    is_unconfined = (lambda: workspace.is_unconfined) if workspace else (lambda: False)
    return Policy(
        settings.approvals,
        allowed=read_only,
        limits=limits_with(servers),
        servers=reach_with(servers),
        is_unconfined=is_unconfined,
    )


async def _tools(settings: Settings, stack: AsyncExitStack) -> TaskTools:
    address = settings.mcp_internal_url or settings.mcp_url
    tools = TaskTools(address, _caller_token(settings), resend_seconds=settings.mcp_resend_seconds)
    stack.push_async_callback(tools.cleanup)
    await tools.connect()
    return tools


async def _workspace(settings: Settings, servers: Sequence[Server], stack: AsyncExitStack) -> WorkspaceTools | None:
    """Where agents work; None where there are none."""
    secret, url = settings.workspace_token_secret, settings.workspace_url
    if settings.agents == "off" or secret is None or url is None:
        return None
    token = CallerToken(secret.get_secret_value(), url)
    workspace = WorkspaceTools(
        url,
        token,
        mode=settings.agents,
        unconfined=settings.auth_mode == "none",
        resend_seconds=settings.mcp_resend_seconds,
        separate_agents={agent for server in usable(servers) for agent in server.agents},
    )
    stack.push_async_callback(workspace.cleanup)
    await workspace.connect()
    return workspace


def _caller_token(settings: Settings) -> CallerToken | None:
    """None without a secret, as AUTH_MODE=none allows: the MCP server then serves the calls, but believes no actor."""
    secret = settings.mcp_token_secret
    return CallerToken(secret.get_secret_value(), settings.mcp_url) if secret else None
