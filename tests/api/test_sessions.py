"""The page's session cookie: where it counts, and that signing out ends it in every process."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx2
import psycopg
import pytest

from tests.logins import as_admin
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.backends import local_backend
from tests.support.commands import todo_at
from tests.support.fixtures import NewUser
from tests.support.script import add_task, says
from tests.support.stack import AUDIENCE, Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET, OWN_ISSUER, mint_token
from tests.waiting import until
from todo_client.chatkit import request, user_input

LIST = request("threads.list")
SESSION = "todo-assistant/session"


class Browser:
    """Requests as the page makes them; each cookie is named, none is remembered."""

    def __init__(self, url: str) -> None:
        self.http = http_client(url)
        self.own = {"Origin": url}

    async def sign_in(self, user: User, **claims: Any) -> str:
        token = mint_token(IDP_SECRET, **{"sub": user.name, "iss": ISSUER, "aud": AUDIENCE} | claims)
        response = await self.http.post("/session", headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 200, response.text
        assert response.json()["user_id"] == user.name
        self.http.cookies.clear()
        return response.headers["set-cookie"].partition(";")[0]

    async def sign_out(self, *cookies: str, **headers: str) -> httpx2.Response:
        sent = self.own | headers | ({"Cookie": "; ".join(cookies)} if cookies else {})
        return await self.http.delete("/session", headers=sent)

    async def status(self, cookie: str, **headers: str) -> int:
        return (
            await self.http.post("/chatkit", json=LIST, headers=self.own | headers | {"Cookie": cookie})
        ).status_code

    async def sessions(self, cookie: str) -> list[dict[str, Any]]:
        return (await self.http.get("/sessions", headers=self.own | {"Cookie": cookie})).json()["sessions"]


async def known_to_be_ended(browser: Browser, cookie: str) -> None:
    async def is_rejected() -> bool:
        return await browser.status(cookie) == 401

    await until(is_rejected, seconds=10)


@pytest.fixture
async def browser(stack: Stack) -> AsyncIterator[Browser]:
    browser = Browser(stack.url)
    async with browser.http:
        yield browser


async def test_cookie_signs_in(browser: Browser, user: User, model: ScriptedModel, stored: Stored) -> None:
    assert (await browser.http.post("/session")).status_code == 401
    token = {"Authorization": f"Bearer {user.token}"}
    flags = (await browser.http.post("/session", headers=token)).headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict"} <= {flag.strip() for flag in flags.split(";")}
    await model.script(add_task("milk"), says("Fine."))
    body = request("threads.create", input=user_input("add milk"))
    assert (await browser.http.post("/chatkit", json=body, headers=browser.own)).status_code == 200
    assert stored.titles(user.name) == ["milk"]


async def test_cookie_over_https(browser: Browser, user: User) -> None:
    """Its name is one that no other host can set."""
    https = {"X-Forwarded-Proto": "https", "Authorization": f"Bearer {user.token}"}
    name, _, rest = (await browser.http.post("/session", headers=https)).headers["set-cookie"].partition("=")
    value, _, flags = rest.partition(";")
    assert name == "__Host-todo_session"
    assert {"secure", "httponly", "path=/", "samesite=strict"} <= {flag.strip().lower() for flag in flags.split(";")}
    assert "domain" not in flags.lower()
    browser.http.cookies.clear()
    own = {"Origin": browser.own["Origin"].replace("http", "https"), "X-Forwarded-Proto": "https"}
    for cookie, status in (
        (f"__Host-todo_session={value}", 200),
        (f"todo_session={value}", 401),
        (f"todo_session=x; __Host-todo_session={value}", 200),
    ):
        assert await browser.status(cookie, **own) == status, cookie
    left = await browser.sign_out(f"__Host-todo_session={value}", **own)
    assert {"max-age=0", "secure"} <= {flag.strip().lower() for flag in left.headers["set-cookie"].split(";")}


@pytest.mark.parametrize(
    ("origin", "site", "status"),
    [
        ("own", None, 200),
        ("own", "same-origin", 200),
        (None, "same-origin", 200),
        (None, None, 403),
        (None, "none", 403),
        ("own", "same-site", 403),
        ("own", "cross-site", 403),
        ("own", "none", 403),
        ("own", "", 403),
        ("https://evil.example", None, 403),
    ],
)
async def test_cookie_counts_from_the_own_page_only(
    browser: Browser, user: User, origin: str | None, site: str | None, status: int
) -> None:
    headers = {"Cookie": await browser.sign_in(user)}
    headers |= browser.own if origin == "own" else {"Origin": origin} if origin else {}
    headers |= {} if site is None else {"Sec-Fetch-Site": site}
    assert (await browser.http.post("/chatkit", json=LIST, headers=headers)).status_code == status


async def test_two_cookies_are_rejected(browser: Browser, user: User, new_user: NewUser) -> None:
    """One of them may have been set by another host, to have the user write into somebody else's conversations."""
    one, other = await browser.sign_in(user), await browser.sign_in(new_user())
    for sent in ((one, other), (other, one), (one, "todo_session="), (one, one)):
        for separator in ("; ", ";"):
            assert await browser.status(separator.join(sent)) == 401
    assert (await browser.sign_out(one, other)).status_code == 204
    assert [await browser.status(cookie) for cookie in (one, other)] == [401, 401], "signing out ends both"


