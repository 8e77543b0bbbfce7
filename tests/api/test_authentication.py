"""Who may ask: the bearer tokens of both services, and the keys of an identity provider."""

import base64
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from fastapi.routing import iter_route_contexts

from backend.api.dependencies import get_owner
from backend.app import create_app
from backend.model.providers import resolve
from backend.settings import BackendSettings
from common.telemetry.logs import AT_ONCE
from tests.runs_client import Runs
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.backends import local_backend
from tests.support.fixtures import NewUser
from tests.support.operations import UNKNOWN_THREAD, UNSUPPORTED
from tests.support.script import add_task, call, calls, says
from tests.support.stack import AUDIENCE, Services, Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.tokens import (
    IDP_SECRET,
    ISSUER,
    MCP_TOKEN_SECRET,
    NO_TIMES,
    OTHER_SECRET,
    OWN_ISSUER,
    SigningKey,
    key_endpoint,
    mint_token,
    write_token,
)
from todo_client.chatkit import request, user_input

SERVICES = ("backend", "mcp_server")
LIST_TASKS = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}}
MCP_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


@dataclass(frozen=True)
class Server:
    """One service that checks tokens; `audience` is what they must be made for."""

    http: httpx2.AsyncClient
    audience: str

    async def ask(self, authorization: str | None) -> httpx2.Response:
        headers = {} if authorization is None else {"Authorization": authorization}
        if self.audience.endswith("/mcp"):
            return await self.http.post("/mcp", json=LIST_TASKS, headers=headers | MCP_HEADERS)
        return await self.http.post("/chatkit", json=request("threads.list"), headers=headers)


@pytest.fixture(params=SERVICES)
async def server(request: pytest.FixtureRequest, stack: Stack) -> AsyncIterator[Server]:
    url, audience = stack.url, AUDIENCE
    if request.param == "mcp_server":
        url, audience = stack.services.mcp.url, f"{stack.services.mcp.url}/mcp"
    async with http_client(url) as http:
        yield Server(http, audience)


Mint = Callable[..., str]
RSA = SigningKey("RS256", "k1")


def in_seconds(seconds: int) -> int:
    return int(time.time()) + seconds


REJECTED: dict[str, Callable[[Mint], str]] = {
    "one word": lambda mint: "garbage",
    "three words": lambda mint: "a.b.c",
    "empty": lambda mint: "",
    "long": lambda mint: "e" * 16_000,
    "nested without end": lambda mint: f"{base64.urlsafe_b64encode(b'[' * 9_000).decode().rstrip('=')}.e30.c2ln",
    "expired": lambda mint: mint(exp=in_seconds(-60)),
    "not valid yet": lambda mint: mint(nbf=in_seconds(86_400)),
    **{f"without {name}": lambda mint, name=name: mint(without=name) for name in ("exp", "sub", "aud", "iss")},
    **{
        f"{name} is {value!r:.20}": lambda mint, name=name, value=value: mint(**{name: value})
        for name in ("exp", "iat", "nbf")
        for value in NO_TIMES
    },
    **{
        f"sub is {value!r:.12}": lambda mint, value=value: mint(sub=value)
        for value in ("", " ", 7, ["alice"], "a\nb", "a\0", "a" * 201, "\ud800")
    },
    **{f"exp is {value!r}": lambda mint, value=value: mint(exp=value) for value in (None, "tomorrow")},
    "made in the future": lambda mint: mint(iat=in_seconds(86_400)),
    "an object as audience": lambda mint: mint(aud={AUDIENCE: True}),
    "a list as payload": lambda mint: write_token({"alg": "HS256"}, [{"sub": "alice"}], "c2ln"),
    "a number as header": lambda mint: write_token(1, {"sub": "alice"}, "c2ln"),
    "another audience": lambda mint: mint(aud="https://another.example"),
    "another issuer": lambda mint: mint(iss="https://evil.example"),
    "issuer is a list": lambda mint: mint(iss=[ISSUER]),
    "our issuer, the provider's secret": lambda mint: mint(iss=OWN_ISSUER),
    "the provider's issuer, our secret": lambda mint: mint(key=MCP_TOKEN_SECRET),
    "another secret": lambda mint: mint(key=OTHER_SECRET),
    "no signature": lambda mint: mint().rpartition(".")[0] + ".",
    "a longer hash": lambda mint: mint(algorithm="HS384"),
    "alg none": lambda mint: mint(key="", algorithm="none"),
    "no alg": lambda mint: write_token({}, {"sub": "alice", "iss": ISSUER, "exp": in_seconds(60)}),
    "alg is a list": lambda mint: write_token({"alg": ["HS256"]}, {"sub": "alice"}, "c2ln"),
    "an unknown critical header": lambda mint: write_token({"alg": "HS256", "crit": ["x"], "x": 1}, {}, "c2ln"),
    "a key of another algorithm": lambda mint: mint(key=RSA.private, algorithm="RS256", kid="k1"),
}


