"""The run API's paths: chats, and the interactions in them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from backend.api.dependencies import KeyedRequest, LastEventId, LimitedUser
from backend.api.idempotency import carry_out_once
from backend.api.identity import AuthenticatedUser
from backend.api.interactions import schemas
from backend.api.interactions.parameters import (
    After,
    AfterStep,
    Before,
    Brief,
    ChatId,
    FewOrNone,
    InputId,
    InteractionId,
    Limit,
    Titled,
)
from backend.api.openapi import errors, stream_of
from backend.api.routing import UserRoute
from backend.api.services import AppServices, Services
from backend.api.sse import EventStream, Stream
from backend.transcript.event_log import read_log
from backend.transcript.lines import format_line
from backend.users.idempotency import IdempotencyKey

_CHAT = "/chats/{chat_id}"
_RUN = f"{_CHAT}/interactions/{{interaction_id}}"
_EVENTS = stream_of(schemas.Streamed)
_LINES = "application/jsonl"

router = APIRouter(route_class=UserRoute)


@router.get("/chats", responses=errors(404))
async def list_chats(
    services: AppServices, user: LimitedUser, limit: Limit = 20, after: After = None, titled: Titled = ""
) -> schemas.Chats:
    return await services.interactions.reader.list_chats(user.user_id, limit=limit, after=after, titled=titled)


@router.get(_CHAT, responses=errors(404))
async def get_chat(
    services: AppServices, user: LimitedUser, chat_id: ChatId, limit: FewOrNone = 20, before: Before = None
) -> schemas.Chat:
    return await services.interactions.get_chat(user.user_id, chat_id, limit=limit, before=before)


@router.get(f"{_CHAT}/log", response_class=Response, responses=stream_of(schemas.LogLine, _LINES) | errors(404))
async def get_log(services: AppServices, user: LimitedUser, chat_id: ChatId) -> Stream:
    conversation = await services.interactions.reader.find(user.user_id, chat_id)
    lines = read_log(services.database, user.user_id, conversation)
    return Stream((format_line(line) async for line in lines), _LINES)


@router.get(_RUN, responses=errors(404))
async def get_interaction(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, brief: Brief = False
) -> schemas.Interaction:
    run = await services.interactions.find_interaction(user.user_id, chat_id, interaction_id)
    return await services.interactions.reader.get_interaction(run, brief=brief)


@router.get(f"{_RUN}/steps", responses=errors(404))
async def get_steps(
    services: AppServices,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    limit: Limit = 20,
    after: AfterStep = 0,
) -> schemas.Steps:
    run = await services.interactions.find_interaction(user.user_id, chat_id, interaction_id)
    return await services.interactions.reader.get_steps(run, limit=limit, after=after)


@router.get(f"{_RUN}/events", response_class=Response, responses=_EVENTS | errors(404))
async def follow(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, last: LastEventId
) -> EventStream:
    service = services.interactions
    await service.find_interaction(user.user_id, chat_id, interaction_id)
    return EventStream(service.follow(user.user_id, chat_id, interaction_id, after=last))


@router.post(f"{_CHAT}/interactions", response_class=Response, responses=_EVENTS | errors(404, 409, 503))
async def start_interaction(
    services: AppServices, user: LimitedUser, chat_id: ChatId, body: schemas.NewInteraction, key: KeyedRequest
) -> EventStream:
    service = services.interactions
    message = await service.create_message(user.user_id, body.user_message, user.time_zone)
    options = service.create_options(body.model, body.metadata.get("temperature"))
    services.runs.streams.check_readers(user.user_id)
    run_id = await service.start(user.user_id, chat_id, message, options=options, key=key)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/edit", response_class=Response, responses=_EVENTS | errors(404, 409, 503))
async def edit(
    services: AppServices,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.Edit,
    key: KeyedRequest,
) -> EventStream:
    service = services.interactions
    run = await service.find_interaction(user.user_id, chat_id, interaction_id)
    message = await service.create_message(user.user_id, body.new_user_message, user.time_zone)
    options = service.create_options(body.model, body.metadata.get("temperature"))
    services.runs.streams.check_readers(user.user_id)
    run_id = await service.edit(user.user_id, run, message, options=options, key=key)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/cancel", response_model=schemas.Cancelling, responses=errors(404, 409))
async def cancel(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, key: KeyedRequest
) -> Response:
    act = partial(services.interactions.cancel, user.user_id, chat_id, interaction_id)
    return await _respond_once(services, user, key, act)


@router.post(f"{_RUN}/approve", response_model=schemas.Decided, responses=errors(404, 409))
async def approve(
    services: AppServices,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.Decision,
    key: KeyedRequest,
) -> Response:
    act = partial(services.interactions.decide, user.user_id, chat_id, interaction_id, body)
    return await _respond_once(services, user, key, act)


@router.post(f"{_RUN}/messages", status_code=202, response_model=schemas.Queued, responses=errors(404, 409))
async def send_message(
    services: AppServices,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.NewMessage,
    key: KeyedRequest,
) -> Response:
    service = services.interactions
    message = await service.create_message(user.user_id, body.text, user.time_zone)
    act = partial(service.send_message, user.user_id, chat_id, interaction_id, message, body.mode)
    return await _respond_once(services, user, key, act, status=202)


@router.post(
    f"{_RUN}/messages/{{input_id}}/steer", status_code=202, response_model=schemas.Steering, responses=errors(404, 409)
)
async def steer_with_message(
    services: AppServices,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    input_id: InputId,
    key: KeyedRequest,
) -> Response:
    act = partial(services.interactions.steer_with, user.user_id, chat_id, interaction_id, input_id)
    return await _respond_once(services, user, key, act, status=202)


@router.delete(f"{_RUN}/messages/{{input_id}}", responses=errors(404, 409))
async def drop_message(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, input_id: InputId
) -> schemas.Dropped:
    return await services.interactions.drop_message(user.user_id, chat_id, interaction_id, input_id)


@router.post(f"{_CHAT}/branch", response_model=schemas.Branched, responses=errors(404, 409))
async def show_branch(
    services: AppServices, user: LimitedUser, chat_id: ChatId, body: schemas.Branch, key: KeyedRequest
) -> Response:
    act = partial(services.interactions.show_branch, user.user_id, chat_id, body.interaction_id)
    return await _respond_once(services, user, key, act)


@router.post(f"{_CHAT}/compact", response_model=schemas.Compacted, responses=errors(404, 409, 503))
async def compact(services: AppServices, user: LimitedUser, chat_id: ChatId, key: KeyedRequest) -> Response:
    return await _respond_once(services, user, key, partial(services.interactions.compact, user.user_id, chat_id))


async def _respond_once(
    services: Services,
    user: AuthenticatedUser,
    key: IdempotencyKey | None,
    act: Callable[[], Awaitable[BaseModel]],
    *,
    status: int = 200,
) -> Response:
    """The response to a request, which under the same idempotency key is carried out once."""

    async def carry_out() -> tuple[int, dict[str, Any]]:
        return status, (await act()).model_dump(mode="json")

    code, content = await carry_out_once(services.database, user.user_id, key, carry_out)
    return JSONResponse(content, status_code=code)
