"""The page's session: a cookie for the user of a bearer token or a password, and where the user is signed in."""

import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from backend.accounts.accounts import find_account, fold_name
from backend.accounts.browsers import describe_browser
from backend.accounts.password_sign_in import SignInClient
from backend.accounts.passwords import MAX_LENGTH
from backend.accounts.sessions import MAX_SECONDS, SIGN_INS, Kind, Session
from backend.api.dependencies import (
    AppServices,
    LimitedUser,
    PollingUser,
    PublicRoute,
    Services,
    UserRoute,
    forbid_caching,
)
from backend.api.errors import ScopeMissing
from backend.api.identity import Identity, cookie_name
from backend.api.openapi import errors
from backend.api.request_body import RequestBody
from backend.errors import InvalidRequest, NotFound
from backend.users.limits import check_rate
from common import ISSUER, scopes
from common.server.address_turns import end_address_turn, get_network
from common.server.edge import get_own_origin

router = APIRouter(route_class=PublicRoute)
user_router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])

SESSION_SECONDS = 30 * 86_400
"""How long a session with a password lasts after its last renewal."""
_RENEWED_EACH = timedelta(days=1)

SessionId = Annotated[
    str, Path(max_length=100, pattern="^[A-Za-z0-9_-]+$", description="The `id` of a session in the list.")
]


class SignedIn(BaseModel):
    user_id: str
    expires: datetime | None
    """None without sign-in."""
    name: str | None = None
    """How the account is called, where the user id is no name."""
    session_id: str | None = None
    """Another one after each sign-in. The page sends by itself only what was stored in the same session."""


Name = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=MAX_LENGTH)]


class Credentials(RequestBody):
    name: Name
    password: Password


class SignedOut(BaseModel):
    url: str
    """Where the browser goes to sign out at the identity provider or the proxy, too."""


class SessionShown(BaseModel):
    id: str
    name: str
    """The browser, such as “Firefox on Android”."""
    begun: datetime
    last_used: datetime
    """To ten minutes."""
    expires: datetime
    is_current: bool
    """Whether it is that of the request."""


class SessionList(BaseModel):
    sessions: list[SessionShown]


@user_router.get("/session")
async def get_session(request: Request, user: PollingUser, services: AppServices, response: Response) -> SignedIn:
    """Returns who is signed in. With `AUTH_MODE=password`, the session lasts 30 days from now, counted in days."""
    identity: Identity = request.app.state.identity
    expires, session_id, name = user.sign_in.expires, user.sign_in.session_id, None
    if services.oidc is not None or identity.proxy is not None:
        account = await find_account(services.database, user.user_id)
        name = account and account.name
    if identity.proxy is not None:  # when the sign-in ends, and with which other one it goes on, only the proxy knows
        return SignedIn(user_id=user.user_id, name=name, expires=None)
    if identity.mode == "password" and session_id is not None and expires is not None:
        renewed = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=SESSION_SECONDS)
        is_due = renewed - expires > _RENEWED_EACH
        if is_due and await services.sessions.renew(user.user_id, session_id, expires=renewed):
            expires = renewed
            _set_cookie(
                request, response, user.user_id, expires=int(renewed.timestamp()), session_id=session_id, kind="session"
            )
    return SignedIn(user_id=user.user_id, name=name, expires=expires, session_id=session_id)


@router.post("/session", responses=errors(400, 401, 403, 429, 503))
async def sign_in(
    request: Request, services: AppServices, response: Response, credentials: Credentials | None = None
) -> SignedIn:
    """Sets the page's cookie: with `AUTH_MODE=jwt` for the user of a bearer token, until that token expires; with
    `AUTH_MODE=password` for a name and a password.
    """
    identity: Identity = request.app.state.identity
    if not identity.required:
        raise InvalidRequest("This server has no sign-in: AUTH_MODE=none has a single local user.")
    if identity.mode == "password":
        return await _sign_in_by_password(request, services, response, credentials)
    claims = await identity.bearer_tokens.read(request)
    if claims["iss"] == ISSUER:
        raise ScopeMissing(scopes.explain_missing(scopes.ALL))
    user_id, expires = claims["sub"], min(int(claims["exp"]), int(time.time()) + MAX_SECONDS)
    check_rate(services.rate_limit, user_id)
    return await begin_session(request, response, user_id, expires=expires)


async def _sign_in_by_password(
    request: Request, services: Services, response: Response, credentials: Credentials | None
) -> SignedIn:
    if credentials is None or services.passwords is None:
        raise InvalidRequest("The request needs name and password.")
    client = await find_client(request, fold_name(credentials.name.strip()))
    account = await services.passwords.sign_in(credentials.name, credentials.password, client)
    return await begin_session(
        request, response, account.user_id, expires=in_30_days(), password_hash=account.password_hash
    )


