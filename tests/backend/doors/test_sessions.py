"""Signing out of the page ends its session, wherever a copy of the cookie is."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from backend.commands import export as export_command
from backend.commands import forget as forget_command
from backend.settings import Settings
from tests.backend.conftest import Backend, Rows
from tests.chatkit_client import ChatKit
from tests.logins import as_owner
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET, OWN_ISSUER, minted, of_provider

AUDIENCE = "https://todo.example"
LIST = {"type": "threads.list", "params": {}}
COUNT = "SELECT user_id, count(*) AS number FROM ended_sessions GROUP BY user_id ORDER BY user_id"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return Settings.model_validate(settings.model_dump(exclude_unset=True) | of_provider(AUDIENCE))


def bearer(person: str, **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {minted(IDP_SECRET, sub=person, iss=ISSUER, aud=AUDIENCE, **claims)}"}


class Page:
    """Requests as the page makes them, with any cookie."""

    def __init__(self, chat: ChatKit) -> None:
        self.http = chat.http
        self._own = {"Origin": chat.base_url}

    async def sign_in(self, person: str, **claims: Any) -> str:
        response = await self.http.post("/session", headers=bearer(person, **claims))
        assert response.status_code == 200
        self.http.cookies.clear()
        return response.headers["set-cookie"].partition(";")[0]

    async def sign_out(self, *cookies: str, **headers: str) -> httpx2.Response:
        sent = self._own | headers | ({"Cookie": "; ".join(cookies)} if cookies else {})
        return await self.http.delete("/session", headers=sent)

    async def status(self, cookie: str) -> int:
        return (await self.http.post("/chatkit", json=LIST, headers=self._own | {"Cookie": cookie})).status_code


@pytest.fixture
def page(chat: ChatKit) -> Page:
    return Page(chat)


async def test_a_copied_cookie_opens_nothing_after_signing_out(page: Page, rows: Rows) -> None:
    cookie = await page.sign_in("alice")
    assert await page.status(cookie) == 200
    left = await page.sign_out(cookie)
    assert left.status_code == 204
    assert left.headers["set-cookie"].startswith('todo_session="";')
    assert await page.status(cookie) == 401
    assert (await page.sign_out(cookie)).status_code == 204, "again changes nothing"
    assert rows(COUNT) == [{"user_id": "alice", "number": 1}]
    assert cookie not in str(rows("SELECT * FROM ended_sessions"))


async def test_a_cookie_spelled_otherwise_is_the_same_session(page: Page) -> None:
    """The last character of a signature has bits that say nothing."""
    cookie = await page.sign_in("alice")
    await page.sign_out(cookie)
    spellings = [cookie[:-1] + last for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"]
    assert {await page.status(spelling) for spelling in (*spellings, f"{cookie}=", f"{cookie}; x")} == {401}


async def test_it_ends_in_every_process(page: Page, backend: Backend) -> None:
    cookie = await page.sign_in("alice")
    async with backend() as other:
        there = Page(other)
        assert await there.status(cookie) == 200
        await page.sign_out(cookie)
        assert await there.status(cookie) == 401


async def test_other_sessions_and_tokens_go_on(page: Page) -> None:
    cookie, another, bobs = [await page.sign_in(person) for person in ("alice", "alice", "bob")]
    await page.sign_out(cookie)
    assert await page.status(another) == 200
    assert await page.status(bobs) == 200
    assert (await page.http.post("/chatkit", json=LIST, headers=bearer("alice"))).status_code == 200


async def test_of_two_cookies_both_are_ended(page: Page) -> None:
    cookies = [await page.sign_in(person) for person in ("alice", "mallory")]
    assert (await page.sign_out(*cookies)).status_code == 204
    assert [await page.status(cookie) for cookie in cookies] == [401, 401]


async def test_another_site_signs_nobody_out(page: Page, rows: Rows) -> None:
    cookie = await page.sign_in("alice")
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert (await page.sign_out(cookie, **headers)).status_code == 403
    assert await page.status(cookie) == 200
    assert rows(COUNT) == []


async def test_a_cookie_that_opens_nothing_leaves_no_row(page: Page, rows: Rows) -> None:
    forged = minted("x" * 40, iss=OWN_ISSUER, aud="todo-assistant/session", jti="x")
    for cookie in ("todo_session=garbage", "todo_session=", f"todo_session={forged}"):
        assert (await page.sign_out(cookie)).status_code == 204
    assert (await page.sign_out()).status_code == 204
    assert rows(COUNT) == []


async def test_signing_in_counts_as_a_request(backend: Backend, rows: Rows) -> None:
    async with backend(limit_requests_per_minute=3) as chat:
        page = Page(chat)
        for _ in range(3):
            await page.sign_out(await page.sign_in("alice"))
        refused = await page.http.post("/session", headers=bearer("alice"))
        assert refused.status_code == 429
        assert refused.json()["error"].startswith("Requests come too fast: go on in ")
        await page.sign_in("bob")
    assert rows(COUNT) == [{"user_id": "alice", "number": 3}]


async def test_a_session_of_an_older_version_is_signed_in_anew(page: Page) -> None:
    """It has no name by which it could be ended."""
    old = minted(MCP_TOKEN_SECRET, iss=OWN_ISSUER, aud="todo-assistant/session")
    assert await page.status(f"todo_session={old}") == 401


@pytest.mark.parametrize("jti", ["a\0b", "a\ud800b", "", "x" * 1_000, None, 7, ["x"]], ids=lambda jti: ascii(jti)[:20])
async def test_a_session_with_a_name_that_is_none_opens_nothing_and_leaves_no_row(
    page: Page, rows: Rows, jti: object
) -> None:
    odd = minted(MCP_TOKEN_SECRET, iss=OWN_ISSUER, aud="todo-assistant/session", jti=jti)
    assert await page.status(f"todo_session={odd}") == 401
    assert (await page.sign_out(f"todo_session={odd}")).status_code == 204
    assert rows(COUNT) == []


async def test_what_has_expired_is_forgotten_by_its_person(page: Page, rows: Rows) -> None:
    for person in ("alice", "bob"):
        await page.sign_out(await page.sign_in(person))
        rows(f"INSERT INTO ended_sessions VALUES ('{person}', 'old', now() - interval '61 minutes')")
    await page.sign_in("alice")
    assert rows(COUNT) == [{"user_id": "alice", "number": 1}, {"user_id": "bob", "number": 2}]
    await page.sign_out(await page.sign_in("bob"))
    assert rows(COUNT) == [{"user_id": "alice", "number": 1}, {"user_id": "bob", "number": 2}]
    assert rows("SELECT 1 FROM ended_sessions WHERE id = 'old'") == []


async def test_a_session_without_a_near_end_can_be_ended(page: Page) -> None:
    cookie = await page.sign_in("alice", exp=253_402_300_799)
    await page.sign_out(cookie)
    assert await page.status(cookie) == 401


async def test_while_the_database_is_away_nobody_is_told_that_they_are_signed_out(page: Page, rows: Rows) -> None:
    cookie = await page.sign_in("alice")
    rows("ALTER TABLE ended_sessions RENAME TO aside")
    try:
        refused = await page.sign_out(cookie)
        assert refused.status_code == 503
        assert "set-cookie" not in refused.headers
        assert await page.status(cookie) == 503
        assert (await page.http.post("/chatkit", json=LIST, headers=bearer("alice"))).status_code == 200
    finally:
        rows("ALTER TABLE aside RENAME TO ended_sessions")
    assert await page.status(cookie) == 200


async def test_only_a_cookie_is_looked_up_and_by_one_statement(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    cookie = await page.sign_in("alice")
    sent: list[str] = []
    monkeypatch.setattr("service.database.pipeline.traces.statement", sent.append)
    assert await page.status(cookie) == 200
    with_cookie = sent.copy()
    sent.clear()
    assert (await page.http.post("/chatkit", json=LIST, headers=bearer("alice"))).status_code == 200
    (more,) = with_cookie[: len(with_cookie) - len(sent)]
    assert more.startswith("SELECT ended_sessions.id")
    assert not any("ended_sessions" in statement for statement in sent)


async def test_ended_sessions_are_exported_and_forgotten(
    page: Page,
    rows: Rows,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MIGRATION_DATABASE_URL", as_owner(database_url))
    for person in ("alice", "bob"):
        await page.sign_out(await page.sign_in(person))
    await asyncio.to_thread(export_command.run, ["--user", "alice"])
    exported = json.loads(capsys.readouterr().out)
    stored = rows("SELECT id FROM ended_sessions WHERE user_id = 'alice'")
    assert [session["id"] for session in exported["ended_sessions"]] == [row["id"] for row in stored]
    await asyncio.to_thread(forget_command.run, ["--user", "alice"])
    assert (
        capsys.readouterr().out
        == "Deleted for good: threads 0, items 0, runs 0, kept requests 0, ended sessions 1, profiles 0.\n"
    )
    assert rows(COUNT) == [{"user_id": "bob", "number": 1}]
