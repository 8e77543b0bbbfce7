"""The run API's paths: chats, and the interactions in them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from backend.api.body import UserRoute
from backend.api.dependencies import AppServices, KeyedRequest, LastEventId, LimitedUser, Owner, Services
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
    """Lists the user's chats, the newest first."""
    return await services.interactions.reader.list_chats(user.user_id, limit=limit, after=after, titled=titled)


@router.get(_CHAT, responses=errors(404))
async def get_chat(
    services: AppServices, user: LimitedUser, chat_id: ChatId, limit: FewOrNone = 20, before: Before = None
) -> schemas.Chat:
    """Returns a chat with its newest interactions before one."""
    return await services.interactions.get_chat(user.user_id, chat_id, limit=limit, before=before)


@router.get(f"{_CHAT}/log", response_class=Response, responses=stream_of(schemas.LogLine, _LINES) | errors(404))
async def get_log(services: AppServices, user: LimitedUser, chat_id: ChatId) -> Stream:
    """Streams the event log of a chat as lines of JSON."""
    conversation = await services.interactions.reader.find(user.user_id, chat_id)
    lines = read_log(services.database, user.user_id, conversation)
    return Stream((format_line(line) async for line in lines), media_type=_LINES)


@router.get(_RUN, responses=errors(404))
async def get_interaction(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, brief: Brief = False
) -> schemas.Interaction:
    """Returns an interaction."""
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
    """Returns what the interaction's sub-agents did, step by step."""
    run = await services.interactions.find_interaction(user.user_id, chat_id, interaction_id)
    return await services.interactions.reader.get_steps(run, limit=limit, after=after)


@router.get(f"{_RUN}/events", response_class=Response, responses=_EVENTS | errors(404))
async def follow(
    services: AppServices, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, last: LastEventId
) -> EventStream:
    """Streams the events of an interaction that exists, after the last one that was read."""
    service = services.interactions
    await service.find_interaction(user.user_id, chat_id, interaction_id)
    return EventStream(service.follow(user.user_id, chat_id, interaction_id, after=last))


@router.post(f"{_CHAT}/interactions", response_class=Response, responses=_EVENTS | errors(404, 409, 503))
async def start_interaction(
    services: AppServices, user: Owner, chat_id: ChatId, body: schemas.NewInteraction, key: KeyedRequest
) -> EventStream:
    """Starts an interaction that answers a message and streams its events; a name that is new makes a chat."""
    service = services.interactions
    message = await service.create_message(user.user_id, body.user_message, user.time_zone)
    options = service.create_options(body.model, body.metadata.get("temperature"))
    services.runs.streams.check_readers(user.user_id)
    run_id = await service.start(user.user_id, chat_id, message, options=options, key=key)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/edit", response_class=Response, responses=_EVENTS | errors(404, 409, 503))
async def edit(
    services: AppServices,
    user: Owner,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.Edit,
    key: KeyedRequest,
) -> EventStream:
    """Starts an interaction that answers another message in place of an earlier one, and streams its events."""
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
    """Requests that an interaction stop; responds at once."""
    act = partial(services.interactions.cancel, user.user_id, chat_id, interaction_id)
    return await _respond_once(services, user, key, act)


@router.post(f"{_RUN}/approve", response_model=schemas.Decided, responses=errors(404, 409))
async def approve(
    services: AppServices,
    user: Owner,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.Decision,
    key: KeyedRequest,
) -> Response:
    """Approves or rejects a call that waits; the last decision continues the interaction."""
    act = partial(services.interactions.decide, user.user_id, chat_id, interaction_id, body)
    return await _respond_once(services, user, key, act)


@router.post(f"{_RUN}/messages", status_code=202, response_model=schemas.Queued, responses=errors(404, 409))
async def send_message(
    services: AppServices,
    user: Owner,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.NewMessage,
    key: KeyedRequest,
) -> Response:
    """Sends a message to a running interaction, which reads it or is followed by one that answers it."""
    service = services.interactions
    message = await service.create_message(user.user_id, body.text, user.time_zone)
    act = partial(service.send_message, user.user_id, chat_id, interaction_id, message, body.mode)
    return await _respond_once(services, user, key, act, status=202)


@router.post(
    f"{_RUN}/messages/{{input_id}}/steer", status_code=202, response_model=schemas.Steering, responses=errors(404, 409)
)
async def steer_with_message(
    services: AppServices,
    user: Owner,
    chat_id: ChatId,
    interaction_id: InteractionId,
    input_id: InputId,
    key: KeyedRequest,
) -> Response:
    """Lets a queued follow-up be read by the running interaction."""
    act = partial(services.interactions.steer_with, user.user_id, chat_id, interaction_id, input_id)
    return await _respond_once(services, user, key, act, status=202)


@router.delete(f"{_RUN}/messages/{{input_id}}", responses=errors(404, 409))
async def drop_message(
    services: AppServices, user: Owner, chat_id: ChatId, interaction_id: InteractionId, input_id: InputId
) -> schemas.Dropped:
    """Deletes a message that no model has read."""
    return await services.interactions.drop_message(user.user_id, chat_id, interaction_id, input_id)


@router.post(f"{_CHAT}/branch", response_model=schemas.Branched, responses=errors(404, 409))
async def show_branch(
    services: AppServices, user: Owner, chat_id: ChatId, body: schemas.Branch, key: KeyedRequest
) -> Response:
    """Shows the branch of a chat that ends with an interaction."""
    act = partial(services.interactions.show_branch, user.user_id, chat_id, body.interaction_id)
    return await _respond_once(services, user, key, act)


@router.post(f"{_CHAT}/compact", response_model=schemas.Compacted, responses=errors(404, 409, 503))
async def compact(services: AppServices, user: Owner, chat_id: ChatId, key: KeyedRequest) -> Response:
    """Summarises the older messages of a chat for the model."""
    return await _respond_once(services, user, key, partial(services.interactions.compact, user.user_id, chat_id))


async def _respond_once(
    services: Services,
    user: AuthenticatedUser,
    key: IdempotencyKey | None,
    act: Callable[[], Awaitable[BaseModel]],
    *,
    status: int = 200,
) -> Response:
    """Carries out a request, under the same idempotency key once, and returns its response as JSON."""

    async def carry_out() -> tuple[int, dict[str, Any]]:
        return status, (await act()).model_dump(mode="json")

    code, content = await carry_out_once(services.database, user.user_id, key, carry_out)
    return JSONResponse(content, status_code=code)
