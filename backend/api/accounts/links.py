"""Links for a phone: the page or this machine makes one, and the phone takes it."""

import time
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Annotated
from urllib.parse import urlsplit

import segno
from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from backend.accounts import links
from backend.accounts.events import add_event
from backend.accounts.sessions import AccountDisabled
from backend.api.accounts.sessions import SignedIn, begin_session
from backend.api.dependencies import AppServices, LimitedUser, Services, UserRoute, forbid_caching
from backend.api.identity import AuthenticatedUser, Identity
from backend.api.local_network import TAKE_LINK, LocalNetwork, NoPhoneAddress
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.errors import BackendError, InvalidRequest
from backend.users.limits import check_rate
from common.server.address_turns import get_network
from common.server.edge import get_own_origin
from common.settings import is_loopback

router = APIRouter(dependencies=[Depends(forbid_caching)])
user_router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])

_QUIET_ZONE = 4  # modules around a QR code, as its standard demands


class NotOnThePage(BackendError):
    """Links are made on the page, by whoever is signed in there, and not with a token."""

    code, status = "not_on_the_page", 403


class NotThisComputer(BackendError):
    """Links are made on the computer that has your tasks. Open the page there."""

    code, status = "not_this_computer", 403


class QrCode(BaseModel):
    size: int
    """The width and the height of the image, of which a module takes 1."""
    path: str
    """The dark modules, as the `d` of a path in SVG."""


class Link(BaseModel):
    address: str
    """What a phone opens. The code stands after the `#`, which no browser sends to a server."""
    expires: datetime
    qr_code: QrCode


class LinkCode(RequestBody):
    code: Annotated[str, Field(min_length=1, max_length=100)]


@user_router.post("/links", status_code=201, responses=errors(403, 409))
async def make_link(request: Request, user: LimitedUser, services: AppServices) -> Link:
    """Makes the link of a phone, which can be taken once in ten minutes and replaces the one before."""
    identity: Identity = request.app.state.identity
    _check_maker(request, identity, user)
    check_rate(services.sign_in_limit, user.user_id)  # each is logged
    address = await _find_address(request, services, identity)
    expires = datetime.now(UTC) + timedelta(seconds=links.LINK_SECONDS)
    device_expires = user.sign_in.expires if identity.has_provider else None
    code = await links.make_link(
        services.database, user.user_id, by=user.sign_in.session_id, device_expires=device_expires
    )
    address = f"{address}/#link={code}"
    return Link(address=address, expires=expires, qr_code=_draw(address))


@router.post(TAKE_LINK, responses=errors(400, 401, 429))
async def take_link(body: LinkCode, request: Request, services: AppServices, response: Response) -> SignedIn:
    """Signs in the browser that sends the code of a link, as a device of the user who made it."""
    identity: Identity = request.app.state.identity
    if identity.is_local(request):
        raise InvalidRequest("This computer has your tasks: it needs no link. Open the link on your phone.")
    client = request.client.host if request.client else ""
    check_rate(services.link_limit, get_network(client))
    taken = await links.take_link(services.database, body.code)
    expires = int(min(taken.device_expires, time.time() + links.DEVICE_SECONDS))
    try:
        signed_in = await begin_session(request, response, taken.user_id, expires=expires, kind="device", by=taken.by)
    except AccountDisabled:  # or who made the link is signed out
        raise links.LinkNotValid from None
    await add_event(services.database, taken.user_id, "device_linked", session=signed_in.session_id, address=client)
    return signed_in


def _check_maker(request: Request, identity: Identity, user: AuthenticatedUser) -> None:
    if not identity.required and not identity.is_local(request):
        raise NotThisComputer
    if identity.proxy is not None:
        raise NoPhoneAddress("Here users sign in at a proxy. Open the page on your phone, and sign in there.")
    if identity.required and ("authorization" in request.headers or user.sign_in.session_id is None):
        raise NotOnThePage


async def _find_address(request: Request, services: Services, identity: Identity) -> str:
    """Returns the address at which a phone reaches the page. Raises `NoPhoneAddress`."""
    if not identity.has_sessions:
        raise NoPhoneAddress(
            "Without sign-in, phones can be linked only with ./todo up: with Docker, set AUTH_MODE=password."
        )
    local_network: LocalNetwork | None = request.app.state.local_network
    if local_network is not None:
        return await local_network.open()
    address = services.backend_url or get_own_origin(request.scope, request.headers)
    if is_loopback(urlsplit(address).hostname or ""):
        raise NoPhoneAddress(
            "A phone cannot reach this address, which is this computer's own. Open the page at an address that your "
            "phone can reach, and try again. If there is none, docs/phone.md says how to set one up."
        )
    return address


def _draw(address: str) -> QrCode:
    matrix = segno.make_qr(address, error="m").matrix
    path = ""
    for row, modules in enumerate(matrix, start=_QUIET_ZONE):
        column = _QUIET_ZONE
        for is_dark, run in groupby(modules):
            width = len([*run])
            path += f"M{column} {row}h{width}v1h-{width}z" if is_dark else ""
            column += width
    return QrCode(size=len(matrix) + 2 * _QUIET_ZONE, path=path)
