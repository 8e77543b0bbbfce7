"""Sessions of an identity provider's users go on while the provider renews them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from starlette.responses import Response

from backend import app
from tests.api.test_oidc import OidcBrowser, settings
from tests.identity_provider import IdentityProvider, leave_unsigned, run_identity_provider
from tests.logins import as_admin
from tests.support.backends import LocalBackend, local_backend
from tests.support.stack import Services
from tests.waiting import until

HOURS = 3600
CLAIM_SECONDS = 120


class StoredSessions:
    """The rows of the sessions, which only tests see and change across users."""

    def __init__(self, connection: psycopg.Connection[dict[str, Any]]) -> None:
        self._connection = connection
        connection.execute("TRUNCATE provider_sessions, sessions, accounts, account_events CASCADE")

    def rows(self) -> list[dict[str, Any]]:
        return self._connection.execute("SELECT * FROM provider_sessions ORDER BY session_id").fetchall()

    def make_due(self, *, hours_ago: float = 1) -> None:
        self._connection.execute(
            "UPDATE provider_sessions SET renew_at = now(), renewed_at = now() - make_interval(secs => %s)",
            [hours_ago * HOURS],
        )

    def swap_tokens(self) -> None:
        self._connection.execute(
            "UPDATE provider_sessions AS one SET sealed = other.sealed FROM provider_sessions AS other"
            " WHERE one.session_id <> other.session_id"
        )

    def seconds_to_renewal(self) -> list[float]:
        rows = self._connection.execute("SELECT extract(epoch FROM renew_at - now()) AS seconds FROM provider_sessions")
        return [float(row["seconds"]) for row in rows]

    def add_others(self) -> None:
        """Inserts a linked device and a personal token of the user who has a session."""
        for kind in ("device", "token"):
            self._connection.execute(
                "INSERT INTO sessions (user_id, id, kind, name, scopes, expires_at)"
                " SELECT user_id, %s, %s, 'x', '{all}', now() + interval '1 day' FROM accounts",
                [f"a-{kind}", kind],
            )

    def open_kinds(self) -> list[str]:
        rows = self._connection.execute("SELECT kind FROM sessions WHERE ended_at IS NULL ORDER BY kind").fetchall()
        return [row["kind"] for row in rows]

    def is_refused(self) -> bool:
        [row] = self._connection.execute(
            "SELECT provider_refused_at IS NOT NULL AS is_refused FROM accounts"
        ).fetchall()
        return row["is_refused"]

    def reasons(self) -> list[str]:
        return [
            row["details"]["reason"]
            for row in self._connection.execute("SELECT details FROM account_events WHERE kind = 'session_ended'")
        ]


@pytest.fixture
async def provider() -> AsyncIterator[IdentityProvider]:
    async with run_identity_provider() as provider:
        yield provider


@pytest.fixture
async def backend(
    services: Services, provider: IdentityProvider, stored: StoredSessions, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[LocalBackend]:
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.02)
    async with local_backend(services, **settings(provider)) as backend:
        yield backend


@pytest.fixture
async def browser(backend: LocalBackend) -> AsyncIterator[OidcBrowser]:
    browser = OidcBrowser(backend.url)
    async with browser.http:
        await browser.sign_in()
        assert await browser.session()
        yield browser


@pytest.fixture
def stored(services: Services) -> Any:
    url = as_admin(services.database_url)
    connect = psycopg.Connection[dict[str, Any]].connect
    with connect(url, autocommit=True, row_factory=dict_row) as connection:
        yield StoredSessions(connection)


async def wait_for_renewal(stored: StoredSessions) -> None:
    await until(lambda: all(seconds > 600 for seconds in stored.seconds_to_renewal()), seconds=30)


async def wait_for_end(browser: OidcBrowser, stored: StoredSessions) -> None:
    async def has_ended() -> bool:
        return await browser.session() is None

    await until(has_ended, seconds=30)
    await until(lambda: not stored.rows(), seconds=30)


async def test_renewal(browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions) -> None:
    assert [3590 < seconds <= 3600 for seconds in stored.seconds_to_renewal()] == [True]
    [first] = provider.refresh_tokens
    stored.make_due()
    await wait_for_renewal(stored)
    [second] = provider.refresh_tokens
    stored.make_due()
    await wait_for_renewal(stored)
    assert provider.used == [first, second], "a new refresh token replaces the one before"
    assert await browser.session()


async def test_short_refresh_token(browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions) -> None:
    provider.tokens = {"refresh_expires_in": 1800}
    stored.make_due()
    await until(lambda: all(800 < seconds < 910 for seconds in stored.seconds_to_renewal()), seconds=30)
    assert provider.used


async def test_provider_keeps_its_refresh_token(
    browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions
) -> None:
    provider.tokens = {"refresh_token": None, "id_token": None}
    [token] = provider.refresh_tokens
    for _ in range(2):
        provider.userinfo = {"groups": ["household"]}
        provider.refresh_tokens = {token: provider.sub}
        stored.make_due()
        await wait_for_renewal(stored)
    assert provider.used == [token, token]
    assert await browser.session()


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "left the group": ({"claims": {}}, "OIDC_ALLOWED"),
    "left the group, as userinfo says": ({"userinfo": {"groups": ["others"]}}, "OIDC_ALLOWED"),
    "left the group, without an ID token": ({"tokens": {"id_token": None}, "userinfo": {}}, "OIDC_ALLOWED"),
    "ended there": ({"refresh_tokens": {}}, "has ended it"),
    "another user": ({"sub": "bob-2"}, "another user"),
    "a forged ID token": ({"mint": leave_unsigned}, "not valid"),
    "an ID token for another client": ({"id_token": {"aud": "other"}}, "not valid"),
}


@pytest.mark.parametrize("name", ENDS)
async def test_end(name: str, browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions) -> None:
    changes, reason = ENDS[name]
    stored.add_others()
    for field, value in changes.items():
        setattr(provider, field, value)
    stored.make_due()
    await wait_for_end(browser, stored)
    [told] = stored.reasons()
    assert reason in told
    left = ["token"] if reason != "OIDC_ALLOWED" else []
    await until(lambda: stored.open_kinds() == left, seconds=10)
    assert stored.is_refused() == (reason in ("OIDC_ALLOWED", "has ended it")), (
        "a broken answer says nothing of the user"
    )


@pytest.mark.parametrize("changes", [{"claims": {}}, {"refresh_tokens": {}}], ids=["left the group", "ended there"])
async def test_signing_in_again(
    changes: dict[str, Any], browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions
) -> None:
    """Until then, the user has no notifications, no scheduled runs and no calendar."""
    claims = provider.claims
    calendar = (await browser.http.post("/calendar", headers=browser.own)).json()["url"]
    assert (await browser.http.get(calendar)).status_code == 200
    for field, value in changes.items():
        setattr(provider, field, value)
    stored.make_due()
    await wait_for_end(browser, stored)
    provider.claims = {}
    await browser.sign_in()
    assert (await browser.session(), stored.is_refused()) == (None, True)
    assert (await browser.http.get(calendar)).status_code == 404
    provider.claims = claims
    await browser.sign_in()
    assert await browser.session()
    assert not stored.is_refused()
    assert (await browser.http.get(calendar)).status_code == 200


async def test_end_of_one_of_two_sessions(
    backend: LocalBackend, browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions
) -> None:
    """Who signs out at the provider in one browser is still known to it in another one."""
    [first] = provider.refresh_tokens
    other = OidcBrowser(backend.url)
    async with other.http:
        await other.sign_in()
        del provider.refresh_tokens[first]
        stored.make_due()

        async def has_ended() -> bool:
            return await browser.session() is None

        await until(has_ended, seconds=30)
        await until(lambda: stored.reasons() == ["the provider has ended it"], seconds=10)
        assert await other.session()
        assert not stored.is_refused()


async def test_end_of_two_sessions_at_once(
    backend: LocalBackend, browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions
) -> None:
    other = OidcBrowser(backend.url)
    async with other.http:
        await other.sign_in()
        provider.refresh_tokens = {}
        stored.make_due()
        await wait_for_end(browser, stored)
        await until(lambda: stored.reasons() == ["the provider has ended it"] * 2, seconds=10)
        assert stored.is_refused()


async def test_provider_that_is_down(browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions) -> None:
    provider.failing = {"/token": Response("oh", 502)}
    pauses = list[float]()

    def is_postponed() -> bool:
        [seconds] = stored.seconds_to_renewal()
        return seconds > 0 and abs(seconds - CLAIM_SECONDS) > 1

    for hours in (1, 1.1, 1.3, 11):
        stored.make_due(hours_ago=hours)
        await until(is_postponed, seconds=30)
        pauses += stored.seconds_to_renewal()
    assert [round(pause, -1) for pause in pauses] == [60, 360, 1080, 1800]
    assert await browser.session()
    stored.make_due(hours_ago=12.01)
    await wait_for_end(browser, stored)
    assert not stored.is_refused()


async def test_userinfo_that_is_down(browser: OidcBrowser, provider: IdentityProvider, stored: StoredSessions) -> None:
    """The refresh token that the provider has replaced before is not lost."""
    provider.failing = {"/userinfo": Response("oh", 502)}
    stored.make_due()
    await until(lambda: provider.used and all(30 < seconds < 70 for seconds in stored.seconds_to_renewal()), seconds=30)
    provider.failing = {}
    stored.make_due()
    await wait_for_renewal(stored)
    assert len(set(provider.used)) == 2
    assert await browser.session()


async def test_tokens_of_another_session(backend: LocalBackend, browser: OidcBrowser, stored: StoredSessions) -> None:
    other = OidcBrowser(backend.url)
    async with other.http:
        await other.sign_in()
        stored.swap_tokens()
        stored.make_due()
        await wait_for_end(browser, stored)
        assert await other.session() is None


async def test_without_a_refresh_token(browser: OidcBrowser, provider: IdentityProvider) -> None:
    provider.tokens = {"refresh_token": None}
    browser.http.cookies.clear()
    await browser.sign_in()
    session = await browser.session()
    assert session
    seconds = (datetime.fromisoformat(session["expires"]) - datetime.now().astimezone()).total_seconds()
    assert 12 * HOURS - 60 < seconds <= 12 * HOURS


@pytest.mark.long
async def test_two_processes(
    services: Services, provider: IdentityProvider, stored: StoredSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They use each refresh token once, although both look all the time."""
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.001)
    provider.userinfo = None
    async with AsyncExitStack() as stack:
        backends = [await stack.enter_async_context(local_backend(services, **settings(provider))) for _ in range(3)]
        browsers = [OidcBrowser(backends[number % 3].url) for number in range(24)]
        for number, browser in enumerate(browsers):
            provider.sub = f"user-{number}"
            await stack.enter_async_context(browser.http)
            await browser.sign_in()
        for _ in range(5):
            stored.make_due()
            await wait_for_renewal(stored)
        assert len(provider.used) == len(set(provider.used)) == 24 * 5
        assert stored.reasons() == []
