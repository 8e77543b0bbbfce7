"""A phone in the local network is linked to `./todo up`, works, and is ended; and what others there can do."""

import asyncio
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.async_api import Browser, Page, async_playwright, expect

from cli import data_dir
from cli.database import postgres
from tests.api.test_routes import BODIES, ROUTES, with_unknown_ids
from tests.browser import screen
from tests.browser.conftest import Violations
from tests.browser.draw_icons import chromium
from tests.conftest import ROOT, find_memory
from tests.network_namespaces import Machine, is_possible, local_network
from tests.processes import Program
from tests.tokens import OWN_ISSUER, mint_token
from tests.waiting import until

pytestmark = [
    pytest.mark.long(seconds=30),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.skipif(not is_possible(), reason="needs Linux, root and `ip netns`"),
]

SESSION = "todo-assistant/session"
ENDED_SECONDS = 1.0
PAGE_PATHS = (
    *("/", "/today", "/upcoming", "/all", "/done", "/deleted", "/t/{task_id}", "/c/{chat_id}", "/widget"),
    *("/assets/{hash}/{path}", "/manifest.json", "/service-worker.js"),
)
DOCUMENT = ROOT / "docs" / "phone.md"
LOOPBACK = {"127.0.0.1", "::1"}


@dataclass
class Answer:
    status: int
    body: Any
    headers: http.client.HTTPMessage
    cookie: str = ""


