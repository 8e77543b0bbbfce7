"""`POST /chat` and `POST /chat/stream`, as front ends speak them that people already have."""

from fastapi import APIRouter, Request, Response

from backend.doors.chat import shapes
from backend.doors.chat.asked import MOST_VALUES, Asked, asked
from backend.doors.chat.door import ChatDoor
from backend.doors.chat.reports import reported
from backend.doors.identity import Identity
from backend.doors.parts import parts_of
from backend.doors.runs.asked import asked_by, keyed, read
from backend.doors.runs.openapi import described
from backend.doors.runs.routes import Key


def chat(identity: Identity) -> APIRouter:
    router = APIRouter()
    refusals = (400, 404, 409, 503)

    @router.post("/chat", **described(shapes.Answered, *refusals, asks=shapes.NewChat, failed=shapes.Failed))
    async def answer(request: Request, key: Key = None) -> Response:
        with reported("/chat"):
            acting = await asked_by(request, identity)
            return await _door(request).answer(await _asked(request), acting, await keyed(request))

    @router.post("/chat/stream", **described(shapes.Chunk, *refusals, asks=shapes.NewChat))
    async def stream(request: Request, key: Key = None) -> Response:
        with reported("/chat/stream"):
            acting = await asked_by(request, identity)
            return await _door(request).stream(await _asked(request), acting, await keyed(request))

    return router


async def _asked(request: Request) -> Asked:
    return asked(await read(request, shapes.NewChat, most=MOST_VALUES))


def _door(request: Request) -> ChatDoor:
    return parts_of(request).chat
