"""Sign-in with a name and a password: who gets in, how often somebody may guess, and what ends a session."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from argon2 import PasswordHasher

from backend.accounts import passwords
from backend.accounts.accounts import disable_account
from backend.api.accounts import sessions as session_routes
from common.database import Database, ended_sessions
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.accounts import PASSWORD, hash_password, new_name
from tests.support.backends import LocalBackend, local_backend
from tests.support.commands import todo_at
from tests.support.script import pausing_answer
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.tokens import MCP_TOKEN_SECRET, OWN_ISSUER, mint_token
from tests.waiting import until

WRONG = "The name or the password is wrong."


class Browser:
    """A browser at a backend; it keeps its cookie."""

    def __init__(self, url: str, **headers: str) -> None:
        self.http = http_client(url, headers={"Origin": url, **headers})

    async def sign_in(self, name: str, password: str = PASSWORD, **headers: str) -> httpx2.Response:
        return await self.http.post("/session", json={"name": name, "password": password}, headers=headers)

    async def status(self) -> int:
        return (await self.http.get("/tasks?view=all")).status_code

    async def change(self, old: str, new: str) -> httpx2.Response:
        return await self.http.put("/session/password", json={"old": old, "new": new})


@pytest.fixture
async def backend(stack: Stack) -> AsyncIterator[LocalBackend]:
    async with local_backend(stack.services, 0.05, AUTH_MODE="password") as backend:
        yield backend


@pytest.fixture
async def open_browser(backend: LocalBackend) -> AsyncIterator[Any]:
    browsers: list[Browser] = []

    def create(url: str = backend.url, **headers: str) -> Browser:
        browsers.append(Browser(url, **headers))
        return browsers[-1]

    yield create
    for browser in browsers:
        await browser.http.aclose()


@pytest.fixture
def name(stored: Stored) -> str:
    """The name of an account."""
    name = new_name()
    stored.add_password(name, hash_password(PASSWORD))
    return name


def sentence(response: httpx2.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.json()["error"].endswith(".")
    assert "set-cookie" not in response.headers
    return response.json()["error"]


async def fail(browser: Browser, name: str, times: int = 5) -> None:
    for _ in range(times):
        sentence(await browser.sign_in(name, "wrong password"), 401)


async def test_who_gets_in(open_browser: Any, name: str, stored: Stored) -> None:
    browser = open_browser(**{"User-Agent": "Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0"})
    bodies: list[tuple[Any, str]] = [
        ({}, "The request needs name."),
        ({"name": name}, "The request needs password."),
        ({"name": name, "password": 1}, "at password: Input should be a valid string."),
        ({"name": name, "password": "x" * 10_000}, "at password: String should have at most 1000 characters."),
        ({"name": "x" * 10_000, "password": PASSWORD}, "at name: String should have at most 200 characters."),
        ({"name": f"{name}\0", "password": PASSWORD}, "NUL character"),
        ({"name": name, "password": f"{PASSWORD}\0"}, "NUL character"),
        ({"name": name, "password": PASSWORD, "user_id": name}, "user_id is not a field"),
        ([], "Input should be"),
        ({"name": [[]] * 50, "password": ""}, "."),
    ]
    for body, named in bodies:
        assert named in sentence(await browser.http.post("/session", json=body), 400)
    assert "needs name and password" in sentence(await browser.http.post("/session"), 400)
    for other in ("local", "nobody", f"{name}2", "", "a b", "x" * 200, f"oidc-{'0' * 32}"):
        assert sentence(await browser.sign_in(other), 401) == WRONG
    for password in ("", "wrong", PASSWORD.upper(), f"{PASSWORD} "):
        assert sentence(await browser.sign_in(name, password), 401) == WRONG
    assert await browser.status() == 401

    signed_in = await browser.sign_in(name)
    assert signed_in.status_code == 200, signed_in.text
    flags = {flag.strip().lower() for flag in signed_in.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert any(flag.startswith("max-age=25") for flag in flags), "30 days"
    assert await browser.status() == 200
    assert (await browser.http.get("/session")).json()["user_id"] == name
    wide = "".join(chr(ord(c) + 0xFEE0) if "a" <= c <= "z" else c for c in name)
    for same in (name.upper(), wide, f" {name} "):
        assert (await open_browser().sign_in(same)).json()["user_id"] == name

    await until(lambda: len(stored.rows_of(name, "account_events")) == 8)
    events = stored.rows_of(name, "account_events")
    assert [event["kind"] for event in events].count("sign_in_failed") == 4
    [first, *_] = [event["details"] for event in events if event["kind"] == "sign_in"]
    assert first == {"browser": "Firefox on Android", "address": "127.0.0.1"}


async def test_combining_marks_are_one_letter(open_browser: Any, stored: Stored) -> None:
    name = f"zoë-{new_name()}"
    password = "pâté de foie"
    stored.add_password(name, hash_password(password))
    decomposed = [
        text.replace("ë", "e\u0308").replace("â", "a\u0302").replace("é", "e\u0301") for text in (name, password)
    ]
    assert (await open_browser().sign_in(*decomposed)).json()["user_id"] == name


async def test_unknown_name_costs_as_much_as_a_wrong_password(open_browser: Any, name: str, stored: Stored) -> None:
    browser = open_browser()
    stored.add_account(f"{name}-without-hash")

    async def measure(tried: str) -> float:
        began = time.perf_counter()
        assert sentence(await browser.sign_in(tried, "wrong password"), 401) == WRONG
        return time.perf_counter() - began

    await measure("warm-up")
    seconds: dict[str, list[float]] = {"unknown": [], "invalid": [], "wrong": []}
    for number in range(12):
        if number % 4 == 0:
            stored.set_failures(0)
        seconds["unknown"].append(await measure(f"{name}-unknown-{number}"))
        seconds["invalid"].append(await measure(f"{name} invalid {number}"))
        seconds["wrong"].append(await measure(name))
    medians = {kind: statistics.median(measured) for kind, measured in seconds.items()}
    assert max(medians.values()) < 1.5 * min(medians.values()), medians


async def test_parallel_guesses(stack: Stack, open_browser: Any, name: str, stored: Stored) -> None:
    """In two processes, exactly one password is checked for each delay."""
    await fail(open_browser(), name, 1)
    stored.set_failures(99)
    async with local_backend(stack.services, AUTH_MODE="password") as other:
        browsers = [open_browser(), open_browser(other.url)]
        guesses = [browsers[number % 2].sign_in(name, f"guess number {number}") for number in range(24)]
        responses = await asyncio.gather(*guesses)
    statuses = sorted(response.status_code for response in responses)
    assert statuses == [401, *[429] * 23]
    rejected = next(response for response in responses if response.status_code == 429)
    assert int(rejected.headers["retry-after"]) > 1
    assert "Try again in " in sentence(rejected, 429)


async def test_delay_outlives_a_restart_and_ends(stack: Stack, name: str, stored: Stored) -> None:
    for attempt in range(2):
        async with local_backend(stack.services, AUTH_MODE="password") as backend:
            browser = Browser(backend.url)
            async with browser.http:
                if attempt == 0:
                    await fail(browser, name)
                    stored.set_failures(9)
                    await fail(browser, name, 1)
                waiting = await browser.sign_in(name)
                assert "Try again in " in sentence(waiting, 429)
                assert 25 < int(waiting.headers["retry-after"]) <= 32
                again = await browser.sign_in(name)
                assert int(again.headers["retry-after"]) <= 32, "what was rejected does not count"
                if attempt == 1:
                    stored.set_failures(9)
                    assert (await browser.sign_in(name)).status_code == 200
                    await fail(browser, name, 4)
                    assert (await browser.sign_in(name)).status_code == 200, "the failures before are forgotten"


@pytest.mark.parametrize(("proxies", "longest"), [("", 60), ("127.0.0.1", 900), ("*", 60)])
async def test_longest_delay(stack: Stack, name: str, stored: Stored, proxies: str, longest: int) -> None:
    """Of a name, it is a minute; of a name from one address 15 minutes, if addresses are known."""
    variables = {"AUTH_MODE": "password", "TRUSTED_PROXIES": proxies}
    async with local_backend(stack.services, **variables) as backend:
        attacker, user = (Browser(backend.url, **{"X-Forwarded-For": f"192.0.2.{n}"}) for n in (1, 2))
        async with attacker.http, user.http:
            await fail(attacker, name, 1)
            stored.set_failures(99)
            await fail(attacker, name, 1)
            assert longest - 5 < int((await attacker.sign_in(name)).headers["retry-after"]) <= longest
            assert int((await user.sign_in(name)).headers["retry-after"]) <= 60


async def test_signed_in_device_is_not_kept_out(open_browser: Any, name: str, stored: Stored) -> None:
    device, stranger = open_browser(), open_browser()
    assert (await device.sign_in(name)).status_code == 200
    await fail(stranger, name, 1)
    stored.set_failures(99)
    await fail(stranger, name, 1)
    sentence(await stranger.sign_in(name), 429)
    assert await device.status() == 200
    session = (await device.http.get("/session")).json()["session_id"]
    assert (await device.http.delete(f"/sessions/{session}")).status_code == 204
    assert await device.status() == 401
    await fail(device, name, 1)
    stored.set_failures(9)
    await fail(device, name, 1)
    assert "Try again" in sentence(await device.sign_in(name), 429), "it has a delay of its own"
    stored.set_failures(9)
    await fail(stranger, name, 1)
    assert (await device.sign_in(name)).status_code == 200
    sentence(await stranger.sign_in(name), 429)


async def test_change_of_the_password(open_browser: Any, name: str, stored: Stored) -> None:
    browser, other, new = open_browser(), open_browser(), "staple of the battery"
    sentence(await browser.change(PASSWORD, new), 401)
    for each in (browser, other):
        await each.sign_in(name)
    for weak, why in (
        ("short", "too short"),
        ("x" * 1_000, "first that others try"),
        ("Password123", "first that others try"),
        ("\uff30assword\uff11\uff12\uff13", "first that others try"),  # full width
        (name.upper(), "is the name"),
        ("tab\tin the middle", "control character"),
        ("x" * 1_001, "at most 1000 characters"),
    ):
        assert why in sentence(await browser.change(PASSWORD, weak), 400)
    assert sentence(await browser.change("wrong password", new), 403) == "The old password is wrong."
    assert "is the old one" in sentence(await browser.change(PASSWORD, PASSWORD), 400)
    assert await other.status() == 200, "nothing has changed"
    assert (await browser.change(PASSWORD, new)).status_code == 200
    assert await browser.status() == 200

    async def has_ended() -> bool:
        return await other.status() == 401

    await until(has_ended, seconds=5)
    assert sentence(await open_browser().sign_in(name), 401) == WRONG
    assert (await open_browser().sign_in(name, new)).status_code == 200
    assert [event["kind"] for event in stored.rows_of(name, "account_events")].count("password_changed") == 1
    sentence(await browser.change("wrong password", PASSWORD), 403)
    stored.set_failures(9)
    sentence(await browser.change("wrong password", PASSWORD), 403)
    sentence(await browser.change(new, PASSWORD), 429)


async def test_disabled_account(
    stack: Stack, backend: LocalBackend, open_browser: Any, name: str, model: ScriptedModel
) -> None:
    browser = open_browser()
    await browser.sign_in(name)
    await model.script(pausing_answer("Hello ", "there."))
    body = {"user_message": "hello"}
    async with browser.http.stream("POST", "/chats/a/interactions", json=body) as stream:
        received, began = "", time.monotonic()
        async for piece in stream.aiter_text():
            received += piece
            if "Hello" in piece:
                disabled = await todo_at(stack, "user", "disable", name)
                assert disabled.returncode == 0, disabled.stderr
                began = time.monotonic()
        assert time.monotonic() - began < 1.5
    assert "there." not in received
    await model.release()
    assert await browser.status() == 401
    assert (await browser.http.get("/session")).status_code == 401, "it is not renewed"
    assert sentence(await browser.sign_in(name, "wrong password"), 401) == WRONG
    assert "disabled" in sentence(await browser.sign_in(name), 403)
    assert (await todo_at(stack, "user", "enable", name)).returncode == 0
    assert await browser.status() == 401, "the cookies of before open nothing"
    assert (await browser.sign_in(name)).status_code == 200
    with Stored(stack.database_url) as stored:
        await until(lambda: "running" not in stored.run_statuses(name))


async def test_session_is_renewed_once_a_day(
    open_browser: Any, name: str, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = open_browser()
    monkeypatch.setattr(session_routes, "SESSION_SECONDS", 20 * 86_400)
    first = await browser.sign_in(name)
    monkeypatch.undo()
    old_cookie = first.headers["set-cookie"].partition(";")[0]
    renewed = await browser.http.get("/session")
    assert renewed.headers["set-cookie"].partition(";")[0] != old_cookie
    assert renewed.json()["session_id"] == first.json()["session_id"]
    in_30_days = datetime.now(UTC) + timedelta(days=30)
    assert abs(datetime.fromisoformat(renewed.json()["expires"]) - in_30_days) < timedelta(minutes=1)
    [row] = stored.rows_of(name, "sessions")
    assert abs(datetime.fromisoformat(row["expires_at"]) - in_30_days) < timedelta(minutes=1)
    again = await browser.http.get("/session")
    assert "set-cookie" not in again.headers, "once a day"
    new_cookie = renewed.headers["set-cookie"].partition(";")[0]
    browser.http.cookies.clear()
    left = await browser.http.delete("/session", headers={"Cookie": old_cookie})
    assert left.status_code == 204
    response = await browser.http.get("/session", headers={"Cookie": new_cookie})
    assert response.status_code == 401, "one session, whichever copy of its cookie is ended"
    response = await browser.http.get("/session", headers={"Cookie": old_cookie})
    assert response.status_code == 401
    assert "set-cookie" not in response.headers, "what was ended is not renewed"


async def test_first_account(stack: Stack, open_browser: Any, stored: Stored) -> None:
    stored.delete_accounts()
    codes = [(await todo_at(stack, "user", "setup")).stdout.strip().partition("/#setup=")[2] for _ in range(2)]
    assert all(len(code) == 32 for code in codes)
    browser, name = open_browser(), f"first-{os.getpid()}"

    async def make(code: str, name: str = name, password: str = PASSWORD) -> httpx2.Response:
        return await browser.http.post("/setup", json={"code": code, "name": name, "password": password})

    for code in ("", "x" * 32, codes[0][:-1]):
        assert "This link does not work any more" in sentence(await make(code), 403)
    assert "at code" in sentence(await make("x" * 10_000), 400)
    for other in ("local", "", "two words", "x" * 65, "\u202ename"):
        assert "A name has up to 64" in sentence(await make(codes[0], other), 400)
    assert "too short" in sentence(await make(codes[0], password="short"), 400)
    responses = await asyncio.gather(*[make(codes[number % 2], f"{name}-{number}") for number in range(4)])
    assert sorted(response.status_code for response in responses) == [200, 403, 403, 403]
    assert await browser.status() == 200
    late = await todo_at(stack, "user", "setup")
    assert (late.returncode, late.stdout) == (1, "")
    assert "There is already an account" in late.stderr
    assert (await todo_at(stack, "user", "setup")).returncode == 1
    listed = await todo_at(stack, "user", "list")
    assert len(listed.stdout.splitlines()) == 2
    for code in codes:
        sentence(await make(code, f"{name}-late"), 403)


async def test_hash_of_older_parameters_is_replaced(open_browser: Any, stored: Stored) -> None:
    name = new_name()
    stored.add_password(name, PasswordHasher(time_cost=1, memory_cost=8_192, parallelism=1).hash(PASSWORD))
    assert (await open_browser().sign_in(name)).status_code == 200
    [account] = stored.rows_of(name, "accounts")
    assert account["password_hash"].startswith("$argon2id$v=19$m=65536,t=3,p=1$")
    assert (await open_browser().sign_in(name)).status_code == 200


async def test_too_many_at_once(stack: Stack, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two hashes are computed at the same time, and few more sign-ins wait; other requests do not wait for them."""
    running, most = 0, 0
    verify = passwords._verify

    def count(stored: str, password: str) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            return verify(stored, password)
        finally:
            running -= 1

    monkeypatch.setattr(passwords, "_verify", count)
    monkeypatch.setattr(passwords, "_MAX_WAITING", 3)
    async with local_backend(stack.services, AUTH_MODE="password") as backend:
        browser = Browser(backend.url)
        async with browser.http:
            responses = await asyncio.gather(*[browser.sign_in(f"{name}-{number}") for number in range(12)])
            statuses = [response.status_code for response in responses]
            assert set(statuses) == {401, 429}
            assert most == 2
            busy = next(response for response in responses if response.status_code == 429)
            assert int(busy.headers["retry-after"]) > 0
            assert (await browser.sign_in(name)).status_code == 200


