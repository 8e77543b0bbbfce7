"""The run API's paths: chats, and the interactions in them, for programs that speak plain HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from backend.api.dependencies import KeyedRequest, LastEventId, LimitedUser
from backend.api.interactions import schemas as shapes
from backend.api.interactions.parameters import After, Before, Brief, ChatId, FewOrNone, InteractionId, Limit
from backend.api.openapi import errors, stream_of
from backend.api.routing import UserRoute
from backend.api.sse import EventStream
from backend.doors.parts import Services
from backend.doors.runs.once import Answer

_CHAT = "/chats/{chat_id}"
_RUN = f"{_CHAT}/interactions/{{interaction_id}}"
AfterStep = Annotated[int, Query(ge=0, lt=2**31, description="`after` of the page before.")]

router = APIRouter(route_class=UserRoute)


@router.get("/chats", responses=errors(404), response_model_exclude_unset=True)
async def list_chats(services: Services, user: LimitedUser, limit: Limit = 20, after: After = None) -> shapes.Chats:
    return await services.runs.chats(user, limit=limit, after=after)


@router.get(_CHAT, responses=errors(404), response_model_exclude_unset=True)
async def get_chat(
    services: Services, user: LimitedUser, chat_id: ChatId, limit: FewOrNone = 20, before: Before = None
) -> shapes.Chat:
    return await services.runs.chat(chat_id, user, limit=limit, before=before)


@router.get(_RUN, responses=errors(404), response_model_exclude_unset=True)
async def get_interaction(
    services: Services, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, brief: Brief = False
) -> shapes.Interaction:
    return await services.runs.interaction(chat_id, interaction_id, user, brief=brief)


@router.get(f"{_RUN}/steps", responses=errors(404))
async def get_steps(
    services: Services,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    limit: Limit = 20,
    after: AfterStep = 0,
) -> shapes.Steps:
    return await services.runs.steps(chat_id, interaction_id, user, limit=limit, after=after)


@router.get(f"{_RUN}/events", response_class=Response, responses=stream_of(shapes.Streamed) | errors(404))
async def follow(
    services: Services, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, last: LastEventId
) -> EventStream:
    return await services.runs.events(chat_id, interaction_id, user, after=last)


@router.post(
    f"{_CHAT}/interactions", response_class=Response, responses=stream_of(shapes.Streamed) | errors(404, 409, 503)
)
async def start_interaction(
    services: Services, user: LimitedUser, chat_id: ChatId, body: shapes.NewInteraction, keyed: KeyedRequest
) -> EventStream:
    return await services.runs.interact(chat_id, body, user, keyed)


@router.post(f"{_RUN}/approve", response_model=shapes.Decided, responses=errors(404, 409))
async def approve(
    services: Services,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: shapes.Decision,
    keyed: KeyedRequest,
) -> Response:
    return _answer(await services.runs.decide(chat_id, interaction_id, body, user, keyed))


@router.post(f"{_RUN}/edit", response_class=Response, responses=stream_of(shapes.Streamed) | errors(404, 409, 503))
async def edit(
    services: Services,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: shapes.Edit,
    keyed: KeyedRequest,
) -> EventStream:
    return await services.runs.edit(chat_id, interaction_id, body, user, keyed)


@router.post(f"{_CHAT}/branch", response_model=shapes.Branched, responses=errors(404, 409))
async def branch(
    services: Services, user: LimitedUser, chat_id: ChatId, body: shapes.Branch, keyed: KeyedRequest
) -> Response:
    return _answer(await services.runs.branch(chat_id, body, user, keyed))


@router.post(f"{_RUN}/messages", status_code=202, response_model=shapes.Queued, responses=errors(404, 409))
async def send_message(
    services: Services,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: shapes.NewMessage,
    keyed: KeyedRequest,
) -> Response:
    return _answer(await services.runs.say(chat_id, interaction_id, body, user, keyed))


@router.post(f"{_RUN}/cancel", response_model=shapes.Cancelling, responses=errors(404, 409))
async def cancel(
    services: Services, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, keyed: KeyedRequest
) -> Response:
    return _answer(await services.runs.cancel(chat_id, interaction_id, user, keyed))


@router.post(f"{_CHAT}/compact", response_model=shapes.Compacted, responses=errors(404, 409, 503))
async def compact(services: Services, user: LimitedUser, chat_id: ChatId, keyed: KeyedRequest) -> Response:
    return _answer(await services.runs.compact(chat_id, user, keyed))


def _answer(answer: Answer) -> Response:
    return JSONResponse(answer.content, status_code=answer.status)
