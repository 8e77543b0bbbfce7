"""`deploy/Caddyfile` before a backend and an MCP server, as Caddy of Debian 12 reads it."""

import contextlib
import os
import re
import shutil
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.draw_icons import chromium
from tests.conftest import ROOT, find_free_port
from tests.logins import as_service
from tests.processes import Program, ServiceProcess
from tests.support.script import pausing_answer
from tests.support.stack import AUDIENCE, SIGN_IN
from tests.tokens import IDP_SECRET, ISSUER, mint_token
from tests.waiting import WAIT_SECONDS

pytestmark = pytest.mark.long(seconds=20)

PROGRAM = shutil.which("caddy") or "/usr/bin/caddy"


@dataclass(frozen=True)
class Site:
    url: str
    plain_url: str
    model_url: str
    trust: ssl.SSLContext

    def client(self, audience: str = "") -> httpx2.Client:
        """Of nobody, or of a user whose token is for this audience."""
        headers = {"accept": "application/json, text/event-stream"}
        if audience:
            headers["authorization"] = f"Bearer {mint_token(IDP_SECRET, iss=ISSUER, aud=audience)}"
        return httpx2.Client(
            base_url=self.url, headers=headers, verify=self.trust, trust_env=False, timeout=WAIT_SECONDS
        )


@pytest.fixture(scope="module")
def site(session_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    tmp_path = tmp_path_factory.mktemp("caddy")
    port, plain_port = find_free_port(), find_free_port()
    url = f"https://localhost:{port}"
    shared = {**SIGN_IN, "DATABASE_URL": as_service(session_database_url), "MCP_URL": f"{url}/mcp"}
    offline = ServiceProcess("tests.scripted_endpoint", "OFFLINE_PORT", tmp_path / "offline.log")
    mcp = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "mcp.log", **shared)
    backend = ServiceProcess(
        *("backend", "BACKEND_PORT", tmp_path / "backend.log"),
        **shared,
        AGENTS="off",
        AUTH_AUDIENCE=AUDIENCE,
        BACKEND_URL=url,
        MCP_INTERNAL_URL=f"{mcp.url}/mcp",
        LLM_PROVIDER="offline",
        LLM_BASE_URL=f"{offline.url}/v1",
    )
    with ExitStack() as stack:
        for service in (offline, mcp, backend):
            service.start()
            stack.callback(service.end)
        caddy = start_caddy(
            tmp_path,
            {
                "admin off": f"admin off\n\thttp_port {plain_port}\n\thttps_port {port}",
                "backend:8000": f"127.0.0.1:{backend.port}",
                "mcp:8001": f"127.0.0.1:{mcp.port}",
            },
        )
        stack.callback(caddy.end)
        offline.wait_until_ready(path="/health")
        for service in (mcp, backend):
            service.wait_until_ready()
        authority = tmp_path / "caddy/pki/authorities/local/root.crt"
        plain_url = f"http://localhost:{plain_port}"
        caddy.wait_until(lambda: is_served(url, authority) and is_served(plain_url, authority))
        yield Site(url, plain_url, offline.url, ssl.create_default_context(cafile=str(authority)))


def is_served(url: str, authority: Path) -> bool:
    """Caddy makes its certificates before and while it begins to listen."""
    try:
        trust = ssl.create_default_context(cafile=str(authority))
        httpx2.get(url, verify=trust, trust_env=False, timeout=WAIT_SECONDS)
    except (OSError, httpx2.TransportError):
        return False
    return True