def minter(audience: str) -> Mint:
    def mint(key: Any = IDP_SECRET, **claims: Any) -> str:
        return mint_token(key, **{"iss": ISSUER, "aud": audience} | claims)

    return mint


async def test_rejected_tokens(server: Server) -> None:
    mint = minter(server.audience)
    accepted, answers = [], set[str]()
    for name, make in REJECTED.items():
        response = await server.ask(f"Bearer {make(mint)}".strip())
        if response.status_code != 401 or not response.headers["www-authenticate"].startswith("Bearer"):
            accepted.append((name, response.status_code))
        answers.add(response.text)
    assert accepted == []
    assert len(answers) == 1, "one answer for every reason"


OF_OURS: dict[str, dict[str, Any]] = {
    "This token is not for this service. Use one that was made for it.": {"aud": "todo-assistant/session"},
    "This token has expired. Make a new one on the page.": {"exp": in_seconds(-60)},
    "This token was ended. Make a new one on the page.": {},  # as those of 0.2, which have no session
}


async def test_more_is_told_of_a_token_with_our_own_signature(server: Server) -> None:
    audience = "todo-assistant/api" if server.audience == AUDIENCE else server.audience
    answers = set[str]()
    for sentence, wrong in OF_OURS.items():
        claims = {"iss": OWN_ISSUER, "aud": audience, **wrong}
        response = await server.ask(f"Bearer {mint_token(MCP_TOKEN_SECRET, **claims)}")
        assert response.status_code == 401
        assert sentence in response.json().values()
        for other in (OTHER_SECRET, IDP_SECRET):
            answers.add((await server.ask(f"Bearer {mint_token(other, **claims)}")).text)
    assert len(answers) == 1
    assert not any(sentence in text for sentence in OF_OURS for text in answers)


async def test_token_in_another_place(server: Server) -> None:
    for sent in (None, "Basic YTpi", "Bearer", "{}", "Token {}", "Bearer Bearer {}", "Bearer {} x"):
        response = await server.ask(sent and sent.format(minter(server.audience)()))
        assert response.status_code == 401, sent
        assert response.headers["www-authenticate"].startswith("Bearer")


async def test_accepted_token(server: Server) -> None:
    mint = minter(server.audience)
    for token in (mint(), mint(aud=["https://another.example", server.audience])):
        assert (await server.ask(f"Bearer {token}")).status_code == 200


def test_no_secret_is_logged(stack: Stack) -> None:
    mint = minter(AUDIENCE)
    good, bad = mint(sub="alice-of-the-log"), mint(key=OTHER_SECRET)
    for token in (good, bad):
        httpx2.post(
            f"{stack.url}/chatkit", json=request("threads.list"), headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
        )  # fmt: skip
    for text in (stack.backends[0].log_text, stack.services.mcp.log_text):
        for secret in (good, bad, IDP_SECRET, MCP_TOKEN_SECRET):
            assert secret not in text


@pytest.mark.parametrize("service", [*SERVICES, "workspace"])
async def test_flood_of_invalid_tokens_writes_few_lines(service: str, stack: Stack) -> None:
    """Each is another one."""
    services = {"backend": stack.backends[0], "mcp_server": stack.services.mcp, "workspace": stack.services.workspace}
    process, before = services[service], len(services[service].log_text.splitlines())
    path = "/chatkit" if service == "backend" else "/mcp"
    async with http_client(process.url) as http:
        for number in range(200):
            token = mint_token(OTHER_SECRET, sub=f"user-{number}")
            headers = {"Authorization": f"Bearer {token}", **MCP_HEADERS}
            assert (await http.post(path, json=LIST_TASKS, headers=headers)).status_code == 401
    assert len(process.log_text.splitlines()) - before <= AT_ONCE + 5


