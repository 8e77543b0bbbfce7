"""The question whether a program may use the tasks, with real MCP clients: who asks, who answers, and that it ends."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from playwright.async_api import Browser, Page, expect
from pydantic import AnyUrl

from tests.browser import screen
from tests.browser.conftest import Violations
from tests.conftest import find_free_port
from tests.node_packages import MCP_CLIENTS, install_packages
from tests.serving import serve
from tests.support.accounts import AccountStack, new_name, sign_in
from tests.support.stored import Stored
from tests.waiting import WAIT_SECONDS

pytestmark = [pytest.mark.long(seconds=40), pytest.mark.asyncio(loop_scope="session")]

CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"  # of RFC 7636, appendix B
_ADDRESS = re.compile(r"http://[^\s\"']+/authorize\?[^\s\"']+")


class User:
    """A user with a browser, who is signed in."""

    def __init__(self, stack: AccountStack, stored: Stored, page: Page, name: str) -> None:
        self.stack, self.stored, self.page, self.name = stack, stored, page, name

    async def sign_in(self) -> None:
        name, _, value = sign_in(self.stored, self.name).partition("=")
        cookie: Any = {"name": name, "value": value, "url": self.stack.url, "httpOnly": True, "sameSite": "Strict"}
        await self.page.context.add_cookies([cookie])

    async def press(self, address: str, button: str = "Allow") -> None:
        await self.page.goto(address)
        await screen.button(self.page, button).click()
        await self.page.wait_for_url(lambda address: "/authorize" not in address)


@pytest.fixture
def stored(accounts: AccountStack) -> Iterator[Stored]:
    with Stored(accounts.mcp.environment["DATABASE_URL"]) as stored:
        yield stored


@pytest_asyncio.fixture(loop_scope="session")
async def someone(browser: Browser, accounts: AccountStack, stored: Stored) -> AsyncIterator[User]:
    problems: list[str] = []
    context = await browser.new_context(viewport={"width": 320, "height": 640})
    page = await context.new_page()
    screen.watch(page, problems)
    name = new_name()
    stored.add_named_account(name)
    someone = User(accounts, stored, page, name)
    await someone.sign_in()
    yield someone
    await context.close()
    assert problems == []


@asynccontextmanager
async def listen() -> AsyncIterator[tuple[str, asyncio.Queue[dict[str, str]]]]:
    """Yields the redirect address of a program, and what browsers bring there."""
    answers = asyncio.Queue[dict[str, str]]()

    async def app(scope: Any, _: Any, send: Any) -> None:
        if scope["path"] == "/callback":
            answers.put_nowait({name: value for name, [value] in parse_qs(scope["query_string"].decode()).items()})
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<title>A program</title><a href=/>You can close this.</a>"})

    async with serve(app, lifespan="off") as url:
        yield f"{url}/callback", answers


async def register(stack: AccountStack, name: str, redirect_uri: str) -> str:
    """Returns the query with which a new client asks."""
    async with httpx2.AsyncClient(trust_env=False) as http:
        metadata = {"client_name": name, "redirect_uris": [redirect_uri]}
        client = (await http.post(f"{stack.url}/register", json=metadata)).json()
    query = {"response_type": "code", "client_id": client["client_id"], "redirect_uri": redirect_uri, "state": "s"}
    return urlencode(query | {"code_challenge": CHALLENGE, "code_challenge_method": "S256"})


async def test_the_question(someone: User, violations: Violations) -> None:
    """It has the client's name as text, works at a phone's size and by keyboard, and goes back with the answer."""
    async with listen() as (redirect_uri, answers):
        query = await register(someone.stack, '<img src=x onerror="alert(1)"> official', redirect_uri)
        page = someone.page
        await page.goto(f"{someone.stack.url}/authorize?{query}")
        await expect(page.get_by_role("heading", name="Allow a program to use your tasks?")).to_be_focused()
        await expect(page.get_by_text('<img src=x onerror="alert(1)"> official')).to_be_visible()
        await expect(page.get_by_text("a program on the device in front of you")).to_be_visible()
        await expect(page.get_by_role("listitem")).to_have_count(2)
        await expect(page.get_by_text(f"You are signed in as {someone.name}.")).to_be_visible()
        await expect(screen.button(page, "Allow")).to_be_enabled()
        assert await violations(page) == []
        assert await page.evaluate("document.documentElement.scrollWidth") <= 320
        await page.keyboard.press("Tab")
        await expect(screen.button(page, "Don't allow")).to_be_focused()
        await page.keyboard.press("Enter")
        assert (await asyncio.wait_for(answers.get(), WAIT_SECONDS))["error"] == "access_denied"
        await expect(page).to_have_title("A program")  # else the next navigation would meet this one
        await page.goto(f"{someone.stack.url}/authorize?{query}")
        await screen.button(page, "Allow").click()
        answer = await asyncio.wait_for(answers.get(), WAIT_SECONDS)
        assert (answer.keys(), answer["iss"]) == ({"code", "state", "iss"}, someone.stack.url)


async def test_from_another_website(someone: User) -> None:
    """The cookie is Strict: the page is opened without it, and asks once, as it sends the cookie itself."""
    async with listen() as (redirect_uri, answers):
        query = await register(someone.stack, "A program", redirect_uri)
        page = someone.page
        await page.goto(redirect_uri.replace("/callback", "/").replace("127.0.0.1", "localhost"))
        address = f"{someone.stack.url}/authorize?{query}"
        await page.evaluate("(address) => Object.assign(document.links[0], { href: address })", address)
        await page.get_by_role("link").click()
        await screen.button(page, "Allow").click()
        assert "code" in await asyncio.wait_for(answers.get(), WAIT_SECONDS)


async def test_nobody_is_signed_in(someone: User) -> None:
    """The form comes first, and then the question; a request that cannot be trusted goes nowhere."""
    page = someone.page
    await page.context.clear_cookies()
    async with listen() as (redirect_uri, _):
        query = await register(someone.stack, "A program", redirect_uri)
        await page.goto(f"{someone.stack.url}/authorize?{query}")
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await expect(screen.button(page, "Allow")).to_have_count(0)
        await someone.sign_in()
        await page.reload()
        await expect(screen.button(page, "Allow")).to_be_visible()
        await page.goto(f"{someone.stack.url}/authorize?{query}&scope=chat")
        await expect(page.get_by_text("The scope can be tasks:read or tasks.")).to_be_visible()
        await expect(screen.button(page, "Go back to the program")).to_be_visible()
        await page.goto(f"{someone.stack.url}/authorize?{query.replace('callback', 'elsewhere')}")
        await expect(page.get_by_role("alert")).to_contain_text("which it has not registered")
        await expect(page.get_by_role("button")).to_have_count(0)


class Program:
    """A client that runs as a program; it prints the address that the user has to open."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = ""
        self._printed = asyncio.Event()
        self._readers = [asyncio.create_task(self._read(stream)) for stream in (process.stdout, process.stderr)]

    async def _read(self, stream: asyncio.StreamReader | None) -> None:
        assert stream
        while text := await stream.read(65_536):
            self.output += text.decode()
            self._printed.set()

    async def wait_for(self, find: Callable[[str], Any]) -> Any:
        while not (found := find(self.output)):
            assert self.process.returncode is None, self.output
            self._printed.clear()
            try:
                await asyncio.wait_for(self._printed.wait(), WAIT_SECONDS)
            except TimeoutError:
                pytest.fail(self.output)
        return found

    async def address(self) -> str:
        return (await self.wait_for(_ADDRESS.search))[0]

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.terminate()
        await asyncio.wait_for(self.process.wait(), WAIT_SECONDS)
        await asyncio.gather(*self._readers)


