"""The tokens that programs send: those of an identity provider, and the personal access tokens of our own."""

import base64
import logging
from typing import Any

import jwt
from starlette.requests import HTTPConnection

from backend.api.errors import Unauthorized
from backend.settings import BackendSettings
from common.tokens import API, ISSUER, AccessTokenVerifier, Keys, OwnTokenRejected, SharedSecret, read_session_id

logger = logging.getLogger(__name__)


class BearerTokens:
    """The issuer that a token names says which audience it must have, and which key must have signed it."""

    def __init__(self, settings: BackendSettings, secret: str) -> None:
        """`secret` is that of our own tokens."""
        issuers: dict[str, Keys] = {ISSUER: SharedSecret(secret)}
        audiences = {ISSUER: API}
        if keys := settings.create_provider_keys():
            assert settings.auth_issuer
            assert settings.auth_audience
            issuers[settings.auth_issuer], audiences[settings.auth_issuer] = keys, settings.auth_audience
        self._tokens = AccessTokenVerifier(issuers, audience=audiences, mode=settings.auth_mode)

    async def read(self, request: HTTPConnection, *, accepts_password: bool = False) -> dict[str, Any]:
        """Returns the claims of a request's token. One of ours has a session (`jti`), which may be ended.

        With `accepts_password`, the token may also be the password of HTTP's Basic scheme. Raises `Unauthorized`, which
        tells more of a token with our own signature.
        """
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if accepts_password and scheme.lower() == "basic":
            token = _read_password(token)
        elif scheme.lower() != "bearer":
            raise Unauthorized
        if not token:
            raise Unauthorized
        try:
            claims = await self._tokens.verify(token.strip())
            if claims["iss"] == ISSUER:
                read_session_id(claims)
        except OwnTokenRejected as error:
            log_rejection(error)
            raise Unauthorized(str(error)) from None
        except jwt.PyJWTError as error:
            log_rejection(error)
            raise Unauthorized from None
        return claims


def log_rejection(error: jwt.PyJWTError) -> None:
    logger.info("rejected a token: %s", type(error).__name__)


def _read_password(credentials: str) -> str:
    """Returns the password of HTTP's Basic scheme (RFC 7617). Raises `Unauthorized`."""
    try:
        return base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        raise Unauthorized from None
