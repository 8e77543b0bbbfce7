"""The page's session: a cookie for the user of a bearer token."""

import time
from datetime import UTC, datetime

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel

from backend.api.dependencies import AppServices, PollingUser, UserRoute, forbid_caching
from backend.api.identity import Identity, cookie_name
from backend.api.openapi import errors
from backend.errors import InvalidRequest
from backend.users.limits import check_rate

router = APIRouter()
user_router = APIRouter(route_class=UserRoute, dependencies=[Depends(forbid_caching)])


class SignedIn(BaseModel):
    user_id: str
    expires: datetime | None
    """None without sign-in."""
    session_id: str | None = None
    """Another one after each sign-in. The page sends by itself only what was stored in the same session."""


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
    user_id, expires = claims["sub"], int(claims["exp"])
    check_rate(services.rate_limit, user_id)  # or sessions that are ended would fill the database
    session_id = identity.create_session_id()
    response.set_cookie(
        cookie_name(request),
        identity.create_session(user_id, expires=expires, session_id=session_id),
        max_age=max(0, expires - int(time.time())),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
    )
    return SignedIn(user_id=user_id, expires=datetime.fromtimestamp(expires, UTC), session_id=session_id)


@router.delete("/session", status_code=204, responses=errors(401, 403))
async def sign_out(request: Request, services: AppServices) -> Response:
    """Ends the session, also for copies of its cookie, and deletes the cookie; succeeds without a session too."""
    identity: Identity = request.app.state.identity
    await identity.sign_out(request, services.database)
    response = Response(status_code=204)
    secure = request.url.scheme == "https"
    response.delete_cookie(cookie_name(request), httponly=True, samesite="strict", secure=secure)
    return response
