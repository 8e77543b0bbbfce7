"""Tokens: every way in which one can be wrong, and the keys of an identity provider: rotated, away, odd."""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import pytest

from common import tokens
from tests.mcp.conftest import NewTools
from tests.mcp.servers import ARGUMENTS, AUDIENCE, EC, METADATA, OWN, RSA, own, serve_tools, theirs
from tests.mcp.wire import LEGACY, MODERN, call, request, send
from tests.tokens import (
    IDP_SECRET,
    ISSUER,
    MCP_TOKEN_SECRET,
    OWN_ISSUER,
    KeyEndpoint,
    SigningKey,
    key_endpoint,
    mint_mcp_token,
    mint_token,
    sign_with_text,
    write_token,
)

OLD, NEW, ELLIPTIC = SigningKey("RS256", "old"), SigningKey("RS256", "new"), SigningKey("ES256", "ec")

Accepts = Callable[[str], Any]
Serving = Callable[..., AbstractAsyncContextManager[Accepts]]


@pytest.fixture
def endpoint() -> Iterator[KeyEndpoint]:
    with key_endpoint(OLD) as endpoint:
        yield endpoint


@pytest.fixture
def serving(session_database_url: str, endpoint: KeyEndpoint) -> Serving:
    """Starts a server with the keys of the endpoint; answers whether it accepts a token."""

    @asynccontextmanager
    async def start(**settings: Any) -> AsyncIterator[Accepts]:
        identity = {"auth_mode": "jwt", "auth_issuer": ISSUER, "auth_jwks_url": endpoint.url}
        async with serve_tools(session_database_url, **{**OWN, **identity, **settings}) as http:

            async def accepts(token: str) -> bool:
                response = await send(http, call("list_tasks", {}, token=token))
                assert response.status_code in (200, 401), response.text
                return response.status_code == 200

            yield accepts

    return start


def token(key: SigningKey, **claims: Any) -> str:
    return key.mint(**{"aud": AUDIENCE} | claims)


