"""What each service checks of every request before it looks who asks, and the headers of every response."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2
import pytest

from mcp_server import read_routes
from tests.processes import ServiceProcess, run_service
from tests.serving import http_client
from tests.support.fixtures import StartStack
from tests.support.stack import Services, Stack
from tests.support.stored import Stored
from tests.support.users import User
from todo_client.chatkit import request, user_input

FOREIGN_HOSTS = ("evil.example", "evil.example:8000", "localhost.evil.example", "", "127.0.0.1.nip.io")
ODD_PORTS = ('localhost:evil"><script>', "localhost:8000:1")
FOREIGN_ORIGINS = ("https://evil.example", "null", "http://localhost.evil.example")
OF_ALL = ("/health", "/nothing", "/nothing/..", "//evil.example/", "/%00", "/*")
OF_TOOLS = ("/mcp", "/mcp/", "/ready", "/metrics", "/.well-known/oauth-protected-resource/mcp")
PATHS = {
    "backend": ("/chatkit",),  # and those of its document
    "mcp": (*OF_TOOLS, *read_routes.PATHS),
    "workspace": (*OF_TOOLS, "/files", "/files/a", "/files/a/b", "/directory", "/uploads/a/b", "/stop/a"),
    "offline": ("/v1/models", "/v1/chat/completions"),
}
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")
each_service = pytest.mark.parametrize("service", PATHS)


@pytest.fixture(scope="module")
def offline_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("offline") / "log"
    yield from run_service(ServiceProcess("offline_model", "OFFLINE_PORT", log), "/health")


@pytest.fixture
def urls(stack: Stack, offline_model: ServiceProcess) -> dict[str, str]:
    services: Services = stack.services
    urls = {"backend": stack.url, "mcp": services.mcp.url, "workspace": services.workspace.url}
    return {**urls, "offline": offline_model.url}


async def list_paths(service: str, http: httpx2.AsyncClient) -> tuple[str, ...]:
    more: tuple[str, ...] = ()
    if service == "backend":
        more = tuple((await http.get("/openapi.json")).json()["paths"])
        assert len(more) > 40
    return (*more, *PATHS[service], *OF_ALL)


def sentence(response: httpx2.Response) -> str:
    error = response.json()["error"]
    text = error if isinstance(error, str) else error["message"]  # as of OpenAI
    assert text.endswith(".")
    return text


def check_headers(response: httpx2.Response) -> None:
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["referrer-policy"] == "no-referrer"


@pytest.mark.long(seconds=20)
@each_service
async def test_foreign_hosts_and_websites_are_rejected(service: str, urls: dict[str, str]) -> None:
    """With every method, at every path, also where there is none; a preflight of a foreign page, too."""
    own = urls[service].removeprefix("http://")
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    rejected = [({"Host": host}, 421, "ALLOWED_HOSTS") for host in (*FOREIGN_HOSTS, *ODD_PORTS)]
    rejected += [({"Origin": origin} | preflight, 403, "ALLOWED_ORIGINS") for origin in FOREIGN_ORIGINS]
    # Rebinding: a name of the website is looked up as the address of this machine.
    rejected += [({"Host": "evil.example", "Origin": "http://evil.example"}, 421, "ALLOWED_HOSTS")]
    rejected += [({"Host": own, "Origin": f"http://evil.example:{own.rpartition(':')[2]}"}, 403, "ALLOWED_ORIGINS")]
    async with http_client(urls[service]) as http:
        for path in await list_paths(service, http):
            for method in METHODS:
                for headers, status, setting in rejected:
                    response = await http.request(method, path, headers=headers)
                    assert response.status_code == status, (method, path, headers)
                    assert method == "HEAD" or setting in sentence(response)
                    assert "access-control-allow-origin" not in response.headers
                    check_headers(response)


@each_service
async def test_bodies_that_are_no_json(service: str, urls: dict[str, str]) -> None:
    """Which a foreign page can send without a preflight, with each method that it can send so."""
    kinds = (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "x/json")
    async with http_client(urls[service]) as http:
        for path in await list_paths(service, http):
            for kind in kinds:
                headers = {"Content-Type": kind} if kind else {}
                for content in (b"{}", iter_bytes()):
                    response = await http.request("POST", path, content=content, headers=headers)
                    assert response.status_code == 415, (path, kind)
                    sentence(response)
                    check_headers(response)


async def iter_bytes() -> AsyncIterator[bytes]:
    """Makes a body of unknown length."""
    yield b"{}"


@each_service
async def test_own_hosts(service: str, urls: dict[str, str]) -> None:
    async with http_client(urls[service]) as http:
        for host in ("localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:8000"):
            assert (await http.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("origin", ["http://localhost:6274", "http://127.0.0.1:1"])
async def test_pages_of_this_machine_reach_the_task_tools(origin: str, urls: dict[str, str]) -> None:
    """As MCP Inspector does; the workspace, the offline model and the backend answer only their own."""
    for service, url in urls.items():
        async with http_client(url) as http:
            response = await http.get("/health", headers={"Origin": origin})
            assert response.status_code == (200 if service == "mcp" else 403), service
            assert "access-control-allow-origin" not in response.headers


async def test_address_at_which_a_service_listens(tmp_path: Path) -> None:
    """As whoever asks for its metrics reaches it; no website has the address as its name."""
    address = "127.0.0.2"
    service = ServiceProcess("offline_model", "OFFLINE_PORT", tmp_path / "log", OFFLINE_HOST="0.0.0.0")
    for running in run_service(service, "/health"):
        async with http_client(f"http://{address}:{running.port}") as http:
            assert (await http.get("/health")).status_code == 200
            assert (await http.get("/health", headers={"Host": "127.0.0.3"})).status_code == 421


@each_service
async def test_headers_of_every_response(service: str, urls: dict[str, str]) -> None:
    """Also of an error before anybody is known, and of a body that is no request."""
    async with http_client(urls[service]) as http:
        for path in (*PATHS[service], "/nothing", "/health", "/metrics"):
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
        assert (await http.get("/health", headers={"Host": "todo.example"})).status_code == 200


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