async def test_signed_out(browser: Browser, stack: Stack, user: User, new_user: NewUser) -> None:
    other_process = Browser(stack.backends[1].url)
    cookie, another, others = [await browser.sign_in(one) for one in (user, user, new_user())]
    async with other_process.http:
        assert await other_process.status(cookie) == 200
        left = await browser.sign_out(cookie)
        assert left.status_code == 204
        assert left.headers["set-cookie"].startswith('todo_session="";')
        assert await browser.status(cookie) == 401
        await known_to_be_ended(other_process, cookie)
    # The last character of a signature has bits that say nothing.
    spellings = [cookie[:-1] + last for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    assert {await browser.status(spelling) for spelling in (*spellings, f"{cookie}=", f"{cookie}; x")} == {401}
    assert (await browser.sign_out(cookie)).status_code == 204, "again changes nothing"
    assert [await browser.status(one) for one in (another, others)] == [200, 200]
    token = {"Authorization": f"Bearer {user.token}"}
    assert (await browser.http.post("/chatkit", json=LIST, headers=token)).status_code == 200


async def test_sign_out_with_more_cookies_than_browsers_have(browser: Browser, user: User) -> None:
    cookie = await browser.sign_in(user)
    left = await browser.sign_out(*["todo_session=x"] * 10, cookie)
    assert left.status_code == 401
    assert left.json()["error"].startswith("Your browser sent too many session cookies.")
    assert await browser.status(cookie) == 200, "nothing is said to have ended"


async def test_another_site_cannot_sign_out(browser: Browser, user: User) -> None:
    cookie = await browser.sign_in(user)
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await browser.sign_out(cookie, **headers)).status_code == 403
    assert await browser.status(cookie) == 200


def forged_cookies(user: User) -> list[str]:
    mint = {"sub": user.name, "iss": OWN_ISSUER}
    names: list[object] = ["a\0b", "", "x" * 1_000, None, 7, ["x"]]
    return [
        "todo_session=garbage",
        "todo_session=",
        f"todo_session={mint_token('x' * 40, **mint, aud=SESSION, jti='x')}",
        f"todo_session={mint_token(MCP_TOKEN_SECRET, **mint, aud=f'{user.stack.services.mcp.url}/mcp')}",
        f"todo_session={mint_token(MCP_TOKEN_SECRET, **mint, aud=SESSION)}",  # as an older version made them
        *(f"todo_session={mint_token(MCP_TOKEN_SECRET, **mint, aud=SESSION, jti=name)}" for name in names),
    ]


async def test_forged_cookie(browser: Browser, user: User, stored: Stored) -> None:
    for cookie in forged_cookies(user):
        assert await browser.status(cookie) == 401, cookie
        assert (await browser.sign_out(cookie)).status_code == 204
    assert (await browser.sign_out()).status_code == 204
    assert stored.row_counts(user.name) == {}


async def test_cookie_is_no_bearer_token(browser: Browser, user: User) -> None:
    _, _, value = (await browser.sign_in(user)).partition("=")
    headers = {"Authorization": f"Bearer {value}"}
    assert (await browser.http.post("/chatkit", json=LIST, headers=headers)).status_code == 401


async def test_lifetime_of_a_session(browser: Browser, user: User) -> None:
    """It lasts no longer than the token, and can be ended however long that is."""
    almost_over = await browser.sign_in(user, exp=int(time.time()) - 1)
    assert almost_over, "a token is accepted within the leeway for clocks"
    endless = await browser.sign_in(user, exp=253_402_300_799)
    [*_, session] = await browser.sessions(endless)
    assert datetime.fromisoformat(session["expires"]).year < datetime.now(UTC).year + 11
    await browser.sign_out(endless)
    assert await browser.status(endless) == 401


