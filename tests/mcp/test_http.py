"""Requests over HTTP. Foreign hosts and websites, and the headers of responses, are in tests/api/test_edge.py."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.logins import as_owner
from tests.mcp.servers import own, serve_tools
from tests.mcp.wire import ENVELOPE, LEGACY, MODERN, call, send
from tests.processes import ServiceProcess
from tests.support.stored import Stored

both = pytest.mark.parametrize("version", [MODERN, LEGACY])


@pytest.fixture
async def public(session_database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A server with settings for a public address."""
    public = {"allowed_hosts": "todo.example, mcp", "allowed_origins": "https://page.example"}
    public |= {"auth_none_beyond_loopback": "true"}
    async with serve_tools(session_database_url, **public) as client:
        yield client


@pytest.fixture
def title(user: str) -> str:
    """Of a task that nobody else adds for the local user."""
    return user


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


@both
@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"content": b"x" * 5 * 1024 * 1024}, 413),
        *[
            ({"content": content}, 400)
            for content in (b"{", b"\xff", b"[]", b'"text"', b"{}", b"[" * 10_000, b'{"jsonrpc": "2.0", "id": 1}')
        ],
        ({"accept": "text/html"}, 406),
    ],
)
async def test_rejected_requests(
    http: httpx2.AsyncClient, stored: Stored, title: str, version: str, more: dict[str, Any], status: int
) -> None:
    response = await post(http, {"title": title}, version=version, **more)
    assert response.status_code == status
    if status == 400:
        assert "error" in response.json()
    assert title not in stored.titles("local")


@both
@pytest.mark.parametrize("arguments", [[1], "title", 5])
async def test_arguments_that_are_no_object(http: httpx2.AsyncClient, version: str, arguments: Any) -> None:
    response = await post(http, arguments, version=version)
    assert response.status_code < 500
    assert response.json()["error"]["code"] == -32602


@both
@pytest.mark.parametrize("odd", [{"title": "a\ud800"}, {"\udfff": 1}, {"title": float("nan")}])
async def test_text_that_is_no_text(
    http: httpx2.AsyncClient, stored: Stored, title: str, version: str, odd: dict[str, Any]
) -> None:
    response = await post(http, {"title": title, **odd}, version=version)
    assert response.status_code < 500
    answer = response.json()
    assert "error" in answer or answer["result"]["isError"]
    assert title not in stored.titles("local")


async def test_unknown_protocol(http: httpx2.AsyncClient) -> None:
    assert (await post(http, {"title": "milk"}, version="2099-01-01")).status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("GET", "/nothing", 404, "There is nothing at /nothing. The address for MCP clients is /mcp."),
        ("POST", "/", 404, "There is nothing at /. The address for MCP clients is /mcp."),
        ("GET", "/mcp", 405, "/mcp is the address for MCP clients, which send POST requests to it."),
        ("DELETE", "/mcp", 405, "/mcp is the address for MCP clients, which send POST requests to it."),
        ("PUT", "/tasks", 405, "PUT is not allowed at /tasks. Use GET or HEAD."),
    ],
)
async def test_errors_have_a_sentence(
    http: httpx2.AsyncClient, method: str, path: str, status: int, sentence: str
) -> None:
    response = await http.request(method, path)
    assert response.status_code == status
    assert [*response.json()] == ["error"]
    assert response.json()["error"].endswith(sentence)
    allowed = {"/mcp": "POST", "/tasks": "GET, HEAD"}[path] if status == 405 else None
    assert response.headers.get("allow") == allowed


async def test_body_that_is_not_declared_as_json(http: httpx2.AsyncClient) -> None:
    declared: dict[str, Any] = {"content-type": "text/plain"}
    response = await post(http, {"title": "milk"}, version=LEGACY, **declared)
    assert response.status_code == 415
    assert response.json()["error"].startswith("The body must be JSON with Content-Type: application/json.")


@both
@pytest.mark.parametrize("declared", ["Application/JSON", "APPLICATION/JSON; Charset=UTF-8"])
async def test_media_type_in_capitals(http: httpx2.AsyncClient, version: str, declared: str) -> None:
    response = await post(http, {"title": "milk"}, version=version, **dict[str, Any]({"content-type": declared}))
    assert response.status_code == 200
    assert response.json()["result"]["structuredContent"]["title"] == "milk"


@both
@pytest.mark.parametrize("content", [b"{}", b"null", b'{"jsonrpc": "2.0", "id": 1}', b'{"id": 1, "method": "x"}', b"5"])
async def test_message_that_is_no_json_rpc(http: httpx2.AsyncClient, version: str, content: bytes) -> None:
    response = await post(http, None, version=version, content=content)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["code"] == -32600
    assert error["message"] == (
        'This is no JSON-RPC message. Send an object with "jsonrpc": "2.0" and the name of a method.'
    )