PUBLIC = {
    *("/openapi.json", "/health", "/ready", "/metrics", "/calendar/{name}", "/", "/c/{chat_id}", "/widget"),
    *("/today", "/upcoming", "/all", "/done", "/deleted", "/t/{task_id}"),
    *("/assets/{hash}/{path}", "/manifest.json", "/service-worker.js", "/session/callback", "/session/provider"),
    "/links/take",  # with the code of a link: tests/api/test_links.py
    "/alerts/shown",  # with the proof that came with a notification: tests/api/test_alerts.py
    "/setup",  # with the code of the first account: tests/api/test_passwords.py
}


async def test_every_route_asks_for_a_token_first(stack: Stack) -> None:
    """Before it looks at the path's ids, the query or the body. That no route is left out is in test_routes.py."""
    async with http_client(stack.url) as http:
        paths = (await http.get("/openapi.json")).json()["paths"]
        routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
        routes = {one for one in routes if one[1] not in PUBLIC} - {("DELETE", "/session"), ("POST", "/session")}
        assert len(routes) > 40
        for method, path in sorted(routes):
            has_body = method in ("POST", "PUT", "PATCH")
            body = {"content": b"{", "headers": {"Content-Type": "application/json"}} if has_body else {}
            response = await http.request(method, path, **body)
            assert response.status_code == 401, f"{method} {path}: {response.status_code} {response.text}"
            assert response.headers["www-authenticate"].startswith("Basic" if path == "/calendar.ics" else "Bearer")
        for path in ("/openapi.json", "/health", "/metrics", "/"):
            assert (await http.get(path)).status_code == 200
    async with Runs(stack.url) as runs:
        assert (await runs.ready())["status"] == "ready"


def test_every_route_of_a_conversation_asks_for_the_owner_of_its_directory() -> None:
    """Routes that change a conversation, or read its files; others may delete one and cancel its run."""
    settings = BackendSettings.model_validate({"database_url": "postgresql://x/y", "llm_provider": "offline"})
    routes = iter_route_contexts(create_app(settings, resolve(settings)).routes)
    open_to_all = set[str]()
    for route in routes:
        path, methods = str(route.path_format), {*(route.methods or ())}
        if "{chat_id}" not in path or (methods <= {"GET", "HEAD"} and "/files" not in path):
            continue
        if not _depends_on(route.dependant, get_owner):
            open_to_all.add(path)
    assert open_to_all == {"/chats/{chat_id}", "/chats/{chat_id}/interactions/{interaction_id}/cancel"}


def _depends_on(dependant: Any, function: Any) -> bool:
    return dependant.call is function or any(_depends_on(one, function) for one in dependant.dependencies)


OPERATIONS: dict[str, dict[str, Any]] = {
    **{kind: {"thread_id": "thr_0", **params} for kind, params in UNKNOWN_THREAD.items()},
    **UNSUPPORTED,
    "threads.create": {"input": user_input("add milk")},
    "threads.list": {},
}


async def test_every_chatkit_operation_needs_a_token(stack: Stack) -> None:
    bad = {"Authorization": f"Bearer {minter(AUDIENCE)(key=OTHER_SECRET)}"}
    async with http_client(stack.url) as http:
        for kind, params in OPERATIONS.items():
            for headers in ({}, bad):
                response = await http.post("/chatkit", json=request(kind, **params), headers=headers)
                assert response.status_code == 401, kind


async def test_user_named_by_the_model_is_ignored(
    user: User, new_user: NewUser, model: ScriptedModel, stored: Stored
) -> None:
    other = new_user()
    await model.script(
        add_task(f"for {other.name}", user_id=other.name), calls(call("list_tasks", user_id=other.name)), says("Fine.")
    )
    assert (await user.chatkit.say("add it")).error is None
    assert stored.titles(user.name) == [f"for {other.name}"]
    assert stored.row_counts(other.name) == {}
    for sent in await model.finished_requests():
        assert "user_id" not in str(sent["body"]["tools"])


@pytest.mark.long
async def test_keys_of_an_identity_provider(services: Services) -> None:
    """Both services have them from common/tokens.py; tests/mcp/test_tokens.py has what can be wrong with them."""
    known, unknown = SigningKey("RS256", "known"), SigningKey("ES256", "unknown")
    with key_endpoint(known) as keys:
        settings = {"AUTH_JWT_SECRET": "", "AUTH_JWKS_URL": keys.url}
        async with local_backend(services, **settings) as backend, http_client(backend.url) as http:
            server = Server(http, AUDIENCE)
            statuses = [(await server.ask(f"Bearer {key.mint(aud=AUDIENCE)}")).status_code for key in (known, unknown)]
    assert statuses == [200, 401]
