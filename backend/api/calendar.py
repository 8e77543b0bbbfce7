"""The calendar's paths: for programs that know its secret address or have a token, and for the user who makes it."""

import asyncio
import logging
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from backend.api.dependencies import (
    AppServices,
    LimitedUser,
    Services,
    UserRoute,
    forbid_caching,
    hold_response,
    take_turn,
)
from backend.api.errors import Unauthorized
from backend.api.identity import AuthenticatedUser, Identity
from backend.api.openapi import content, errors
from backend.calendar import address
from backend.errors import BackendError
from backend.users import profiles
from backend.users.limits import check_rate
from common.server.edge import get_own_origin
from common.telemetry.logs import fields

logger = logging.getLogger(__name__)

ADDRESS = "/calendar.ics"
_TASKS_AT_ONCE = 10  # in a piece of the response
_FEED = content("text/calendar", "The feed.") | {304: {"description": "It has not changed: see If-None-Match."}}


class PasswordNeeded(Unauthorized):
    """Enter a personal access token as the password; any user name will do."""

    headers: ClassVar = {"WWW-Authenticate": 'Basic realm="Todo", charset="UTF-8"'}


class PasswordRoute(UserRoute):
    """Also accepts a token as the password of HTTP's Basic scheme, as calendar programs send nothing else."""

    async def authenticate(self, request: Request, services: Services) -> AuthenticatedUser:
        identity: Identity = request.app.state.identity
        try:
            return await identity.authenticate(request, services.sessions, accepts_password=True)
        except Unauthorized as error:
            raise PasswordNeeded(*error.args) from None


public_router = APIRouter()
password_router = APIRouter(route_class=PasswordRoute)
router = APIRouter(route_class=UserRoute)


class NoCalendar(BackendError):
    """This calendar link does not work any more. Create a new one on the page."""

    code, status = "no_calendar", 404
    headers: ClassVar = {"Cache-Control": "private, no-store"}


class CalendarState(BaseModel):
    active: bool


class CalendarAddress(BaseModel):
    url: str


async def find_reader(services: AppServices, name: str) -> AsyncIterator[str]:
    """Finds the user whose calendar has this secret name. Raises `NoCalendar`."""
    user_id = await address.find_user(services.database, name)
    if user_id is None:
        _log_read("refused")
        raise NoCalendar
    check_rate(services.calendar_limit, user_id)
    with hold_response(services, user_id):
        yield user_id


@public_router.get("/calendar/{name:path}", response_class=Response, responses=_FEED | errors(404, 429, 503))
async def read_calendar(
    request: Request, services: AppServices, user_id: Annotated[str, Depends(find_reader)]
) -> Response:
    """Serves `GET /calendar/<secret>.ics`; any other path below `/calendar/` gets the same error as a wrong secret."""
    async with take_turn(services.requests, user_id):
        return await _respond(request, services, user_id, route=address.TEMPLATE)


@password_router.get(ADDRESS, response_class=Response, responses=_FEED)
async def read_calendar_with_token(request: Request, services: AppServices, user: LimitedUser) -> Response:
    """Serves the calendar to a program with a token, which may be the password of HTTP's Basic scheme."""
    check_rate(services.calendar_limit, user.user_id)
    return await _respond(request, services, user.user_id, route=ADDRESS)


async def _respond(request: Request, services: Services, user_id: str, *, route: str) -> Response:
    pieces = await services.calendars.render_feed(user_id)
    tag = f'"{await _digest(pieces)}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache", "Referrer-Policy": "no-referrer"}
    # RFC 9110, section 13.1.2
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if tag in known or known == ["*"]:
        _log_read("unchanged", user_id, route)
        return Response(status_code=304, headers=headers)
    _log_read("sent", user_id, route)
    headers["Content-Length"] = str(sum(map(len, pieces)))
    return StreamingResponse(_stream(pieces), media_type="text/calendar; charset=utf-8", headers=headers)


async def _digest(pieces: list[bytes]) -> str:
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
        await asyncio.sleep(0)  # others are served in between
    return digest.hexdigest()[:32]


async def _stream(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for first in range(0, len(pieces), _TASKS_AT_ONCE):
        yield b"".join(pieces[first : first + _TASKS_AT_ONCE])


def _log_read(outcome: str, user_id: str | None = None, route: str = address.TEMPLATE) -> None:
    logger.info("calendar read", extra=fields(route=route, owner=user_id, outcome=outcome))


@router.get("/calendar", dependencies=[Depends(forbid_caching)])
async def get_calendar(services: AppServices, user: LimitedUser) -> CalendarState:
    return CalendarState(active=await profiles.has_calendar(services.database, user.user_id))


@router.post("/calendar", status_code=201, dependencies=[Depends(forbid_caching)])
async def create_address(request: Request, services: AppServices, user: LimitedUser) -> CalendarAddress:
    """Creates an address, which replaces the one before, and shows it this once: it is not stored."""
    base = services.backend_url or get_own_origin(request.scope, request.headers)
    url = await address.create_address(services.database, user.user_id, base)
    logger.info("calendar address made", extra=fields(owner=user.user_id))
    return CalendarAddress(url=url)


@router.delete("/calendar", status_code=204)
async def revoke_address(services: AppServices, user: LimitedUser) -> None:
    if await profiles.revoke_calendar(services.database, user.user_id):
        logger.info("calendar address revoked", extra=fields(owner=user.user_id))
