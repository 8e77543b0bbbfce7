"""The calendar's paths: for programs that know its address, and for the person who makes and revokes it."""

import logging

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from backend.calendar import address
from backend.conversation import profiles
from backend.doors.chatkit.stream import check_pace
from backend.doors.edge import own_origin
from backend.doors.identity import Identity
from backend.doors.parts import Parts, parts_of
from service.telemetry.logs import fields

logger = logging.getLogger(__name__)

_NOT_KEPT = {"Cache-Control": "no-store"}


def reading() -> APIRouter:
    """`GET /calendar/<secret>.ics`; all that is below `/calendar/` and opens nothing is answered alike."""
    router = APIRouter()

    @router.head("/calendar/{name:path}", include_in_schema=False)
    @router.get("/calendar/{name:path}")
    async def read(request: Request, name: str) -> Response:
        return await parts_of(request).calendars.answer(name, request.headers)

    return router


def addresses(identity: Identity, *, base: str | None) -> APIRouter:
    """`GET`, `POST` and `DELETE /calendar`: the address of one's own calendar, which is told once, when it is made.

    `base` is where people reach the backend; without it, the address begins as the request's own does.
    """
    router = APIRouter()

    async def asked_by(request: Request) -> tuple[str, Parts]:
        parts = parts_of(request)
        user_id = await identity.user_of(request, parts.engine)
        check_pace(parts.pace, user_id)
        return user_id, parts

    @router.get("/calendar")
    async def look(request: Request) -> Response:
        user_id, parts = await asked_by(request)
        return JSONResponse({"active": await profiles.has_calendar(parts.engine, user_id)}, headers=_NOT_KEPT)

    @router.post("/calendar")
    async def make(request: Request) -> Response:
        user_id, parts = await asked_by(request)
        secret = address.new_secret()
        await profiles.set_calendar(parts.engine, user_id, address.hash_of(secret))
        logger.info("calendar address made", extra=fields(owner=user_id))
        where = base or own_origin(request.scope, request.headers)
        return JSONResponse({"url": address.url(where, secret)}, status_code=201, headers=_NOT_KEPT)

    @router.delete("/calendar")
    async def revoke(request: Request) -> Response:
        user_id, parts = await asked_by(request)
        if await profiles.revoke_calendar(parts.engine, user_id):
            logger.info("calendar address revoked", extra=fields(owner=user_id))
        return Response(status_code=204)

    return router