async def test_other_modes_have_no_passwords(stack: Stack) -> None:
    for mode in ("none", "jwt"):
        async with local_backend(stack.services, AUTH_MODE=mode) as backend:
            browser = Browser(backend.url)
            async with browser.http:
                assert (await browser.sign_in("anna")).status_code in (400, 401)
                body = {"code": "x" * 32, "name": "anna", "password": PASSWORD}
                sentence(await browser.http.post("/setup", json=body), 400)
                changed = await browser.change(PASSWORD, PASSWORD)
                assert changed.status_code == 401


async def test_published_page_is_reached_at_any_address(stack: Stack, name: str) -> None:
    """Of the machine, which a container does not know; a name is one that DNS rebinding could have."""
    variables = {"AUTH_MODE": "password", "PUBLISH": "0.0.0.0", "ALLOWED_HOSTS": "nas.local"}
    async with local_backend(stack.services, **variables) as backend:
        browser = Browser(backend.url)
        async with browser.http:
            for host, status in (
                *[(host, 200) for host in ("192.168.1.20:8000", "[fd00::20]:8000", "nas.local:8000", "localhost")],
                *[(host, 421) for host in ("evil.example", "192.168.1.20.evil.example", "1.2.3", "[fd00::20", "")],
            ):
                response = await browser.sign_in(name, Host=host, Origin=f"http://{host}")
                assert response.status_code == status, (host, response.text)
    async with local_backend(stack.services, AUTH_MODE="password") as backend:
        browser = Browser(backend.url)
        async with browser.http:
            assert (await browser.sign_in(name, Host="192.168.1.20")).status_code == 421


