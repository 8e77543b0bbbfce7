"""The HTTP edge: who may ask, how much, and where."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from mcp_server.server import create_app
from mcp_server.settings import Settings
from tests.logins import as_owner
from tests.mcp_server.conftest import Rows
from tests.mcp_server.wire import ENVELOPE, LEGACY, MODERN
from tests.serving import serve


@pytest.fixture
async def http(server_at: str, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(verify=False, base_url=server_at) as client:
        yield client


@pytest.fixture
async def public(session_database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    settings = Settings.model_validate(
        {
            "database_url": session_database_url,
            "allowed_hosts": "todo.example, mcp",
            "allowed_origins": "https://page.example",
        }
    )
    async with serve(create_app(settings)) as base, httpx2.AsyncClient(verify=False, base_url=base) as client:
        yield client


async def post(
    client: httpx2.AsyncClient,
    arguments: Any,
    *,
    version: str = MODERN,
    path: str = "/mcp",
    content: bytes | None = None,
    **more_headers: str,
) -> httpx2.Response:
    body = content or json.dumps(request_body(arguments, version)).encode()
    return await client.post(path, content=body, headers=headers(version) | more_headers)


def request_body(arguments: Any, version: str) -> dict[str, Any]:
    params = {"name": "add_task", "arguments": arguments} | ({"_meta": ENVELOPE} if version == MODERN else {})
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def headers(version: str) -> dict[str, str]:
    return {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": version,
        "mcp-method": "tools/call",
        "mcp-name": "add_task",
    }


@pytest.mark.parametrize("version", [MODERN, LEGACY])
class TestRefused:
    async def test_a_foreign_host(self, http: httpx2.AsyncClient, rows: Rows, version: str) -> None:
        assert (await post(http, {"title": "milk"}, version=version, host="evil.example")).status_code == 421
        assert rows.tasks() == []

    async def test_a_foreign_page(self, http: httpx2.AsyncClient, rows: Rows, version: str) -> None:
        response = await post(http, {"title": "milk"}, version=version, origin="https://evil.example")
        assert response.status_code == 403
        assert rows.tasks() == []

    async def test_too_much(self, http: httpx2.AsyncClient, version: str) -> None:
        assert (await post(http, {"title": "x" * 5 * 1024 * 1024}, version=version)).status_code == 413

    @pytest.mark.parametrize(
        "content", [b"{", b"\xff", b"[]", b'"text"', b"{}", b"[" * 10_000, b'{"jsonrpc": "2.0", "id": 1}']
    )
    async def test_what_is_no_request(self, http: httpx2.AsyncClient, version: str, content: bytes) -> None:
        response = await post(http, {}, version=version, content=content)
        assert response.status_code == 400
        assert "error" in response.json()

    @pytest.mark.parametrize("arguments", [[1], "title", 5])
    async def test_arguments_that_are_no_object(self, http: httpx2.AsyncClient, version: str, arguments: Any) -> None:
        response = await post(http, arguments, version=version)
        assert response.status_code < 500
        assert response.json()["error"]["code"] == -32602

    @pytest.mark.parametrize("arguments", [{"title": "a\ud800"}, {"title": "a", "\udfff": 1}, {"title": float("nan")}])
    async def test_text_that_is_no_text(
        self, http: httpx2.AsyncClient, rows: Rows, version: str, arguments: dict[str, Any]
    ) -> None:
        response = await post(http, arguments, version=version)
        assert response.status_code < 500
        answer = response.json()
        assert "error" in answer or answer["result"]["isError"]
        assert rows.tasks() == []


async def test_unknown_protocols_and_paths(http: httpx2.AsyncClient) -> None:
    assert (await post(http, {"title": "milk"}, version="2099-01-01")).status_code == 400
    assert (await http.get("/mcp")).status_code == 405
    assert (await http.get("/")).status_code == 404


@pytest.mark.parametrize("version", [MODERN, LEGACY])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_both_spellings_of_the_path(http: httpx2.AsyncClient, version: str, path: str) -> None:
    response = await post(http, {"title": "milk"}, version=version, path=path)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["structuredContent"]["title"] == "milk"


async def test_spaces_around_header_values(http: httpx2.AsyncClient) -> None:
    """They belong to no value (RFC 9110, section 5.5); no client library sends them, so the bytes are written here."""
    request = http.build_request("POST", "/mcp", json=request_body({"title": "milk"}, MODERN), headers=headers(MODERN))
    lines = [b"POST /mcp HTTP/1.1", *(name + b": \t" + value + b" \t " for name, value in request.headers.raw)]
    reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
    writer.write(b"\r\n".join([*lines, b"", request.content]))
    assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
    writer.close()
    await writer.wait_closed()


async def test_health_and_readiness(http: httpx2.AsyncClient) -> None:
    for path, answer in (("/health", {"status": "ok"}), ("/ready", {"status": "ready"})):
        response = await http.get(path)
        assert (response.status_code, response.json()) == (200, answer)


async def test_the_owner_is_ready_with_a_warning(database_url: str) -> None:
    app = create_app(Settings.model_validate({"database_url": as_owner(database_url)}))
    async with serve(app) as base, httpx2.AsyncClient(base_url=base, trust_env=False) as http:
        response = await http.get("/ready")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    assert response.json()["warning"].startswith("The services log in as the owner of the tables, ")


@pytest.mark.parametrize("host", ["todo.example", "mcp:8001", "localhost", "127.0.0.1:9"])
async def test_allowed_hosts(public: httpx2.AsyncClient, host: str) -> None:
    assert (await public.get("/health", headers={"host": host})).status_code == 200


async def test_the_log_names_who_stays_out(public: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    assert (await public.get("/health", headers={"host": "other.example"})).status_code == 421
    assert (await public.get("/health", headers={"origin": "https://other.example"})).status_code == 403
    assert [record.getMessage() for record in caplog.records if record.name == "service.tool_server.edge"] == [
        "refused Host 'other.example': if it is yours, add it to ALLOWED_HOSTS",
        "refused Origin 'https://other.example': if it is yours, add it to ALLOWED_ORIGINS",
    ]


async def test_a_page_of_an_allowed_origin_may_ask_and_read(public: httpx2.AsyncClient) -> None:
    page = {"origin": "https://page.example"}
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-protocol-version"}
    preflight = await public.options("/mcp", headers=page | asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == page["origin"]
    answer = await post(public, {"title": ""}, origin=page["origin"])
    assert answer.headers["access-control-allow-origin"] == page["origin"]
    assert (await public.options("/mcp", headers={"origin": "https://evil.example"} | asked)).status_code == 403


async def test_every_answer_carries_the_usual_headers(http: httpx2.AsyncClient) -> None:
    answers = [
        *[await http.get(path) for path in ("/health", "/ready", "/metrics", "/nothing")],
        await post(http, {"title": "milk"}),
        await post(http, {"title": "milk"}, host="evil.example"),
        await post(http, {"title": "milk"}, origin="https://evil.example"),
        await post(http, None, content=b"{"),
    ]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "strict-transport-security" not in answer.headers
    secure = await http.get("/health", headers={"x-forwarded-proto": "https"})
    assert secure.headers["strict-transport-security"] == "max-age=31536000"
