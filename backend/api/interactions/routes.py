"""The run API's paths: chats, and the interactions in them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Response

from backend.api.dependencies import AppServices, KeyedRequest, LastEventId, LimitedUser, Once, Owner, UserRoute
from backend.api.interactions import schemas
from backend.api.interactions.parameters import (
    After,
    AfterStep,
    Before,
    Brief,
    ChatId,
    FewOrNone,
    InputId,
    InteractionRun,
    Limit,
    Titled,
)
from backend.api.interactions.render import render_chat_head, render_steps
from backend.api.json_parts import JsonPartsResponse, serialize_in_parts
from backend.api.openapi import errors, stream_of
from backend.api.sse import STREAM_HEADERS, EventStream, UserStream
from backend.conversations import conversations, steering, timeline
from backend.conversations.approvals import Decision
from backend.model.providers import check_options
from backend.transcript import LogLine, format_line, read_log
from backend.users.idempotency import KeyedResponse, store_once

_CHAT = "/chats/{chat_id}"
_RUN = f"{_CHAT}/interactions/{{interaction_id}}"
_EVENTS = stream_of(schemas.StreamedEvent)
_LINES = "application/jsonl"

router = APIRouter(route_class=UserRoute)


@router.get("/chats", responses=errors(404))
async def list_chats(
    services: AppServices, user: LimitedUser, limit: Limit = 20, after: After = None, titled: Titled = ""
) -> schemas.Chats:
    """Lists the user's chats, the newest first."""
    last = await conversations.find(services.database, user.user_id, after) if after is not None else None
    found, has_more = await conversations.load_page(
        services.database, user.user_id, limit=limit, after=last.id if last else None, titled=titled
    )
    heads = [render_chat_head(one, one.id) for one in found]
    return schemas.Chats(chats=heads, has_more=has_more, after=heads[-1].chat_id if has_more else None)


@router.get(_CHAT, response_model=schemas.Chat, responses=errors(404))
async def get_chat(
    services: AppServices,
    user: LimitedUser,
    chat_id: ChatId,
    limit: FewOrNone = 20,
    before: Before = None,
    brief: Brief = False,
) -> JsonPartsResponse:
    """Returns a chat with its newest interactions before one."""
    chat = await services.interactions.get_chat(user.user_id, chat_id, limit=limit, before=before, brief=brief)
    return JsonPartsResponse(chat)


@router.patch(_CHAT, responses=errors(404))
async def rename_chat(
    services: AppServices, user: LimitedUser, chat_id: ChatId, body: schemas.Rename
) -> schemas.ChatHead:
    """Changes the title of a chat; its name stays."""
    title = conversations.parse_title(body.title)
    conversation = await services.interactions.find(user.user_id, chat_id)
    await conversations.rename(services.database, user.user_id, conversation.id, title)
    return render_chat_head(replace(conversation, title=title), chat_id)


@router.delete(_CHAT, status_code=204, responses=errors(404))
async def delete_chat(services: AppServices, user: LimitedUser, chat_id: ChatId) -> None:
    """Deletes a chat with its files, and cancels the interaction that is running in it; tasks are kept."""
    conversation = await services.interactions.find(user.user_id, chat_id)
    await conversations.delete(services.database, user.user_id, conversation.id)
    if services.folder_files is not None:
        await services.folder_files.remove_all(conversation.id, user_id=user.user_id)


@router.get(f"{_CHAT}/log", response_class=Response, responses=stream_of(LogLine, _LINES) | errors(404))
async def get_log(services: AppServices, user: LimitedUser, chat_id: ChatId) -> UserStream:
    """Streams the event log of a chat as lines of JSON."""
    conversation = await services.interactions.find(user.user_id, chat_id)
    lines = read_log(services.database, user.user_id, conversation)
    return UserStream((format_line(line) async for line in lines), headers=STREAM_HEADERS, media_type=_LINES)


@router.get(_RUN, response_model=schemas.Interaction, responses=errors(404))
async def get_interaction(services: AppServices, run: InteractionRun, brief: Brief = False) -> JsonPartsResponse:
    """Returns an interaction."""
    interaction = await services.interactions.get_interaction(run, brief=brief)
    return JsonPartsResponse(await serialize_in_parts(interaction))


@router.get(f"{_RUN}/steps", response_model=schemas.Steps, responses=errors(404))
async def get_steps(
    services: AppServices, run: InteractionRun, limit: Limit = 20, after: AfterStep = 0
) -> JsonPartsResponse:
    """Returns what the interaction's sub-agents did, step by step."""
    trees = await timeline.load_trees(services.database, run.user_id, [run.id])
    steps = [step for step in render_steps(trees) if step.number > after]
    shown = steps[:limit]
    page = schemas.Steps(steps=shown, after=shown[-1].number if len(steps) > limit else None)
    return JsonPartsResponse(await serialize_in_parts(page))


@router.get(f"{_RUN}/events", response_class=Response, responses=_EVENTS | errors(404))
async def follow(services: AppServices, chat_id: ChatId, run: InteractionRun, last: LastEventId) -> EventStream:
    """Streams the events of an interaction that exists, after the last one that was read."""
    return EventStream(services.interactions.follow(run.user_id, chat_id, run.id, after=last))


