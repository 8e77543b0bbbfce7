"""HTTP to the identity provider: one client for each operation, with limits of time and size."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client

from backend.errors import BackendError
from common.tls import get_tls_context

_SECONDS = 10.0  # for all requests of an operation
_MAX_BYTES = 512_000  # of a response


class ProviderUnavailable(BackendError):
    """The identity provider cannot be reached, or gave an unusable answer. Try again in a moment."""

    code, status = "provider_unavailable", 503
    allow_retry = True
    retry_seconds = 5

    def __init__(self, reason: str) -> None:
        """`reason` is for the log."""
        super().__init__()
        self.reason = reason


class _TooLarge(Exception):
    """The provider sent more than any answer needs."""


@asynccontextmanager
async def open_client(client_id: str, client_secret: str | None = None) -> AsyncIterator[Any]:
    """Yields an `AsyncOAuth2Client` that follows no redirects.

    Its block ends with `ProviderUnavailable`, or with authlib's `OAuthError` for an error that the provider names.
    """
    client: Any = AsyncOAuth2Client(  # of httpx2, which a type checker cannot see
        client_id,
        client_secret,
        headers={"accept-encoding": "identity"},  # so that the bytes that are counted are those that are parsed
        timeout=_SECONDS,
        verify=get_tls_context(),
        event_hooks={"request": [], "response": [_limit_size]},
    )
    try:
        async with asyncio.timeout(_SECONDS), client:
            yield client
    except (OAuthError, BackendError):
        raise
    except Exception as error:  # libraries raise anything for what a provider may send
        raise ProviderUnavailable(type(error).__name__) from error


async def fetch_object(client: Any, url: str, **headers: str) -> dict[str, Any]:
    response = await client.request("GET", url, withhold_token=True, headers=headers)
    if response.status_code != 200:
        raise ProviderUnavailable(f"{httpx2.URL(url).path} answered with {response.status_code}")
    found = response.json()
    if not isinstance(found, dict):
        raise ProviderUnavailable(f"{httpx2.URL(url).path} is no JSON object")
    return found


async def _limit_size(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _TooLarge
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _LimitedStream(response.stream)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        received = 0
        async for chunk in self._stream:
            received += len(chunk)
            if received > _MAX_BYTES:
                raise _TooLarge
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