@asynccontextmanager
async def run_program(home: Path, arguments: Sequence[str]) -> AsyncIterator[Program]:
    modules = await asyncio.to_thread(install_packages, MCP_CLIENTS)
    environment = {"HOME": str(home), "NODE_MODULES": str(modules), "PATH": os.environ["PATH"]}
    environment["MCP_AUTO_OPEN_ENABLED"] = "true"  # Inspector asks for a terminal else; there is no browser to open
    command = [
        str(modules / ".bin" / "node"),
        *(argument.replace("BIN", str(modules / ".bin")) for argument in arguments),
    ]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
    program = Program(process)
    try:
        yield program
    finally:
        await program.end()


async def test_the_typescript_sdk(someone: User, tmp_path: Path) -> None:
    async with run_program(tmp_path, [str(MCP_CLIENTS / "oauth.mjs"), someone.stack.resource]) as program:
        address = await program.address()
        assert parse_qs(urlsplit(address).query)["resource"] == [someone.stack.resource]
        await someone.press(address)
        await program.wait_for(lambda output: "of the TypeScript client" in output)
    assert someone.stored.titles(someone.name) == ["of the TypeScript client"]
    page = someone.page
    await page.goto(someone.stack.url)
    await screen.from_menu(page, "Programs")
    dialog = page.get_by_role("dialog", name="Programs that you have allowed")
    await expect(dialog.get_by_role("listitem")).to_contain_text("TypeScript <b>client</b>")
    await dialog.get_by_role("button", name=re.compile("^End: ")).click()
    await expect(dialog.get_by_role("listitem")).to_have_count(0)
    await expect(dialog.get_by_role("status")).to_have_text("Ended.")


