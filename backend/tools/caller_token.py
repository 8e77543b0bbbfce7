"""The signed token that names the user of each request to the task server and the workspace."""

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import httpx2

from common.tokens import make_call_token

TOKEN_SECONDS = 300

# The MCP client's session sends the requests of all users, and nothing but the context goes from a call to its request.
# There is no default, so that a request without a user is not sent.
_user: ContextVar[tuple[str, str | None]] = ContextVar("user")


@contextmanager
def calling_for(user_id: str, directory: str | None = None) -> Iterator[None]:
    """Sets for whom `CallerToken` signs in the block, and the user's directory that stands for the folder."""
    token = _user.set((user_id, directory))
    try:
        yield
    finally:
        _user.reset(token)


class CallerToken(httpx2.Auth):
    """Signs each request for the user in whose block it is made; the user's own token is never passed on."""

    def __init__(self, secret: str, audience: str) -> None:
        self._secret = secret
        self._audience = audience

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        expires = int(time.time()) + TOKEN_SECONDS
        user_id, directory = _user.get()
        to = {"audience": self._audience, "expires": expires, "directory": directory}
        token = make_call_token(self._secret, user_id, **to)
        request.headers["authorization"] = f"Bearer {token}"
        yield request
