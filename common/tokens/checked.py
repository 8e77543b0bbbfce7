"""Checking a bearer token: the issuer it names decides by which key, and the key by which algorithm."""

import unicodedata
from collections.abc import Mapping
from typing import Any, Protocol

import jwt
from jwt.utils import base64url_encode

LEEWAY_SECONDS = 10
LONGEST_SUBJECT = 200
_REQUIRED = ["exp", "sub", "iss", "aud"]
_TIMES = ("exp", "iat", "nbf")
_YEAR_10000 = 253_402_300_800


class Keys(Protocol):
    async def find(self, header: dict[str, Any], /) -> jwt.PyJWK | None:
        """The key that a token with this header must be signed with."""
        ...


class SharedSecret:
    def __init__(self, secret: str) -> None:
        self._key = jwt.PyJWK.from_dict({"kty": "oct", "k": base64url_encode(secret.encode()).decode()})

    async def find(self, _: dict[str, Any]) -> jwt.PyJWK:
        return self._key


class Tokens:
    """Accepts tokens for one audience, each signed with a key of the issuer it names."""

    def __init__(self, issuers: Mapping[str, Keys], *, audience: str) -> None:
        self._issuers = issuers
        self._audience = audience

    async def claims(self, token: str) -> dict[str, Any]:
        """The claims of a token that holds, `sub` and `exp` among them; raises `jwt.PyJWTError`."""
        try:
            return await self._claims(token)
        except jwt.PyJWTError:
            raise
        except Exception as error:  # noqa: BLE001 - a stranger's bytes: what libraries raise for them is a refusal
            raise jwt.DecodeError(f"The token cannot be checked: {type(error).__name__}") from None

    async def _claims(self, token: str) -> dict[str, Any]:
        unverified = jwt.decode_complete(token, options={"verify_signature": False})
        issuer = unverified["payload"].get("iss")
        keys = self._issuers.get(issuer) if isinstance(issuer, str) else None
        if keys is None:
            raise jwt.InvalidIssuerError("Invalid issuer")
        key = await keys.find(unverified["header"])
        if key is None:
            raise jwt.InvalidKeyError("No key of the issuer matches")
        # A key is bound to its algorithm: what the token's header says cannot change it.
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
    """Whether a token may name somebody so: one visible line of at most 200 characters, which PostgreSQL can store."""
    if len(subject) > LONGEST_SUBJECT or any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in subject):
        return False
    return any(c.isprintable() and not c.isspace() for c in subject)