async def test_keys_are_fetched_once(serving: Serving, endpoint: KeyEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_PAUSE_SECONDS", 600)
    async with serving() as accepts:
        assert await accepts(token(OLD))
        for number in range(20):
            assert await accepts(token(OLD))
            assert not await accepts(token(NEW, kid=f"made up {number}"))
    assert endpoint.requests == 1


async def test_a_new_key_is_found_where_keys_are_not_fresh(serving: Serving, endpoint: KeyEndpoint) -> None:
    endpoint.rotate(NEW)
    async with serving() as accepts:
        assert await accepts(token(NEW))
        assert not await accepts(token(OLD))


@pytest.mark.parametrize("away", [{"status": 500}, {"status": 302}, {"body": b"{"}, {"body": b" " * 300_000}])
async def test_without_keys_only_our_own_tokens_are_accepted(
    serving: Serving, endpoint: KeyEndpoint, caplog: pytest.LogCaptureFixture, away: dict[str, Any]
) -> None:
    for name, value in away.items():
        setattr(endpoint, name, value)
    async with serving() as accepts:
        assert not await accepts(token(OLD))
        assert await accepts(mint_mcp_token("alice", AUDIENCE))
    assert "AUTH_JWKS_URL" in caplog.text


@pytest.mark.parametrize(("age", "accepted"), [(3_400, True), (3_600, False)])
async def test_keys_are_used_up_to_their_age_while_the_provider_is_away(
    serving: Serving, endpoint: KeyEndpoint, monkeypatch: pytest.MonkeyPatch, age: int, accepted: bool
) -> None:
    async with serving(auth_jwks_max_age_seconds=3_600) as accepts:
        assert await accepts(token(OLD))
        endpoint.status = 500
        monkeypatch.setattr(tokens.KeySet, "_get_age", staticmethod(lambda moment: time.monotonic() + age - moment))
        assert await accepts(token(OLD)) is accepted


async def test_a_redirect_is_not_followed(serving: Serving, endpoint: KeyEndpoint) -> None:
    with key_endpoint(NEW) as elsewhere:
        endpoint.status, endpoint.headers = 302, {"location": elsewhere.url}
        async with serving() as accepts:
            assert not await accepts(token(NEW))
        assert elsewhere.requests == 0


BROKEN: list[Any] = [
    {"kty": "RSA", "alg": "none", "kid": "x"},
    {"kty": "oct", "k": "AA", "alg": "none"},
    {"kty": "oct", "kid": "shared", "k": "A" * 43},
    {"kty": "EC", "kid": "x"},
    {"kty": ["RSA"], "kid": "x"},
    OLD.jwk | {"n": [], "kid": "x"},
    OLD.jwk | {"e": "AQAA", "kid": "x"},
    ELLIPTIC.jwk | {"y": "A" * 43, "kid": "x"},
    ELLIPTIC.jwk | {"crv": "P-384", "kid": "x"},
    OLD.jwk | {"d": "AQAB", "kid": "x"},
    OLD.jwk | {"n": "_" * 100_000, "kid": "x"},
    OLD.jwk | {"n": "_" * 170, "kid": "x"},
    {"kty": "RSA", "kid": 7},
    *("x", [], None, 5, {}),
]


async def test_entries_that_cannot_be_used_do_no_harm(serving: Serving, endpoint: KeyEndpoint) -> None:
    endpoint.body = json.dumps({"keys": [*BROKEN, NEW.jwk | {"use": "enc"}, OLD.jwk, OLD.jwk, ELLIPTIC.jwk]}).encode()
    async with serving() as accepts:
        assert await accepts(token(OLD))
        assert await accepts(token(ELLIPTIC))
        assert not await accepts(token(NEW))
        assert not await accepts(mint_token("\0" * 32, kid="shared", iss=ISSUER, aud=AUDIENCE))


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
async def test_keys_that_check_nothing(serving: Serving, endpoint: KeyEndpoint) -> None:
    weak = SigningKey("RS256", "weak", bits=1024)
    purposes: list[dict[str, Any]] = [{"use": "enc"}, {"use": None}, {"key_ops": ["encrypt"]}, {"key_ops": "verify"}]
    plain = {name: value for name, value in OLD.jwk.items() if name != "use"}
    keys = [plain | purpose | {"kid": f"old {number}"} for number, purpose in enumerate(purposes)]
    keys += [plain | {"kid": "good", "key_ops": ["verify"]}, NEW.jwk | {"kid": "two"}, ELLIPTIC.jwk, weak.jwk]
    keys += [SigningKey("RS256", "third").jwk | {"kid": "two"}]
    endpoint.body = json.dumps({"keys": keys}).encode()
    async with serving() as accepts:
        assert await accepts(token(OLD, kid="good"))
        for number in range(len(purposes)):
            assert not await accepts(token(OLD, kid=f"old {number}"))
        assert not await accepts(token(weak))
        assert not await accepts(token(NEW, kid="two")), "of two different keys with one name none is used"
        assert await accepts(token(ELLIPTIC, kid=None)), "the only one of its algorithm"


async def test_a_token_without_kid_needs_one_key_to_fit(serving: Serving, endpoint: KeyEndpoint) -> None:
    endpoint.rotate(OLD, NEW, ELLIPTIC)
    async with serving() as accepts:
        assert await accepts(token(ELLIPTIC, kid=None))
        assert not await accepts(token(OLD, kid=None))


@pytest.mark.parametrize("issuer", [ISSUER, "my-login"])
async def test_a_shared_secret_instead_of_keys(serving: Serving, issuer: str) -> None:
    async with serving(auth_jwks_url=None, auth_jwt_secret=IDP_SECRET, auth_issuer=issuer) as accepts:
        for key, iss, audience, accepted in (
            (IDP_SECRET, issuer, AUDIENCE, True),
            (IDP_SECRET, issuer, "backend", False),
            (IDP_SECRET, "todo-assistant", AUDIENCE, False),
            (MCP_TOKEN_SECRET, issuer, AUDIENCE, False),
            (MCP_TOKEN_SECRET, "todo-assistant", AUDIENCE, True),
        ):
            claims = {"iss": iss, "aud": audience, "jti": "x" * 22, "scope": "tasks"}
            assert await accepts(mint_token(key, **claims)) == accepted


CHALLENGE = f'Bearer error="invalid_token", resource_metadata="https://todo.example{METADATA}"'
UNPUBLISHED = SigningKey("RS256", "unpublished")


NOW = int(time.time())
CLAIMS = {"sub": "alice", "aud": AUDIENCE, "iss": OWN_ISSUER, "exp": NOW + 86_400}

REJECTED: dict[str, Callable[[], str]] = {
    "expired, ours": lambda: own(exp=NOW - 1),
    "expired, theirs": lambda: theirs(exp=NOW - 60),
    "no sub, ours": lambda: own(without="sub"),
    "no sub, theirs": lambda: theirs(without="sub"),
    "audience of the backend": lambda: theirs(aud="https://todo.example"),
    "audiences without this one": lambda: own(aud=["https://todo.example", f"{AUDIENCE}/"]),
    "their issuer, our secret": lambda: own(iss=ISSUER),
    "our issuer, their key": lambda: theirs(iss=OWN_ISSUER),
    "alg none, theirs": lambda: write_token({"alg": "none", "kid": "rsa"}, CLAIMS | {"iss": ISSUER}),
    "a longer hash": lambda: own(algorithm="HS512", key=MCP_TOKEN_SECRET + "0" * 16),
    "public key as secret": lambda: sign_with_text(RSA.public_pem, "rsa", aud=AUDIENCE, iss=ISSUER),
    "public key's JWK as secret": lambda: sign_with_text(json.dumps(RSA.jwk).encode(), "rsa", aud=AUDIENCE, iss=ISSUER),
    "RSA's kid on an EC signature": lambda: EC.mint(aud=AUDIENCE, kid="rsa"),
    "another RSA algorithm": lambda: theirs(algorithm="RS512"),
    "a key nobody published": lambda: UNPUBLISHED.mint(aud=AUDIENCE),
    "a key nobody published, with a known kid": lambda: UNPUBLISHED.mint(aud=AUDIENCE, kid="rsa"),
    "kid is an object": lambda: write_token({"alg": "RS256", "kid": {}}, CLAIMS | {"iss": ISSUER}, "c2ln"),
}


def everything(token: str | None) -> Iterator[httpx2.Request]:
    """Each method and each tool, in both protocols."""
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    yield request("initialize", hello, version=LEGACY, token=token)
    yield request("server/discover", token=token)
    for version in (MODERN, LEGACY):
        yield request("tools/list", version=version, token=token)
        for tool, arguments in ARGUMENTS.items():
            yield call(tool, arguments, version=version, token=token)


async def test_a_wrong_token(guarded_http: httpx2.AsyncClient) -> None:
    """Claims and what is no token at all are in tests/api/test_authentication.py, for both services."""
    for name, token in REJECTED.items():
        response = await send(guarded_http, call("list_tasks", {}, token=token()))
        assert (response.status_code, response.json()["error"]) == (401, "invalid_token"), name
        assert response.headers["www-authenticate"] == CHALLENGE, name


async def test_nothing_is_open_without_a_valid_token(guarded_http: httpx2.AsyncClient, new_tools: NewTools) -> None:
    tools = new_tools("alice")
    await tools.add("milk")
    before = await tools.state()
    for token in (None, own(exp=NOW - 1)):
        for made in everything(token):
            assert (await send(guarded_http, made)).status_code == 401
        headers = {"authorization": f"Bearer {token}"} if token else {}
        for path in ("/batch?id=run", "/changes", "/done", "/tasks?ids=1"):
            assert (await guarded_http.get(path, headers=headers)).status_code == 401
        for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
            assert (await guarded_http.request(method, "/mcp", headers=headers)).status_code == 401
    assert await tools.state() == before


async def test_the_log_says_why(serving: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """And, as the end of a server's run shows, never with what."""
    caplog.set_level("INFO")
    async with serving() as accepts:
        for wrong in (own(exp=NOW - 1), own(without="sub"), own(aud="https://todo.example"), theirs(algorithm="RS512")):
            caplog.clear()
            assert not await accepts(wrong)
            assert "rejected a token: " in caplog.text
