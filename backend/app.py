"""What the backend is made of, and what lives as long as its process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from fastapi import FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.agents.assistant import create_assistant
from backend.agents.team import create_team
from backend.api import health, memory, session
from backend.api.calendar import routes as calendar
from backend.api.calendar.service import CalendarService
from backend.api.chatkit import routes as new_chatkit
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
from backend.conversation.runs.limits import Limits
from backend.conversation.store_adapter import PostgresStore
from backend.conversations import SEARCH_PATH
from backend.conversations.errors import from_database
from backend.conversations.ids import OPENAPI
from backend.core import open_core
from backend.doors import page
from backend.doors.chat import routes as chat
from backend.doors.chat.door import ChatDoor
from backend.doors.chatkit import routes as chatkit
from backend.doors.chatkit.plain import PlainDoor
from backend.doors.chatkit.server import TodoChatServer
from backend.doors.chatkit.stream import ChatKitDoor, reader
from backend.doors.parts import Parts
from backend.doors.runs import routes as runs
from backend.doors.runs.door import RunsDoor
from backend.doors.runs.stored import Stored
from backend.doors.starting import Starting
from backend.model.chat_model import ChatModel
from backend.model.providers import Endpoint
from backend.runs.admission import AdmissionControl
from backend.settings import HAS_NEW_CORE, Settings
from backend.tools.caller_token import CallerToken
from backend.tools.connectors.configuration import usable
from backend.tools.connectors.connectors import Connectors, limits_with, reach_with
from backend.tools.connectors.server import Server
from backend.tools.consent.policy import Policy
from backend.tools.tasks.tools import TaskTools
from backend.tools.workspace.files import FolderFiles
from backend.tools.workspace.tools import WorkspaceTools
from backend.turn import reports
from backend.turn.afterwards.summaries import Summaries
from backend.turn.afterwards.titles import Titles
from backend.turn.answers import Answers
from backend.turn.delegated.agents import Agents
from backend.turn.delegated.leading import leading
from backend.turn.inbox import Inbox
from backend.turn.turns import Turns
from backend.turn.warm_up import warm_up
from service.clock import Clock
from service.single_flight import SingleFlight
from service.telemetry import metrics, traces
from service.telemetry.middleware import Watched
from service.workers import Pace

_OLD_ROUTERS = (
    # Before the run API, which would take its path for a chat's.
    create_openapi_router(f"/chats/{OPENAPI}", runs.router, chat.router),
    *(chatkit.router, runs.router, chat.router, memory.router, tasks.router),
    *(calendar.router, calendar.public_router, session.router, health.router),
)
_NEW_ROUTERS = (
    create_openapi_router(f"/chats/{OPENAPI}", interactions.router, frontends.router),
    *(new_chatkit.router, interactions.router, frontends.router, files.router, memory.router, tasks.router),
    *(calendar.router, calendar.public_router, session.router, health.router),
)


def create_app(
    settings: Settings,
    endpoint: Endpoint,
    *,
    worker: str | None = None,
    servers: Sequence[Server] = (),
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
) -> FastAPI:
    """`worker` names the process among all that use the database; `servers` are the other MCP servers.

    `keep_alive_seconds` is how long a stream of events may be silent.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            app.state.services = services = await _open_services(settings, endpoint, servers, stack)
            policy = _policy(settings, servers, services.workspace)
            if HAS_NEW_CORE:
                app.state.core = await stack.enter_async_context(open_core(settings, services, policy))
            else:
                app.state.parts = await _open_old_core(settings, endpoint, worker, services, policy, stack)
            yield

    app = FastAPI(title="todo-assistant", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.state.keep_alive_seconds = keep_alive_seconds
    app.state.identity = Identity(settings)
    app.state.readiness = SingleFlight(health.check_readiness)
    add_error_handlers(app)
    for router in _NEW_ROUTERS if HAS_NEW_CORE else _OLD_ROUTERS:
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
    options = {"search_path": SEARCH_PATH, "translate_error": from_database} if HAS_NEW_CORE else {"pool_size": 4}
    database = await stack.enter_async_context(settings.create_database(**options))
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


async def _open_old_core(
    settings: Settings,
    endpoint: Endpoint,
    worker: str | None,
    services: Services,
    policy: Policy,
    stack: AsyncExitStack,
) -> Parts:
    model, tools, workspace = services.model, services.tools, services.workspace
    engine = settings.create_engine()
    stack.push_async_callback(engine.dispose)
    traces.watch_statements(engine)
    metrics.watch_pool(engine, reports.CONNECTIONS)
    clock, limits = settings.clock(), _limits(settings)
    turns = await _turns(settings, engine, clock, limits, worker, stack)
    store = PostgresStore(engine)
    await warm_up(endpoint, store, tools, read=reader())
    summaries = Summaries(engine, store, model, limits)
    answers = _answers(settings, engine, store, model, summaries, tools, workspace, policy, services.connectors)
    inbox = Inbox(engine, turns, limits)
    starting = Starting(engine, turns, answers, settings.limit_message_chars)
    return Parts(
        engine,
        model,
        tools,
        turns,
        inbox,
        _chatkit(settings, store, turns, answers, inbox, services, clock),
        PlainDoor(starting, services.pace),
        RunsDoor(engine, turns, answers, inbox, summaries, Stored(engine, model), starting),
        ChatDoor(starting),
        summaries,
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


async def _turns(
    settings: Settings, engine: AsyncEngine, clock: Clock, limits: Limits, worker: str | None, stack: AsyncExitStack
) -> Turns:
    # Of its own: turns that use up the pool must not cost others their leases.
    beats = settings.create_engine(pool_size=1)
    stack.push_async_callback(beats.dispose)
    turns = Turns(
        engine,
        limits,
        beats=beats,
        heartbeat_seconds=2.0,
        lease_seconds=15.0,
        longest_seconds=settings.limit_run_seconds,
        worker=worker,
        room=AdmissionControl(settings.limit_runs_at_once, settings.limit_lag_seconds),
        clock=clock,
        time_zone=settings.time_zone,
    )
    return await stack.enter_async_context(turns)


def _answers(
    settings: Settings,
    engine: AsyncEngine,
    store: PostgresStore,
    model: ChatModel,
    summaries: Summaries,
    tools: TaskTools,
    workspace: WorkspaceTools | None,
    policy: Policy,
    connectors: Connectors,
) -> Answers:
    sent = model.settings(temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens)
    by_agents = replace(sent, max_tokens=model.endpoint.agent_max_tokens)
    team = create_team(model, by_agents, workspace, tools, leading(model, workspace, connectors)) if workspace else []
    has_agents = (lambda: workspace.may_start) if workspace else None
    return Answers(
        engine,
        store,
        model,
        summaries,
        Titles(engine, model),
        create_assistant(model, sent, [tools], may_ask=policy.may_ask, team=team, has_agents=has_agents),
        tools,
        policy=policy,
        tool_wait_seconds=settings.tool_wait_seconds,
        agents=workspace
        and Agents(engine, workspace, settings.address, settings.limit_agent_runs, works_apart=connectors.has_any),
    )


def _chatkit(
    settings: Settings,
    store: PostgresStore,
    turns: Turns,
    answers: Answers,
    inbox: Inbox,
    services: Services,
    clock: Clock,
) -> ChatKitDoor:
    server = TodoChatServer(
        store,
        turns,
        answers,
        services.tools,
        inbox,
        services.folder_files,
        database=services.database,
        message_chars=settings.limit_message_chars,
        clock=clock,
        time_zone=settings.time_zone,
    )
    return ChatKitDoor(server, turns, services.pace, 4.0)


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


def _limits(settings: Settings) -> Limits:
    return Limits(
        per_minute=settings.limit_runs_per_minute,
        running=settings.limit_running_runs,
        per_day=settings.limit_runs_per_day,
        conversations=settings.limit_conversations,
    )
