"""`POST /chat` and `POST /chat/stream`, as front ends speak them that people already have."""

from typing import ClassVar

from fastapi import APIRouter, Depends, Response

from backend.api.dependencies import KeyedRequest, LimitedUser
from backend.api.frontends import schemas as shapes
from backend.api.frontends.ai_sdk import NEWEST, Version
from backend.api.frontends.metrics import measure as reported
from backend.api.frontends.request import parse_request as asked
from backend.api.interactions.parameters import ChatId
from backend.api.openapi import errors, stream_of
from backend.api.routing import UserRoute
from backend.doors.parts import Services


class ConversationRoute(UserRoute):
    """Front ends send all that was said so far with each message."""

    max_values: ClassVar[int] = 20_000


router = APIRouter(route_class=ConversationRoute)
_ERRORS = errors(404, 409, 503)
_FAILED = {502: {"model": shapes.Failed, "description": "It was begun, and failed."}}
_NOTHING = {204: {"description": "No answer is being written there, and none waits."}}


@router.post(
    "/chat",
    response_model=shapes.Answered,
    responses=_ERRORS | _FAILED,
    dependencies=[Depends(reported("/chat"), scope="function")],
)
async def answer(
    services: Services, user: LimitedUser, body: shapes.NewChat, keyed: KeyedRequest
) -> shapes.Answered | Response:
    return await services.chat.answer(asked(body), user, keyed)


@router.post(
    "/chat/stream",
    response_class=Response,
    responses=stream_of(shapes.Chunk) | _ERRORS,
    dependencies=[Depends(reported("/chat/stream"), scope="function")],
)
async def stream(
    services: Services, user: LimitedUser, body: shapes.NewChat, keyed: KeyedRequest, sdk: Version = NEWEST
) -> Response:
    return await services.chat.stream(asked(body), user, keyed, sdk=sdk)


@router.get(
    "/chat/stream/{chat_id}/stream",
    response_class=Response,
    responses=stream_of(shapes.Chunk) | _NOTHING | errors(),
    dependencies=[Depends(reported("/chat/stream"), scope="function")],
)
async def resume(services: Services, user: LimitedUser, chat_id: ChatId, sdk: Version = NEWEST) -> Response:
    """Where no answer is being written, the AI SDK expects 204."""
    return await services.chat.resume(chat_id, user, sdk=sdk)
