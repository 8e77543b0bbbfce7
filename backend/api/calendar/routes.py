"""The calendar's paths: for programs that know its address, and for the user who makes and revokes it."""

import logging

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from backend.api.body import UserRoute
from backend.api.dependencies import AppServices, LimitedUser, forbid_caching
from backend.api.edge import own_origin
from backend.calendar import address
from backend.users import profiles
from common.telemetry.logs import fields

logger = logging.getLogger(__name__)

public_router = APIRouter()
router = APIRouter(route_class=UserRoute)
"""`GET`, `POST` and `DELETE /calendar`: the address of the user's calendar, which is shown once, when it is made."""


class CalendarState(BaseModel):
    active: bool


class CalendarAddress(BaseModel):
    url: str


@public_router.head("/calendar/{name:path}", include_in_schema=False)
@public_router.get("/calendar/{name:path}")
async def read_calendar(request: Request, services: AppServices, name: str) -> Response:
    """Serves `GET /calendar/<secret>.ics`; any other path below `/calendar/` gets the same error as a wrong secret."""
    return await services.calendars.respond(name, request.headers)


@router.get("/calendar", dependencies=[Depends(forbid_caching)])
async def get_calendar(services: AppServices, user: LimitedUser) -> CalendarState:
    """Returns whether the user has a calendar address; the address itself is not stored."""
    return CalendarState(active=await profiles.has_calendar(services.database, user.user_id))


@router.post("/calendar", status_code=201, dependencies=[Depends(forbid_caching)])
async def create_address(request: Request, services: AppServices, user: LimitedUser) -> CalendarAddress:
    """Creates a new secret address for the user's calendar, which replaces the one before, and shows it this once."""
    secret = address.new_secret()
    await profiles.set_calendar(services.database, user.user_id, address.hash_of(secret))
    logger.info("calendar address made", extra=fields(owner=user.user_id))
    base = services.calendars.base_url or own_origin(request.scope, request.headers)
    return CalendarAddress(url=address.url(base, secret))


@router.delete("/calendar", status_code=204)
async def revoke_address(services: AppServices, user: LimitedUser) -> None:
    """Makes the user's calendar address invalid; there may be none."""
    if await profiles.revoke_calendar(services.database, user.user_id):
        logger.info("calendar address revoked", extra=fields(owner=user.user_id))
