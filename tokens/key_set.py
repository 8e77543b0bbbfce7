"""The public keys of the operator's identity provider."""

import asyncio
import logging
import ssl
import time
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import httpx2
import jwt

log = logging.getLogger(__name__)

ALGORITHMS = ("RS256", "ES256", "EdDSA")


class KeySet:
    """Keys behind a JWKS URL: kept while it is away, fetched again when they are old or a token names another one."""

    def __init__(
        self, url: str, *, fresh_seconds: float = 600, pause_seconds: float = 5, timeout_seconds: float = 5
    ) -> None:
        self._url = url
        self._fresh_seconds = fresh_seconds
        self._pause_seconds = pause_seconds
        self._timeout_seconds = timeout_seconds
        self._keys: list[jwt.PyJWK] = []
        self._fetched = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        """The one key that a token with this header can be signed with."""
        if key := self._known(header):
            if time.monotonic() - self._fetched > self._fresh_seconds:
                self._refresh()
            return key
        if fetching := self._refresh():
            await asyncio.shield(fetching)  # others wait for it too
        return self._known(header)

    def _known(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        algorithm, kid = header.get("alg"), header.get("kid")
        keys = [key for key in self._keys if key.algorithm_name == algorithm and kid in (None, key.key_id)]
        return keys[0] if len(keys) == 1 else None

    def _refresh(self) -> asyncio.Task[None] | None:
        """The fetch under way, or a new one unless the last is only a moment ago."""
        if self._fetching and not self._fetching.done():
            return self._fetching
        if time.monotonic() - self._tried < self._pause_seconds:
            return None
        self._tried = time.monotonic()
        self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_seconds), httpx2.AsyncClient(verify=_tls()) as client:
                response = (await client.get(self._url)).raise_for_status()
            keys = list(_usable(response.json()["keys"]))
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, TypeError, ValueError, KeyError, RecursionError) as error:
            log.warning("the keys at AUTH_JWKS_URL cannot be read: %s", type(error).__name__)
            return
        if not keys:
            log.warning("AUTH_JWKS_URL has no key for %s", ", ".join(ALGORITHMS))
        self._keys = keys
        self._fetched = time.monotonic()


@cache
def _tls() -> ssl.SSLContext:
    """One for the process: building it reads every root certificate, and nobody is answered meanwhile."""
    return ssl.create_default_context()


def _usable(entries: Iterable[Any]) -> Iterator[jwt.PyJWK]:
    """The keys we know how to use, each for one algorithm; a set may hold others (RFC 7517, section 5)."""
    for entry in entries:
        try:
            key = jwt.PyJWK.from_dict(entry)
        except (jwt.PyJWTError, AttributeError, TypeError, ValueError, KeyError):
            continue
        if key.algorithm_name in ALGORITHMS and entry.get("use", "sig") == "sig":
            yield key
