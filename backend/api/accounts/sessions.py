"""The page's session: a cookie for the user of a bearer token, and the places where the user is signed in."""

import time
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel

from backend.accounts.browsers import describe_browser
from backend.accounts.sessions import MAX_SECONDS, Kind, Session
from backend.api.dependencies import AppServices, LimitedUser, PollingUser, Services, UserRoute, forbid_caching
from backend.api.identity import Identity, cookie_name
from backend.api.openapi import errors
from backend.errors import InvalidRequest, NotFound
from backend.users.limits import check_rate

router = APIRouter()
user_router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])

SessionId = Annotated[
    str, Path(max_length=100, pattern="^[A-Za-z0-9_-]+$", description="The `id` of a session in the list.")
]


class SignedIn(BaseModel):
    user_id: str
    expires: datetime | None
    """None without sign-in."""
    session_id: str | None = None
    """Another one after each sign-in. The page sends by itself only what was stored in the same session."""


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
async def get_session(user: PollingUser) -> SignedIn:
    """Returns who is signed in."""
    return SignedIn(user_id=user.user_id, expires=user.sign_in.expires, session_id=user.sign_in.session_id)


@router.post("/session", responses=errors(400, 401, 429))
async def sign_in(request: Request, services: AppServices, response: Response) -> SignedIn:
    """Sets the page's cookie for the user of a bearer token, until that token expires."""
    identity: Identity = request.app.state.identity
    if not identity.required:
        raise InvalidRequest("This server has no sign-in: AUTH_MODE=none has a single local user.")
    claims = await identity.read_token(request)
    user_id, expires = claims["sub"], min(int(claims["exp"]), int(time.time()) + MAX_SECONDS)
    check_rate(services.rate_limit, user_id)
    return await begin_session(request, response, user_id, expires=expires)


async def begin_session(
    request: Request, response: Response, user_id: str, *, expires: int, kind: Kind = "session"
) -> SignedIn:
    """Sets the page's cookie for a user until `expires` (Unix time), in place of one of the same user.

    Raises `LimitReached` for a user who begins too many.
    """
    identity: Identity = request.app.state.identity
    services: Services = request.app.state.services
    check_rate(services.sign_in_limit, user_id)  # or sessions would fill the database
    replaced = await identity.find_session(request, user_id)
    until = datetime.fromtimestamp(expires, UTC)
    name = describe_browser(request.headers.get("user-agent", ""))
    session_id = await services.sessions.begin(user_id, kind=kind, name=name, expires=until)
    if replaced is not None:
        await services.sessions.end(user_id, replaced)
    response.set_cookie(
        cookie_name(request),
        identity.create_cookie(user_id, expires=expires, session_id=session_id),
        max_age=max(0, expires - int(time.time())),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
    )
    return SignedIn(user_id=user_id, expires=until, session_id=session_id)


@router.delete("/session", status_code=204, responses=errors(401, 403))
async def sign_out(request: Request, services: AppServices) -> Response:
    """Ends the session, also for copies of its cookie, and deletes the cookie; succeeds without a session too."""
    identity: Identity = request.app.state.identity
    await identity.sign_out(request, services.sessions)
    response = Response(status_code=204)
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
    if not await services.sessions.end(user.user_id, session_id):
        raise NotFound.of("session", session_id)


@user_router.delete("/sessions", status_code=204)
async def end_other_sessions(user: LimitedUser, services: AppServices) -> None:
    """Ends all sessions of the user but that of the request."""
    await services.sessions.end_others(user.user_id, but=user.sign_in.session_id)


def _show(session: Session, current: str | None) -> SessionShown:
    return SessionShown(
        id=session.id,
        name=session.name,
        begun=session.created_at,
        last_used=session.last_used_at,
        expires=session.expires_at,
        is_current=session.id == current,
    )
