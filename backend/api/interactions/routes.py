"""The run API's paths on the new core: chats, and the interactions in them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from backend.api.dependencies import KeyedRequest, LastEventId, LimitedUser
from backend.api.idempotency import carry_out_once
from backend.api.interactions import schemas
from backend.api.interactions.parameters import After, Before, Brief, ChatId, FewOrNone, InteractionId, Limit
from backend.api.interactions.service import InteractionService
from backend.api.routing import UserRoute
from backend.api.services import Core
from backend.api.sse import EventStream
from backend.conversations.idempotency import IdempotencyKey

_CHAT = "/chats/{chat_id}"
_RUN = f"{_CHAT}/interactions/{{interaction_id}}"

router = APIRouter(route_class=UserRoute)


@router.get("/chats")
async def list_chats(core: Core, user: LimitedUser, limit: Limit = 20, after: After = None) -> schemas.Chats:
    return await core.interactions.list_chats(user.user_id, limit=limit, after=after)


@router.get(_CHAT)
async def get_chat(
    core: Core, user: LimitedUser, chat_id: ChatId, limit: FewOrNone = 20, before: Before = None
) -> schemas.Chat:
    return await core.interactions.get_chat(user.user_id, chat_id, limit=limit, before=before)


@router.get(_RUN)
async def get_interaction(
    core: Core, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, brief: Brief = False
) -> schemas.Interaction:
    return await core.interactions.get_interaction(user.user_id, chat_id, interaction_id, brief=brief)


@router.get(f"{_RUN}/events", response_class=Response)
async def follow(
    core: Core, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, last: LastEventId
) -> EventStream:
    service = core.interactions
    await service.find_interaction(user.user_id, chat_id, interaction_id)
    return EventStream(service.follow(user.user_id, chat_id, interaction_id, after=last))


@router.post(f"{_CHAT}/interactions", response_class=Response)
async def start(
    core: Core, user: LimitedUser, chat_id: ChatId, body: schemas.NewInteraction, keyed: KeyedRequest
) -> EventStream:
    service = core.interactions
    message = service.create_message(body.user_message, user.time_zone)
    options = {"model": body.model, **body.metadata}
    run_id = await service.start(user.user_id, chat_id, message, options=options, key=keyed)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/edit", response_class=Response)
async def edit(
    core: Core,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.Edit,
    keyed: KeyedRequest,
) -> EventStream:
    service = core.interactions
    message = service.create_message(body.new_user_message, user.time_zone)
    options = {"model": body.model, **body.metadata}
    run_id = await service.edit(user.user_id, chat_id, interaction_id, message, options=options, key=keyed)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/cancel")
async def cancel(
    core: Core, user: LimitedUser, chat_id: ChatId, interaction_id: InteractionId, keyed: KeyedRequest
) -> Response:
    service = core.interactions
    return await _respond_once(
        service, user.user_id, keyed, partial(service.cancel, user.user_id, chat_id, interaction_id)
    )


@router.post(f"{_RUN}/approve")
async def decide(
    core: Core,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.Decision,
    keyed: KeyedRequest,
) -> Response:
    service = core.interactions
    act = partial(service.decide, user.user_id, chat_id, interaction_id, body)
    return await _respond_once(service, user.user_id, keyed, act)


@router.post(f"{_RUN}/messages")
async def send_message(
    core: Core,
    user: LimitedUser,
    chat_id: ChatId,
    interaction_id: InteractionId,
    body: schemas.NewMessage,
    keyed: KeyedRequest,
) -> Response:
    service = core.interactions
    message = service.create_message(body.text, user.time_zone)
    act = partial(service.send_message, user.user_id, chat_id, interaction_id, message, body.mode)
    return await _respond_once(service, user.user_id, keyed, act, status=202)


@router.post(f"{_CHAT}/branch")
async def show_branch(
    core: Core, user: LimitedUser, chat_id: ChatId, body: schemas.Branch, keyed: KeyedRequest
) -> Response:
    service = core.interactions
    act = partial(service.show_branch, user.user_id, chat_id, body.interaction_id)
    return await _respond_once(service, user.user_id, keyed, act)


async def _respond_once(
    service: InteractionService,
    user_id: str,
    keyed: IdempotencyKey | None,
    act: Callable[[], Awaitable[BaseModel]],
    *,
    status: int = 200,
) -> Response:
    """The response to a request, which under the same idempotency key is carried out once."""

    async def carry_out() -> tuple[int, dict[str, Any]]:
        return status, (await act()).model_dump(mode="json")

    code, content = await carry_out_once(service.runs.database, user_id, keyed, carry_out)
    return JSONResponse(content, status_code=code)