@router.post(f"{_CHAT}/interactions", response_class=Response, responses=_EVENTS | errors(404, 409))
async def start_interaction(
    services: AppServices, user: Owner, chat_id: ChatId, body: schemas.NewInteraction, key: KeyedRequest
) -> EventStream:
    """Starts an interaction that answers a message and streams its events; a name that is new makes a chat."""
    service = services.interactions
    message = await service.create_message(user.user_id, body.user_message, user.time_zone)
    options = check_options(body.model, body.metadata.get("temperature"), endpoint=service.model.endpoint)
    run_id = await service.start(user.user_id, chat_id, message, options=options, key=key)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/edit", response_class=Response, responses=_EVENTS | errors(404, 409))
async def edit(
    services: AppServices, user: Owner, chat_id: ChatId, run: InteractionRun, body: schemas.Edit, key: KeyedRequest
) -> EventStream:
    """Starts an interaction that answers another message in place of an earlier one, and streams its events."""
    service = services.interactions
    message = await service.create_message(user.user_id, body.new_user_message, user.time_zone)
    options = check_options(body.model, body.metadata.get("temperature"), endpoint=service.model.endpoint)
    run_id = await service.edit(run, message, options=options, key=key)
    return EventStream(service.follow(user.user_id, chat_id, run_id))


@router.post(f"{_RUN}/cancel", responses=errors(404, 409))
async def cancel(services: AppServices, run: InteractionRun, once: Once) -> schemas.CancelResponse:
    """Requests that an interaction stop; responds at once."""

    async def request_stop() -> schemas.CancelResponse:
        await services.runs.cancel(run)
        message = "The interaction is being cancelled. What was said and done so far is kept."
        return schemas.CancelResponse(interaction_id=run.id, message=message)

    return await once(request_stop)


@router.post(f"{_RUN}/approve", responses=errors(404, 409))
async def approve(
    services: AppServices, user: Owner, run: InteractionRun, body: schemas.Decision, once: Once
) -> schemas.DecisionResponse:
    """Approves or rejects a call that waits; the last decision continues the interaction."""

    async def decide() -> schemas.DecisionResponse:
        decision = Decision(body.approved, text=body.reason)
        await services.runs.decide(user.user_id, body.approval_id, decision, run_id=run.id, always=body.always)
        return schemas.DecisionResponse(approval_id=body.approval_id, approved=body.approved)

    return await once(decide)


@router.post(f"{_RUN}/messages", status_code=202, response_model=schemas.MessageResponse, responses=errors(404, 409))
async def send_message(
    services: AppServices, user: Owner, run: InteractionRun, body: schemas.NewMessage, key: KeyedRequest
) -> Any:
    """Sends a message to a running interaction, which reads it or is followed by one that answers it."""

    async def send() -> schemas.MessageResponse:
        message = await services.interactions.create_message(user.user_id, body.text, user.time_zone)
        render = partial(_render_message, message.id)
        response = KeyedResponse(key, 202, render) if key is not None else None
        return render(await services.runs.send_message(run, message, body.mode, response=response))

    return await store_once(services.database, user.user_id, key, send)


def _render_message(message_id: str, dropped: Sequence[str]) -> schemas.MessageResponse:
    return schemas.MessageResponse(input_id=message_id, dropped=[*dropped])


@router.post(f"{_RUN}/messages/{{input_id}}/steer", status_code=202, responses=errors(404, 409))
async def steer_with_message(
    services: AppServices, user: Owner, run: InteractionRun, input_id: InputId, once: Once
) -> schemas.SteerResponse:
    """Lets a queued follow-up be read by the running interaction."""

    async def steer() -> schemas.SteerResponse:
        await steering.steer(services.database, user.user_id, run.conversation_id, input_id)
        return schemas.SteerResponse(input_id=input_id)

    return await once(steer)


@router.delete(f"{_RUN}/messages/{{input_id}}", responses=errors(404, 409))
async def drop_message(
    services: AppServices, user: Owner, run: InteractionRun, input_id: InputId
) -> schemas.DropResponse:
    """Deletes a message that no model has read."""
    await steering.drop(services.database, user.user_id, run.conversation_id, input_id)
    return schemas.DropResponse(input_id=input_id)


@router.post(f"{_CHAT}/branch", responses=errors(404, 409))
async def show_branch(
    services: AppServices, user: Owner, chat_id: ChatId, body: schemas.Branch, once: Once
) -> schemas.BranchResponse:
    """Shows the branch of a chat that ends with an interaction."""

    async def show() -> schemas.BranchResponse:
        conversation, run_id = await services.interactions.find(user.user_id, chat_id), body.interaction_id
        if run_id is not None:
            await services.interactions.find_interaction(user.user_id, chat_id, run_id)
        await services.runs.show(user.user_id, conversation.id, run_id)
        text = f"/version {run_id}" if run_id is not None else "/version"
        await conversations.add_command(services.database, user.user_id, conversation.id, text, {"leaf": run_id})
        return schemas.BranchResponse(chat_id=chat_id, leaf=run_id)

    return await once(show)


@router.post(f"{_CHAT}/compact", responses=errors(404, 409))
async def compact(services: AppServices, user: Owner, chat_id: ChatId, once: Once) -> schemas.CompactResponse:
    """Summarises the older messages of a chat for the model."""

    async def summarise() -> schemas.CompactResponse:
        conversation = await services.interactions.find(user.user_id, chat_id)
        messages = await services.interactions.summaries.compact(user.user_id, conversation.id)
        compacted = schemas.CompactResponse(status="compacted" if messages else "nothing to compact", messages=messages)
        await conversations.add_command(
            services.database, user.user_id, conversation.id, "/compact", compacted.model_dump()
        )
        return compacted

    return await once(summarise)