@pytest.mark.parametrize(("mode", "status"), [("password", 200), ("jwt", 401), ("none", 401)])
async def test_cookie_of_another_mode(backend: LocalBackend, stored: Stored, name: str, mode: str, status: int) -> None:
    """A linked phone, or a user of a provider, is not the account of that name."""
    stored.add_session(name, session := f"of-{mode}-{name}")
    claims = {"sub": name, "iss": OWN_ISSUER, "aud": "todo-assistant/session", "scope": "all", "jti": session}
    cookie = mint_token(MCP_TOKEN_SECRET, **claims, auth_mode=mode)
    async with http_client(backend.url, headers={"Cookie": f"todo_session={cookie}", "Origin": backend.url}) as http:
        assert (await http.get("/session")).status_code == status


@pytest.mark.parametrize("how", ["password", "disable"])
async def test_nothing_begun_in_a_session_outlives_its_end(
    stack: Stack, name: str, stored: Stored, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Neither a link that was not taken yet, nor what is made in another process before it knows of the end."""
    monkeypatch.setattr(ended_sessions, "LOOK_SECONDS", 3_600)
    monkeypatch.setattr(ended_sessions, "_STALE_SECONDS", 3_600)
    settings = {"AUTH_MODE": "password", "BACKEND_URL": "https://todo.example"}
    async with local_backend(stack.services, **settings) as here, local_backend(stack.services, **settings) as there:
        owner, thief, phone = Browser(here.url), Browser(there.url), Browser(there.url)
        async with owner.http, thief.http, phone.http, Database(stack.database_url) as database:
            for browser in (owner, thief):
                assert (await browser.sign_in(name)).status_code == 200

            async def take(made: httpx2.Response) -> int:
                assert made.status_code == 201, made.text
                code = made.json()["address"].partition("#link=")[2]
                return (await phone.http.post("/links/take", json={"code": code})).status_code

            assert await take(await thief.http.post("/links")) == 200
            before = await thief.http.post("/links")
            if how == "password":
                assert (await owner.change(PASSWORD, "another battery")).status_code == 200
            else:
                assert await disable_account(database, name)
            assert await take(before) == 401
            assert await take(await thief.http.post("/links")) == 401
            made = await thief.http.post("/tokens", json={"name": "x", "scopes": ["tasks"]})
            assert made.status_code == 403, made.text
    is_open = [row["kind"] for row in stored.rows_of(name, "sessions") if row["ended_at"] is None]
    assert is_open == (["session"] if how == "password" else [])
