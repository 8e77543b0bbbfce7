"""`POST /chat` and `/chat/stream`: the runs of the run API, answered whole or while they go on."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Header, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from backend.api.dependencies import AppServices, EndTurn, KeyedRequest, LimitedUser, Services, UserRoute, check_owner
from backend.api.errors import Unauthorized
from backend.api.frontends.chunks import NEWEST, OLDEST, AiSdkRenderer
from backend.api.frontends.request import ChatRequest, NewChat, parse_request
from backend.api.frontends.response import ChatResponse, FailedChatResponse, collect, is_error, render_answer
from backend.api.identity import AuthenticatedUser
from backend.api.interactions.parameters import ChatId
from backend.api.openapi import errors, stream_of
from backend.api.sse import EventStream
from backend.conversations import branches
from backend.conversations.approvals import Decision, load_approvals
from backend.conversations.errors import AlreadyDecided
from backend.conversations.records import ENDED, Run
from backend.errors import Busy, InvalidRequest, NotFound
from backend.users.idempotency import IdempotencyKey


class Chunk(BaseModel):
    """A server-sent event of the UI message stream; the last is `[DONE]`."""

    data: str = Field(description="JSON, with a `type`.")


_HEADERS = {"x-vercel-ai-ui-message-stream": "v1"}
_INTERRUPTED = "The answer was interrupted. Try again."
_STATUS = {"failed": 502, "interrupted": 503}
_ERRORS = errors(404, 409)
_FAILED = {502: {"model": FailedChatResponse, "description": "The answer failed after it had started."}}
_NOTHING = {204: {"description": "No answer is running or waiting in this chat."}}
_CHUNKS = stream_of(Chunk)


Version = Annotated[
    int,
    Header(
        alias="X-AI-SDK-Version",
        ge=OLDEST,
        le=NEWEST,
        description="The major version of the AI SDK that reads the stream.",
    ),
]


class ConversationRoute(UserRoute):
    """Front ends send the whole conversation with each message."""

    max_values: ClassVar[int] = 20_000


router = APIRouter(route_class=ConversationRoute)


async def read_request(services: AppServices, user: LimitedUser, body: NewChat) -> ChatRequest:
    request = parse_request(body)
    await check_owner(services.database, user, request.thread)
    return request


Requested = Annotated[ChatRequest, Depends(read_request)]


@router.post("/chat", response_model=ChatResponse, responses=_ERRORS | _FAILED)
async def answer(
    services: AppServices, user: LimitedUser, request: Requested, key: KeyedRequest, end_turn: EndTurn
) -> ChatResponse | Response:
    """Answers a message or decisions as one JSON object once the run has ended or waits; status 502 or 503 if it
    failed.
    """
    run_id = await _start(services, request, user, key)
    end_turn()
    trees = await collect(services.runs.streams.follow(user.user_id, run_id, while_waiting=False))
    if user.sign_in.is_over:
        raise Unauthorized
    run = next((run for run in trees.runs if run.id == run_id), None)
    if run is None or run.status == "running":  # this process ends, and the run is in another one
        raise Busy
    answer = await render_answer(run, trees, request.thread)
    if not is_error(run):
        return answer
    content = {"error": answer.reason or _INTERRUPTED, **answer.model_dump(by_alias=True)}
    return JSONResponse(content, status_code=_STATUS[run.status])


@router.post("/chat/stream", response_class=Response, responses=_CHUNKS | _ERRORS)
async def stream(
    services: AppServices, user: LimitedUser, request: Requested, key: KeyedRequest, sdk: Version = NEWEST
) -> Response:
    """Answers a message or decisions as a stream of chunks."""
    run_id = await _start(services, request, user, key)
    renderer = AiSdkRenderer(run_id, request.thread, decided={one.id for one in request.decisions}, version=sdk)
    events = services.runs.streams.follow(user.user_id, run_id, while_waiting=False)
    return EventStream(renderer.encode_stream(events), _HEADERS)


@router.get("/chat/stream/{chat_id}/stream", response_class=Response, responses=_CHUNKS | _NOTHING)
async def resume(services: AppServices, user: LimitedUser, chat_id: ChatId, sdk: Version = NEWEST) -> Response:
    """Streams the answer that a chat is writing or waits with, from its beginning; 204 if there is none, as the AI SDK
    expects.
    """
    try:
        chat = await services.interactions.find(user.user_id, chat_id)
    except NotFound:
        return Response(status_code=204)
    head = chat.head_run_id
    run = await services.runs.find(user.user_id, chat.id, head) if head is not None else None
    if run is None or run.status in ENDED:
        return Response(status_code=204)
    events = services.runs.streams.follow(user.user_id, run.id, while_waiting=False)
    return EventStream(AiSdkRenderer(run.id, chat_id, version=sdk).encode_stream(events), _HEADERS)


async def _start(services: Services, request: ChatRequest, user: AuthenticatedUser, key: IdempotencyKey | None) -> str:
    if request.decisions:
        return await _decide(services, request, user)
    interactions = services.interactions
    message = await interactions.create_message(user.user_id, request.text, user.time_zone)
    if request.again and (run := await _find_run_to_regenerate(services, request, user)) is not None:
        return await interactions.edit(run, None, key=key)
    return await interactions.start(user.user_id, request.thread, message, key=key)


async def _find_run_to_regenerate(services: Services, request: ChatRequest, user: AuthenticatedUser) -> Run | None:
    """Returns the newest shown run of this message: `useChat` sends only its text, not the run's id."""
    if request.thread is None:
        return None
    try:
        chat = await services.interactions.find(user.user_id, request.thread)
    except NotFound:
        return None
    return await branches.find_run_by_first_message(services.database, user.user_id, chat.id, request.text)


async def _decide(services: Services, request: ChatRequest, user: AuthenticatedUser) -> str:
    assert request.thread is not None
    chat = await services.interactions.find(user.user_id, request.thread)
    ids = [one.id for one in request.decisions]
    states, run_ids = await load_approvals(services.database, user.user_id, chat.id, ids)
    if unknown := [one for one in ids if one not in states]:
        raise NotFound.of("approval", unknown[0])
    if len(run_ids) != 1:
        raise InvalidRequest("Decide the approvals of one interaction at a time.")
    undecided = [one for one in request.decisions if states[one.id] == "awaiting_approval"]
    if any((states[one.id] != "rejected") != one.approved for one in request.decisions if one not in undecided):
        raise AlreadyDecided
    [run_id] = run_ids
    for one in undecided:
        await services.runs.decide(user.user_id, one.id, Decision(one.approved, text=one.reason), run_id=run_id)
    return run_id
