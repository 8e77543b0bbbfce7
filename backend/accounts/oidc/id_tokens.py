"""Checks ID tokens (OpenID Connect Core, section 3.1.3.7)."""

import base64
import hashlib
import hmac
from typing import Any

import jwt

from backend.accounts.oidc.client import ProviderUnavailable
from common.text import is_storable
from common.tokens import LEEWAY_SECONDS, KeySet

_MAX_SUBJECT_LENGTH = 255
_HASHES = {"RS256": hashlib.sha256, "ES256": hashlib.sha256, "EdDSA": hashlib.sha512}


class InvalidIdToken(Exception):
    """The text says what is wrong, for the log."""


async def check_id_token(
    token: Any, keys: KeySet, *, issuer: str, client_id: str, access_token: str, nonce: str | None
) -> dict[str, Any]:
    """Returns the claims of a valid ID token.

    `nonce` is None for a renewal, after which no nonce is needed (section 12.2). Raises `InvalidIdToken`, and
    `ProviderUnavailable` while the keys cannot be read.
    """
    try:
        header = jwt.get_unverified_header(token)
        key = await keys.find(header)
        if key is None:
            if not keys.has_keys:
                raise ProviderUnavailable("no keys")
            raise InvalidIdToken("no key of the provider matches")
        claims = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],  # the key determines it, never the token
            issuer=issuer,
            audience=client_id,
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat"], "enforce_minimum_key_length": True},
        )
    except (InvalidIdToken, ProviderUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - libraries raise anything for an arbitrary token
        raise InvalidIdToken(type(error).__name__) from None
    _check_parties(claims, client_id)
    if nonce is not None and not _is_equal(claims.get("nonce"), nonce):
        raise InvalidIdToken("wrong nonce")
    if "at_hash" in claims and not _is_equal(claims["at_hash"], _hash(access_token, key.algorithm_name)):
        raise InvalidIdToken("wrong at_hash")
    return claims


def _check_parties(claims: dict[str, Any], client_id: str) -> None:
    audience, subject = claims["aud"], claims["sub"]
    if isinstance(audience, list) and len(audience) > 1 and "azp" not in claims:
        raise InvalidIdToken("several audiences without azp")
    if claims.get("azp", client_id) != client_id:
        raise InvalidIdToken("azp is another client")
    if not 0 < len(subject) <= _MAX_SUBJECT_LENGTH or not is_storable(subject):
        raise InvalidIdToken("sub is not usable")


def _hash(access_token: str, algorithm: str) -> str:
    """Returns the first half of the hash that belongs to a signature algorithm."""
    digest = _HASHES[algorithm](access_token.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).decode().rstrip("=")


def _is_equal(sent: Any, expected: str) -> bool:
    return isinstance(sent, str) and hmac.compare_digest(sent.encode(errors="surrogatepass"), expected.encode())
