"""The backend's FastAPI application, and what lives as long as its process serves."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from agents import Agent, ModelSettings
from fastapi import Depends, FastAPI

from backend.accounts.oidc.provider import Provider
from backend.accounts.oidc.renewal import LOOK_SECONDS, ProviderSessions
from backend.accounts.oidc.sealing import Sealer
from backend.accounts.oidc.sign_in import OidcSignIn
from backend.accounts.password_sign_in import PasswordSignIn
from backend.accounts.sessions import Sessions
from backend.accounts.tokens import PersonalTokens
from backend.agents.assistant import create_assistant
from backend.agents.schedules import create_schedule_tool
from backend.agents.sub_agents import create_start_tools, create_sub_agents
from backend.alerts.available_channels import AvailableChannels
from backend.alerts.clock import TICK_SECONDS, AlertClock
from backend.alerts.composer import Composer
from backend.alerts.sender import LOOK_SECONDS as SENDER_SECONDS
from backend.alerts.sender import Sender
from backend.alerts.service import AlertService
from backend.api import calendar, files, health, memory, openapi, profile, schedules, usage
from backend.api.accounts import links as link_routes
from backend.api.accounts import oidc as oidc_routes
from backend.api.accounts import passwords as password_routes
from backend.api.accounts import sessions as session_routes
from backend.api.accounts import tokens as token_routes
from backend.api.alerts import routes as alerts
from backend.api.chatkit import routes as chatkit
from backend.api.chatkit.server import TodoChatKitServer
from backend.api.dependencies import Services, require_scope
from backend.api.errors import add_error_handlers
from backend.api.frontends import routes as frontends
from backend.api.head import HeadRequests
from backend.api.identity import TIME_ZONE_HEADER, USER_HEADER, Identity
from backend.api.interactions import routes as interactions
from backend.api.interactions.service import InteractionService
from backend.api.local_network import LinkedDevices, LocalNetwork
from backend.api.oauth import consent
from backend.api.oauth.routes import OAuthRoutes, list_public_paths
from backend.api.oauth.server import AuthorizationServer
from backend.api.page.renderer import PageRenderer
from backend.api.page.routes import PageRoutes
from backend.api.path_prefix import PathPrefix
from backend.api.sse import KEEP_ALIVE_SECONDS
from backend.api.tasks import routes as tasks
from backend.api.tasks.text_reader import TextReader
from backend.calendar.feed import Feeds
from backend.cards.service import CardService
from backend.context.summaries import Summaries
from backend.context.titles import Titles
from backend.conversations.errors import from_database
from backend.conversations.records import ASSISTANT
from backend.conversations.runs import CHANGED, SIGNAL
from backend.liveness import ProcessConnection, watchdog
from backend.model.chat_model import ChatModel
from backend.model.providers import ModelEndpoint
from backend.runs.admission import AdmissionControl
from backend.runs.calls import Approvals
from backend.runs.dependencies import Dependencies
from backend.runs.executor import Executor
from backend.runs.process_lease import SWEEP_SECONDS, Sweeper
from backend.runs.service import RunService
from backend.runs.stream import FOLLOWED, Streams
from backend.schedules.scheduler import LOOK_SECONDS as SCHEDULER_SECONDS
from backend.schedules.scheduler import Scheduler
from backend.settings import SHUTDOWN_SECONDS, BackendSettings
from backend.tools.approval_policy import Policy
from backend.tools.caller_token import CallerToken
from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.connectors import Connectors
from backend.tools.connectors.server_log import redacted
from backend.tools.run_context import RunContext
from backend.tools.task_tools import TaskTools
from backend.tools.workspace.files import FolderFiles
from backend.tools.workspace.tools import WorkspaceTools
from backend.users.limits import UserLimits, create_request_queue
from common.database import Database, run_sweeps
from common.fair_shares import SimultaneousLimit
from common.server.address_turns import AT_ONCE, AddressTurns
from common.server.edge import Edge
from common.server.rate_limit import RateLimit
from common.single_flight import SingleFlight
from common.telemetry import traces
from common.telemetry.middleware import TelemetryMiddleware

_ROUTERS = (
    openapi.router,  # before the run API, which would take the older path of the document for a chat's
    *(chatkit.router, interactions.router, frontends.router, files.router, memory.router, tasks.router),
    *(calendar.router, calendar.password_router, calendar.public_router, usage.router, health.router),
    *(session_routes.router, session_routes.user_router, password_routes.router, password_routes.user_router),
    *(link_routes.router, link_routes.user_router, oidc_routes.router),
    *(token_routes.router, consent.router, profile.router, alerts.public_router, alerts.router, schedules.router),
)
_SIGN_INS_PER_MINUTE = 30  # of a user
_LINKS_PER_MINUTE = 10  # taken from an address
_PROVIDER_REQUESTS_PER_MINUTE = 120  # of a network, such as an office
_TEST_ALERTS_PER_MINUTE = 10  # of a user
_PROOFS_PER_MINUTE = 600  # of a network
_CORS = {
    "allow_credentials": True,
    "allow_methods": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    "allow_headers": [
        *("authorization", "content-type", TIME_ZONE_HEADER, "idempotency-key", "last-event-id", "if-match"),
        *("x-ai-sdk-version", USER_HEADER),
    ],
    "expose_headers": ["x-request-id", "retry-after", "x-vercel-ai-ui-message-stream", "etag"],
}


def create_app(
    settings: BackendSettings,
    endpoint: ModelEndpoint,
    *,
    servers: Sequence[Connector] = (),
    keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
) -> FastAPI:
    """Creates the application with all routes and middleware; its services are opened when it starts.

    `servers` are the other MCP servers that are enabled. `keep_alive_seconds` is how long a stream of events may be
    silent.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with watchdog(), _open_services(settings, endpoint, servers) as app.state.services:
            if local_network is None:
                yield
                return
            async with local_network.watch(app.state.services.database):
                yield

    app = FastAPI(
        title="todo-assistant",
        lifespan=lifespan,
        dependencies=[Depends(require_scope)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    local_network = LocalNetwork(app, settings) if settings.listens_for_devices else None
    app.state.local_network = local_network
    app.state.keep_alive_seconds = keep_alive_seconds
    app.state.identity = Identity(settings)
    app.state.openapi = None
    app.state.authorization_server = AuthorizationServer.create(settings) if settings.has_accounts else None
    app.state.readiness = SingleFlight(health.check_readiness)
    add_error_handlers(app)
    app.add_middleware(HeadRequests)
    for router in _ROUTERS:
        app.include_router(router)
    app.state.page = PageRenderer(settings, endpoint)
    page = PageRoutes(app.state.page).list_routes()
    app.router.routes.extend(page)
    if settings.has_accounts:
        app.router.routes.extend(OAuthRoutes(app.state.page, settings.path).list_routes())
    if not settings.signs_in:
        app.add_middleware(LinkedDevices, identity=app.state.identity, page=page)
    app.add_middleware(
        Edge,
        hosts=settings.allowed_hosts,
        origins=settings.allowed_origins,
        cors=_CORS,
        any_address=settings.is_published,
        public_paths=list_public_paths(settings.path) if settings.has_accounts else (),
    )
    traced = [settings.path + path for path in ("/chatkit", "/chats", "/chat")]
    app.add_middleware(TelemetryMiddleware, traced=traced)
    app.add_middleware(PathPrefix, path=settings.path)
    app.add_middleware(AddressTurns, most=AT_ONCE if settings.has_sessions else None)
    return app


@asynccontextmanager
async def _open_services(
    settings: BackendSettings, endpoint: ModelEndpoint, servers: Sequence[Connector]
) -> AsyncIterator[Services]:
    """Opens all that the process needs, and closes it in reverse order; `servers` are the other MCP servers."""
    zone, clock, chars = settings.time_zone, settings.create_clock(), settings.limit_message_chars
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(traces.export_traces("backend", settings.otel_exporter_otlp_endpoint))
        database = await stack.enter_async_context(settings.create_database(translate_error=from_database))
        sessions = Sessions(database, needs_account=settings.has_accounts)
        if settings.has_sessions:
            await stack.enter_async_context(sessions.ended.watch())
        model = ChatModel(endpoint)
        stack.push_async_callback(model.client.aclose)
        model.client.capabilities.start()
        tools, workspace = await _open_tools(settings, stack), await _open_workspace(settings, servers, stack)
        stack.enter_context(redacted(servers))
        connectors = Connectors(servers, database)
        stack.push_async_callback(connectors.close)
        summaries = Summaries(database, model, _create_limits(settings))
        policy = Policy(settings.approvals, servers=servers, workspace=workspace)
        approvals = Approvals(database, policy, tools)
        streams = Streams(database)
        executor = Executor(
            Dependencies(
                database=database,
                agents=_create_agents(settings, model, database, tools, workspace, connectors, policy),
                approvals=approvals,
                tools=tools,
                workspace=workspace,
                streams=streams,
                summaries=summaries,
                titles=Titles(database, model),
                history_tokens=endpoint.profile.history_tokens,
                tool_wait_seconds=settings.tool_wait_seconds,
                run_seconds=settings.limit_run_seconds,
                agent_model_turns=settings.agent_model_turns,
                sub_agents_per_day=settings.limit_agent_runs,
                limits=_create_limits(settings),
            )
        )
        runs = await _open_runs(settings, database, executor, streams, tools, stack)
        scheduler = Scheduler(database, runs, needs_account=settings.has_accounts)
        await stack.enter_async_context(run_sweeps(scheduler.look, every_seconds=SCHEDULER_SECONDS))
        cards = CardService(database, tools, clock, zone)
        stack.push_async_callback(cards.close)
        folder_files = FolderFiles(workspace) if workspace else None
        alert_service = await _open_alerts(settings, database, tools, stack)
        yield Services(
            database=database,
            alerts=alert_service,
            sessions=sessions,
            passwords=_create_passwords(settings, database),
            personal_tokens=_create_personal_tokens(settings, database),
            oidc=await _open_oidc(settings, database, sessions, stack),
            model=model,
            tools=tools,
            folder_files=folder_files,
            connectors=connectors,
            runs=runs,
            scheduler=scheduler,
            interactions=InteractionService(runs, model, summaries, tools, chars),
            chatkit=TodoChatKitServer(
                runs, cards, folder_files, endpoint, message_chars=chars, backend_url=settings.address
            ),
            calendars=Feeds(database, tools, time_zone=zone),
            text_reader=TextReader(),
            clock=clock,
            time_zone=zone,
            date_order=settings.date_order,
            rate_limit=RateLimit(settings.limit_requests_per_minute),
            poll_limit=RateLimit(settings.limit_requests_per_minute),
            calendar_limit=RateLimit(settings.limit_calendar_reads_per_minute),
            sign_in_limit=RateLimit(_SIGN_INS_PER_MINUTE),
            link_limit=RateLimit(_LINKS_PER_MINUTE),
            provider_limit=RateLimit(_PROVIDER_REQUESTS_PER_MINUTE),
            alert_test_limit=RateLimit(_TEST_ALERTS_PER_MINUTE),
            alert_proof_limit=RateLimit(_PROOFS_PER_MINUTE),
            requests=create_request_queue(settings.limit_requests_at_once),
            open_responses=SimultaneousLimit(settings.limit_open_responses),
            backend_url=settings.backend_url,
        )


def _create_passwords(settings: BackendSettings, database: Database) -> PasswordSignIn | None:
    if settings.auth_mode != "password":
        return None
    assert settings.mcp_token_secret
    secret = settings.mcp_token_secret.get_secret_value().encode()
    return PasswordSignIn(database, secret, knows_addresses=settings.knows_client_addresses)


async def _open_oidc(
    settings: BackendSettings, database: Database, sessions: Sessions, stack: AsyncExitStack
) -> OidcSignIn | None:
    """Starts the renewal of sessions at the identity provider, if users sign in there."""
    if settings.auth_mode != "oidc":
        return None
    assert settings.mcp_token_secret
    provider, sealer = Provider(settings), Sealer(settings.mcp_token_secret.get_secret_value())
    provider_sessions = ProviderSessions(database, sessions, provider, sealer)
    await stack.enter_async_context(run_sweeps(provider_sessions.renew_due, every_seconds=LOOK_SECONDS))
    return OidcSignIn(provider, sealer, provider_sessions)


async def _open_alerts(
    settings: BackendSettings, database: Database, tools: TaskTools, stack: AsyncExitStack
) -> AlertService:
    """Starts the clock of notifications, and what sends them."""
    clock, channels = settings.create_clock(), AvailableChannels(database, settings)
    composer = Composer(database, tools, time_zone=settings.time_zone, address=settings.address)
    sender = Sender(database, composer, channels, clock, needs_account=settings.has_accounts)
    stack.push_async_callback(sender.close)
    alert_clock = AlertClock(database, clock, settings.time_zone)
    await stack.enter_async_context(run_sweeps(alert_clock.tick, every_seconds=TICK_SECONDS))
    await stack.enter_async_context(run_sweeps(sender.send_due, every_seconds=SENDER_SECONDS))
    return AlertService(
        database=database,
        tools=tools,
        sender=sender,
        composer=composer,
        channels=channels,
        clock=clock,
    )


async def _open_runs(
    settings: BackendSettings,
    database: Database,
    executor: Executor,
    streams: Streams,
    tools: TaskTools,
    stack: AsyncExitStack,
) -> RunService:
    """Takes the process's lease, and starts sweeps and background work."""
    connection = ProcessConnection(
        settings.process_database_url,
        database,
        channels={SIGNAL: executor.signal, CHANGED: streams.wake, FOLLOWED: streams.add_follower},
        on_connect=executor.signal_all,
    )
    admission = AdmissionControl(settings.limit_runs_at_once, settings.limit_lag_seconds)
    sweeper = Sweeper(database, connection, executor, tools, idempotency_days=settings.idempotency_days)
    await stack.enter_async_context(connection)
    await stack.enter_async_context(run_sweeps(sweeper.sweep, every_seconds=SWEEP_SECONDS))
    for work in (executor.store_growth(), admission.watch()):
        stack.callback(asyncio.create_task(work).cancel)
    stack.push_async_callback(executor.shut_down, SHUTDOWN_SECONDS)
    limits, clock = _create_limits(settings), settings.create_clock()
    return RunService(database, executor, streams, connection, limits, admission, clock, settings.time_zone)


def _create_agents(
    settings: BackendSettings,
    model: ChatModel,
    database: Database,
    tools: TaskTools,
    workspace: WorkspaceTools | None,
    connectors: Connectors,
    policy: Policy,
) -> dict[str, Agent[RunContext]]:
    sent = ModelSettings(temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens)
    schedule = create_schedule_tool(database, settings.create_clock(), settings.time_zone)
    if workspace is None:
        return {ASSISTANT: create_assistant(model, sent, tools, may_ask=policy.may_ask, others=[schedule])}
    others = [schedule, *create_start_tools(workspace=workspace, connectors=connectors)]
    assistant = create_assistant(model, sent, tools, may_ask=policy.may_ask, workspace=workspace, others=others)
    by_sub_agents = replace(sent, max_tokens=model.endpoint.agent_max_tokens)
    sub_agents = create_sub_agents(model, by_sub_agents, workspace=workspace, tasks=tools, connectors=connectors)
    return {ASSISTANT: assistant, **sub_agents}


async def _open_tools(settings: BackendSettings, stack: AsyncExitStack) -> TaskTools:
    """Opens the connection to the task server, with signed calls if there is a secret."""
    # Without a secret, as AUTH_MODE=none allows, the MCP server serves the calls, but believes no actor.
    secret, address = settings.mcp_token_secret, settings.mcp_internal_url or settings.mcp_url
    token = CallerToken(secret.get_secret_value(), settings.mcp_url) if secret else None
    tools = TaskTools(address, token, resend_seconds=settings.mcp_resend_seconds)
    stack.push_async_callback(tools.cleanup)
    await tools.connect()
    return tools


async def _open_workspace(
    settings: BackendSettings, servers: Sequence[Connector], stack: AsyncExitStack
) -> WorkspaceTools | None:
    """Opens the connection to the agents' workspace; None if there are no agents."""
    secret, url = settings.workspace_token_secret, settings.workspace_url
    if settings.agents == "off" or secret is None or url is None:
        return None
    workspace = WorkspaceTools(
        url,
        CallerToken(secret.get_secret_value(), url),
        mode=settings.agents,
        unconfined=not settings.signs_in,
        resend_seconds=settings.mcp_resend_seconds,
        separate_agents={agent for server in servers for agent in server.agents},
        has_owner=settings.owner_secret is not None,
    )
    stack.push_async_callback(workspace.cleanup)
    await workspace.connect()
    return workspace


def _create_personal_tokens(settings: BackendSettings, database: Database) -> PersonalTokens | None:
    if not settings.signs_in:
        return None
    assert settings.mcp_token_secret
    secret = settings.mcp_token_secret.get_secret_value()
    return PersonalTokens(
        database,
        secret=secret,
        mcp_url=settings.mcp_url,
        mode=settings.auth_mode,
        needs_account=settings.has_accounts,
    )


def _create_limits(settings: BackendSettings) -> UserLimits:
    return UserLimits(
        per_minute=settings.limit_runs_per_minute,
        running=settings.limit_running_runs,
        per_day=settings.limit_runs_per_day,
        conversations=settings.limit_conversations,
        tokens_per_day=settings.limit_tokens_per_day,
    )
