"""A call of a task tool, sent as the one HTTP request that it is.

Since the protocol of 2026-07-28 a call is a POST of its own and knows no session; our server answers it with JSON,
never with a stream of events. The MCP client takes 1.4 ms of processor for it where this takes 0.2, and a turn some
ten: tests/couplings/test_task_calls.py holds what is sent here to what that client sends.
"""

import itertools
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import aiohttp
import httpx2
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, CallToolResult, Implementation
from pydantic import ValidationError
from pydantic_core import to_json

from backend.tools.resending import NoAnswer, answered, fault_of, watched
from service.tls import tls_context

_OF_PROTOCOL = "io.modelcontextprotocol/"
_MOST, _IDLE_SECONDS, _CONNECT_SECONDS = 100, 30, 5


class TaskCalls:
    """Over connections that are kept. A call is sent until there is an answer: it reads, or its key lets it act once.

    `signed` makes the header that says for whom a call is made. A server that says nothing for `answer_seconds` has
    stopped.
    """

    def __init__(
        self,
        url: str,
        *,
        protocol: str,
        client: Implementation,
        signed: Callable[[], Mapping[str, str]],
        resend_seconds: float,
        answer_seconds: float,
    ) -> None:
        address = httpx2.URL(url)
        named = aiohttp.encode_basic_auth(address.username, address.password) if address.userinfo else None
        self._host = address.host
        self._url = str(address.copy_with(userinfo=b"", fragment=None))
        self._signed = signed
        self._resend_seconds = resend_seconds
        self._timeout = aiohttp.ClientTimeout(
            connect=answer_seconds, sock_connect=_CONNECT_SECONDS, sock_read=answer_seconds
        )
        self._headers = {
            "accept": "application/json, text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "mcp-protocol-version": protocol,
            "mcp-method": "tools/call",
            **({"authorization": named} if named else {}),
        }
        self._meta = {
            f"{_OF_PROTOCOL}protocolVersion": protocol,
            f"{_OF_PROTOCOL}clientInfo": client.model_dump(by_alias=True, mode="json", exclude_none=True),
            f"{_OF_PROTOCOL}clientCapabilities": {},
        }
        self._numbers = itertools.count(1)
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "TaskCalls":
        connector = aiohttp.TCPConnector(limit=_MOST, keepalive_timeout=_IDLE_SECONDS, ssl=tls_context())
        self._http = aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar()
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def make(self, tool: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> CallToolResult:
        """What the tool says; raises `NoAnswer` where nothing of use comes, and `MCPError` for what is no result."""
        params = {"name": tool, "arguments": arguments, "_meta": {**meta, **self._meta}}
        asked = {"jsonrpc": "2.0", "id": next(self._numbers), "method": "tools/call", "params": params}
        headers = {**self._headers, "mcp-name": tool, **self._signed(), **watched()}
        once = partial(self._once, to_json(asked), headers)
        return _result(await answered(once, host=self._host, seconds=self._resend_seconds))

    async def _once(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        assert self._http is not None, "it is not connected"
        try:
            async with self._http.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                told = await response.read()
        except (aiohttp.ClientError, OSError, ValueError) as error:
            again = not isinstance(error, aiohttp.SocketTimeoutError)
            raise NoAnswer(type(error).__name__, again=again) from error
        fault = fault_of(response.status, response.headers.get("content-type", ""), told)
        if fault is not None:
            raise NoAnswer(fault, again=True)
        return told


def _result(told: bytes) -> CallToolResult:
    try:
        answer = json.loads(told)
        if (error := answer.get("error")) is not None:
            raise MCPError(code=error["code"], message=error["message"], data=error.get("data"))
        return CallToolResult.model_validate(answer["result"], by_name=False)
    except (ValueError, AttributeError, LookupError, TypeError, ValidationError) as error:
        raise MCPError(code=INTERNAL_ERROR, message="The answer is none to a tool call.") from error
