"""Connects to another MCP server over Streamable HTTP, and counts what it sends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from backend.tools.connectors.configuration import Connector
from backend.tools.connectors.http_failure import keep_status
from backend.tools.connectors.read_limit import ReadLimit, TooMuchSent
from backend.tools.connectors.received_messages import CheckedStream
from common.tls import get_tls_context

_PIECE_BYTES = 8_192  # is parsed at once: of a long chunk with many small events, other requests wait only for a part


@asynccontextmanager
async def connect_to_server(server: Connector, limit: ReadLimit) -> AsyncIterator[tuple[CheckedStream, Any]]:
    async def count_response(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":
            limit.fail(TooMuchSent("compresses its answers, although it was asked not to"))
        response.stream = _CountedStream(response.stream, limit)
        await keep_status(response)

    async def limit_time(request: httpx2.Request) -> None:
        if request.method == "DELETE":  # the end of a session, after which nobody waits for it
            request.extensions["timeout"] = httpx2.Timeout(server.timeout).as_dict()

    # No redirects: they would take the headers along.
    client = httpx2.AsyncClient(
        headers=[*server.headers.items(), ("accept-encoding", "identity")],
        limits=httpx2.Limits(keepalive_expiry=2),  # most servers close idle connections after five seconds
        timeout=httpx2.Timeout(server.timeout, read=None),
        verify=get_tls_context(),
        event_hooks={"request": [limit_time], "response": [count_response]},
    )
    async with client, streamable_http_client(server.url or "", http_client=client) as (messages, sending):
        yield CheckedStream(messages, limit), sending


class _CountedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: object, limit: ReadLimit) -> None:
        assert isinstance(stream, httpx2.AsyncByteStream)
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._limit.count(chunk)
            for start in range(0, len(chunk), _PIECE_BYTES):
                yield chunk[start : start + _PIECE_BYTES]
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        await self._stream.aclose()
