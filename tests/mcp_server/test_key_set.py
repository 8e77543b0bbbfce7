"""The identity provider's keys: rotated, away, odd."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from mcp_server.identity import Verifier, auth_provider
from mcp_server.server import create_app
from mcp_server.settings import Settings
from tests.mcp_server.wire import call, send
from tests.serving import serve
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET, KeyEndpoint, SigningKey, for_mcp, key_endpoint, minted
from tokens import KeySet, Tokens

AUDIENCE = "http://127.0.0.1:8001/mcp"
OLD, NEW, EC = SigningKey("RS256", "old"), SigningKey("RS256", "new"), SigningKey("ES256", "ec")
GOOD = {"aud": AUDIENCE, "iss": ISSUER}
UNREADABLE = "the keys at AUTH_JWKS_URL cannot be read: "


@pytest.fixture
def endpoint() -> Iterator[KeyEndpoint]:
    with key_endpoint(OLD) as endpoint:
        yield endpoint


def verifier(endpoint: KeyEndpoint, **seconds: float) -> Verifier:
    return Verifier(Tokens({ISSUER: KeySet(endpoint.url, **seconds)}, audience=AUDIENCE))


async def accepts(verifier: Verifier, key: SigningKey, **claims: Any) -> bool:
    token = await verifier.verify_token(key.mint(**GOOD | claims))
    assert token is None or token.subject == "alice"
    return token is not None


async def test_keys_are_fetched_once_for_all_who_wait(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint)
    assert all(await asyncio.gather(*(accepts(checked, OLD) for _ in range(20))))
    assert await accepts(checked, OLD)
    assert endpoint.requests == 1


async def test_a_new_key_is_found_and_the_old_one_no_longer_holds(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint, pause_seconds=0)
    assert await accepts(checked, OLD)
    endpoint.rotate(NEW)
    assert await accepts(checked, NEW)
    assert not await accepts(checked, OLD)


async def test_unknown_keys_cause_no_flood_of_fetches(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint)
    assert await accepts(checked, OLD)
    for n in range(50):
        assert not await accepts(checked, NEW, kid=f"made up {n}")
    assert endpoint.requests == 1


async def test_old_keys_are_looked_up_again_while_they_go_on_working(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint, fresh_seconds=0, pause_seconds=0)
    assert await accepts(checked, OLD)
    endpoint.rotate(NEW)
    async with asyncio.timeout(5):
        while await accepts(checked, OLD):
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("status", [404, 500, 302])
async def test_known_keys_outlive_the_endpoint(
    endpoint: KeyEndpoint, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    checked = verifier(endpoint, fresh_seconds=0, pause_seconds=0)
    assert await accepts(checked, OLD)
    endpoint.status = status
    for _ in range(5):
        assert await accepts(checked, OLD)
        assert not await accepts(checked, NEW)
    assert f"{UNREADABLE}HTTPStatusError" in caplog.text
    endpoint.status = 200
    endpoint.rotate(OLD, NEW)
    async with asyncio.timeout(5):  # a fetch that was under way may still fail
        while not await accepts(checked, NEW):
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"keys": 5}',
        '{"keys": null}',
        "[" * 100_000,
        "\x00\xff",
        '{"keys": [5, null, {}]}',
    ],
)
async def test_what_is_no_key_set_accepts_nobody(
    endpoint: KeyEndpoint, body: str, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.body = body.encode()
    assert not await accepts(verifier(endpoint), OLD)
    assert "AUTH_JWKS_URL" in caplog.text


async def test_other_entries_of_a_key_set_do_no_harm(endpoint: KeyEndpoint) -> None:
    shared = {"kty": "oct", "kid": "shared", "k": "A" * 43}
    odd = [5, {}, {"kty": "EC", "crv": "P-7"}, {"kty": "RSA", "n": "!"}, shared, NEW.jwk | {"use": "enc"}]
    long_hash = OLD.jwk | {"kid": "long", "alg": "RS512"}
    endpoint.body = json.dumps({"keys": [*odd, long_hash, OLD.jwk, EC.jwk]}).encode()
    checked = verifier(endpoint)
    assert await accepts(checked, OLD)
    assert await accepts(checked, EC)
    assert not await accepts(checked, NEW)
    assert not await accepts(checked, OLD, algorithm="RS512", kid="long")
    assert await checked.verify_token(minted("\0" * 32, kid="shared", **GOOD)) is None


async def test_a_token_without_kid_needs_one_key_to_fit(endpoint: KeyEndpoint) -> None:
    endpoint.rotate(OLD, EC)
    assert await accepts(verifier(endpoint), OLD, kid=None)
    endpoint.rotate(OLD, NEW)
    assert not await accepts(verifier(endpoint), OLD, kid=None)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
async def test_a_weak_key_is_refused(endpoint: KeyEndpoint) -> None:
    weak = SigningKey("RS256", "weak", bits=1024)
    endpoint.rotate(weak)
    assert not await accepts(verifier(endpoint), weak)


async def test_a_silent_endpoint_holds_up_nobody_for_long(
    endpoint: KeyEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.silent = True
    checked = verifier(endpoint, timeout_seconds=0.1)
    async with asyncio.timeout(3):
        assert not any(await asyncio.gather(*(accepts(checked, OLD) for _ in range(20))))
    assert f"{UNREADABLE}TimeoutError" in caplog.text
    assert endpoint.requests == 1


async def test_without_keys_their_tokens_are_refused_and_ours_work(
    session_database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    settings = Settings.model_validate(
        {
            "database_url": session_database_url,
            "auth_mode": "jwt",
            "mcp_token_secret": MCP_TOKEN_SECRET,
            "auth_jwks_url": "http://127.0.0.1:1/keys",
            "auth_issuer": ISSUER,
        }
    )
    async with serve(create_app(settings)) as base, httpx2.AsyncClient(verify=False, base_url=base) as http:
        refused = await send(http, call("list_tasks", {}, token=OLD.mint(**GOOD)))
        assert refused.status_code == 401
        assert (await send(http, call("list_tasks", {}, token=for_mcp("alice", AUDIENCE)))).status_code == 200
    assert f"{UNREADABLE}ConnectError" in caplog.text
    assert "refused a token: No key of the issuer fits" in caplog.text


@pytest.mark.parametrize("issuer", [ISSUER, "my-login"])
async def test_a_shared_secret_instead_of_keys(issuer: str) -> None:
    settings = Settings.model_validate(
        {
            "database_url": "postgresql://host/todo",
            "auth_mode": "jwt",
            "mcp_token_secret": MCP_TOKEN_SECRET,
            "auth_jwt_secret": IDP_SECRET,
            "auth_issuer": issuer,
        }
    )
    checked = auth_provider(settings)
    assert checked is not None
    for key, claims, accepted in (
        (IDP_SECRET, {"iss": issuer, "aud": AUDIENCE}, True),
        (IDP_SECRET, {"iss": issuer, "aud": "backend"}, False),
        (IDP_SECRET, {"iss": "todo-assistant", "aud": AUDIENCE}, False),
        (MCP_TOKEN_SECRET, {"iss": issuer, "aud": AUDIENCE}, False),
        (MCP_TOKEN_SECRET, {"iss": "todo-assistant", "aud": AUDIENCE}, True),
    ):
        assert (await checked.verify_token(minted(key, **claims)) is not None) == accepted
    assert len(checked.get_routes("/mcp")) == (issuer == ISSUER)  # metadata, where the issuer is an address
