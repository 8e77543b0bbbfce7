"""Sign-in at an identity provider (AUTH_MODE=oidc), whatever it, a stranger or another website answers."""

import re
import time
from collections.abc import AsyncIterator
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import psycopg
import pytest
from starlette.responses import RedirectResponse, Response

from backend.accounts.accounts import get_provider_user_id
from backend.accounts.oidc import client
from backend.accounts.oidc import provider as provider_module
from common import tokens
from tests import identity_provider
from tests.identity_provider import CLIENT, CLIENT_SECRET, ED, ES, RS, IdentityProvider, run_identity_provider
from tests.logins import as_admin
from tests.serving import http_client
from tests.support.backends import LocalBackend, local_backend
from tests.support.stack import Services
from tests.tokens import SigningKey

SESSION, TRANSACTION = "todo_session", "todo_sign_in"


class OidcBrowser:
    """A browser that follows the addresses it is sent to; cookies are those that it was given."""

    def __init__(self, url: str) -> None:
        self.http = http_client(url)
        self.own = {"Origin": url}

    async def begin(self, return_to: str = "/") -> str:
        """Returns where the browser comes back to, after the provider has signed the user in."""
        response = await self.http.post("/session/provider", params={"return_to": return_to}, headers=self.own)
        assert response.status_code == 200, response.text
        return (await self.http.get(response.json()["url"])).headers["location"]

    async def finish(self, callback: str) -> httpx2.Response:
        return await self.http.get(callback, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})

    async def sign_in(self, return_to: str = "/") -> httpx2.Response:
        return await self.finish(await self.begin(return_to))

    async def session(self) -> dict[str, Any] | None:
        response = await self.http.get("/session", headers=self.own)
        return response.json() if response.status_code == 200 else None

    @property
    def is_signed_in(self) -> bool:
        return any(cookie.name == SESSION and cookie.value for cookie in self.http.cookies.jar)


def settings(provider: IdentityProvider) -> dict[str, str]:
    return {
        "AUTH_MODE": "oidc",
        "OIDC_ISSUER": provider.url,
        "OIDC_CLIENT_ID": CLIENT,
        "OIDC_CLIENT_SECRET": CLIENT_SECRET,
        "OIDC_ALLOWED": "groups=household,email_domain=example.com",
        "AUTH_JWT_SECRET": "",
        "AUTH_ISSUER": "",
        "AUTH_AUDIENCE": "",
    }


@pytest.fixture
async def provider() -> AsyncIterator[IdentityProvider]:
    async with run_identity_provider() as provider:
        yield provider


@pytest.fixture
async def backend(services: Services, provider: IdentityProvider) -> AsyncIterator[LocalBackend]:
    async with local_backend(services, **settings(provider)) as backend:
        yield backend


@pytest.fixture
async def browser(backend: LocalBackend) -> AsyncIterator[OidcBrowser]:
    browser = OidcBrowser(backend.url)
    async with browser.http:
        yield browser


@pytest.fixture
def database(services: Services) -> Any:
    with psycopg.connect(as_admin(services.database_url), autocommit=True) as connection:
        connection.execute("DELETE FROM accounts WHERE issuer IS NOT NULL")
        connection.execute("DELETE FROM provider_sessions")
        yield connection


def read_error(response: httpx2.Response) -> str:
    [text] = re.findall("</h1><p>(.*?)</p>", response.text)
    return unescape(text)


async def test_sign_in(browser: OidcBrowser, provider: IdentityProvider, database: psycopg.Connection[Any]) -> None:
    assert await browser.session() is None
    done = await browser.sign_in("/all?query=milk")
    assert done.status_code == 200
    assert f'content="0; url={browser.own["Origin"]}/all?query=milk"' in done.text
    user_id = get_provider_user_id(provider.url, "ann-1")
    signed_in = await browser.session()
    assert signed_in
    assert (signed_in["user_id"], signed_in["name"]) == (user_id, "Ann")
    asked = next(sent for path, sent in provider.requests if path == "/authorize")
    assert asked["scope"] == "openid profile email offline_access"
    assert asked["code_challenge_method"] == "S256"
    assert {"state", "nonce", "code_challenge"} <= asked.keys()
    row = database.execute("SELECT name, issuer, subject FROM accounts WHERE user_id = %s", [user_id]).fetchone()
    assert row == ("Ann", provider.url, "ann-1")
    provider.claims["preferred_username"] = "Ann B."
    await browser.sign_in()
    assert ((await browser.session()) or {})["name"] == "Ann B."
    sealed = database.execute("SELECT sealed FROM provider_sessions").fetchall()
    assert not [token for [row] in sealed for token in provider.refresh_tokens if token.encode() in bytes(row)]


