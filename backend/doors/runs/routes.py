"""The run API's paths: chats, and the interactions in them, for programs that speak plain HTTP."""

from collections.abc import Sequence
from functools import cache, partial
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from backend.conversation import chats
from backend.doors.identity import Identity
from backend.doors.parts import parts_of
from backend.doors.runs import shapes
from backend.doors.runs.asked import KEY, LAST_EVENT, asked_by, keyed, last_event, read
from backend.doors.runs.door import RunsDoor
from backend.doors.runs.once import Answer
from backend.doors.runs.openapi import described, published

_CHAT = "/chats/{chat_id}"
_RUN = f"{_CHAT}/interactions/{{interaction_id}}"
_MOST = 100

ChatId = Annotated[
    str,
    Path(
        description="Its id, or the name that its person chose; the first message to a new name makes the chat.",
        json_schema_extra={"pattern": f"^{chats.NAME}$"},
    ),
]
InteractionId = Annotated[
    str, Path(description="As `interaction_started` tells it.", json_schema_extra={"pattern": f"^{chats.NAME}$"})
]
Limit = Annotated[int, Query(ge=1, le=_MOST, description="How many there are on a page at most.")]
Brief = Annotated[bool, Query(description="Leave `agent_events` empty, and out what the model is sent after it.")]
After = Annotated[str | None, Query(description="`after` of the page before.", pattern=f"^{chats.NAME}$")]
AfterStep = Annotated[int, Query(ge=0, lt=2**31, description="`after` of the page before.")]
# Read by `asked`, and named here for the schema.
Key = Annotated[str | None, Header(alias=KEY, description="The same request under the same key is done once in 24 h.")]
LastEvent = Annotated[str | None, Header(alias=LAST_EVENT, description="The `id` of the last event that was read.")]


def runs(identity: Identity, *described_with_it: APIRouter) -> APIRouter:
    """`/chats` and all below it; its schema has the paths of the others, too."""
    router = APIRouter()
    _let_read(router, identity, described_with_it)
    _let_act(router, identity)
    return router


def _let_read(router: APIRouter, identity: Identity, others: Sequence[APIRouter]) -> None:
    schema = cache(partial(published, router, *others))

    @router.get("/chats", **described(shapes.Chats, 400, 404))
    async def list_chats(request: Request, limit: Limit = 20, after: After = None) -> Response:
        acting = await asked_by(request, identity)
        return _json(await _door(request).chats(acting, limit=limit, after=after))

    @router.get(f"/chats/{chats.SCHEMA}", include_in_schema=False)
    async def get_schema() -> Response:
        return JSONResponse(schema())

    @router.get(_CHAT, **described(shapes.Chat, 400, 404))
    async def get_chat(request: Request, chat_id: ChatId, limit: Limit = 20, after: After = None) -> Response:
        acting = await asked_by(request, identity)
        return _json(await _door(request).chat(chat_id, acting, limit=limit, after=after))

    @router.get(f"{_CHAT}/log", **described(shapes.LogLine, 400, 404))
    async def get_log(request: Request, chat_id: ChatId) -> Response:
        acting = await asked_by(request, identity)
        return await _door(request).log(chat_id, acting)

    @router.get(_RUN, **described(shapes.Interaction, 400, 404))
    async def get_interaction(
        request: Request, chat_id: ChatId, interaction_id: InteractionId, brief: Brief = False
    ) -> Response:
        acting = await asked_by(request, identity)
        return _json(await _door(request).interaction(chat_id, interaction_id, acting, brief=brief))

    @router.get(f"{_RUN}/steps", **described(shapes.Steps, 400, 404))
    async def get_steps(
        request: Request, chat_id: ChatId, interaction_id: InteractionId, limit: Limit = 20, after: AfterStep = 0
    ) -> Response:
        acting = await asked_by(request, identity)
        return _json(await _door(request).steps(chat_id, interaction_id, acting, limit=limit, after=after))

    @router.get(f"{_RUN}/events", **described(shapes.Streamed, 400, 404))
    async def follow(
        request: Request, chat_id: ChatId, interaction_id: InteractionId, last: LastEvent = None
    ) -> Response:
        acting = await asked_by(request, identity)
        return await _door(request).events(chat_id, interaction_id, acting, after=last_event(request))


def _let_act(router: APIRouter, identity: Identity) -> None:
    @router.post(f"{_CHAT}/interactions", **described(shapes.Streamed, 400, 404, 409, 503, asks=shapes.NewInteraction))
    async def interact(request: Request, chat_id: ChatId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, shapes.NewInteraction)
        return await _door(request).interact(chat_id, asked, acting, await keyed(request))

    @router.post(f"{_RUN}/approve", **described(shapes.Decided, 400, 404, 409, asks=shapes.Decision))
    async def approve(request: Request, chat_id: ChatId, interaction_id: InteractionId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, shapes.Decision)
        return _answered(await _door(request).decide(chat_id, interaction_id, asked, acting, await keyed(request)))

    @router.post(f"{_RUN}/edit", **described(shapes.Streamed, 400, 404, 409, 503, asks=shapes.Edit))
    async def edit(request: Request, chat_id: ChatId, interaction_id: InteractionId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, shapes.Edit)
        return await _door(request).edit(chat_id, interaction_id, asked, acting, await keyed(request))

    @router.post(f"{_CHAT}/branch", **described(shapes.Branched, 400, 404, 409, asks=shapes.Branch))
    async def branch(request: Request, chat_id: ChatId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, shapes.Branch)
        return _answered(await _door(request).branch(chat_id, asked, acting, await keyed(request)))

    @router.post(f"{_RUN}/messages", **described(shapes.Queued, 400, 404, 409, status=202, asks=shapes.NewMessage))
    async def say(request: Request, chat_id: ChatId, interaction_id: InteractionId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        asked = await read(request, shapes.NewMessage)
        return _answered(await _door(request).say(chat_id, interaction_id, asked, acting, await keyed(request)))

    @router.post(f"{_RUN}/cancel", **described(shapes.Cancelling, 400, 404, 409))
    async def cancel(request: Request, chat_id: ChatId, interaction_id: InteractionId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        return _answered(await _door(request).cancel(chat_id, interaction_id, acting, await keyed(request)))

    @router.post(f"{_CHAT}/compact", **described(shapes.Compacted, 400, 404, 409, 503))
    async def compact(request: Request, chat_id: ChatId, key: Key = None) -> Response:
        acting = await asked_by(request, identity)
        return _answered(await _door(request).compact(chat_id, acting, await keyed(request)))


def _door(request: Request) -> RunsDoor:
    return parts_of(request).runs


def _json(shape: BaseModel) -> Response:
    return Response(shape.model_dump_json(), media_type="application/json")


def _answered(answer: Answer) -> Response:
    return JSONResponse(answer.content, status_code=answer.status)
