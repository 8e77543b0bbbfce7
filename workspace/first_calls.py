"""Makes requests whose only purpose is to load modules, because the account may not read their files later."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from starlette.types import ASGIApp, Message

_ME = {"name": "workspace", "version": "1"}
_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def load_modules(app: ASGIApp, tools: Iterable[str], *, token: str | None) -> None:
    """Makes the first requests of both protocol versions, with calls that are rejected."""
    post = partial(_post_request, app, token)
    hello = {"protocolVersion": LATEST_HANDSHAKE_VERSION, "capabilities": {}, "clientInfo": _ME}
    await post(LATEST_HANDSHAKE_VERSION, "initialize", hello)
    await post(LATEST_MODERN_VERSION, "server/discover", {})
    for version in (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION):
        await post(version, "tools/list", {})
        for tool in tools:
            await post(version, "tools/call", {"name": tool, "arguments": {"unknown": True}})


async def _post_request(app: ASGIApp, token: str | None, version: str, method: str, params: dict[str, Any]) -> None:
    if version == LATEST_MODERN_VERSION:
        params = {**params, "_meta": _ENVELOPE}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    headers = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "content-length": str(len(body)),
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": method,
    }
    if "name" in params:
        headers["mcp-name"] = params["name"]
    if token:
        headers["authorization"] = f"Bearer {token}"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 0),
        "server": ("127.0.0.1", 80),
    }
    status = 0

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]

    await app(scope, receive, send)
    assert status == 200, f"{method} of protocol {version} answered {status}"