async def test_other_algorithms(browser: OidcBrowser, provider: IdentityProvider) -> None:
    for provider.key in (ES, ED):
        browser.http.cookies.clear()
        await browser.sign_in()
        assert await browser.session(), provider.key.algorithm


ID_TOKENS: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "x" * 32},
    "no nonce": {"nonce": None},
    "another audience": {"aud": "other"},
    "no audience": {"aud": None},
    "several audiences without azp": {"aud": [CLIENT, "other"]},
    "another azp": {"azp": "other"},
    "azp is no text": {"azp": [CLIENT]},
    "another issuer": {"iss": "https://other.example"},
    "almost the issuer": {"iss": "/"},
    "no issuer": {"iss": None},
    "expired": {"exp": int(time.time()) - 60},
    "no expiry": {"exp": None},
    "of the future": {"iat": int(time.time()) + 86_400},
    "another access token's hash": {"at_hash": "x" * 22},
    "no subject": {"sub": None},
    "a long subject": {"sub": "x" * 256},
    "NUL in the subject": {"sub": "a\0b"},
    "the subject is a number": {"sub": 7},
    "another subject at userinfo": {"sub": "bob-2"},
}
MINTED = [
    identity_provider.sign_with_secret,
    identity_provider.leave_unsigned,
    identity_provider.sign_with_unknown_key,
    identity_provider.sign_with_false_kid,
]


async def test_invalid_id_token(browser: OidcBrowser, provider: IdentityProvider) -> None:
    for name, changes in ID_TOKENS.items():
        provider.id_token = {"iss": f"{provider.url}/"} if changes.get("iss") == "/" else changes
        await check_failure(browser, 403, "did not confirm", name)


async def test_forged_id_token(browser: OidcBrowser, provider: IdentityProvider) -> None:
    for provider.mint in MINTED:
        await check_failure(browser, 403, "did not confirm", provider.mint)


async def check_failure(browser: OidcBrowser, status: int, text: str, why: object = None) -> None:
    response = await browser.sign_in()
    assert (response.status_code, text in read_error(response)) == (status, True), (why, response.text)
    assert not browser.is_signed_in, why
    assert await browser.session() is None, why


AUTHORIZATIONS: dict[str, tuple[dict[str, Any], int, str]] = {
    "another state": ({"state": "x" * 32}, 400, "another browser"),
    "no state": ({"state": None}, 400, "another browser"),
    "two states": ({"state": ["a", "b"]}, 400, "another browser"),
    "two codes": ({"code": ["a", "b"]}, 400, "another browser"),
    "another issuer": ({"iss": "https://other.example"}, 403, "did not confirm"),
    "no issuer, although promised": ({"iss": None}, 403, "did not confirm"),
    "an unknown code": ({"code": "x"}, 403, "did not confirm"),
    "no code": ({"code": None}, 403, "did not let you in"),
    "an error": ({"code": None, "error": "access_denied"}, 403, "did not let you in"),
    "markup as an error": ({"code": None, "error": "<script>"}, 403, "did not let you in"),
}


async def test_invalid_authorization(browser: OidcBrowser, provider: IdentityProvider) -> None:
    for name, (changes, status, text) in AUTHORIZATIONS.items():
        provider.authorization = changes
        await check_failure(browser, status, text, name)


TOKENS: dict[str, dict[str, Any]] = {
    "no access token": {"access_token": None},
    "access token is no text": {"access_token": 7},
    "not a bearer token": {"token_type": "mac"},
    "huge token": {"refresh_token": "x" * 20_000},
}


async def test_invalid_tokens(browser: OidcBrowser, provider: IdentityProvider) -> None:
    for name, changes in TOKENS.items():
        provider.tokens = changes
        await check_failure(browser, 503, "cannot be reached", name)


async def test_no_id_token(browser: OidcBrowser, provider: IdentityProvider) -> None:
    provider.tokens = {"id_token": None}
    await check_failure(browser, 403, "did not confirm")


ANSWERS: dict[str, Response] = {
    "500": Response("oh", 500),
    "redirect": RedirectResponse("https://other.example/"),
    "html": Response("<p>", media_type="text/html"),
    "list": Response("[]", media_type="application/json"),
    "huge": identity_provider.huge_answer(),
    "compressed": Response("{}", headers={"content-encoding": "br"}, media_type="application/json"),
}


