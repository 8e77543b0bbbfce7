"""The HTTP edge: who asks, is it a valid request, is it theirs; then one turn, rendered."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from chatkit.types import (
    ChatKitReq,
    ErrorEvent,
    StreamingReq,
    ThreadsCreateReq,
    ThreadsCustomActionReq,
    ThreadStreamEvent,
    is_streaming_req,
)
from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import TypeAdapter, ValidationError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from backend.assistant import create_assistant
from backend.errors import BackendError, Busy, InvalidRequest, MessageTooLong, NotFound, TooLarge, explain
from backend.identity import LOCAL_USER, RequestContext
from backend.model import ChatModel
from backend.providers import resolve
from backend.server import TodoChatServer
from backend.settings import Settings
from backend.store_adapter import PostgresStore
from backend.task_tools import TaskTools
from backend.turns import Turn, Turns
from database import create_engine, schema

logger = logging.getLogger(__name__)

WEB = Path(__file__).parent / "web"
STATUS = {InvalidRequest: 400, NotFound: 404, TooLarge: 413, Busy: 409, MessageTooLong: 400}
_REQUEST = TypeAdapter[ChatKitReq](ChatKitReq)


def create_app(settings: Settings) -> FastAPI:
    endpoint = resolve(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            engine = create_engine(settings.database_url.get_secret_value())
            stack.push_async_callback(engine.dispose)
            model = ChatModel(endpoint)
            stack.push_async_callback(model.client.close)
            tools = TaskTools(settings.mcp_url, resend_seconds=settings.mcp_resend_seconds)
            stack.push_async_callback(tools.cleanup)
            await tools.connect()
            agent = create_assistant(
                model, [tools], temperature=settings.llm_temperature, max_tokens=settings.llm_max_tokens
            )
            turns = Turns(engine, heartbeat_seconds=settings.heartbeat_seconds, lease_seconds=settings.lease_seconds)
            await stack.enter_async_context(turns)
            app.state.server = TodoChatServer(
                PostgresStore(engine),
                turns,
                model,
                agent,
                message_chars=settings.limit_message_chars,
                tool_wait_seconds=settings.tool_wait_seconds,
            )
            app.state.engine, app.state.turns, app.state.model, app.state.tools = engine, turns, model, tools
            yield

    app = FastAPI(title="todo-assistant", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.exception_handler(BackendError)
    async def refuse(_: Request, error: BackendError) -> Response:
        return JSONResponse({"error": str(error)}, status_code=STATUS.get(type(error), 500))

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeout)
    async def no_database(_: Request, error: Exception) -> Response:
        return JSONResponse({"error": explain(error).message}, status_code=503)

    @app.post("/chatkit")
    async def chatkit(request: Request) -> Response:
        parsed = parse(await read_body(request, settings.limit_request_bytes))
        return await answer(request.app, parsed, RequestContext(user_id=LOCAL_USER))

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready")
    async def ready(request: Request) -> Response:
        return await readiness(request.app.state)

    @app.get("/")
    async def page() -> Response:
        return FileResponse(WEB / "index.html", headers={"Cache-Control": "no-cache"})

    return app


async def read_body(request: Request, limit: int) -> bytes:
    """The request's body; raises `TooLarge` as soon as it is longer than `limit` bytes."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLarge(f"The request is larger than {limit:,} bytes: send less at once.")
    return bytes(body)


def parse(body: bytes) -> ChatKitReq:
    """The ChatKit request in a body; raises `InvalidRequest` with a sentence that says what is wrong with it."""
    if b"\\u0000" in body and any("\0" in text for text in _strings(body)):
        raise InvalidRequest("The text contains a NUL character: take it out and send it again.")
    try:
        return _REQUEST.validate_json(body)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        if problem["type"] == "union_tag_invalid":
            raise InvalidRequest("This type of request is unknown to ChatKit.") from None
        if problem["type"] in ("json_invalid", "union_tag_not_found"):
            raise InvalidRequest("The body is not a ChatKit request: send JSON with type and params.") from None
        place = ".".join(str(part) for part in problem["loc"])
        raise InvalidRequest(f"The ChatKit request is not valid at {place}: {problem['msg']}.") from None


def _strings(body: bytes) -> list[str]:
    """Every string in a JSON body, keys too; empty when it is no JSON."""
    try:
        waiting: list[Any] = [TypeAdapter(Any).validate_json(body)]
    except ValidationError:
        return []
    found: list[str] = []
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case dict() as mapping:
                waiting.extend((*mapping, *mapping.values()))
            case list() as values:
                waiting.extend(values)
    return found


async def answer(app: FastAPI, request: ChatKitReq, context: RequestContext) -> Response:
    server: TodoChatServer = app.state.server
    if not is_streaming_req(request):
        await server.check(request, context)
        return Response(await server.answer(request, context), media_type="application/json")
    try:
        await server.check(request, context)
        if isinstance(request, ThreadsCustomActionReq):
            return event_stream(server.events(request, context))  # runs no model, so needs no lease
        turn = await _start(app.state, request, context)
    except (Busy, MessageTooLong) as refusal:
        return event_stream(_refusal(refusal))
    return event_stream(_events(app.state.turns, turn))


async def _start(state: Any, request: StreamingReq, context: RequestContext) -> Turn:
    turns: Turns = state.turns

    def work(turn: Turn) -> AsyncIterator[ThreadStreamEvent]:
        return state.server.events(request, RequestContext(context.user_id, turn))

    thread_id = None if isinstance(request, ThreadsCreateReq) else request.params.thread_id
    return await turns.start(work, user_id=context.user_id, conversation_id=thread_id)


async def _events(turns: Turns, turn: Turn) -> AsyncIterator[ThreadStreamEvent]:
    try:
        while (event := await turn.events.get()) is not None:
            yield event
    finally:
        turns.stop(turn)  # a reader who leaves is ChatKit's way to say stop


async def _refusal(error: BackendError) -> AsyncIterator[ThreadStreamEvent]:
    yield ErrorEvent(message=str(error), allow_retry=isinstance(error, Busy))


def event_stream(events: AsyncIterator[ThreadStreamEvent]) -> StreamingResponse:
    async def frames() -> AsyncIterator[bytes]:
        try:
            async for event in events:
                body = event.model_dump_json(by_alias=True, exclude_none=True, context={"exclude_metadata": True})
                yield b"data: " + body.encode() + b"\n\n"
        finally:
            await events.aclose()  # pyright: ignore[reportAttributeAccessIssue] - an async generator

    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(frames(), media_type="text/event-stream", headers=headers)


async def readiness(state: Any) -> Response:
    """200 when a turn could run now; the model is reported, not required."""
    reason, tools_reason = await asyncio.gather(schema.problem(state.engine), state.tools.problem())
    if reason := reason or tools_reason:
        return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)
    return JSONResponse({"status": "ready", "model": await state.model.client.report()})
