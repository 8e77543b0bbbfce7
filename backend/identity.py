"""Who is calling."""

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jwt
from starlette.requests import HTTPConnection

from backend.errors import ForeignOrigin, Unauthorized
from backend.settings import Settings
from tokens import ISSUER, Keys, KeySet, SharedSecret, Tokens, make_token

if TYPE_CHECKING:
    from backend.turns import Turn

logger = logging.getLogger(__name__)

LOCAL_USER = "local"
SESSION = "todo-assistant/session"
COOKIE = "todo_session"


@dataclass(frozen=True)
class RequestContext:
    """Who asks, and the turn that answers; operations that do not run the model have none."""

    user_id: str
    turn: "Turn | None" = field(default=None)


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
            self._bearer = Tokens({settings.auth_issuer: _provider_keys(settings)}, audience=settings.auth_audience)
            self._sessions = Tokens({ISSUER: SharedSecret(secret)}, audience=SESSION)
            self._secret = secret

    async def user_of(self, request: HTTPConnection) -> str:
        """Raises `Unauthorized` without a valid token, `ForeignOrigin` for a cookie sent from another site."""
        if not self.required:
            return LOCAL_USER
        if "authorization" in request.headers:
            return (await self.sign_in(request)).user_id
        cookie = request.cookies.get(COOKIE)
        if cookie is None:
            raise Unauthorized
        if not _same_origin(request):
            raise ForeignOrigin
        return (await _checked(self._sessions, cookie))["sub"]

    async def sign_in(self, request: HTTPConnection) -> SignedIn:
        """The person a bearer token names; raises `Unauthorized`."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized
        claims = await _checked(self._bearer, token.strip())
        return SignedIn(claims["sub"], int(claims["exp"]))

    def session(self, person: SignedIn) -> str:
        """What the page's cookie holds; it lasts as long as the token it was made from."""
        return make_token(self._secret, person.user_id, audience=SESSION, expires=person.expires)


async def _checked(tokens: Tokens, token: str) -> dict[str, Any]:
    try:
        return await tokens.claims(token)
    except jwt.PyJWTError as error:
        logger.info("a token was refused: %s", type(error).__name__)
        raise Unauthorized from None


def _provider_keys(settings: Settings) -> Keys:
    if settings.auth_jwt_secret is not None:
        return SharedSecret(settings.auth_jwt_secret.get_secret_value())
    assert settings.auth_jwks_url
    return KeySet(settings.auth_jwks_url)


def _same_origin(request: HTTPConnection) -> bool:
    origin = request.headers.get("origin", "")
    return origin.partition("://")[2] == request.headers.get("host") != ""