async def test_places_where_one_is_signed_in(browser: Browser, stack: Stack, user: User, new_user: NewUser) -> None:
    phone = "Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 Chrome/142.0.0.0 Mobile Safari/537.36"
    own = await browser.sign_in(user)
    others = await browser.sign_in(new_user())
    browser.http.headers["User-Agent"] = phone
    on_phone, lost = [await browser.sign_in(user) for _ in range(2)]
    shown = await browser.sessions(own)
    assert [(one["name"], one["is_current"]) for one in shown] == [
        *[("Chrome on Android", False)] * 2,
        ("Another program", True),
    ]
    other_process = Browser(stack.backends[1].url)
    async with other_process.http:
        headers = browser.own | {"Cookie": own}
        assert [await other_process.status(one) for one in (on_phone, lost)] == [200, 200]
        first = shown[0]["id"]
        assert (await browser.http.delete(f"/sessions/{first}", headers=headers)).status_code == 204
        again = await browser.http.delete(f"/sessions/{first}", headers=headers)
        assert again.status_code == 404
        of_another = {"Cookie": others} | browser.own
        assert (await browser.http.delete(f"/sessions/{shown[1]['id']}", headers=of_another)).status_code == 404
        assert len(await browser.sessions(own)) == 2
        assert (await browser.http.delete("/sessions", headers=headers)).status_code == 204
        assert [one["is_current"] for one in await browser.sessions(own)] == [True]
        assert [await browser.status(one) for one in (on_phone, lost)] == [401, 401]
        for cookie in (on_phone, lost):
            await known_to_be_ended(other_process, cookie)
        assert [await other_process.status(one) for one in (own, others)] == [200, 200]


async def test_signing_in_again_replaces_the_session(browser: Browser, user: User, new_user: NewUser) -> None:
    others = await browser.sign_in(new_user())
    first = await browser.sign_in(user)
    for cookie in (first, others):
        headers = browser.own | {"Authorization": f"Bearer {user.token}", "Cookie": cookie}
        response = await browser.http.post("/session", headers=headers)
        browser.http.cookies.clear()
        last = response.headers["set-cookie"].partition(";")[0]
    assert [await browser.status(cookie) for cookie in (first, others, last)] == [401, 200, 200]
    assert len(await browser.sessions(last)) == 2