def start_caddy(directory: Path, places: dict[str, str]) -> Program:
    """With the certificate of its own authority, which it makes for `localhost`."""
    text = (ROOT / "deploy" / "Caddyfile").read_text()
    for example, own in places.items():
        assert example in text, example
        text = text.replace(example, own)
    file = directory / "Caddyfile"
    file.write_text(text)
    places = {"XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory), "HOME": str(directory)}
    caddy = Program(directory / "caddy.log")
    caddy.launch([PROGRAM, "run", "--config", str(file)], env={**os.environ, **places, "DOMAIN": "localhost"})
    return caddy


def test_page_and_stream(site: Site) -> None:
    redirect = httpx2.get(site.plain_url, trust_env=False, timeout=WAIT_SECONDS)
    assert (redirect.status_code, redirect.headers["location"]) == (308, "https://localhost/")
    with site.client() as http:
        page = http.get("/")
        assert page.status_code == 200
        assert page.headers["strict-transport-security"], "the backend knows that this came by https"
        assert http.get("/ready").json()["status"] == "ready"
        assert http.get("/metrics").status_code == 404
        assert http.post("/chatkit", json={"message": "hello"}).status_code == 401

    with (
        httpx2.Client(base_url=site.model_url, trust_env=False, timeout=WAIT_SECONDS) as model,
        site.client(AUDIENCE) as http,
    ):
        model.post("/script", json={"steps": [pausing_answer("Good ", "morning.")]})
        with http.stream("POST", "/chatkit", json={"message": "hello"}) as answer:
            lines = (line for line in answer.iter_lines() if line.startswith("data:"))
            assert any("Good " in line for line in lines), "events arrive as they are sent"
            model.post("/release")
            assert '"status": "completed"' in [*lines][-1]


def test_page_below_a_path(session_database_url: str, tmp_path: Path) -> None:
    """Whether the proxy removes the path from requests or not; every address of the page is below it."""
    port = find_free_port()
    url = f"http://localhost:{port}/todo"
    mcp = ServiceProcess("mcp_server", "MCP_PORT", tmp_path / "mcp.log", DATABASE_URL=as_service(session_database_url))
    mcp.environment["MCP_URL"] = f"{mcp.url}/mcp"
    backend = ServiceProcess(
        *("backend", "BACKEND_PORT", tmp_path / "backend.log"),
        DATABASE_URL=as_service(session_database_url),
        MCP_URL=f"{mcp.url}/mcp",
        AGENTS="off",
        AUTH_NONE_BEYOND_LOOPBACK="true",  # for the proxy
        BACKEND_URL=url,
        LLM_PROVIDER="offline",
    )
    file = tmp_path / "Caddyfile"
    with ExitStack() as stack:
        for service in (mcp, backend):
            service.start()
            stack.callback(service.end)
        for service in (mcp, backend):
            service.wait_until_ready()
        for directive in ("handle", "handle_path"):  # leaves the path, and removes it
            site = f"{directive} /todo/* {{\n reverse_proxy 127.0.0.1:{backend.port}\n }}\n respond 418"
            file.write_text(f"{{\n admin off\n}}\nhttp://localhost:{port} {{\n {site}\n}}\n")
            caddy = Program(tmp_path / f"caddy-{directive}.log")
            caddy.launch([PROGRAM, "run", "--config", str(file)], env={**os.environ, "HOME": str(tmp_path)})
            with contextlib.closing(httpx2.Client(trust_env=False, timeout=WAIT_SECONDS)) as http:
                caddy.wait_until(lambda http=http: is_answered(http, url))
                visit_below_a_path(http, url)
                browse_below_a_path(url)
            caddy.end()


def is_answered(http: httpx2.Client, url: str) -> bool:
    try:
        return http.get(f"{url}/health").status_code == 200
    except httpx2.TransportError:
        return False


def visit_below_a_path(http: httpx2.Client, url: str) -> None:
    page = http.get(f"{url}/today")
    assert page.status_code == 200
    assert '<base href="/todo/">' in page.text
    addresses = re.findall(r'(?:href|src)="([^"#]+)"', page.text.replace('<base href="/todo/">', ""))
    assert addresses
    for address in addresses:
        assert not re.match("/|[a-z]+:", address), "relative to the base"
        assert http.get(f"{url}/{address}").status_code == 200, address
    assert "todo/" not in http.get(f"{url}/manifest.json").text, "relative to the manifest"
    added = http.post(f"{url}/tasks", json={"title": "Buy milk"})
    assert added.status_code == 201, added.text
    assert http.get(f"{url}/tasks/").headers["location"] == f"{url}/tasks"
    assert "at /todo/nothing." in http.get(f"{url}/nothing").json()["error"]
    assert http.get(f"{url}/openapi.json").json()["servers"] == [{"url": "/todo"}]
    assert http.post(f"{url}/calendar").json()["url"].startswith(f"{url}/calendar/")


def browse_below_a_path(url: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        context, requested = browser.new_context(), list[str]()
        context.on("request", lambda request: requested.append(request.url))
        page = context.new_page()
        page.set_default_timeout(WAIT_SECONDS * 1000)
        page.goto(f"{url}/")
        page.get_by_role("textbox", name="Message").wait_for()
        page.evaluate("navigator.serviceWorker.ready.then(() => null)")
        assert page.evaluate("navigator.serviceWorker.ready.then(({ scope }) => scope)") == f"{url}/"
        page.get_by_role("link", name="Upcoming").first.click()
        expect(page).to_have_url(f"{url}/upcoming", timeout=WAIT_SECONDS * 1000)
        page.reload()
        page.get_by_role("textbox", name="Message").wait_for()
        browser.close()
    assert [address for address in requested if not address.startswith(f"{url}/")] == []
    assert len(requested) > 50


def test_tools(site: Site) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}}
    with site.client() as http:
        rejected = http.post("/mcp", json=call)
        assert rejected.status_code == 401
        assert f"{site.url}/.well-known/oauth-protected-resource/mcp" in rejected.headers["www-authenticate"]
        assert http.get("/.well-known/oauth-protected-resource/mcp").json()["resource"] == f"{site.url}/mcp"
    with site.client(f"{site.url}/mcp") as http:
        assert "tasks" in http.post("/mcp", json=call).json()["result"]["structuredContent"]
