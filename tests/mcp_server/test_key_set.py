"""The identity provider's keys: rotated, away, odd."""

import asyncio
import gzip
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx2
import pytest

from mcp_server.doors.identity import auth_provider
from mcp_server.server import create_app
from mcp_server.settings import Settings
from service.tokens import KeySet, Tokens, published, unprotected
from service.tool_server.identity import Verifier
from tests.mcp_server.wire import call, send
from tests.serving import serve
from tests.tokens import (
    IDP_SECRET,
    ISSUER,
    MCP_TOKEN_SECRET,
    KeyEndpoint,
    SigningKey,
    for_mcp,
    key_endpoint,
    minted,
)

AUDIENCE = "http://127.0.0.1:8001/mcp"
OLD, NEW, EC = SigningKey("RS256", "old"), SigningKey("RS256", "new"), SigningKey("ES256", "ec")
GOOD = {"aud": AUDIENCE, "iss": ISSUER}
UNREADABLE = "the keys at AUTH_JWKS_URL cannot be read: "


@pytest.fixture
def endpoint() -> Iterator[KeyEndpoint]:
    with key_endpoint(OLD) as endpoint:
        yield endpoint


def verifier(endpoint: KeyEndpoint, **options: Any) -> Verifier:
    return Verifier(Tokens({ISSUER: KeySet(endpoint.url, **options)}, audience=AUDIENCE))


async def accepts(verifier: Verifier, key: SigningKey, **claims: Any) -> bool:
    token = await verifier.verify_token(key.mint(**GOOD | claims))
    assert token is None or token.subject == "alice"
    return token is not None