async def test_most_sessions_of_a_user(
    stack: Stack, user: User, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were not used for longest are ended, and nobody begins one all the time."""
    monkeypatch.setattr("backend.app._SIGN_INS_PER_MINUTE", 105)
    async with local_backend(stack.services) as backend:
        browser = Browser(backend.url)
        async with browser.http:
            cookies = [await browser.sign_in(user) for _ in range(102)]
            assert len(await browser.sessions(cookies[-1])) == 100
            assert [await browser.status(cookie) for cookie in (*cookies[:3], cookies[-1])] == [401, 401, 200, 200]
            token = {"Authorization": f"Bearer {user.token}"}
            sent = [browser.http.post("/session", headers=token) for _ in range(20)]
            statuses = [response.status_code for response in await asyncio.gather(*sent)]
            assert set(statuses) == {200, 429}, "a slow machine has been allowed some more meanwhile"


async def test_session_whose_row_is_lost_can_be_signed_out_of(
    browser: Browser, stack: Stack, user: User, stored: Stored
) -> None:
    """As after a backup was restored."""
    cookie = await browser.sign_in(user)
    stored.delete_rows("sessions", user.name)
    assert await browser.status(cookie) == 200
    assert (await browser.sign_out(cookie)).status_code == 204
    other_process = Browser(stack.backends[1].url)
    async with other_process.http:
        assert await browser.status(cookie) == 401
        await known_to_be_ended(other_process, cookie)


async def test_time_of_use(browser: Browser, user: User, stored: Stored, stack: Stack) -> None:
    """By any request, and only once in ten minutes for each process."""
    cookie = await browser.sign_in(user)
    stored.make_sessions_older(user.name, days=3)
    async with local_backend(stack.services) as backend:
        late = Browser(backend.url)
        async with late.http:
            assert await late.status(cookie) == 200

            async def is_noted() -> bool:
                [session] = await late.sessions(cookie)
                return session["last_used"] > session["begun"]

            await until(is_noted)


async def test_unknown_session(browser: Browser, user: User) -> None:
    headers = browser.own | {"Cookie": await browser.sign_in(user)}
    for session_id, status in (("x" * 22, 404), ("%00", 400), ("%ff", 400), ("x" * 101, 400), ("a b", 400)):
        assert (await browser.http.delete(f"/sessions/{session_id}", headers=headers)).status_code == status


async def test_process_that_begins_later_knows_what_was_ended(stack: Stack, browser: Browser, user: User) -> None:
    ended, other = [await browser.sign_in(user) for _ in range(2)]
    await browser.sign_out(ended)
    async with local_backend(stack.services) as backend:
        late = Browser(backend.url)
        async with late.http:
            assert [await late.status(cookie) for cookie in (ended, other)] == [401, 200]


async def test_session_of_a_forgotten_user_opens_nothing(stack: Stack, browser: Browser, user: User) -> None:
    """Not in a process that begins later either, and although nothing of the user is stored any more."""
    cookie = await browser.sign_in(user)
    done = await todo_at(stack, "forget", "--yes", "--user", user.name)
    assert done.returncode == 0, done.stderr
    await known_to_be_ended(browser, cookie)
    async with local_backend(stack.services) as backend:
        late = Browser(backend.url)
        async with late.http:
            assert await late.status(cookie) == 401
    assert (await todo_at(stack, "forget", "--yes", "--user", user.name)).returncode == 1, "nothing is left"


async def test_forgetting_that_takes_long_ends_sessions_at_once(browser: Browser, stack: Stack, user: User) -> None:
    cookie = await browser.sign_in(user)
    with psycopg.connect(as_admin(stack.database_url)) as connection:
        connection.execute("LOCK TABLE token_usage IN EXCLUSIVE MODE")
        forgetting = asyncio.create_task(todo_at(stack, "forget", "--yes", "--user", user.name))
        await known_to_be_ended(browser, cookie)
    assert (await forgetting).returncode == 0
    assert await browser.status(cookie) == 401


async def test_cookie_of_an_older_version_asks_for_one_sign_in(browser: Browser, user: User) -> None:
    claims = {"sub": user.name, "iss": OWN_ISSUER, "aud": SESSION, "jti": "x" * 22}
    assert await browser.status(f"todo_session={mint_token(MCP_TOKEN_SECRET, **claims)}") == 401


async def test_without_a_database_nobody_is_told_to_be_signed_out(browser: Browser, user: User, stored: Stored) -> None:
    cookie = await browser.sign_in(user)
    with stored.hide_table("sessions"):
        left = await browser.sign_out(cookie)
        assert left.status_code == 503
        assert "set-cookie" not in left.headers

        async def nobody_knows() -> bool:
            return await browser.status(cookie) == 503

        await until(nobody_knows)  # what was read a second ago counts
    assert await browser.status(cookie) == 200


async def test_who_is_signed_in(browser: Browser, user: User, new_user: NewUser) -> None:
    """A page of a user who is no longer signed in does nothing in the session of another one."""
    assert (await browser.http.get("/session", headers=browser.own)).status_code == 401
    headers = browser.own | {"Cookie": await browser.sign_in(user)}
    session = (await browser.http.get("/session", headers=headers)).json()
    assert session["user_id"] == user.name
    assert session["expires"] is not None

    async def read_tasks(expected: str) -> httpx2.Response:
        return await browser.http.get("/tasks?view=all", headers=headers | {"X-Expected-User": expected})

    for name in (user.name, quote(user.name, safe="")):
        assert (await read_tasks(name)).status_code == 200
    for name in (new_user().name, ""):
        response = await read_tasks(name)
        assert response.status_code == 401
        assert "Another user is signed in" in response.json()["error"]


async def test_sign_out_names_its_user(browser: Browser, user: User, new_user: NewUser) -> None:
    cookie = await browser.sign_in(user)
    rejected = await browser.sign_out(cookie, **{"X-Expected-User": new_user().name})
    assert rejected.status_code == 401
    assert "Another user is signed in" in rejected.json()["error"]
    assert "set-cookie" not in rejected.headers
    assert await browser.status(cookie) == 200
    assert (await browser.sign_out(cookie, **{"X-Expected-User": user.name})).status_code == 204
    assert await browser.status(cookie) == 401
