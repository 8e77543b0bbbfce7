"""`POST /session` and `DELETE /session`: the page's cookie, in exchange for a token."""

import time

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from backend.api.dependencies import AppServices
from backend.api.identity import Identity, cookie_name
from backend.errors import InvalidRequest
from backend.users.limits import check_rate

router = APIRouter()


@router.post("/session")
async def sign_in(request: Request, services: AppServices) -> Response:
    identity: Identity = request.app.state.identity
    if not identity.required:
        raise InvalidRequest("This server has no sign-in: AUTH_MODE=none has a single local user.")
    claims = await identity.read_token(request)
    user_id, expires = claims["sub"], int(claims["exp"])
    check_rate(services.rate_limit, user_id)  # or sessions that are ended would fill the database
    response = JSONResponse({"user_id": user_id, "expires": expires})
    response.set_cookie(
        cookie_name(request),
        identity.create_session(user_id, expires=expires),
        max_age=max(0, expires - int(time.time())),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="strict",
    )
    return response


@router.delete("/session")
async def sign_out(request: Request, services: AppServices) -> Response:
    """Ends the session, also for copies of its cookie, and deletes the cookie; succeeds without a session too."""
    identity: Identity = request.app.state.identity
    await identity.sign_out(request, services.database)
    response = Response(status_code=204)
    secure = request.url.scheme == "https"
    response.delete_cookie(cookie_name(request), httponly=True, samesite="strict", secure=secure)
    return response
