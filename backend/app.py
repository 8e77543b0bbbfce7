"""The HTTP edge: who asks, is it a valid request, is it theirs; then one turn, rendered."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from chatkit.types import (
    ChatKitReq,
    ErrorEvent,
    StreamingReq,
    ThreadsAddUserMessageReq,
    ThreadsCreateReq,
    ThreadsCustomActionReq,
    ThreadStreamEvent,
    is_streaming_req,
)
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.requests import ClientDisconnect

from backend import body, page, reports
from backend.assistant import create_assistant
from backend.edge import Edge
from backend.errors import (
    BackendError,
    Busy,
    ForeignOrigin,
    InvalidRequest,
    LimitReached,
    MessageTooLong,
    NotFound,
    TooLarge,
    Unauthorized,
    explain,
)
from backend.identity import COOKIE, Identity, RequestContext
from backend.leases import Limits
from backend.model import ChatModel
from backend.providers import resolve
from backend.server import TodoChatServer
from backend.settings import Settings
from backend.store_adapter import PostgresStore
from backend.task_tools import TaskTools
from backend.turns import Turn, Turns
from backend.warm_up import warm_up
from database import create_engine, schema
from telemetry import metrics, traces
from telemetry.middleware import Watched

logger = logging.getLogger(__name__)

STATUS = {
    InvalidRequest: 400,
    MessageTooLong: 400,
    Unauthorized: 401,
    ForeignOrigin: 403,
    NotFound: 404,
    Busy: 409,
    TooLarge: 413,
    LimitReached: 429,
}


@dataclass(frozen=True)
class Parts:
    """What lives as long as the process."""

    engine: AsyncEngine
    model: ChatModel
    tools: TaskTools
    turns: Turns
    server: TodoChatServer


def create_app(settings: Settings) -> FastAPI:
    endpoint = resolve(settings)
    identity = Identity(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(traces.exporting("backend", settings.otel_exporter_otlp_endpoint))
            engine = create_engine(settings.database_url.get_secret_value())
            stack.push_async_callback(engine.dispose)
            traces.watch_statements(engine)
            metrics.watch_pool(engine, reports.CONNECTIONS)
            model = ChatModel(endpoint)
            stack.push_async_callback(model.client.close)
            tools = TaskTools(settings.mcp_url, _tool_secret(settings), resend_seconds=settings.mcp_resend_seconds)
            stack.push_async_callback(tools.cleanup)
            await tools.connect()
            agent = create_assistant(
                model, [tools], temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens
            )
            turns = Turns(
                engine,
                _limits(settings),
                heartbeat_seconds=settings.heartbeat_seconds,
                lease_seconds=settings.lease_seconds,
            )
            await stack.enter_async_context(turns)
            store = PostgresStore(engine)
            await warm_up(endpoint, store, tools)
            server = TodoChatServer(
                store,
                turns,
                model,
                agent,
                tools,
                message_chars=settings.limit_message_chars,
                tool_wait_seconds=settings.tool_wait_seconds,
            )
            app.state.parts = Parts(engine=engine, model=model, tools=tools, turns=turns, server=server)
            yield

    app = FastAPI(title="todo-assistant", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(BackendError)
    async def refuse(_: Request, error: BackendError) -> Response:
        headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorized) else None
        return JSONResponse({"error": str(error)}, status_code=STATUS.get(type(error), 500), headers=headers)

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeout)
    async def no_database(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": explain(error).message}, status_code=503)

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=400)  # nobody reads it; without it, the server would log an error of its own

    @app.post("/chatkit")
    async def chatkit(request: Request) -> Response:
        context = RequestContext(await identity.user_of(request))
        parsed = body.parse(await body.read(request, settings.limit_request_bytes))
        return await answer(request.app.state.parts, parsed, context)

    @app.post("/session")
    async def sign_in(request: Request) -> Response:
        if not identity.required:
            raise InvalidRequest("There is nobody to sign in: AUTH_MODE=none serves one local person.")
        person = await identity.sign_in(request)
        response = JSONResponse({"user_id": person.user_id, "expires": person.expires})
        response.set_cookie(
            COOKIE,
            identity.session(person),
            max_age=max(0, person.expires - int(time.time())),
            httponly=True,
            secure=request.url.scheme == "https",
            samesite="strict",
        )
        return response

    @app.delete("/session")
    async def sign_out() -> Response:
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready")
    async def ready(request: Request) -> Response:
        return await readiness(request.app.state.parts)

    @app.get("/metrics")
    async def prometheus() -> Response:
        return metrics.response()

    app.router.routes.extend(page.routes(settings, endpoint))
    app.add_middleware(Edge, hosts=settings.allowed_hosts, origins=settings.allowed_origins)
    app.add_middleware(Watched, traced="/chatkit")
    return app


def _tool_secret(settings: Settings) -> str | None:
    """What tokens for the MCP server are signed with; with AUTH_MODE=none it takes calls without one."""
    secret = settings.mcp_token_secret if settings.auth_mode == "jwt" else None
    return secret.get_secret_value() if secret else None


def _limits(settings: Settings) -> Limits:
    """As set; without a setting, only people who sign in are limited."""
    per_minute, running = (60, 4) if settings.auth_mode == "jwt" else (None, None)
    return Limits(settings.limit_turns_per_minute or per_minute, settings.limit_running_turns or running)


async def answer(parts: Parts, request: ChatKitReq, context: RequestContext) -> Response:
    server = parts.server
    if not is_streaming_req(request):
        await server.check(request, context)
        return Response(await server.answer(request, context), media_type="application/json")
    try:
        await server.check(request, context)
        if isinstance(request, ThreadsCustomActionReq):
            return event_stream(server.events(request, context))  # runs no model, so needs no lease
        turn = await _start(parts, request, context)
    except (Busy, LimitReached, MessageTooLong) as refusal:
        return event_stream(_refusal(refusal))
    return event_stream(_events(parts.turns, turn))


async def _start(parts: Parts, request: StreamingReq, context: RequestContext) -> Turn:
    def work(turn: Turn) -> AsyncIterator[ThreadStreamEvent]:
        return parts.server.events(request, RequestContext(context.user_id, turn))

    thread_id = None if isinstance(request, ThreadsCreateReq) else request.params.thread_id
    said = request.params.input if isinstance(request, ThreadsCreateReq | ThreadsAddUserMessageReq) else None
    return await parts.turns.start(work, user_id=context.user_id, conversation_id=thread_id, said=said)


async def _events(turns: Turns, turn: Turn) -> AsyncIterator[ThreadStreamEvent]:
    try:
        while (event := await turn.events.get()) is not None:
            yield event
    finally:
        turns.stop(turn)  # a reader who leaves is ChatKit's way to say stop


async def _refusal(error: BackendError) -> AsyncIterator[ThreadStreamEvent]:
    yield ErrorEvent(message=str(error), allow_retry=error.allow_retry)


def event_stream(events: AsyncIterator[ThreadStreamEvent]) -> StreamingResponse:
    async def frames() -> AsyncIterator[bytes]:
        try:
            async for event in events:
                data = event.model_dump_json(by_alias=True, exclude_none=True, context={"exclude_metadata": True})
                yield b"data: " + data.encode() + b"\n\n"
        finally:
            await events.aclose()  # pyright: ignore[reportAttributeAccessIssue] - an async generator

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(frames(), media_type="text/event-stream", headers=headers)


async def readiness(parts: Parts) -> Response:
    """200 when a turn could run now; the model is reported, not required."""
    reason, tools_reason = await asyncio.gather(schema.problem(parts.engine), parts.tools.problem())
    if reason := reason or tools_reason:
        return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)
    return JSONResponse({"status": "ready", "model": await parts.model.client.report()})