async def eventually(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(5):
        while not await true():
            await asyncio.sleep(0.001)


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


async def test_a_removed_key_opens_nothing_once_the_set_is_no_longer_fresh(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint, fresh_seconds=0.2, pause_seconds=0)
    assert await accepts(checked, OLD)
    endpoint.rotate(NEW)
    assert await accepts(checked, OLD), "still fresh"
    await asyncio.sleep(0.25)
    assert not any(await asyncio.gather(*(accepts(checked, OLD) for _ in range(20))))
    assert await accepts(checked, NEW)
    assert endpoint.requests == 2


async def test_while_the_address_is_away_nobody_waits_for_it_twice(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint, fresh_seconds=0, pause_seconds=0, timeout_seconds=0.3)
    assert await accepts(checked, OLD)
    endpoint.silent = True
    assert await accepts(checked, OLD), "after it has waited for the address"
    started = time.monotonic()
    for _ in range(20):
        assert await accepts(checked, OLD)
    assert time.monotonic() - started < 0.3
    endpoint.silent = False
    endpoint.rotate(NEW)
    await eventually(lambda: accepts(checked, NEW))
    assert not await accepts(checked, OLD)


async def test_a_set_older_than_its_maximum_age_opens_nothing(endpoint: KeyEndpoint) -> None:
    checked = verifier(endpoint, max_age_seconds=0.5, fresh_seconds=0, pause_seconds=0)
    assert await accepts(checked, OLD)
    endpoint.status = 500
    assert await accepts(checked, OLD)
    await asyncio.sleep(0.55)
    for _ in range(3):
        assert not await accepts(checked, OLD)
    endpoint.status = 200
    assert await accepts(checked, OLD)


async def test_time_for_which_the_machine_slept_counts(endpoint: KeyEndpoint) -> None:
    slept = 0
    keys = KeySet(endpoint.url, max_age_seconds=3600, pause_seconds=0, clock=lambda: time.time() + slept)
    header = {"alg": "RS256", "kid": "old"}
    assert await keys.find(header)
    endpoint.status = 500
    slept = 3601
    assert await keys.find(header) is None


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
    await eventually(lambda: accepts(checked, NEW))  # a fetch that was under way may still fail


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


BROKEN: dict[str, Any] = {
    "alg none": {"kty": "RSA", "alg": "none", "kid": "x"},
    "oct with alg none": {"kty": "oct", "k": "AA", "alg": "none"},
    "no curve": {"kty": "EC", "kid": "x"},
    "a list for kty": {"kty": ["RSA"], "kid": "x"},
    "a list for a number": OLD.jwk | {"n": [], "kid": "x"},
    "an even exponent": OLD.jwk | {"e": "AQAA", "kid": "x"},
    "not on its curve": EC.jwk | {"y": "A" * 43, "kid": "x"},
    "another curve": EC.jwk | {"crv": "P-384", "kid": "x"},
    "another key type": EC.jwk | {"alg": "RS256", "kid": "x"},
    "a private key": OLD.jwk | {"d": "AQAB", "kid": "x"},
    "a huge number": OLD.jwk | {"n": "_" * 100_000, "kid": "x"},
    "many bits": OLD.jwk | {"n": "_" * 1_400, "kid": "x"},
    "few bits": OLD.jwk | {"n": "_" * 170, "kid": "x"},
    "a number for kid": {"kty": "RSA", "kid": 7},
    "text": "x",
    "a list": [],
    "null": None,
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_an_entry_that_cannot_be_used_stops_nothing(
    endpoint: KeyEndpoint, broken: Any, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.body = json.dumps({"keys": [broken, OLD.jwk]}).encode()
    checked = verifier(endpoint, pause_seconds=0)
    assert await accepts(checked, OLD)
    for _ in range(3):
        assert not await accepts(checked, NEW)
    (named,) = [record.getMessage() for record in caplog.records]
    assert named.startswith("AUTH_JWKS_URL has keys that are not used: ")
    assert len(named) < 200
    endpoint.body = json.dumps({"keys": [broken, NEW.jwk]}).encode()
    assert await accepts(checked, NEW), "rotation goes on"
    assert not await accepts(checked, OLD)
    assert len(caplog.records) == 1, "it is named once, not at every fetch"


@pytest.mark.parametrize(
    ("purpose", "checks"),
    [
        ({}, True),
        ({"use": "sig"}, True),
        ({"use": "enc"}, False),
        ({"use": None}, False),
        ({"key_ops": ["verify"]}, True),
        ({"key_ops": ["sign", "verify"], "use": "sig"}, True),
        ({"key_ops": ["encrypt"]}, False),
        ({"key_ops": []}, False),
        ({"key_ops": "verify"}, False),
        ({"key_ops": None}, False),
        ({"key_ops": ["verify"], "use": "enc"}, False),
    ],
)
async def test_only_keys_for_signatures_check_them(
    endpoint: KeyEndpoint, purpose: dict[str, Any], checks: bool
) -> None:
    jwk = {name: value for name, value in OLD.jwk.items() if name not in ("use", "key_ops")}
    endpoint.body = json.dumps({"keys": [jwk | purpose]}).encode()
    assert await accepts(verifier(endpoint), OLD) == checks


async def test_of_two_different_keys_with_one_name_none_is_used(
    endpoint: KeyEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.body = json.dumps({"keys": [OLD.jwk, NEW.jwk | {"kid": "old"}, EC.jwk | {"kid": "old"}]}).encode()
    checked = verifier(endpoint)
    assert not await accepts(checked, OLD)
    assert not await accepts(checked, NEW, kid="old")
    assert await accepts(checked, EC, kid="old"), "the only one of its algorithm"
    assert "kid 'old': 2 different keys" in caplog.text


async def test_a_key_that_is_listed_twice_is_one(endpoint: KeyEndpoint) -> None:
    endpoint.body = json.dumps({"keys": [OLD.jwk, OLD.jwk | {"x5t": "x"}]}).encode()
    assert await accepts(verifier(endpoint), OLD)


@pytest.mark.parametrize("size", [256 * 1024 + 1, 64 * 1024 * 1024])
async def test_a_set_that_is_too_large_is_not_read_to_its_end(
    endpoint: KeyEndpoint, size: int, caplog: pytest.LogCaptureFixture
) -> None:
    checked = verifier(endpoint, fresh_seconds=0, pause_seconds=0)
    assert await accepts(checked, OLD)
    endpoint.body = json.dumps({"keys": [NEW.jwk]}).encode() + b" " * size
    assert not await accepts(checked, NEW)
    assert await accepts(checked, OLD), "the last set that could be read goes on"
    assert f"{UNREADABLE}TooLarge" in caplog.text
    endpoint.rotate(NEW)
    await eventually(lambda: accepts(checked, NEW))


async def test_a_compressed_set_is_not_unpacked(endpoint: KeyEndpoint, caplog: pytest.LogCaptureFixture) -> None:
    endpoint.body = gzip.compress(endpoint.body + b" " * 100_000_000)
    endpoint.headers = {"content-encoding": "gzip"}
    assert not await accepts(verifier(endpoint), OLD)
    assert f"{UNREADABLE}Encoded" in caplog.text


async def test_a_redirect_does_not_choose_whose_keys_are_taken(endpoint: KeyEndpoint) -> None:
    with key_endpoint(NEW) as elsewhere:
        endpoint.status = 302
        endpoint.headers = {"location": elsewhere.url}
        assert not await accepts(verifier(endpoint), NEW)
        assert elsewhere.requests == 0


def largest_set() -> bytes:
    """As many bytes and entries as are read at all, each of them work."""
    keys = [OLD.jwk | {"kid": f"{n}", "n": OLD.jwk["n"][:-4] + f"{n:03}w"} for n in range(100)]
    return json.dumps({"keys": [*keys, *([{"kty": "RSA"}] * 10_000)]}).encode().ljust(256 * 1024)


def test_the_largest_set_is_read_without_holding_up_others() -> None:
    document = largest_set()
    assert len(document) == 256 * 1024

    def seconds() -> float:
        started = time.thread_time()
        keys, left_out = published.read(document)
        assert len(keys) == 100
        assert left_out == ["those after the first 100"]
        return time.thread_time() - started

    assert min(seconds() for _ in range(5)) < 0.05  # a collection of garbage can fall into any one of them


@pytest.mark.parametrize(
    ("url", "forgeable"),
    [
        ("https://idp.example/keys", False),
        ("http://idp.example/keys", True),
        ("http://10.0.0.7/keys", True),
        ("http://localhost:8080/keys", False),
        ("http://127.0.0.1/keys", False),
        ("http://[::1]/keys", False),
    ],
)
def test_an_address_whose_answers_can_be_forged_is_warned_of(url: str, forgeable: bool) -> None:
    assert bool(unprotected(url)) == forgeable


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
