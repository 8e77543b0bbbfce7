"""The public keys of the operator's identity provider."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import httpx2
import jwt

from common.tls import tls_context
from common.tokens import published

log = logging.getLogger(__name__)

_LARGEST_BYTES = 256 * 1024
_NAMED = 5


class KeySet:
    """Keys behind a JWKS URL, fetched again when they are old or a token names another one.

    Keys that are no longer fresh open nothing before the address was asked again; while it is away they are used up to
    their maximum age, and nobody waits for it more than once.
    """

    def __init__(
        self,
        url: str,
        *,
        max_age_seconds: float = 14_400,
        fresh_seconds: float = 600,
        pause_seconds: float = 5,
        timeout_seconds: float = 5,
        away_seconds: float = 30,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url = url
        self._max_age_seconds = max_age_seconds
        self._fresh_seconds = min(fresh_seconds, max_age_seconds)
        self._pause_seconds = pause_seconds
        self._timeout_seconds = timeout_seconds
        self._away_seconds = away_seconds
        self._keys: list[jwt.PyJWK] = []
        self._clock = clock
        self._fetched = _Moment(clock, since=float("-inf"))
        self._tried = self._failed = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._named: Sequence[str] = ()

    async def find(self, header: dict[str, Any]) -> jwt.PyJWK | None:
        """The one key that a token with this header can be signed with."""
        age = self._fetched.age()
        key = self._known(header) if age <= self._max_age_seconds else None
        if key and age <= self._fresh_seconds:
            return key
        fetching = self._refresh()
        if key and time.monotonic() - self._failed < self._away_seconds:
            return key
        if fetching:
            await asyncio.shield(fetching)  # others wait for it too
        return self._known(header) if self._fetched.age() <= self._max_age_seconds else None

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
        asked = _Moment(self._clock, since=time.monotonic())
        try:
            async with asyncio.timeout(self._timeout_seconds):
                keys, left_out = published.read(await _document(self._url))
        except Exception as error:  # noqa: BLE001 - whatever somebody else's server sends, the next fetch goes on
            log.warning("the keys at AUTH_JWKS_URL cannot be read: %s", type(error).__name__)
            self._failed = time.monotonic()
            return
        if not keys:
            log.warning("AUTH_JWKS_URL has no key for %s", ", ".join(published.ALGORITHMS))
        if left_out and left_out != self._named:
            more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
            log.warning("AUTH_JWKS_URL has keys that cannot be used: %s%s", "; ".join(left_out[:_NAMED]), more)
        self._named = left_out
        self._keys = keys
        self._fetched = asked
        self._failed = float("-inf")


class _Moment:
    """A point in monotonic time whose age also counts the time for which the machine slept, as the clock does."""

    def __init__(self, clock: Callable[[], float], *, since: float) -> None:
        self._clock, self._since, self._began = clock, since, clock()

    def age(self) -> float:
        return max(time.monotonic() - self._since, self._clock() - self._began)


class TooLarge(Exception):
    """The key set is larger than 256 KiB."""


class Encoded(Exception):
    """The key set was sent compressed, which was not asked for."""


async def _document(url: str) -> bytes:
    """What the address answers; redirects are not followed, for they would choose whose keys are taken."""
    headers = {"accept-encoding": "identity"}
    body = bytearray()
    async with (
        httpx2.AsyncClient(verify=tls_context(), headers=headers) as client,
        client.stream("GET", url) as response,
    ):
        response.raise_for_status()
        if response.headers.get("content-encoding", "identity") != "identity":
            raise Encoded
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > _LARGEST_BYTES:
                raise TooLarge
    return bytes(body)


def unprotected(url: str) -> str | None:
    """The warning about an address whose answers can be forged on their way, or None."""
    parsed = httpx2.URL(url)
    if parsed.scheme == "https" or parsed.host == "localhost":
        return None
    with suppress(ValueError):  # a name
        if ip_address(parsed.host).is_loopback:
            return None
    return (
        "AUTH_JWKS_URL is http://, so an attacker on the network could replace the keys and sign in as any user: "
        "use the https:// address"
    )
