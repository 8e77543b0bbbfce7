"""Who is calling."""

import logging
import re
import secrets
from dataclasses import dataclass
from typing import Any

import jwt
from sqlalchemy.ext.asyncio import AsyncEngine
from starlette.requests import HTTPConnection

from backend.conversation import sessions
from backend.conversation.errors import BackendError
from backend.doors.edge import own_origin
from backend.settings import Settings
from service.tokens import ISSUER, SharedSecret, Tokens, make_token

logger = logging.getLogger(__name__)

LOCAL_USER = "local"
SESSION = "todo-assistant/session"
_COOKIE = "todo_session"
_SESSION_ID_BYTES = 16
_SESSION_ID = re.compile("[A-Za-z0-9_-]{22}")  # as many bytes in base64


class Unauthorized(BackendError):
    """You are not signed in: send a valid bearer token, or sign in on the page again."""


class ForeignOrigin(BackendError):
    """This request comes from another site: open the page on this server and use it there."""


@dataclass(frozen=True)
class SignedIn:
    """A person whose token was checked, until it expires (Unix time)."""

    user_id: str
    expires: int


class Identity:
    """Tells the caller of a request from its bearer token or its session cookie, never from its body."""

    def __init__(self, settings: Settings) -> None:
        self.required = settings.auth_mode == "jwt"
        if self.required:
            assert settings.auth_issuer
            assert settings.auth_audience
            assert settings.mcp_token_secret
            secret = settings.mcp_token_secret.get_secret_value()
            keys = settings.provider_keys()
            assert keys
            self._bearer = Tokens({settings.auth_issuer: keys}, audience=settings.auth_audience)
            self._sessions = Tokens({ISSUER: SharedSecret(secret)}, audience=SESSION)
            self._secret = secret

    async def user_of(self, request: HTTPConnection, engine: AsyncEngine) -> str:
        """Raises `Unauthorized` without a valid token, `ForeignOrigin` for a cookie sent from another site.

        The database is asked for a cookie only.
        """
        if not self.required:
            return LOCAL_USER
        if "authorization" in request.headers:
            return (await self.sign_in(request)).user_id
        cookies = _sent_cookies(request)
        if not cookies:
            raise Unauthorized
        if len(cookies) > 1:  # one could be somebody else's, put there to have a person work in that session
            raise Unauthorized("Two session cookies were sent: delete this site's cookies, then sign in again.")
        claims = await self._session_claims(request, cookies[0])
        if await sessions.is_ended(engine, claims["sub"], claims["jti"]):
            raise Unauthorized
        return claims["sub"]

    async def sign_in(self, request: HTTPConnection) -> SignedIn:
        """The person a bearer token names; raises `Unauthorized`."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized
        claims = await _checked(self._bearer, token.strip())
        return SignedIn(claims["sub"], int(claims["exp"]))

    def session(self, person: SignedIn) -> str:
        """What the page's cookie holds; it lasts as long as the token it was made from."""
        jti = secrets.token_urlsafe(_SESSION_ID_BYTES)
        return make_token(self._secret, person.user_id, audience=SESSION, expires=person.expires, jti=jti)

    async def sign_out(self, request: HTTPConnection, engine: AsyncEngine) -> None:
        """End the session of the request's cookie, of which there may be copies; raises `ForeignOrigin`."""
        for cookie in _sent_cookies(request) if self.required else ():
            try:
                claims = await self._session_claims(request, cookie)
            except Unauthorized:
                continue  # it opens nothing as it is
            await sessions.end(engine, claims["sub"], claims["jti"], expires=int(claims["exp"]))

    async def _session_claims(self, request: HTTPConnection, cookie: str) -> dict[str, Any]:
        if not _from_own_page(request):
            raise ForeignOrigin
        claims = await _checked(self._sessions, cookie)
        if not _SESSION_ID.fullmatch(claims.get("jti", "")):  # older versions gave none, and could not be signed out of
            raise Unauthorized
        return claims


async def _checked(tokens: Tokens, token: str) -> dict[str, Any]:
    try:
        return await tokens.claims(token)
    except jwt.PyJWTError as error:
        logger.info("a token was refused: %s", type(error).__name__)
        raise Unauthorized from None


def cookie_name(request: HTTPConnection) -> str:
    """Where it travels by https, one that only this very host can set, and only so (RFC 6265bis, section 4.1.3.2)."""
    return f"__Host-{_COOKIE}" if request.scope["scheme"] == "https" else _COOKIE


def _sent_cookies(request: HTTPConnection) -> list[str]:
    parts = (part.partition("=") for header in request.headers.getlist("cookie") for part in header.split(";"))
    name = cookie_name(request)
    return [value.strip() for key, _, value in parts if key.strip() == name]


def _from_own_page(request: HTTPConnection) -> bool:
    """By what browsers say of a request: its Origin, and Sec-Fetch-Site, which older ones do not send."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        return False
    return site is not None if origin is None else origin.lower() == own_origin(request.scope, request.headers)