@pytest.mark.parametrize("path", ["/token", "/userinfo", "/keys"])
async def test_unusable_answer(
    path: str, browser: OidcBrowser, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "_PAUSE_SECONDS", 0)
    for name, answer in ANSWERS.items():
        provider.failing = {path: answer}
        await check_failure(browser, 503, "cannot be reached", name)
    provider.failing = {}
    await browser.sign_in()
    assert browser.is_signed_in


DOCUMENTS: dict[str, dict[str, Any]] = {
    "another issuer": {"issuer": "https://other.example"},
    "no token endpoint": {"token_endpoint": None},
    "no address": {"jwks_uri": "javascript:alert(1)"},
}


async def test_unusable_discovery(
    browser: OidcBrowser, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/.well-known/openid-configuration"
    monkeypatch.setattr(provider_module, "_PAUSE_SECONDS", 0)
    for name in (*DOCUMENTS, *ANSWERS):
        provider.discovery = DOCUMENTS.get(name, {})
        provider.failing = {path: ANSWERS[name]} if name in ANSWERS else {}
        response = await browser.http.post("/session/provider", headers=browser.own)
        assert (response.status_code, "set-cookie" in response.headers) == (503, False), name
        assert response.json()["error"].startswith("The identity provider cannot be reached")
    monkeypatch.setattr(provider_module, "_PAUSE_SECONDS", 60)
    asked = provider.count(path)
    assert (await browser.http.post("/session/provider", headers=browser.own)).status_code == 503
    assert provider.count(path) == asked, "strangers cannot have it asked all the time"


async def test_silent_provider(
    browser: OidcBrowser, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_SECONDS", 0.3)
    for path in ("/token", "/userinfo"):
        provider.silent = {path}
        await check_failure(browser, 503, "cannot be reached", path)


async def test_rotated_keys(browser: OidcBrowser, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_PAUSE_SECONDS", 0)
    await browser.sign_in()
    new = SigningKey("RS256", "new")
    provider.key, provider.published = new, [new]
    browser.http.cookies.clear()
    await browser.sign_in()
    assert browser.is_signed_in
    provider.key = RS
    browser.http.cookies.clear()
    await check_failure(browser, 403, "did not confirm")


ALLOWED: list[tuple[dict[str, Any], bool]] = [
    ({"groups": ["household"]}, True),
    ({"groups": "household"}, True),
    ({"groups": ["households", "house"]}, False),
    ({"groups": {"household": True}}, False),
    ({}, False),
    ({"email": "ann@example.com", "email_verified": True}, True),
    ({"email": "Ann@EXAMPLE.com", "email_verified": True}, True),
    ({"email": "ann@example.com", "email_verified": False}, False),
    ({"email": "ann@example.com", "email_verified": "true"}, False),
    ({"email": "ann@example.com"}, False),
    ({"email": "ann@example.com@other.example", "email_verified": True}, False),
    ({"email": "ann@sub.example.com", "email_verified": True}, False),
    ({"email_domain": "example.com", "email_verified": True}, False),
]


@pytest.mark.parametrize("place", ["claims", "userinfo"])
async def test_allowed(place: str, browser: OidcBrowser, provider: IdentityProvider) -> None:
    provider.claims = {}
    for claims, is_allowed in ALLOWED:
        setattr(provider, place, claims)
        if is_allowed:
            await browser.sign_in()
            assert browser.is_signed_in, claims
            browser.http.cookies.clear()
        else:
            await check_failure(browser, 403, "may not use this server", claims)


async def test_userinfo_is_newer(browser: OidcBrowser, provider: IdentityProvider) -> None:
    provider.userinfo = {"groups": []}
    await check_failure(browser, 403, "may not use this server")


async def test_disabled_account(
    browser: OidcBrowser, provider: IdentityProvider, database: psycopg.Connection[Any]
) -> None:
    await browser.sign_in()
    database.execute("UPDATE accounts SET disabled_at = now() WHERE issuer = %s", [provider.url])
    browser.http.cookies.clear()
    await check_failure(browser, 403, "account is disabled")
    kinds = database.execute(
        "SELECT kind FROM account_events WHERE user_id = %s ORDER BY id", [get_provider_user_id(provider.url, "ann-1")]
    ).fetchall()
    assert [kind for [kind] in kinds] == ["account_made", "sign_in", "sign_in_failed"]


async def test_callback_of_another_browser(browser: OidcBrowser, backend: LocalBackend) -> None:
    """Else somebody could have a user work in another one's account."""
    callback = await browser.begin()
    other = OidcBrowser(backend.url)
    async with other.http:
        response = await other.finish(callback)
        assert response.status_code == 400
        assert "another browser" in read_error(response)
        await other.begin()  # it has a cookie of its own
        assert (await other.finish(callback)).status_code == 400
        assert not other.is_signed_in
    assert (await browser.finish(callback)).status_code == 200


async def test_callback_twice(browser: OidcBrowser, provider: IdentityProvider) -> None:
    callback = await browser.begin()
    cookie = browser.http.cookies[TRANSACTION]
    assert (await browser.finish(callback)).status_code == 200
    assert (await browser.finish(callback)).status_code == 400
    browser.http.cookies.clear()
    response = await browser.http.get(callback, headers={"Cookie": f"{TRANSACTION}={cookie}"})
    assert response.status_code == 403, "the provider takes a code once"
    assert not browser.is_signed_in
    assert provider.count("/token") == 2


async def test_cookie_of_a_sign_in(browser: OidcBrowser) -> None:
    response = await browser.http.post("/session/provider", headers=browser.own)
    flags = {flag.strip().lower() for flag in response.headers["set-cookie"].split(";")}
    assert {"httponly", "samesite=lax", "path=/", "max-age=600"} <= flags
    https = {"X-Forwarded-Proto": "https", "Origin": browser.own["Origin"].replace("http", "https")}
    response = await browser.http.post("/session/provider", headers=https)
    assert response.headers["set-cookie"].startswith(f"__Host-{TRANSACTION}=")
    assert "secure" in response.headers["set-cookie"].lower()
    redirect = parse_qs(urlsplit(response.json()["url"]).query)["redirect_uri"]
    assert redirect == [f"{https['Origin']}/session/callback"]
    state = parse_qs(urlsplit(response.json()["url"]).query)["state"][0]
    assert state not in response.headers["set-cookie"]


async def test_forged_cookie(browser: OidcBrowser) -> None:
    callback = await browser.begin()
    browser.http.cookies.clear()
    for value in ("", "x", "é", "AAAA" * 20, "x" * 10_000):
        response = await browser.http.get(callback, headers=[(b"cookie", f"{TRANSACTION}={value}".encode())])
        assert response.status_code == 400, value


async def test_several_tabs(browser: OidcBrowser) -> None:
    first, *others = [await browser.begin(f"/{number}") for number in range(4)]
    assert (await browser.finish(first)).status_code == 400, "only the last three are kept"
    for number in (2, 0, 1):
        assert f'{browser.own["Origin"]}/{number + 1}"' in (await browser.finish(others[number])).text


ELSEWHERE = [
    *("https://other.example", "//other.example", "/\\other.example", "\\\\other.example", "javascript:alert(1)"),
    *("today", "", "/a\nb", "/\t/other.example", '/"><script>', "/" + "x" * 2_000),
]


async def test_return_to_another_place(browser: OidcBrowser) -> None:
    for place in ELSEWHERE:
        response = await browser.http.post("/session/provider", params={"return_to": place}, headers=browser.own)
        assert (response.status_code, "set-cookie" in response.headers) == (400, False), place


async def test_other_website_begins_no_sign_in(browser: OidcBrowser, provider: IdentityProvider) -> None:
    response = await browser.http.post("/session/provider", headers={"Origin": "https://other.example"})
    assert response.status_code == 403
    assert not provider.requests


async def test_sign_out_at_the_provider(browser: OidcBrowser, provider: IdentityProvider) -> None:
    await browser.sign_in()
    response = await browser.http.delete("/session", headers=browser.own)
    address = urlsplit(response.json()["url"])
    query = parse_qs(address.query)
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{provider.url}/end"
    assert query["post_logout_redirect_uri"] == [f"{browser.own['Origin']}/"]
    assert query["client_id"] == [CLIENT]
    assert query["id_token_hint"][0].count(".") == 2
    assert await browser.session() is None
    assert (await browser.http.delete("/session", headers=browser.own)).status_code == 204


async def test_provider_without_sign_out(browser: OidcBrowser, provider: IdentityProvider) -> None:
    provider.discovery = {"end_session_endpoint": None}
    await browser.sign_in()
    assert (await browser.http.delete("/session", headers=browser.own)).status_code == 204
    assert await browser.session() is None


async def test_other_modes_have_no_provider(services: Services) -> None:
    async with local_backend(services) as backend, http_client(backend.url) as http:
        assert (await http.post("/session/provider")).status_code == 404
        assert (await http.get("/session/callback?code=a&state=b")).status_code == 404
