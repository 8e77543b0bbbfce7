"""`POST /chat` and `/chat/stream`."""

from typing import ClassVar

from fastapi import APIRouter, Response

from backend.api.body import UserRoute
from backend.api.dependencies import AppServices, KeyedRequest, LimitedUser, check_owner
from backend.api.frontends import schemas
from backend.api.frontends.ai_sdk import NEWEST, Version
from backend.api.frontends.request import parse_request
from backend.api.interactions.parameters import ChatId
from backend.api.openapi import errors, stream_of


class ConversationRoute(UserRoute):
    """Front ends send the whole conversation with each message."""

    max_values: ClassVar[int] = 20_000


router = APIRouter(route_class=ConversationRoute)
_ERRORS = errors(404, 409, 503)
_FAILED = {502: {"model": schemas.Failed, "description": "The answer failed after it had started."}}
_NOTHING = {204: {"description": "No answer is running or waiting in this chat."}}
_CHUNKS = stream_of(schemas.Chunk)


@router.post("/chat", response_model=schemas.Answered, responses=_ERRORS | _FAILED)
async def answer(
    services: AppServices, user: LimitedUser, body: schemas.NewChat, key: KeyedRequest
) -> schemas.Answered | Response:
    """Answers a message or decisions as one JSON object once the run has ended or waits; status 502 or 503 if it
    failed.
    """
    request = parse_request(body)
    await check_owner(services.database, user, request.thread)
    return await services.frontends.answer(request, user, key)


@router.post("/chat/stream", response_class=Response, responses=_CHUNKS | _ERRORS)
async def stream(
    services: AppServices, user: LimitedUser, body: schemas.NewChat, key: KeyedRequest, sdk: Version = NEWEST
) -> Response:
    """Answers a message or decisions as a stream of chunks."""
    request = parse_request(body)
    await check_owner(services.database, user, request.thread)
    return await services.frontends.stream(request, user, key, sdk=sdk)


@router.get("/chat/stream/{chat_id}/stream", response_class=Response, responses=_CHUNKS | _NOTHING | errors())
async def resume(services: AppServices, user: LimitedUser, chat_id: ChatId, sdk: Version = NEWEST) -> Response:
    """Streams the answer that a chat is writing or waits with, from its beginning; 204 if there is none, as the AI SDK
    expects.
    """
    return await services.frontends.resume(chat_id, user, sdk=sdk)