@dataclass
class Computer:
    machine: Machine
    phone: Machine
    data: Path
    program: Program
    port: int
    mcp_port: int
    sources: Iterator[str] = field(default_factory=lambda: (f"10.77.0.{number}" for number in count(3)))
    source: str = ""

    @property
    def origin(self) -> str:
        return f"http://{self.machine.address}:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends a request from the computer itself."""
        return self._send(self.machine.connect("127.0.0.1", self.port), method, path, body, headers)

    def ask_mcp_server(self, path: str, **headers: str) -> Answer:
        return self._send(self.machine.connect("127.0.0.1", self.mcp_port), "GET", path, None, headers)

    def ask_from_phone(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends it as a browser there does, which sends no Sec-Fetch-Site to such an address."""
        own = {"Referer": f"{self.origin}/"} if method == "GET" else {"Origin": self.origin}
        connection = self.phone.connect(self.machine.address, self.port, source=self.source)
        return self._send(connection, method, path, body, {"Host": self.origin[7:]} | own | headers)

    def _send(self, connection: socket.socket, method: str, path: str, body: Any, headers: dict[str, str]) -> Answer:
        client = http.client.HTTPConnection("127.0.0.1", self.port)
        client.sock = connection
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent = {"Content-Type": "application/json"} | sent
        client.request(method, path, None if body is None else json.dumps(body), sent)
        response = client.getresponse()
        content = response.read()
        client.close()
        is_json = "json" in response.headers.get("content-type", "")
        cookie = response.headers.get("set-cookie", "").partition(";")[0]
        content = json.loads(content) if is_json and content else content
        return Answer(response.status, content, response.headers, cookie)

    def use_other_phone(self) -> None:
        """Sends what follows from another address of the network."""
        self.source = next(self.sources)
        self.phone.add_address(self.source)

    def take(self, code: str) -> Answer:
        return self.ask_from_phone("POST", "/links/take", {"code": code})

    def make_code(self) -> str:
        made = self.ask("POST", "/links")
        assert made.status == 201, made.body
        address, code = made.body["address"].split("/#link=")
        assert address == self.origin
        return code

    def link_phone(self) -> str:
        """Returns the cookie of a linked device."""
        taken = self.take(self.make_code())
        assert taken.status == 200, taken.body
        return taken.cookie

    def end_all(self) -> None:
        assert self.ask("DELETE", "/sessions").status == 204

    def list_outside(self) -> set[tuple[str, int]]:
        return {(host, port) for host, port in self.machine.list_listening() if host not in LOOPBACK}

    async def closed(self) -> None:
        await until(lambda: not self.list_outside(), seconds=30)


@pytest.fixture(scope="module")
def computer() -> Iterator[Computer]:
    """A computer that runs `./todo up`, in a network with a phone."""
    directory = Path(tempfile.mkdtemp(prefix="todo-phone-", dir=find_memory()))
    directory.chmod(0o711)  # for the account of PostgreSQL
    with local_network() as (machine, phone):
        computer = Computer(machine, phone, directory / "data", Program(directory / "log"), 8000, 8001)
        launch(computer)
        yield computer
        computer.program.end()
    shutil.rmtree(directory)


def launch(computer: Computer, **settings: str) -> None:
    variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = [*computer.machine.enter, sys.executable, "-m", "cli", "up", "--data-dir", str(computer.data)]
    variables |= {"LLM_PROVIDER": "offline", "AGENTS": "off", "LOG_LEVEL": "INFO", **settings}
    computer.program.launch(command, cwd=ROOT, env=variables)
    started = computer.program.log_text.count("  try ") if computer.program.is_running else 0
    computer.program.wait_until(lambda: computer.program.log_text.count("  try ") > started)


@pytest.fixture(autouse=True)
def other_phone(computer: Computer) -> Iterator[None]:
    """Begins each test at an address that has tried no link, and ends it without linked devices."""
    computer.use_other_phone()
    yield
    computer.end_all()


@asynccontextmanager
async def browser_at(machine: Machine, directory: Path) -> AsyncIterator[Browser]:
    program = directory / f"browser-{machine.namespace}"
    program.write_text(f'#!/bin/sh\nexec {" ".join(machine.enter)} "{chromium()}" "$@"\n')
    program.chmod(0o755)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


def assert_rejected(answer: Answer) -> None:
    sentence = "This link is not valid any more: a link works once, for ten minutes. Make a new one and try again."
    assert (answer.status, answer.body, answer.cookie) == (401, {"error": sentence}, "")


async def make_link(page: Page) -> str:
    """Returns the address that the page shows for a phone."""
    await screen.from_menu(page, "Use on my phone")
    address = page.get_by_role("textbox", name="Address")
    await expect(address).to_be_visible()
    return await address.input_value()


async def test_phone_is_linked_works_and_is_ended(computer: Computer, violations: Violations, tmp_path: Path) -> None:
    assert computer.list_outside() == set(), "nothing listens beyond this machine before the first link"
    problems: list[str] = []
    async with browser_at(computer.machine, tmp_path) as desktop, browser_at(computer.phone, tmp_path) as mobile:
        page = await desktop.new_page()
        screen.watch(page, problems)
        await page.goto(f"http://localhost:{computer.port}/")
        address = await make_link(page)
        assert address.startswith(f"{computer.origin}/#link=")
        dialog = page.get_by_role("dialog", name="Use on my phone")
        await expect(dialog.get_by_role("img", name="QR code")).to_be_visible()
        await expect(dialog).to_contain_text("This address has no https.")
        await expect(dialog.get_by_role("listitem")).to_have_count(4)
        assert await violations(page) == []
        assert computer.list_outside() == {(computer.machine.address, computer.port)}
        await screen.button(dialog, "Close").click()

        context = await mobile.new_context(viewport={"width": 320, "height": 640}, is_mobile=True, has_touch=True)
        phone = await context.new_page()
        screen.watch(phone, problems)
        requests: list[str] = []
        phone.on("request", lambda request: requests.append(request.url + (request.post_data or "")))
        await phone.goto(address)
        await expect(phone.get_by_role("heading", name="Use your tasks on this device?")).to_be_visible()
        assert phone.url == f"{computer.origin}/"
        assert await violations(phone) == []
        assert await phone.evaluate("document.documentElement.scrollWidth") <= 320
        code = address.partition("#link=")[2]
        assert not any(code in request for request in requests)
        await phone.keyboard.press("Enter")
        await expect(screen.button(phone, "Assistant")).to_be_visible()
        assert [request for request in requests if code in request] == [
            f'{computer.origin}/links/take{{"code":"{code}"}}'
        ]
        await screen.show_assistant(phone)
        await screen.say(phone, "add milk today")
        await expect(page.get_by_role("main")).to_contain_text("milk")
        await screen.open_menu(phone)
        await expect(screen.button(phone, "Use on my phone")).to_have_count(0)
        await expect(screen.button(phone, "Sign out")).to_be_visible()
        await phone.keyboard.press("Escape")

        await screen.from_menu(page, "Devices")
        devices = page.get_by_role("dialog", name="Where you are signed in")
        await expect(devices.get_by_role("listitem")).to_have_count(1)
        cookie = (await context.cookies())[0].get("value")
        await devices.get_by_role("button", name=re.compile("^End: ")).click()
        began = time.monotonic()
        while (status := computer.ask_from_phone("GET", "/session", Cookie=f"todo_session={cookie}").status) == 200:
            assert time.monotonic() - began < ENDED_SECONDS
        assert status == 401
        await expect(phone.get_by_role("heading", name="This device is not linked")).to_be_visible()
        await expect(devices).to_contain_text("No other device is linked.")
        assert await violations(page) == []
        assert await violations(phone) == []
        await computer.closed()
    assert [text for text in problems if "Cross-Origin-Opener-Policy header has been ignored" not in text] == []
    assert code not in computer.program.log_text + "".join(
        path.read_text() for path in (computer.data / "logs").iterdir()
    )


async def test_code_works_once(computer: Computer) -> None:
    replaced, code = computer.make_code(), computer.make_code()
    for wrong in (replaced, "x", code[:-1], code + "a"):
        assert_rejected(computer.take(wrong))
    assert computer.take(code).status == 200
    assert_rejected(computer.take(code))


async def test_link_in_a_terminal(computer: Computer) -> None:
    command = [*computer.machine.enter, sys.executable, "-m", "cli", "link", "--data-dir", str(computer.data)]
    variables = {"PATH": os.environ["PATH"]}

    async def run(*options: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *command, *options, cwd=ROOT, env=variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        output, errors = await process.communicate()
        return process.returncode, output.decode(), errors.decode()

    status, address, notice = await run()
    assert status == 0, notice
    assert "docs/phone.md" in notice
    origin, _, code = address.strip().partition("/#link=")
    assert origin == computer.origin
    assert computer.take(code).status == 200
    assert (await run("--user", "anna"))[0] == 2


async def test_code_that_expired_or_is_of_another_kind(computer: Computer) -> None:
    for change in ("expires_at = now()", "kind = 'setup'", "kind = 'authorization'"):
        code = computer.make_code()
        with psycopg.connect(postgres.url(computer.data, postgres.ADMIN)) as connection:
            connection.execute(f"UPDATE one_time_codes SET {change}")
        assert_rejected(computer.take(code))


async def test_codes_cannot_be_tried_in_a_loop(computer: Computer) -> None:
    code = computer.make_code()
    statuses = [computer.take("x" * 32).status for _ in range(10)]
    limited = computer.take(code)
    assert (set(statuses), limited.status) == ({401}, 429)
    assert int(limited.headers["retry-after"]) > 0
    computer.use_other_phone()
    assert computer.take(code).status == 200, "others are not limited"


async def test_stranger_in_the_network(computer: Computer) -> None:
    """Every route needs a linked device there, but for the page, its files and the taking of a link."""
    computer.make_code()
    page = {(method, path) for method, path in ROUTES if path in PAGE_PATHS}
    for method, path in set(ROUTES) - page - {("POST", "/links/take")}:
        answer = computer.ask_from_phone(method, with_unknown_ids(path), BODIES.get((method, path)))
        assert answer.status == 401, (method, path)
        assert answer.body["error"].startswith("This device is not linked."), path
    for path in ("/", "/today", "/manifest.json", "/service-worker.js", "/t/1"):
        assert computer.ask_from_phone("GET", path).status == 200, path
    assert computer.ask_from_phone("GET", "/nothing").status == 401


async def test_what_a_linked_device_cannot_do(computer: Computer) -> None:
    cookie = computer.link_phone()
    assert computer.ask_from_phone("GET", "/tasks?view=all", Cookie=cookie).status == 200
    for path in ("/metrics", "/health", "/ready"):
        assert computer.ask_from_phone("GET", path, Cookie=cookie).status == 401
    link = computer.ask_from_phone("POST", "/links", Cookie=cookie)
    assert (link.status, link.body["error"][:47]) == (403, "Links are made on the computer that has your ta")
    for port in (computer.mcp_port, 8003):
        with pytest.raises(ConnectionRefusedError):
            computer.phone.connect(computer.machine.address, port)


async def test_cookies_that_open_nothing(computer: Computer) -> None:
    computer.make_code()
    secret = data_dir.read_secret(computer.data, data_dir.TOKEN_SECRET)
    assert secret
    claims = {"sub": "local", "iss": OWN_ISSUER, "aud": SESSION, "jti": "x" * 22, "scope": "all"}
    for what, token in {
        "of another installation": mint_token("y" * 64, **claims),
        "of an account": mint_token(secret, **claims | {"sub": "anna"}),
        "of another audience": mint_token(secret, **claims | {"aud": f"http://127.0.0.1:{computer.mcp_port}/mcp"}),
        "without scope": mint_token(secret, **claims | {"scope": "tasks"}),
        "expired": mint_token(secret, **claims, exp=int(time.time()) - 60),
        "garbage": "x",
    }.items():
        for headers in ({"Cookie": f"todo_session={token}"}, {"Authorization": f"Bearer {token}"}):
            assert computer.ask_from_phone("GET", "/tasks?view=all", **headers).status == 401, what


async def test_rebinding_and_foreign_sites(computer: Computer) -> None:
    cookie = computer.link_phone()
    for host in ("evil.example", f"evil.example:{computer.port}", "localhost", f"127.0.0.1:{computer.port}", "[::1]"):
        for path in ("/", "/tasks?view=all"):
            answer = computer.ask_from_phone("GET", path, Host=host, Referer=f"http://{host}/", Cookie=cookie)
            assert answer.status == 421, host
    read, evil = ("GET", "/tasks?view=all"), "http://evil.example"
    for method, path, headers in (
        (*read, {"Referer": f"{evil}/"}),
        (*read, {"Referer": f"{computer.origin}0/"}),
        (*read, {"Referer": f"http://{computer.machine.address}:{computer.port + 1}/"}),
        (*read, {"Referer": ""}),
        (*read, {"Sec_Fetch_Site": "cross-site"}),
        (*read, {"Sec_Fetch_Site": "same-site"}),
        ("POST", "/tasks", {"Origin": evil}),
        ("POST", "/tasks", {"Origin": "null"}),
        ("DELETE", "/sessions", {"Origin": evil}),
        ("POST", "/links/take", {"Origin": evil}),
    ):
        body = {"title": "x"} if path == "/tasks" else {"code": "x"} if path == "/links/take" else None
        answer = computer.ask_from_phone(method, path, body, Cookie=cookie, **headers)
        assert answer.status == 403, (method, path, headers)
    for headers, status in (({"Origin": evil}, 403), ({"Host": "evil.example"}, 421)):
        for method, path in (("POST", "/links"), ("DELETE", "/sessions"), read):
            assert computer.ask(method, path, **headers).status == status, (method, path, headers)
    form = computer.ask("POST", "/tasks", {"title": "x"}, Content_Type="text/plain")
    assert form.status == 415
    assert computer.ask_from_phone(*read, Cookie=cookie).status == 200


async def test_requests_of_a_proxy_are_not_of_this_machine(computer: Computer) -> None:
    for name in ("Forwarded", "X_Forwarded_For", "X_Forwarded_Host", "X_Forwarded_Proto", "X_Real_IP", "Via"):
        headers = {name: "http" if name == "X_Forwarded_Proto" else "127.0.0.1"}
        for method, path in (("GET", "/tasks?view=all"), ("POST", "/links"), ("GET", "/metrics")):
            answer = computer.ask(method, path, **headers)
            assert (answer.status, answer.body["error"][:26]) == (401, "This device is not linked."), (name, path)
        assert computer.ask_mcp_server("/health", **headers).status == 403, name
    code = computer.make_code()
    assert computer.ask("POST", "/links/take", {"code": code}).status == 400, "this machine needs no link"
    assert computer.take(code).status == 200


async def test_port_that_is_taken(computer: Computer) -> None:
    await computer.closed()
    other = computer.machine.listen(computer.machine.address, computer.port)
    answer = computer.ask("POST", "/links")
    other.close()
    assert answer.status == 409
    assert answer.body["error"].startswith(f"Port {computer.port} at {computer.machine.address} cannot be used (")
    assert computer.link_phone()


@pytest.mark.extended
async def test_restart_with_a_linked_device(computer: Computer) -> None:
    """Also with several processes, each of which listens there."""
    cookie = computer.link_phone()
    computer.program.end()
    assert computer.machine.list_listening() == set()
    launch(computer, BACKEND_WORKERS="2")
    await until(computer.list_outside)
    assert computer.list_outside() == {(computer.machine.address, computer.port)}
    for _ in range(20):
        assert computer.ask_from_phone("GET", "/tasks?view=all", Cookie=cookie).status == 200
    computer.end_all()
    await asyncio.sleep(ENDED_SECONDS)
    for _ in range(20):
        assert computer.ask_from_phone("GET", "/tasks?view=all", Cookie=cookie).status == 401
    await computer.closed()


@pytest.mark.extended
async def test_proxy_with_a_certificate(computer: Computer, tmp_path: Path) -> None:
    """As docs/phone.md describes: Caddy's own authority, which the phone trusts; nothing else listens outside."""
    host = computer.machine.address
    file = tmp_path / "Caddyfile"
    [site] = re.findall(r"^    https://192.168.1.20 \{\n.*?^    \}\n", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    site = site.replace("192.168.1.20", host).replace("127.0.0.1:8000", f"127.0.0.1:{computer.port}")
    file.write_text("{\n admin off\n auto_https disable_redirects\n skip_install_trust\n}\n" + site)
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    caddy = Program(tmp_path / "caddy.log")
    command = [*computer.machine.enter, shutil.which("caddy") or "caddy", "run", "--config", str(file)]
    caddy.launch(command, env=variables)
    try:
        computer.program.end()
        launch(computer, BACKEND_URL=f"https://{host}", ALLOWED_HOSTS=host)
        made = computer.ask("POST", "/links")
        assert made.status == 201, made.body
        assert made.body["address"].startswith(f"https://{host}/#link=")
        authority = tmp_path / "caddy/pki/authorities/local/root.crt"
        caddy.wait_until(lambda: authority.exists() and 443 in {port for _, port in computer.list_outside()})
        connection = computer.phone.connect(host, 443, source=computer.source)
        trust = ssl.create_default_context(cafile=str(authority))
        trust.wrap_socket(connection, server_hostname=host).close()
        assert {port for _, port in computer.list_outside()} == {443}, "that is the proxy's"
        async with browser_at(computer.phone, tmp_path) as mobile:
            context = await mobile.new_context(ignore_https_errors=True)
            phone = await context.new_page()
            await phone.goto(f"https://{host}/")
            await expect(phone.get_by_role("heading", name="This device is not linked")).to_be_visible()
            await phone.goto(made.body["address"])  # in the open page
            await screen.button(phone, "Use my tasks here").click()
            await expect(screen.message_box(phone)).to_be_visible()
            [cookie] = await context.cookies()
            assert (cookie.get("name"), cookie.get("secure")) == ("__Host-todo_session", True)
        assert {port for _, port in computer.list_outside()} == {443}, "that is the proxy's"
    finally:
        caddy.end()