@both
@pytest.mark.parametrize("params", [b"[]", b'"x"', b"5"])
async def test_params_that_are_no_object(http: httpx2.AsyncClient, version: str, params: bytes) -> None:
    content = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": ' + params + b"}"
    response = await post(http, None, version=version, content=content)
    message = "The params of a request must be an object. Send it again with such params, or without any."
    assert response.status_code == 400
    assert response.json() == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32600, "message": message}}


@both
async def test_the_path_with_a_slash(http: httpx2.AsyncClient, version: str) -> None:
    response = await post(http, {"title": "milk"}, version=version, path="/mcp/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.json()["result"]["structuredContent"]["title"] == "milk"


@both
@pytest.mark.parametrize("accept", ["application/json", "Application/Json;q=0.9", "*/*", "", None])
async def test_accept(http: httpx2.AsyncClient, version: str, accept: str | None) -> None:
    made = http.build_request("POST", "/mcp", json=request_body({"title": "milk"}, version), headers=headers(version))
    del made.headers["accept"]
    if accept is not None:
        made.headers["accept"] = accept
    response = await http.send(made)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json"), response.text
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


async def test_the_owner_of_the_tables_is_ready_with_a_warning(session_database_url: str) -> None:
    async with serve_tools(as_owner(session_database_url)) as http:
        response = await http.get("/ready")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    assert response.json()["warning"]


async def test_allowed_hosts(public: httpx2.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    for host in ("todo.example", "mcp:8001", "localhost", "127.0.0.1:9", "[::1]:8001"):
        assert (await public.get("/health", headers={"host": host})).status_code == 200
    own_page = {"host": "[::1]:8001", "origin": "http://[::1]:8001"}
    assert (await public.get("/health", headers=own_page)).status_code == 200
    assert (await public.get("/health", headers={"host": "other.example"})).status_code == 421
    assert (await public.get("/health", headers={"origin": "https://other.example"})).status_code == 403
    for named in ("other.example", "https://other.example", "ALLOWED_HOSTS", "ALLOWED_ORIGINS"):
        assert named in caplog.text


async def test_without_sign_in_only_this_machine_is_served(session_database_url: str) -> None:
    async with serve_tools(session_database_url, allowed_hosts="todo.example") as client:
        for name in ("Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Via"):
            proxied: dict[str, Any] = {name: "127.0.0.1"}
            rejected = await post(client, {"title": ""}, **proxied)
            assert (rejected.status_code, "AUTH_NONE_BEYOND_LOOPBACK" in rejected.text) == (403, True), name
        assert (await post(client, {"title": ""}, host="todo.example")).status_code == 403
        assert (await post(client, {"title": ""}, host="localhost")).status_code == 200


async def test_a_page_of_an_allowed_origin(public: httpx2.AsyncClient) -> None:
    page = {"origin": "https://page.example"}
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-protocol-version"}
    preflight = await public.options("/mcp", headers=page | asked)
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == page["origin"]
    answer = await post(public, {"title": ""}, origin=page["origin"])
    assert answer.headers["access-control-allow-origin"] == page["origin"]
    assert (await public.options("/mcp", headers={"origin": "https://evil.example"} | asked)).status_code == 403


CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "ok": ("add_task", {"title": "milk"}, "tool=add_task owner={user} outcome=ok"),
    "missing": ("complete_task", {"task_id": 9}, "tool=complete_task owner={user} outcome=refused error=TaskNotFound"),
    "foreign": ("list_tasks", {"user_id": "bob"}, "tool=list_tasks owner={user} outcome=refused error=ForeignUserId"),
    "wrong": (
        "add_task",
        {"title": 5, "milk": "milk"},
        "tool=add_task owner={user} outcome=refused error=ArgumentsInvalid",
    ),
    "unknown": ("drink_milk", {}, "tool=unknown owner={user} outcome=refused error=UnknownTool"),
}


@pytest.mark.parametrize(("tool", "arguments", "line"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_a_call_is_one_line_of_the_log_without_its_content(
    guarded: ServiceProcess,
    guarded_http: httpx2.AsyncClient,
    user: str,
    version: str,
    tool: str,
    arguments: dict[str, Any],
    line: str,
) -> None:
    guarded_http.headers["X-Request-ID"] = f"request-of-{user}"
    await send(guarded_http, call(tool, arguments, version=version, token=own(sub=user)))
    [found] = [each for each in guarded.log_text.splitlines() if each.endswith(f" request_id=request-of-{user}")]
    assert re.search(rf" INFO .*: tool call {line.format(user=user)} seconds=\d+\.\d+ ", found)
    assert "milk" not in found


async def test_metrics_need_no_token_and_name_nobody(guarded_http: httpx2.AsyncClient, user: str) -> None:
    await send(guarded_http, call("add_task", {"title": "milk"}, token=own(sub=user)))
    metrics = await guarded_http.get("/metrics")
    assert metrics.status_code == 200
    assert 'todo_tool_call_seconds_count{outcome="ok",tool="add_task"}' in metrics.text
    assert user not in metrics.text
    assert "milk" not in metrics.text
