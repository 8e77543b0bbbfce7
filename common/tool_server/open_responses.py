from fastmcp.server.dependencies import get_access_token
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from common.fair_shares import ShareExceeded, SimultaneousLimit
from common.tokens import is_from_backend

_SENTENCE = "You have too many responses open. Read them to the end or close them, and try again."


class LimitOpenResponses:
    """Limits the responses of each user that are not read yet to `most`; None: no limit.

    Those to the backend do not count: it reads them at once, and limits those of its users itself.
    """

    def __init__(self, app: ASGIApp, *, most: int | None) -> None:
        self._app, self._limit = app, SimultaneousLimit(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        token = get_access_token() if scope["type"] == "http" else None
        if token is None or not token.subject or is_from_backend(token.claims):
            return await self._app(scope, receive, send)
        try:
            release = self._limit.take(token.subject)
        except ShareExceeded:
            rejection = JSONResponse({"error": _SENTENCE}, status_code=429, headers={"Retry-After": "5"})
            return await rejection(scope, receive, send)
        try:
            return await self._app(scope, receive, send)
        finally:
            release()
