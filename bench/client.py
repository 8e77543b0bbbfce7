import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from todo_client.chatkit import request, user_input

_PROTOCOL = "2026-07-28"
_MCP_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": _PROTOCOL}
_META = {"io.modelcontextprotocol/protocolVersion": _PROTOCOL, "io.modelcontextprotocol/clientCapabilities": {}}


class RequestFailed(Exception):
    """The response was not the expected one; the message is its beginning."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from a request to the end of its response, and to its first bytes where they are measured."""

    total: float
    first: float = 0.0


class BenchClient:
    def __init__(self, session: aiohttp.ClientSession, backend_url: str, mcp_url: str) -> None:
        self.backend_url, self._mcp_url = backend_url, mcp_url
        self._session = session

    async def create_thread(self, text: str) -> tuple[Timing, str]:
        timing, body = await self._send_message(request("threads.create", input=user_input(text)))
        return timing, body.partition(b'"id":"')[2].partition(b'"')[0].decode()

    async def send_message(self, thread_id: str, text: str) -> Timing:
        timing, _ = await self._send_message(add_message(thread_id, text))
        return timing

    async def open_thread(self, thread_id: str) -> Timing:
        timing, _ = await self._send(f"{self.backend_url}/chatkit", request("threads.get_by_id", thread_id=thread_id))
        return timing

    async def call_tool(self, token: str, name: str, arguments: dict[str, Any]) -> Timing:
        params = {"name": name, "arguments": arguments, "_meta": _META}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**_MCP_HEADERS, "mcp-method": "tools/call", "mcp-name": name, "authorization": f"Bearer {token}"}
        timing, response = await self._send(self._mcp_url, body, headers)
        if b'"structuredContent"' not in response or json.loads(response)["result"].get("isError"):
            raise RequestFailed(response[:2000].decode(errors="replace"))
        return timing

    async def get_text(self, path: str) -> str:
        async with self._session.get(f"{self.backend_url}{path}") as response:
            return await response.text()

    @asynccontextmanager
    async def stream(self, body: dict[str, Any]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request to `POST /chatkit`; leaving the block early stops the answer."""
        async with self._session.post(f"{self.backend_url}/chatkit", json=body) as response:
            yield response

    async def _send_message(self, body: dict[str, Any]) -> tuple[Timing, bytes]:
        timing, response = await self._send(f"{self.backend_url}/chatkit", body)
        if b'"type":"error"' in response or b'"assistant_message"' not in response:
            raise RequestFailed(response[:2000].decode(errors="replace"))
        return timing, response

    async def _send(
        self, url: str, body: dict[str, Any], headers: dict[str, str] | None = None
    ) -> tuple[Timing, bytes]:
        began = time.perf_counter()
        async with self._session.post(url, json=body, headers=headers) as response:
            content = await response.content.readany()
            first = time.perf_counter() - began
            content += await response.content.read()
            if response.status != 200:
                raise RequestFailed(f"{response.status} {content[:2000].decode(errors='replace')}")
        return Timing(time.perf_counter() - began, first), content


def add_message(thread_id: str, text: str) -> dict[str, Any]:
    return request("threads.add_user_message", thread_id=thread_id, input=user_input(text))
