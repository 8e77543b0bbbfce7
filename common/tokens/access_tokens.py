"""Creates our own access tokens, and verifies those of any issuer.

The issuer that a token names determines the key, and the key determines the algorithm.
"""

import time
from collections.abc import Mapping
from typing import Any, Protocol

import jwt
from jwt.utils import base64url_encode

from common.text import is_storable

LEEWAY_SECONDS = 10
MAX_SUBJECT_LENGTH = 200
_REQUIRED = ["exp", "sub", "iss", "aud"]
_TIMES = ("exp", "iat", "nbf")
_YEAR_10000 = 253_402_300_800


class Keys(Protocol):
    async def find(self, header: dict[str, Any], /) -> jwt.PyJWK | None:
        """Returns the key that a token with this header must be signed with."""
        ...


class SharedSecret:
    def __init__(self, secret: str) -> None:
        self._key = jwt.PyJWK.from_dict({"kty": "oct", "k": base64url_encode(secret.encode()).decode()})

    async def find(self, _: dict[str, Any]) -> jwt.PyJWK:
        return self._key


class AccessTokenVerifier:
    """Accepts tokens for one audience, each signed with a key of the issuer it names."""

    def __init__(self, issuers: Mapping[str, Keys], *, audience: str) -> None:
        self._issuers = issuers
        self._audience = audience

    async def verify(self, token: str) -> dict[str, Any]:
        """Returns the claims of a valid token, `sub` and `exp` among them; raises `jwt.PyJWTError`."""
        try:
            return await self._verify(token)
        except jwt.PyJWTError:
            raise
        except Exception as error:  # noqa: BLE001 - libraries raise anything for arbitrary bytes
            raise jwt.DecodeError(f"The token cannot be checked: {type(error).__name__}") from None

    async def _verify(self, token: str) -> dict[str, Any]:
        unverified = jwt.decode_complete(token, options={"verify_signature": False})
        issuer = unverified["payload"].get("iss")
        keys = self._issuers.get(issuer) if isinstance(issuer, str) else None
        if keys is None:
            raise jwt.InvalidIssuerError("Invalid issuer")
        key = await keys.find(unverified["header"])
        if key is None:
            raise jwt.InvalidKeyError("No key of the issuer matches")
        # The key determines the algorithm, never the header of the token.
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            issuer=issuer,
            audience=self._audience,
            leeway=LEEWAY_SECONDS,
            options={"require": _REQUIRED, "enforce_minimum_key_length": True},
        )
        if not is_user_id(claims["sub"]):
            raise jwt.InvalidTokenError("The sub claim is not a valid user id")
        for name in _TIMES:
            if name in claims and not _is_time(claims[name]):
                raise jwt.InvalidTokenError(f"{name} is not a time")
        return claims


def _is_time(value: Any) -> bool:
    """Whether a value is seconds since 1970, before the year 10000; fractions are allowed (RFC 7519, section 2)."""
    return type(value) in (int, float) and 0 <= value < _YEAR_10000


def is_user_id(subject: str) -> bool:
    is_visible = any(c.isprintable() and not c.isspace() for c in subject)
    return len(subject) <= MAX_SUBJECT_LENGTH and is_storable(subject) and is_visible


ISSUER = "todo-assistant"
BACKEND = "todo-assistant/backend"
DIRECTORY = "directory"  # a claim


def make_token(secret: str, subject: str, *, audience: str, expires: int, **claims: Any) -> str:
    """Creates a token (HS256) for one of our services; `expires` is Unix time."""
    standard_claims = {"iss": ISSUER, "sub": subject, "aud": audience, "iat": int(time.time()), "exp": expires}
    return jwt.encode(claims | standard_claims, secret, algorithm="HS256")


def make_call_token(secret: str, subject: str, *, audience: str, expires: int, directory: str | None = None) -> str:
    """Creates the token of a tool call, which says that the backend acts for the user (RFC 8693, section 4.1).

    `directory` is the directory of the user in which the conversation works instead of its own folder.
    """
    claims = {} if directory is None else {DIRECTORY: directory}
    return make_token(secret, subject, audience=audience, expires=expires, act={"sub": BACKEND}, **claims)


def is_from_backend(claims: Mapping[str, Any]) -> bool:
    """Whether a valid token was created by the backend for one call, and not for a user by `./todo token`."""
    return claims.get("iss") == ISSUER and claims.get("act") == {"sub": BACKEND}
