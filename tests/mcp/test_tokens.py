"""Every way in which a token can be wrong: one answer, and nothing changes."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx2

from tests.mcp.conftest import NewTools
from tests.mcp.servers import ARGUMENTS, AUDIENCE, EC, METADATA, RSA, own, theirs
from tests.mcp.wire import LEGACY, MODERN, call, request, send
from tests.processes import ServiceProcess
from tests.tokens import ISSUER, MCP_TOKEN_SECRET, NO_TIMES, OTHER_SECRET, OWN_ISSUER, SigningKey

CHALLENGE = f'Bearer error="invalid_token", resource_metadata="https://todo.example{METADATA}"'
UNPUBLISHED = SigningKey("RS256", "unpublished")


def by_hand(header: Any, payload: Any, signature: str = "") -> str:
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (header, payload))
    return ".".join((*parts, signature))


def nested(depth: int) -> str:
    return base64.urlsafe_b64encode(b"[" * depth).decode().rstrip("=")


NOW = int(time.time())
CLAIMS = {"sub": "alice", "aud": AUDIENCE, "iss": OWN_ISSUER, "exp": NOW + 86_400}

REJECTED: dict[str, Callable[[], str]] = {
    "expired": lambda: own(exp=NOW - 1),
    "expired, theirs": lambda: theirs(exp=NOW - 60),
    "no exp": lambda: own(without="exp"),
    "no exp, theirs": lambda: theirs(without="exp"),
    "exp is null": lambda: own(exp=None),
    "exp is no time": lambda: own(exp="tomorrow"),
    **{
        f"{name} is {value!r:.20}": partial(own, **{name: value})
        for name in ("exp", "iat", "nbf")
        for value in NO_TIMES
    },
    "no sub": lambda: own(without="sub"),
    "no sub, theirs": lambda: theirs(without="sub"),
    "empty sub": lambda: own(sub=""),
    "empty sub, theirs": lambda: theirs(sub=""),
    "blank sub": lambda: own(sub=" "),
    "sub is a number": lambda: own(sub=7),
    "sub is a list": lambda: own(sub=["alice"]),
    "sub too long": lambda: own(sub="a" * 201),
    "sub with a line break": lambda: own(sub="alice\nbob"),
    "sub with NUL": lambda: own(sub="alice\0"),
    "sub is no text": lambda: own(sub="\ud800"),
    "no aud": lambda: own(without="aud"),
    "audience of the backend": lambda: theirs(aud="https://todo.example"),
    "audience of a session": lambda: own(aud="todo-assistant/session"),
    "audiences without this one": lambda: own(aud=["https://todo.example", f"{AUDIENCE}/"]),
    "audience is an object": lambda: own(aud={AUDIENCE: True}),
    "no iss": lambda: own(without="iss"),
    "wrong issuer": lambda: own(iss="https://evil.example"),
    "their issuer, our secret": lambda: own(iss=ISSUER),
    "our issuer, their key": lambda: theirs(iss=OWN_ISSUER),
    "not yet valid": lambda: own(nbf=NOW + 86_400),
    "not yet valid, theirs": lambda: theirs(nbf=NOW + 86_400),
    "made in the future": lambda: own(iat=NOW + 86_400),
    "alg none": lambda: by_hand({"alg": "none"}, CLAIMS),
    "alg None": lambda: by_hand({"alg": "None", "typ": "JWT"}, CLAIMS, "c2ln"),
    "alg none, theirs": lambda: by_hand({"alg": "none", "kid": "rsa"}, CLAIMS | {"iss": ISSUER}),
    "another secret": lambda: own(key=OTHER_SECRET),
    "no signature": lambda: own().rpartition(".")[0] + ".",
    "a longer hash": lambda: own(algorithm="HS512", key=MCP_TOKEN_SECRET + "0" * 16),
    "our secret, a longer hash": lambda: own(algorithm="HS384"),
    "public key as secret": lambda: hmac_with(RSA.public_pem),
    "public key's JWK as secret": lambda: hmac_with(json.dumps(RSA.jwk).encode()),
    "RSA's kid on an EC signature": lambda: EC.mint(aud=AUDIENCE, kid="rsa"),
    "another RSA algorithm": lambda: theirs(algorithm="RS512"),
    "a key nobody published": lambda: UNPUBLISHED.mint(aud=AUDIENCE),
    "a key nobody published, with a known kid": lambda: UNPUBLISHED.mint(aud=AUDIENCE, kid="rsa"),
    "kid is an object": lambda: by_hand({"alg": "RS256", "kid": {}}, CLAIMS | {"iss": ISSUER}, "c2ln"),
    "payload is a list": lambda: by_hand({"alg": "HS256"}, [CLAIMS], "c2ln"),
    "header is a number": lambda: by_hand(1, CLAIMS, "c2ln"),
    "payload without end": lambda: f"{by_hand({'alg': 'HS256'}, 0).split('.')[0]}.{nested(9000)}.c2ln",
}


def hmac_with(secret: bytes) -> str:
    """PyJWT itself will not sign with a public key, so this is RFC 7515 by hand."""
    unsigned = by_hand({"alg": "HS256", "kid": "rsa"}, CLAIMS | {"iss": ISSUER}).rpartition(".")[0]
    signature = hmac.new(secret, unsigned.encode(), hashlib.sha256).digest()
    return f"{unsigned}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


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
    """What is no token at all is in tests/api/test_authentication.py, for both services."""
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
        for path in ("/changes", "/done", "/tasks?ids=1"):
            assert (await guarded_http.get(path, headers=headers)).status_code == 401
        for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
            assert (await guarded_http.request(method, "/mcp", headers=headers)).status_code == 401
    assert await tools.state() == before


async def test_a_token_elsewhere_is_none(guarded_http: httpx2.AsyncClient) -> None:
    for value in ("Basic YTpi", "bearer", "Bearer", "Token {}", "{}", "Bearer Bearer {}", "Bearer {} x"):
        for path in ("/mcp", "/mcp/", f"/mcp?access_token={own()}"):
            response = await guarded_http.post(path, headers={"authorization": value.format(own())}, content=b"{}")
            assert (response.status_code, response.json()["error"]) == (401, "invalid_token"), (value, path)


async def test_the_log_says_why(guarded: ServiceProcess, guarded_http: httpx2.AsyncClient) -> None:
    """And, as the end of the server's run shows, never with what."""
    for token in (own(exp=NOW - 1), own(without="sub"), own(aud="https://todo.example"), theirs(algorithm="RS512")):
        before = len(guarded.log_text)
        await send(guarded_http, call("list_tasks", {}, token=token))
        assert "token" in guarded.log_text[before:]
