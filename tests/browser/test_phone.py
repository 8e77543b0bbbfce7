"""A phone in the local network is linked to `./todo up`, works, and is ended; and what others there can do."""

import asyncio
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.browser import screen
from tests.browser.conftest import Violations
from tests.browser.draw_icons import chromium
from tests.conftest import ROOT, find_free_port, find_memory
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
    used: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://{self.machine.address}:{self.port}"

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        at: str = "127.0.0.1",
        origin: Machine | None = None,
        port: int | None = None,
        **headers: str,
    ) -> Answer:
        """Sends a request from the computer itself, or from another machine."""
        connection = http.client.HTTPConnection(at, port or self.port)
        connection.sock = (origin or self.machine).connect(at, port or self.port)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent = {"Content-Type": "application/json"} | sent
        connection.request(method, path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        is_json = "json" in response.headers.get("content-type", "")
        cookie = response.headers.get("set-cookie", "").partition(";")[0]
        return Answer(response.status, json.loads(content) if is_json and content else content, response.headers, cookie)

    def ask_from_phone(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """As a browser there does, which sends no Sec-Fetch-Site to such an address."""
        own = {"Referer": f"{self.origin}/"} if method == "GET" else {"Origin": self.origin}
        return self.ask(method, path, body, at=self.machine.address, origin=self.phone, **own | headers)

    def make_code(self) -> str:
        made = self.ask("POST", "/links")
        assert made.status == 201, made.body
        address, code = made.body["address"].split("/#link=")
        assert address == self.origin
        return code

    def link_phone(self) -> str:
        """Returns the cookie of a linked device."""
        taken = self.ask_from_phone("POST", "/links/take", {"code": self.make_code()})
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


@pytest_asyncio.fixture(loop_scope="session")
async def nobody_linked(computer: Computer) -> AsyncIterator[None]:
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


async def make_link(page: Page) -> str:
    """Returns the address that the page shows for a phone."""
    await screen.from_menu(page, "Use on my phone")
    address = page.get_by_role("textbox", name="Address")
    await expect(address).to_be_visible()
    return await address.input_value()


async def test_phone_is_linked_works_and_is_ended(
    computer: Computer, violations: Violations, tmp_path: Path
) -> None:
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
        [cookie] = await context.cookies()
        await devices.get_by_role("button", name=re.compile("^End: ")).click()
        began = time.monotonic()
        while (
            status := computer.ask_from_phone("GET", "/session", Cookie=f"todo_session={cookie['value']}").status
        ) == 200:
            assert time.monotonic() - began < ENDED_SECONDS
        assert status == 401
        await expect(phone.get_by_role("heading", name="This device is not linked")).to_be_visible()
        await expect(devices).to_contain_text("No other device is linked.")
        assert await violations(page) == []
        assert await violations(phone) == []
        await computer.closed()
    assert problems == []
    assert code not in computer.program.log_text + "".join(
        path.read_text() for path in (computer.data / "logs").iterdir()
    )


async def test_stream_of_a_device_ends_with_it(computer: Computer, nobody_linked: None) -> None:
    cookie = computer.link_phone()
    chat = {"user_message": "hello"}
    made = computer.ask_from_phone("POST", "/chats/a/interactions", chat, Cookie=cookie)
    assert made.status == 200, made.body
    computer.end_all()
    again = computer.ask_from_phone("GET", "/chats/a", Cookie=cookie)
    assert (again.status, again.body["error"][:26]) == (401, "This device is not linked.")


async def test_code_works_once(computer: Computer, nobody_linked: None) -> None:
    replaced, code = computer.make_code(), computer.make_code()
    for wrong in (replaced, "x", "x" * 32, code[:-1], code + "a"):
        answer = computer.ask_from_phone("POST", "/links/take", {"code": wrong})
        assert (answer.status, answer.cookie) == (401, ""), wrong
        assert answer.body == {
            "error": "This link is not valid any more: a link works once, for ten minutes. Make a new one and try again."
        }
    assert computer.ask_from_phone("POST", "/links/take", {"code": code}).status == 200
    assert computer.ask_from_phone("POST", "/links/take", {"code": code}).status == 401
