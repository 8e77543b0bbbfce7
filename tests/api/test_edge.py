"""What each service checks of every request before it looks who asks, and the headers of every response."""

import asyncio
import json

import httpx2
import pytest

from tests.serving import http_client
from tests.support.fixtures import StartStack
from tests.support.stack import Services, Stack
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.chatkit import request, user_input

FOREIGN_HOSTS = ("evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.nip.io")
ODD_PORTS = ('localhost:evil"><script>', "localhost:8000:1")
FOREIGN_ORIGINS = ("https://evil.example", "null", "http://localhost.evil.example")
PATHS = {
    "backend": ("/chatkit", "/", "/ready", "/nothing"),
    "mcp": ("/mcp", "/ready", "/nothing"),
    "workspace": ("/mcp", "/files", "/ready", "/nothing"),
}
each_service = pytest.mark.parametrize("service", PATHS)


def url_of(service: str, stack: Stack) -> str:
    services: Services = stack.services
    return {"backend": stack.url, "mcp": services.mcp.url, "workspace": services.workspace.url}[service]


def sentence(response: httpx2.Response) -> str:
    text = response.json()["error"]
    assert text.endswith(".")
    return text


def check_headers(response: httpx2.Response) -> None:
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["referrer-policy"] == "no-referrer"


@each_service
async def test_foreign_hosts_and_websites_are_rejected(service: str, stack: Stack) -> None:
    hosts = (*FOREIGN_HOSTS, *ODD_PORTS) if service == "backend" else FOREIGN_HOSTS  # FastMCP ignores the port
    async with http_client(url_of(service, stack)) as http:
        for path in PATHS[service]:
            for method in ("GET", "POST", "DELETE"):
                for host in hosts:
                    response = await http.request(method, path, headers={"Host": host})
                    assert response.status_code == 421, (method, path, host)
                    assert "ALLOWED_HOSTS" in sentence(response)
                    check_headers(response)
                for origin in FOREIGN_ORIGINS:
                    response = await http.request(method, path, headers={"Origin": origin})
                    assert response.status_code == 403, (method, path, origin)
                    assert "ALLOWED_ORIGINS" in sentence(response)
                    assert "access-control-allow-origin" not in response.headers
                    check_headers(response)


@each_service
async def test_headers_of_every_response(service: str, stack: Stack) -> None:
    """Also of an error before anybody is known, and of a body that is no request."""
    async with http_client(url_of(service, stack)) as http:
        for path in (*PATHS[service], "/health", "/metrics"):
            response = await http.get(path)
            check_headers(response)
            assert "strict-transport-security" not in response.headers
            secure = await http.get(path, headers={"X-Forwarded-Proto": "https"})
            assert secure.headers["strict-transport-security"] == "max-age=31536000"
        check_headers(await http.post(PATHS[service][0], content=b"{", headers={"Content-Type": "application/json"}))


async def test_foreign_website_changes_nothing(user: User, stored: Stored) -> None:
    """Another port of this machine is another website."""
    body = request("threads.create", input=user_input("add milk"))
    for origin in (*FOREIGN_ORIGINS, "http://localhost:1"):
        assert (await user.chatkit.http.post("/chatkit", json=body, headers={"Origin": origin})).status_code == 403
    assert stored.row_counts(user.name) == {}


async def test_allowed_hosts(start_stack: StartStack) -> None:
    stack = start_stack("limits")
    async with http_client(stack.url) as http:
        for host in ("localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:8000", "todo.example"):
            assert (await http.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("host", "origin", "scheme", "served"),
    [
        (None, "http://{host}", "http", True),
        (None, "HTTPS://{host}", "https", True),
        (None, "http://{host}", "https", False),
        (None, "https://{host}", "http", False),
        (None, "foo://{host}", "http", False),
        (None, "{host}", "http", False),
        (None, "http://{host}/", "http", False),
        (None, "http://{host}.", "http", False),
        ("localhost:443", "https://localhost", "https", True),
        ("LOCALHOST:80", "http://localhost", "http", True),
        ("[::1]:8443", "https://[::1]:8443", "https", True),
    ],
)
async def test_own_origin(user: User, host: str | None, origin: str, scheme: str, served: bool) -> None:
    """It is compared with its scheme; a default port is the same as none."""
    own = user.url.removeprefix("http://")
    headers = {"Host": host or own, "Origin": origin.format(host=own), "X-Forwarded-Proto": scheme}
    response = await user.chatkit.http.post("/chatkit", json=request("threads.list"), headers=headers)
    assert response.status_code == (200 if served else 403)
    assert served or "TRUSTED_PROXIES" in sentence(response)


async def test_allowed_origin(start_stack: StartStack) -> None:
    """A page elsewhere calls with a token, never with a cookie."""
    stack = start_stack("limits")
    there = {"Origin": "https://app.example", "Sec-Fetch-Site": "cross-site"}
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,if-match"}
    async with User(stack) as user, http_client(stack.url) as http:
        preflight = await http.options("/chatkit", headers=there | asked)
        token = {"Authorization": f"Bearer {user.token}"}
        with_token = await http.post("/chatkit", json=request("threads.list"), headers=there | token)
        for response in (preflight, with_token):
            assert response.status_code == 200
            assert response.headers["access-control-allow-origin"] == "https://app.example"
            assert response.headers["access-control-allow-credentials"] == "true"
        await http.post("/session", headers=token)
        assert (await http.post("/chatkit", json=request("threads.list"), headers=there)).status_code == 403


@pytest.mark.parametrize("path", ["/chatkit", "/session", "/nothing"])
async def test_content_type_of_a_form(user: User, stored: Stored, path: str) -> None:
    """Which a foreign page can send without a preflight."""
    body = json.dumps(request("threads.create", input=user_input("add milk"))).encode()
    kinds = (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "text/json", "x/json")
    for kind in kinds:
        headers = {"Content-Type": kind} if kind else {}
        response = await user.chatkit.http.post(path, content=body, headers=headers)
        assert response.status_code == 415, kind
        sentence(response)
    assert stored.row_counts(user.name) == {}


async def test_content_type_of_json(user: User) -> None:
    for kind in ("application/json", "Application/JSON; charset=utf-8"):
        body = json.dumps(request("threads.list")).encode()
        response = await user.chatkit.http.post("/chatkit", content=body, headers={"Content-Type": kind})
        assert response.status_code == 200


async def test_client_leaves_before_its_body_is_sent(stack: Stack) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", stack.backends[0].port)
    writer.write(
        b"POST /chatkit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n"
    )
    await reader.read(1)
    writer.close()
    await writer.wait_closed()
    async with http_client(stack.url) as http:
        assert (await http.get("/health")).status_code == 200
    assert "ClientDisconnect" not in stack.backends[0].log_text
