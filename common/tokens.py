"""Checks access tokens and creates those of the backend; they are part of the contract between the services.

The issuer that a token names determines the key, and the key determines the algorithm.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jwt
from jwt.utils import base64url_encode

from common import ISSUER
from common.single_flight import SingleFlight
from common.text import is_storable
from common.tls import get_tls_context

log = logging.getLogger(__name__)

API = "todo-assistant/api"
"""The audience of tokens of ours that the backend accepts from programs."""
BACKEND = "todo-assistant/backend"
DIRECTORY, MODE = "directory", "auth_mode"  # claims
CLIENT_SCOPES = ("tasks:read", "tasks")
"""What the user may allow an MCP client."""
ALGORITHMS = ("RS256", "ES256", "EdDSA")  # of an identity provider

LEEWAY_SECONDS = 10
"""How long a token is accepted after its `exp`, as the clocks of machines differ."""
_MAX_SUBJECT_LENGTH = 200
_MAX_CHECKED = 1_000  # valid tokens that are kept with their claims
_REQUIRED = ["exp", "sub", "iss", "aud"]
_TIMES = ("exp", "iat", "nbf")
_YEAR_10000 = 253_402_300_800
_FRESH_SECONDS = 600  # keys are used for so long without fetching them again
_PAUSE_SECONDS = 5  # between two requests for an unknown key
_RETRY_SECONDS = 30  # between two requests while a known key can be used although the address does not answer
_TIMEOUT_SECONDS = 5
_MAX_ENTRIES = 100
_MAX_LOGGED = 5  # unusable keys in a log line
_SESSION_ID = re.compile("[A-Za-z0-9_-]{1,100}")
_MAX_VALUE_LENGTH = 2_000  # characters of base64; a modulus of 8,192 bits has 1,366
_RSA_BITS = range(2048, 8192 + 1)


class SharedSecret:
    def __init__(self, secret: str) -> None:
        self._key = jwt.PyJWK.from_dict({"kty": "oct", "k": base64url_encode(secret.encode()).decode()})

    async def find(self, _: dict[str, Any]) -> jwt.PyJWK:
        return self._key


class KeySet:
    """The keys at a JWKS URL. They are fetched again after ten minutes or when a token names an unknown key.

    While the address does not answer, they are used until they reach their maximum age.
    """

    def __init__(
        self,
        url: str,
        *,
        max_age_seconds: float = 14_400,
        name: str = "AUTH_JWKS_URL",
        fetch: Callable[[], Awaitable[Any]] | None = None,
    ) -> None:
        """`name` is what log lines call the address, and `fetch` reads its JSON in place of PyJWT's client."""
        self._max_age_seconds = max_age_seconds
        self._name = name
        # Without its own cache, which drops keys when they are to be fetched again, and where one invalid entry fails
        # the whole set. PyJWT 2.15 follows no redirects, which could lead to keys of somebody else.
        self._client = jwt.PyJWKClient(
            url, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS, ssl_context=get_tls_context()
        )
        self._fetch_document = fetch or partial(asyncio.to_thread, self._client.fetch_data)
        self._refresh = SingleFlight(self._fetch)
        self._keys: list[jwt.PyJWK] = []
        self._fetched_at = self._tried_at = float("-inf")

    async def find(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        """Returns the key that a token with this header must be signed with."""
        key = self._get(header)
        if key is None or self._get_age(self._fetched_at) > _FRESH_SECONDS:
            if self._get_age(self._tried_at) > (_RETRY_SECONDS if key else _PAUSE_SECONDS):
                await self._refresh()
            key = self._get(header)
        return key

    @property
    def has_keys(self) -> bool:
        """Whether keys were read that may still be used."""
        return bool(self._keys) and self._get_age(self._fetched_at) <= self._max_age_seconds

    def _get(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        """Returns None also if several keys match."""
        if self._get_age(self._fetched_at) > self._max_age_seconds:
            return None
        algorithm, kid = header.get("alg"), header.get("kid")
        keys = [key for key in self._keys if key.algorithm_name == algorithm and kid in (None, key.key_id)]
        return keys[0] if len(keys) == 1 else None

    @staticmethod
    def _get_age(moment: float) -> float:
        return time.monotonic() - moment

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                document = await self._fetch_document()
            self._keys, unusable = _read_keys(document["keys"])
        except Exception as error:  # noqa: BLE001 - the provider may send anything; the next fetch tries again
            log.warning("the keys at %s cannot be read: %s", self._name, type(error).__name__)
            return
        finally:
            self._tried_at = time.monotonic()
        self._fetched_at = self._tried_at
        if not self._keys:
            log.warning("%s has no key for %s", self._name, ", ".join(ALGORITHMS))
        if unusable:
            log.warning("%s has keys that cannot be used: %s", self._name, "; ".join(unusable[:_MAX_LOGGED]))


def _read_keys(entries: list[Any]) -> tuple[list[jwt.PyJWK], list[str]]:
    """Returns the keys that may check tokens, each for one algorithm, and why others cannot be used.

    Entries for other purposes are ignored (RFC 7517, section 4).
    """
    keys: list[jwt.PyJWK] = []
    unusable: list[str] = []
    for nth, entry in enumerate(entries[:_MAX_ENTRIES]):
        if entry in entries[:nth]:
            continue
        try:
            if key := _read_key(entry):
                keys.append(key)
        except Exception as error:  # noqa: BLE001 - libraries raise anything for an arbitrary entry
            kid = entry.get("kid") if isinstance(entry, dict) else None
            unusable.append(f"kid {ascii(kid)[:40]}: {error if isinstance(error, _Unusable) else type(error).__name__}")
    return keys, unusable


class _Unusable(Exception):
    """Why a key cannot be used."""


def _read_key(entry: Any) -> jwt.PyJWK | None:
    """Returns None for an entry that is not for checking signatures."""
    if not isinstance(entry, dict):
        raise _Unusable("not an object")
    if entry.get("use", "sig") != "sig":
        return None
    if "key_ops" in entry and not (isinstance(entry["key_ops"], list) and "verify" in entry["key_ops"]):
        return None
    if "d" in entry:
        raise _Unusable("its private part is published")
    if any(isinstance(value, str) and len(value) > _MAX_VALUE_LENGTH for value in entry.values()):
        raise _Unusable("too long")
    key = jwt.PyJWK.from_dict(entry)
    if key.algorithm_name not in ALGORITHMS:
        raise _Unusable(f"not for {', '.join(ALGORITHMS)}")
    if key.algorithm_name == "RS256" and key.key.key_size not in _RSA_BITS:
        raise _Unusable(f"{key.key.key_size} bits")
    return key


Keys = SharedSecret | KeySet
Reason = Literal["expired", "ended", "audience", "mode"]
_REASONS: Mapping[Reason, str] = {
    "expired": "This token has expired. Make a new one on the page.",
    "ended": "This token was ended. Make a new one on the page.",
    "audience": "This token is not for this service. Use one that was made for it.",
    "mode": "This token was made when users signed in another way here. Make a new one.",
}


class OwnTokenRejected(jwt.InvalidTokenError):
    """Why a token with our own signature is not accepted, as a sentence; of others nothing is told."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(_REASONS[reason])


@dataclass(frozen=True, slots=True)
class _CheckedToken:
    header: dict[str, Any]
    keys: Keys
    key: jwt.PyJWK
    claims: dict[str, Any]

    async def is_valid(self) -> bool:
        """Whether it has not expired, and its key is still the one that would check it."""
        is_current = self.claims["exp"] > time.time() - LEEWAY_SECONDS
        return is_current and await self.keys.find(self.header) is self.key


class AccessTokenVerifier:
    """Accepts tokens for one audience, each signed with a key of the issuer it names.

    A valid token is checked once, as long as its key stays the same.
    """

    def __init__(
        self, issuers: Mapping[str, Keys], *, audience: str | Mapping[str, str], mode: str | None = None
    ) -> None:
        """`audience` is a mapping where that of each issuer is another one.

        With `mode`, our own tokens must have been made in this AUTH_MODE: in another one, their user may be another.
        """
        self._mode = mode
        self._issuers = issuers
        self._audiences = dict.fromkeys(issuers, audience) if isinstance(audience, str) else audience
        self._checked = OrderedDict[bytes, _CheckedToken]()  # by hashes of the tokens

    async def verify(self, token: str) -> dict[str, Any]:
        """Returns the claims of a valid token, `sub` and `exp` among them; raises `jwt.PyJWTError`.

        Of a token with our own signature the error is `OwnTokenRejected`, if that is all that is wrong with it.
        """
        try:
            digest = hashlib.sha256(token.encode()).digest()
            checked = self._checked.get(digest)
            if checked is None or not await checked.is_valid():
                self._checked.pop(digest, None)
                checked = self._checked[digest] = await self._verify(token)
                if len(self._checked) > _MAX_CHECKED:
                    self._checked.popitem(last=False)
            return dict(checked.claims)
        except jwt.PyJWTError:
            raise
        except Exception as error:  # noqa: BLE001 - libraries raise anything for arbitrary bytes
            raise jwt.DecodeError(f"The token cannot be checked: {type(error).__name__}") from None

    async def _verify(self, token: str) -> _CheckedToken:
        unverified = jwt.decode_complete(token, options={"verify_signature": False})
        issuer = unverified["payload"].get("iss")
        keys = self._issuers.get(issuer) if isinstance(issuer, str) else None
        if keys is None:
            raise jwt.InvalidIssuerError("Invalid issuer")
        key = await keys.find(unverified["header"])
        if key is None:
            raise jwt.InvalidKeyError("No key of the issuer matches")
        try:
            # The key determines the algorithm, never the header of the token.
            claims = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                issuer=issuer,
                audience=self._audiences[issuer],
                leeway=LEEWAY_SECONDS,
                options={"require": _REQUIRED, "enforce_minimum_key_length": True},
            )
        except (jwt.ExpiredSignatureError, jwt.InvalidAudienceError) as error:  # raised for valid signatures only
            if issuer != ISSUER:
                raise
            raise OwnTokenRejected("expired" if isinstance(error, jwt.ExpiredSignatureError) else "audience") from None
        if issuer == ISSUER and self._mode is not None and claims.get(MODE, self._mode) != self._mode:
            raise OwnTokenRejected("mode")
        if not is_user_id(claims["sub"]):
            raise jwt.InvalidTokenError("The sub claim is not a valid user id")
        for name in _TIMES:
            if name in claims and not _is_time(claims[name]):
                raise jwt.InvalidTokenError(f"{name} is not a time")
        return _CheckedToken(unverified["header"], keys, key, claims)


def _is_time(value: Any) -> bool:
    """Whether a value is seconds since 1970, before the year 10000; fractions are allowed (RFC 7519, section 2)."""
    return type(value) in (int, float) and 0 <= value < _YEAR_10000


def is_user_id(subject: str) -> bool:
    is_visible = any(c.isprintable() and not c.isspace() for c in subject)
    return len(subject) <= _MAX_SUBJECT_LENGTH and is_storable(subject) and is_visible


def make_token(secret: str, subject: str, *, audience: str | list[str], expires: int, **claims: Any) -> str:
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
    """Whether a valid token was created by the backend for one call, and not for a program of a user."""
    return claims.get("iss") == ISSUER and claims.get("act") == {"sub": BACKEND}


def read_session_id(claims: Mapping[str, Any]) -> str:
    """Returns the session of a valid token of ours. Raises `OwnTokenRejected` if it has none, as those before 0.3."""
    session_id = claims.get("jti")
    if not isinstance(session_id, str) or not _SESSION_ID.fullmatch(session_id):
        raise OwnTokenRejected("ended")
    return session_id
