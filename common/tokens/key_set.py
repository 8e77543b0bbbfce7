"""The public keys of the operator's identity provider."""

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import jwt

from common.single_flight import SingleFlight
from common.tls import tls_context

log = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "ES256", "EdDSA")
_FRESH_SECONDS = 600  # keys are used for so long without fetching them again
_PAUSE_SECONDS = 5  # between two requests for an unknown key
_RETRY_SECONDS = 30  # between two requests while a known key can be used although the address does not answer
_TIMEOUT_SECONDS = 5
_MAX_ENTRIES = 100
_MAX_LOGGED = 5  # unusable keys in a log line
_MAX_VALUE_LENGTH = 2_000  # characters of base64; a modulus of 8,192 bits has 1,366
_RSA_BITS = range(2048, 8192 + 1)


class KeySet:
    """The keys at a JWKS URL. They are fetched again after ten minutes or when a token names an unknown key.

    While the address does not answer, they are used until they reach their maximum age.
    """

    def __init__(self, url: str, *, max_age_seconds: float = 14_400) -> None:
        self._max_age_seconds = max_age_seconds
        # Without its own cache, which drops keys when they are to be fetched again, and where one invalid entry fails
        # the whole set. PyJWT 2.15 follows no redirects, which could lead to keys of somebody else.
        self._client = jwt.PyJWKClient(url, cache_jwk_set=False, timeout=_TIMEOUT_SECONDS, ssl_context=tls_context())
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="key-set")
        self._refresh = SingleFlight(self._fetch)
        self._keys: list[jwt.PyJWK] = []
        self._fetched_at = self._tried_at = float("-inf")

    async def find(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        key = self._get(header)
        if key is None or self._get_age(self._fetched_at) > _FRESH_SECONDS:
            if self._get_age(self._tried_at) > (_RETRY_SECONDS if key else _PAUSE_SECONDS) or self._refresh.is_running:
                await self._refresh()
            key = self._get(header)
        return key

    def _get(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        if self._get_age(self._fetched_at) > self._max_age_seconds:
            return None
        algorithm, kid = header.get("alg"), header.get("kid")
        keys = [key for key in self._keys if key.algorithm_name == algorithm and kid in (None, key.key_id)]
        return keys[0] if len(keys) == 1 else None

    @staticmethod
    def _get_age(moment: float) -> float:
        return time.monotonic() - moment

    async def _fetch(self) -> None:
        self._tried_at = started_at = time.monotonic()
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                document = await asyncio.get_running_loop().run_in_executor(self._thread, self._client.fetch_data)
            self._keys, unusable = _read_keys(document["keys"])
        except Exception as error:  # noqa: BLE001 - the provider may send anything; the next fetch tries again
            log.warning("the keys at AUTH_JWKS_URL cannot be read: %s", type(error).__name__)
            return
        self._fetched_at = started_at
        if not self._keys:
            log.warning("AUTH_JWKS_URL has no key for %s", ", ".join(ALGORITHMS))
        if unusable:
            log.warning("AUTH_JWKS_URL has keys that cannot be used: %s", "; ".join(unusable[:_MAX_LOGGED]))


def _read_keys(entries: list[Any]) -> tuple[list[jwt.PyJWK], list[str]]:
    """Returns the keys that may check tokens, each for one algorithm, and why others cannot be used.

    Entries for other purposes are ignored (RFC 7517, section 4), and so are different keys with the same name.
    """
    keys: dict[tuple[Any, ...], list[jwt.PyJWK]] = {}
    distinct = [entry for nth, entry in enumerate(entries[:_MAX_ENTRIES]) if entry not in entries[:nth]]
    unusable: list[str] = []
    for entry in distinct:
        kid = entry.get("kid") if isinstance(entry, dict) else None
        try:
            if key := _read_key(entry):
                keys.setdefault((kid or object(), key.algorithm_name), []).append(key)
        except Exception as error:  # noqa: BLE001 - libraries raise anything for an arbitrary entry
            unusable.append(f"kid {ascii(kid)[:40]}: {error if isinstance(error, _Unusable) else type(error).__name__}")
    unusable += [
        f"kid {ascii(kid)[:40]}: {len(same)} different keys" for (kid, _), same in keys.items() if len(same) > 1
    ]
    return [same[0] for same in keys.values() if len(same) == 1], unusable


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


def find_key_url_warning(url: str) -> str | None:
    parsed = urlsplit(url)
    if parsed.scheme == "https" or parsed.hostname == "localhost":
        return None
    with suppress(ValueError):  # a host name
        if ip_address(parsed.hostname or "").is_loopback:
            return None
    return (
        "AUTH_JWKS_URL is http://, so an attacker on the network could replace the keys and sign in as any user: "
        "use the https:// address"
    )
