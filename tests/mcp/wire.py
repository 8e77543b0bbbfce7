"""Requests as they are on the wire, in both protocols, for what no client library would send."""

import json
from typing import Any

import httpx2

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    version: str = MODERN,
    token: str | None = None,
    meta: dict[str, Any] | None = None,
) -> httpx2.Request:
    """A request to be sent by a client that knows the address."""
    meta = (ENVELOPE if version == MODERN else {}) | (meta or {})
    params = {**(params or {}), **({"_meta": meta} if meta else {})}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": method,
    }
    if "name" in params:
        headers["mcp-name"] = params["name"]
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    return httpx2.Request("POST", "http://placeholder/mcp", headers=headers, content=body.encode())


def call(tool: str, arguments: dict[str, Any], **options: Any) -> httpx2.Request:
    return request("tools/call", {"name": tool, "arguments": arguments}, **options)


def cancelled(request_id: object, *, token: str | None = None) -> httpx2.Request:
    made = request("notifications/cancelled", {"requestId": request_id}, version=LEGACY, token=token)
    message = json.loads(made.content)
    del message["id"]
    headers = [(name, value) for name, value in made.headers.raw if name.lower() not in (b"host", b"content-length")]
    return httpx2.Request("POST", made.url, headers=headers, content=json.dumps(message).encode())


async def send(http: httpx2.AsyncClient, made: httpx2.Request) -> httpx2.Response:
    return await http.post("/mcp", content=made.content, headers=made.headers.raw[1:])


def sentence(response: httpx2.Response) -> str:
    """What a rejected tool call is answered with."""
    result = response.json()["result"]
    assert result["isError"], result
    (block,) = result["content"]
    return block["text"]


def result(response: httpx2.Response) -> dict[str, Any]:
    """The structured result of a tool call."""
    assert response.status_code == 200, response.text
    answer = response.json()["result"]
    assert not answer["isError"], answer
    return answer["structuredContent"]
