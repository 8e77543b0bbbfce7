"""Makes requests whose only purpose is to load modules, because the account may not read their files later."""

from typing import Any

import httpx2
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from starlette.types import ASGIApp

_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HELLO = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "workspace", "version": "1"},
}


async def load_modules(app: ASGIApp, tool: str, *, token: str) -> None:
    """Makes the first requests of both protocol versions, with a call that is rejected."""
    call = {"name": tool, "arguments": {"unknown": True}}
    requests: list[tuple[str, str, dict[str, Any]]] = [
        (LATEST_HANDSHAKE_VERSION, "initialize", _HELLO),
        (LATEST_HANDSHAKE_VERSION, "tools/list", {}),
        (LATEST_HANDSHAKE_VERSION, "tools/call", call),
        (LATEST_MODERN_VERSION, "server/discover", {"_meta": _ENVELOPE}),
        (LATEST_MODERN_VERSION, "tools/list", {"_meta": _ENVELOPE}),
        (LATEST_MODERN_VERSION, "tools/call", {**call, "_meta": _ENVELOPE}),
    ]
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app),
        base_url="http://127.0.0.1",
        headers={"accept": "application/json, text/event-stream", "authorization": f"Bearer {token}"},
    ) as http:
        for version, method, params in requests:
            headers = {"mcp-protocol-version": version, "mcp-method": method}
            if "name" in params:
                headers["mcp-name"] = params["name"]
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            response = await http.post("/mcp", json=body, headers=headers)
            response.raise_for_status()
