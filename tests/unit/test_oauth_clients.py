"""Clients with a metadata document (CIMD), which FastMCP fetches from public addresses only."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from fastmcp.server.auth import cimd
from fastmcp.server.auth.ssrf import SSRFFetchResponse

from backend.api.oauth.clients import Clients
from tests.tokens import MCP_TOKEN_SECRET

ADDRESS = "https://client.example/oauth/client.json"
DOCUMENT = {
    "client_id": ADDRESS,
    "client_name": "A client",
    "redirect_uris": ["http://localhost/callback", "https://client.example/*", "javascript:alert(1)"],
    "token_endpoint_auth_method": "none",
}
Publish = Callable[..., Clients]


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Returns a function that has the document at the address."""

    def change(content: bytes | None = None, /, **fields: Any) -> Clients:
        async def fetch(*_: Any, **__: Any) -> SSRFFetchResponse:
            return SSRFFetchResponse(content or json.dumps(DOCUMENT | fields).encode(), 200, {})

        monkeypatch.setattr(cimd, "ssrf_safe_fetch_response", fetch)
        return Clients(MCP_TOKEN_SECRET)

    return change


async def test_known_client(publish: Publish) -> None:
    client = await publish().find(ADDRESS)
    assert client
    assert (client.name, client.host) == ("A client", "client.example")
    for allowed in ("http://localhost/callback", "http://localhost:40123/callback"):
        assert client.allows(allowed), allowed
    for foreign in (
        *(
            "http://127.0.0.1/callback",
            "http://localhost/other",
            "https://client.example/callback",
            "javascript:alert(1)",
        ),
        "http://localhost:1@evil.example/callback",
    ):
        assert not client.allows(foreign), foreign


async def test_what_clients_call_themselves_is_not_logged(
    publish: Publish, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """FastMCP writes it into a line of its own."""
    assert await publish(client_name="name of the log").find(ADDRESS)
    assert "name of the log" not in caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "fields",
    [
        {"client_id": "https://other.example/client.json"},
        {"client_id": f"{ADDRESS}/"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"client_name": ["x"]},
    ],
)
async def test_documents_that_are_not_accepted(publish: Publish, fields: dict[str, Any]) -> None:
    assert await publish(**fields).find(ADDRESS) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 5_000, b'{"client_id": 1e999}'])
async def test_no_document(publish: Publish, content: bytes) -> None:
    assert await publish(content or b" ").find(ADDRESS) is None


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://client.example/c.json",
            "https://client.example",
            "https://client.example/",
            "https://client.example:x/c",
        ),
        *(
            "https://user@client.example/c.json",
            "https://client.example/c.json#x",
            "https:///c.json",
            "https://[/c.json",
        ),
        f"https://client.example/{'x' * 400}",
    ],
)
async def test_addresses_that_are_not_fetched(publish: Publish, address: str) -> None:
    assert await publish(client_id=address).find(address) is None