class Memory(TokenStorage):
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def test_the_python_sdk(someone: User) -> None:
    """It compares the state and the issuer, and refreshes its tokens when they expire."""
    async with listen() as (redirect_uri, answers):

        async def wait_for_answer() -> AuthorizationCodeResult:
            answer = await asyncio.wait_for(answers.get(), WAIT_SECONDS)
            return AuthorizationCodeResult(code=answer["code"], state=answer["state"], iss=answer["iss"])

        storage = Memory()
        metadata = OAuthClientMetadata(client_name="Python client", redirect_uris=[AnyUrl(redirect_uri)])
        auth = OAuthClientProvider(someone.stack.resource, metadata, storage, someone.press, wait_for_answer)

        async def add(title: str) -> None:
            async with (
                httpx2.AsyncClient(auth=auth, trust_env=False, timeout=WAIT_SECONDS) as http,
                Client(streamable_http_client(someone.stack.resource, http_client=http)) as client,
            ):
                assert len((await client.list_tools()).tools) == 5
                await client.call_tool("add_task", {"title": title})

        await add("first")
        assert storage.tokens
        first = storage.tokens.refresh_token
        auth.context.token_expiry_time = 1.0
        await add("second")
        assert storage.tokens.refresh_token != first
    assert someone.stored.titles(someone.name) == ["first", "second"]


async def test_mcp_remote(someone: User, tmp_path: Path) -> None:
    """As Claude Desktop runs it."""
    async with run_program(tmp_path, ["BIN/mcp-remote", someone.stack.resource]) as program:
        stdin = program.process.stdin
        assert stdin
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        call = {"name": "add_task", "arguments": {"title": "of mcp-remote"}}
        for message in (
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ):
            stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        await someone.press(await program.address())
        await program.wait_for(lambda output: '"id":2' in output)
    assert someone.stored.titles(someone.name) == ["of mcp-remote"]


async def test_inspector(someone: User, tmp_path: Path) -> None:
    call = ["--method", "tools/call", "--tool-name", "add_task", "--tool-args-json", '{"title": "of Inspector"}']
    callback = ["--callback-url", f"http://127.0.0.1:{find_free_port()}/oauth/callback", "--format", "json"]
    inspector = str(
        (await asyncio.to_thread(install_packages, MCP_CLIENTS)).joinpath(".bin", "mcp-inspector").resolve()
    )
    arguments = [inspector, "--cli", someone.stack.resource, "--transport", "http", *call, *callback]
    async with run_program(tmp_path, arguments) as program:
        await someone.press(await program.address())
        assert await asyncio.wait_for(program.process.wait(), WAIT_SECONDS) == 0, program.output
    assert someone.stored.titles(someone.name) == ["of Inspector"]
