"""Requests of one user to one backend, and what can go wrong with them."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Self

import httpx2

from todo_client.sse import EventParser, RunEvent

Json = dict[str, Any]


class ApiError(Exception):
    """The server rejected a request; the text is its sentence, `status` that of HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class ConnectionLost(Exception):
    """There is no response, or it broke off: nobody knows what the server has done."""

    def __init__(self) -> None:
        super().__init__("The connection to the server is lost.")


class Client:
    """The base of the clients of each API. `timeout` is in seconds, of each silence; `auth` adds something to each
    request. A request with the same `key` acts once.

    `http` is for requests that have no method, such as `/health`.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 120,
        auth: httpx2.Auth | None = None,
    ) -> None:
        self.base_url = base_url
        encrypted = httpx2.URL(base_url).scheme == "https"  # else, loading certificates and proxies only costs time
        self.http = httpx2.AsyncClient(
            base_url=base_url,
            headers={**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})},
            auth=auth,
            timeout=httpx2.Timeout(timeout, connect=5),
            trust_env=encrypted,
            verify=encrypted,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    @asynccontextmanager
    async def open_response(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        media_type: str = "",
        **options: Any,
    ) -> AsyncIterator[httpx2.Response]:
        """Opens the response of a request that was accepted; `options` are those of `AsyncClient.build_request`."""
        sent = {**(headers or {}), **({"Idempotency-Key": key} if key else {})}
        request = self.http.build_request(method, path, json=body, headers=sent, **options)
        with connected():
            response = await self.http.send(request, stream=True)
        try:
            if not response.is_success or not response.headers.get("content-type", "").startswith(media_type):
                with connected():
                    await response.aread()
                raise ApiError(response.status_code, sentence(response))
            yield response
        finally:
            await response.aclose()

    async def request(self, method: str, path: str, body: Json | None = None, **options: Any) -> httpx2.Response:
        """Returns a complete response; `options` are those of `open_response`."""
        async with self.open_response(method, path, body, **options) as response:
            with connected():
                await response.aread()
        return response

    async def request_json(self, method: str, path: str, body: Json | None = None, **options: Any) -> Any:
        response = await self.request(method, path, body, media_type="application/json", **options)
        with connected():
            return response.json()

    @asynccontextmanager
    async def open_events(
        self, method: str, path: str, body: Json | None = None, **options: Any
    ) -> AsyncIterator[AsyncIterator[RunEvent]]:
        """Opens an event stream; `options` are those of `open_response`."""
        async with self.open_response(method, path, body, media_type="text/event-stream", **options) as response:
            yield _read_events(response)


async def _read_events(response: httpx2.Response) -> AsyncIterator[RunEvent]:
    """Raises `ConnectionLost` if the stream breaks off, also within an event."""
    parser = EventParser()
    with connected():
        async for piece in response.aiter_bytes():
            for event in parser.feed(piece):
                yield event
    if parser.is_incomplete:
        raise ConnectionLost


@contextmanager
def connected() -> Iterator[None]:
    """Raises `ConnectionLost` for a response that did not arrive or cannot be parsed."""
    try:
        yield
    except (httpx2.TransportError, ValueError) as error:
        raise ConnectionLost from error


def sentence(response: httpx2.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"The server answered with status {response.status_code}. Is this the assistant's address?"
