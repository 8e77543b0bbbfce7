"""Links for a phone: who makes one, what it opens, and what a request of another machine may do without sign-in."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from backend.accounts.links import make_link
from common.database import Database
from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.backends import LocalBackend, local_backend
from tests.support.fixtures import NewUser
from tests.support.script import PAUSING
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.tokens import MCP_TOKEN_SECRET
from tests.waiting import until
from todo_client.chatkit import request

PAGE = "https://todo.example"
LIST = request("threads.list")
NOT_VALID = {
    "error": "This link is not valid any more: a link works once, for ten minutes. Make a new one and try again."
}


class Browser:
    """Requests of the page, as browsers send them; each cookie is named, none is remembered."""

    def __init__(self, url: str, **headers: str) -> None:
        self.http = http_client(url, headers={"Origin": url, **headers})

    async def send(self, method: str, path: str, body: Any = None, cookie: str = "", **headers: str) -> httpx2.Response:
        sent = headers | ({"Cookie": cookie} if cookie else {})
        response = await self.http.request(method, path, json=body, headers=sent)
        self.http.cookies.clear()
        return response

    async def sign_in(self, user: User) -> str:
        response = await self.send("POST", "/session", Authorization=f"Bearer {user.token}")
        assert response.status_code == 200, response.text
        return cookie_of(response)

    async def make(self, cookie: str) -> str:
        made = await self.send("POST", "/links", cookie=cookie)
        assert made.status_code == 201, made.text
        address, code = made.json()["address"].split("/#link=")
        assert address == PAGE
        return code

    async def take(self, code: str) -> httpx2.Response:
        return await self.send("POST", "/links/take", {"code": code})


def cookie_of(response: httpx2.Response) -> str:
    return response.headers["set-cookie"].partition(";")[0]


@pytest.fixture
async def backend(stack: Stack) -> AsyncIterator[LocalBackend]:
    async with local_backend(stack.services, BACKEND_URL=PAGE) as backend:
        yield backend


@pytest.fixture
async def browser(backend: LocalBackend) -> AsyncIterator[Browser]:
    browser = Browser(backend.url)
    async with browser.http:
        yield browser


async def test_link_is_made_on_the_page_only(browser: Browser, stack: Stack, user: User) -> None:
    assert (await browser.send("POST", "/links")).status_code == 401
    token = await browser.send("POST", "/links", Authorization=f"Bearer {user.token}")
    assert (token.status_code, token.json()["error"][:27]) == (403, "Links are made on the page,")
    cookie = await browser.sign_in(user)
    foreign = await browser.send("POST", "/links", cookie=cookie, Origin="https://evil.example")
    assert foreign.status_code == 403
    async with local_backend(stack.services) as backend:
        here = Browser(backend.url)
        async with here.http:
            unreachable = await here.send("POST", "/links", cookie=await here.sign_in(user))
            assert (unreachable.status_code, unreachable.json()["error"][:34]) == (
                409,
                "A phone cannot reach this address,",
            )


async def test_link_signs_in_a_device_of_its_user(
    browser: Browser, user: User, new_user: NewUser, stored: Stored
) -> None:
    cookie = await browser.sign_in(user)
    made = (await browser.send("POST", "/links", cookie=cookie)).json()
    minutes = (datetime.fromisoformat(made["expires"]) - datetime.now(UTC)) / timedelta(minutes=1)
    assert 9 < minutes <= 10
    assert made["qr_code"]["size"] > 40
    code = made["address"].partition("#link=")[2]
    others = cookie_of(await browser.send("POST", "/session", Authorization=f"Bearer {new_user().token}"))
    taken = await browser.send("POST", "/links/take", {"code": code}, cookie=others)
    assert (taken.status_code, taken.json()["user_id"]) == (200, user.name)
    flags = taken.headers["set-cookie"].lower()
    assert "httponly" in flags
    assert "samesite=strict" in flags
    device = cookie_of(taken)
    assert (await browser.send("POST", "/chatkit", LIST, cookie=device)).status_code == 200
    assert sorted(row["kind"] for row in stored.rows_of(user.name, "sessions")) == ["device", "session"]
    events = stored.rows_of(user.name, "account_events")
    assert [row["kind"] for row in events] == ["sign_in", "link_made", "device_linked"]
    assert code not in str(events)
    assert (await browser.take(code)).status_code == 401
    sessions = (await browser.send("GET", "/sessions", cookie=cookie)).json()["sessions"]
    [linked] = [one["id"] for one in sessions if not one["is_current"]]
    assert (await browser.send("DELETE", f"/sessions/{linked}", cookie=cookie)).status_code == 204
    assert (await browser.send("POST", "/chatkit", LIST, cookie=device)).status_code == 401


async def test_device_ends_with_the_session_of_the_provider(browser: Browser, user: User, stored: Stored) -> None:
    """Who has left the provider does not stay signed in on a phone."""
    soon = {"Authorization": f"Bearer {user.mint_token(exp=int(time.time()) + 60)}"}
    cookie = cookie_of(await browser.send("POST", "/session", **soon))
    assert (await browser.take(await browser.make(cookie))).status_code == 200
    one, other = stored.rows_of(user.name, "sessions")
    assert one["expires_at"] == other["expires_at"]


async def test_code_that_opens_nothing(browser: Browser, stack: Stack, user: User) -> None:
    cookie = await browser.sign_in(user)
    replaced, code = [await browser.make(cookie) for _ in range(2)]
    for wrong in (replaced, "x", code + "a", "\u202e", "a\u0000"):
        rejected = await browser.take(wrong)
        assert (rejected.status_code, rejected.json()) == (401, NOT_VALID)
    for body in ({}, {"code": ""}, {"code": 7}, {"code": "x" * 101}, {"code": code, "user": "x"}, [code], None):
        assert (await browser.send("POST", "/links/take", body)).status_code == 400, body
    with psycopg.connect(as_admin(stack.database_url), autocommit=True) as connection:
        connection.execute("INSERT INTO accounts (user_id, name, disabled_at) VALUES (%s, 'x', now())", [user.name])
        try:
            assert (await browser.take(code)).json() == NOT_VALID, "a disabled account"
        finally:
            connection.execute("DELETE FROM accounts WHERE user_id = %s", [user.name])


async def test_links_of_an_address_are_limited(browser: Browser, user: User) -> None:
    code = await browser.make(await browser.sign_in(user))
    assert {(await browser.take("x" * 32)).status_code for _ in range(10)} == {401}
    limited = await browser.take(code)
    assert limited.status_code == 429
    assert int(limited.headers["retry-after"]) >= 1
    other = await browser.send("POST", "/links/take", {"code": code}, **{"X-Forwarded-For": "192.0.2.77"})
    assert other.status_code == 200, "by a proxy of this machine, each client has its own limit"


@pytest.fixture
async def without_sign_in(stack: Stack) -> AsyncIterator[LocalBackend]:
    settings = {"AUTH_MODE": "none", "DEVICE_HOST": "10.255.255.1", "MCP_TOKEN_SECRET": MCP_TOKEN_SECRET}
    async with local_backend(stack.services, 0.05, **settings) as backend:
        yield backend


async def test_stream_of_a_device_ends_without_sign_in(
    without_sign_in: LocalBackend, stack: Stack, model: ScriptedModel
) -> None:
    here = Browser(without_sign_in.url)
    device = Browser(without_sign_in.url, **{"X-Forwarded-For": "10.0.0.9"})  # by a proxy, as from elsewhere
    async with Database(stack.database_url) as database, here.http, device.http:
        assert (await device.send("GET", "/session")).status_code == 401
        taken = await device.take(await make_link(database, "local"))
        assert (taken.status_code, taken.json()["user_id"]) == (200, "local")
        cookie = cookie_of(taken)
        session = (await device.send("GET", "/session", cookie=cookie)).json()
        assert session["session_id"] == taken.json()["session_id"]
        assert (await here.send("GET", "/session")).json()["session_id"] is None
        await model.script(PAUSING)
        body, received = {"user_message": "count"}, ""
        ended_at = 0.0
        path = f"/chats/{session['session_id']}/interactions"
        async with device.http.stream("POST", path, json=body, headers={"Cookie": cookie}) as stream:
            async for piece in stream.aiter_text():
                received += piece
                if "answer_delta" in received and not ended_at:
                    ended_at = time.monotonic()
                    ended = await here.send("DELETE", f"/sessions/{session['session_id']}")
                    assert ended.status_code == 204
        assert ended_at
        assert time.monotonic() - ended_at < 1
        await model.release()
        assert (await device.send("GET", "/session", cookie=cookie)).status_code == 401


async def test_proxy_that_only_this_machine_reaches(stack: Stack) -> None:
    """As documented: AUTH_NONE_BEYOND_LOOPBACK serves whoever the proxy lets through."""
    settings = {"AUTH_MODE": "none", "AUTH_NONE_BEYOND_LOOPBACK": "true", "DEVICE_HOST": "auto"}
    async with local_backend(stack.services, **settings) as backend:
        browser = Browser(backend.url, **{"X-Forwarded-For": "10.0.0.9"})
        async with browser.http:
            assert (await browser.send("GET", "/tasks?view=all")).status_code == 200
            link = await browser.send("POST", "/links")
            assert (link.status_code, link.json()["error"][:42]) == (409, "Without sign-in, phones can be linked only")


async def test_device_that_is_linked_while_all_others_are_ended(
    stack: Stack, browser: Browser, user: User, stored: Stored
) -> None:
    first, second = await browser.sign_in(user), await browser.sign_in(user)
    code = await browser.make(first)
    with psycopg.connect(as_admin(stack.database_url)) as held:
        held.execute("LOCK TABLE account_events IN ACCESS EXCLUSIVE MODE")  # the device's session is not committed yet
        taking = asyncio.create_task(browser.take(code))
        await until(lambda: stored.count_lock_waits() == 1)
        ending = asyncio.create_task(browser.send("DELETE", "/sessions", cookie=second))
        await until(lambda: stored.count_lock_waits() == 2)
        held.rollback()
    taken, ended = await asyncio.gather(taking, ending)
    assert (taken.status_code, ended.status_code) == (200, 204)
    assert (await browser.send("GET", "/session", cookie=cookie_of(taken))).status_code == 401
    assert (await browser.send("GET", "/session", cookie=second)).status_code == 200