async def find_client(request: Request, user_id: str | None) -> SignInClient:
    """Returns who sends the request of somebody who is not known yet, and may be the user."""
    identity: Identity = request.app.state.identity
    # A device that was linked is none that has signed in with the password: whoever has one could link others.
    session_id = await identity.find_session(request, user_id, ("session",)) if user_id else None
    end_address_turn(request.scope)  # from now on it waits for a place among those whose hashes are computed
    browser = describe_browser(request.headers.get("user-agent", ""))
    return SignInClient(get_network(request.client.host if request.client else ""), browser, session_id)


def in_30_days() -> int:
    return int(time.time()) + SESSION_SECONDS


async def begin_session(
    request: Request,
    response: Response,
    user_id: str,
    *,
    expires: int,
    kind: Kind = "session",
    password_hash: str | None = None,
    by: str | None = None,
) -> SignedIn:
    """Sets the page's cookie for a user until `expires` (Unix time), in place of one of the same user.

    Raises `LimitReached` for a user who begins too many, and `AccountDisabled`, also if the account's password is not
    that of `password_hash` any more, or the session `by` has ended.
    """
    identity: Identity = request.app.state.identity
    services: Services = request.app.state.services
    check_rate(services.sign_in_limit, user_id)  # or sessions would fill the database
    replaced = await identity.find_session(request, user_id)
    until = datetime.fromtimestamp(expires, UTC)
    name = describe_browser(request.headers.get("user-agent", ""))
    address = request.client.host if request.client else None
    session_id = await services.sessions.begin(
        user_id, kind=kind, name=name, expires=until, address=address, password_hash=password_hash, by=by
    )
    if replaced is not None:
        await services.sessions.end(user_id, replaced)
    _set_cookie(request, response, user_id, expires=expires, session_id=session_id, kind=kind)
    return SignedIn(user_id=user_id, expires=until, session_id=session_id)


def _set_cookie(
    request: Request, response: Response, user_id: str, *, expires: int, session_id: str, kind: Kind
) -> None:
    identity: Identity = request.app.state.identity
    response.set_cookie(
        cookie_name(request),
        identity.create_cookie(user_id, expires=expires, session_id=session_id, kind=kind),
        max_age=max(0, expires - int(time.time())),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
    )


@router.delete(
    "/session",
    status_code=204,
    responses={200: {"model": SignedOut, "description": "There is more to sign out of."}, **errors(401, 403)},
)
async def sign_out(request: Request, services: AppServices) -> Response:
    """Ends the session, also for copies of its cookie, and deletes the cookie; succeeds without a session too."""
    identity: Identity = request.app.state.identity
    ending = await identity.list_cookie_sessions(request)
    id_token = None
    if services.oidc is not None:  # before the end, soon after which what is stored of the provider is deleted
        for session in ending:
            id_token = id_token or await services.oidc.sessions.get_id_token(session.user_id, session.id)
    for session in ending:
        await services.sessions.end_of_cookie(session.user_id, session.id, expires=session.expires)
    url = identity.proxy.sign_out_url if identity.proxy is not None else None
    if services.oidc is not None:
        own_url = get_own_origin(request.scope, request.headers) + request.scope.get("root_path", "")
        url = await services.oidc.find_sign_out_url(id_token, f"{own_url}/")
    response = Response(status_code=204)
    if url is not None:
        response = JSONResponse(SignedOut(url=url).model_dump())
    secure = request.url.scheme == "https"
    response.delete_cookie(cookie_name(request), httponly=True, samesite="strict", secure=secure)
    return response


@user_router.get("/sessions")
async def list_sessions(user: LimitedUser, services: AppServices) -> SessionList:
    """Returns where the user is signed in, the last used first."""
    current = user.sign_in.session_id
    return SessionList(sessions=[_show(one, current) for one in await services.sessions.list_open(user.user_id)])


@user_router.delete("/sessions/{session_id}", status_code=204, responses=errors(404))
async def end_session(session_id: SessionId, user: LimitedUser, services: AppServices) -> None:
    """Ends a session: within a second, it opens nothing in any process."""
    if not await services.sessions.end(user.user_id, session_id, kinds=SIGN_INS):
        raise NotFound.of("session", session_id)


@user_router.delete("/sessions", status_code=204)
async def end_other_sessions(user: LimitedUser, services: AppServices) -> None:
    """Ends all sessions of the user but that of the request; tokens stay."""
    await services.sessions.end_others(user.user_id, but=user.sign_in.session_id, kinds=SIGN_INS)


def _show(session: Session, current: str | None) -> SessionShown:
    return SessionShown(
        id=session.id,
        name=session.name,
        begun=session.created_at,
        last_used=session.last_used_at,
        expires=session.expires_at,
        is_current=session.id == current,
    )
