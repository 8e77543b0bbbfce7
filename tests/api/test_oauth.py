"""OAuth for MCP clients: what the authorization server accepts, gives and ends, over HTTP alone."""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import jwt
import pytest

from tests.serving import http_client
from tests.support.accounts import AccountStack, new_name, sign_in
from tests.support.stack import Services
from tests.support.stored import Stored
from tests.tokens import MCP_TOKEN_SECRET, OWN_ISSUER, mint_token

CALLBACK = "https://client.example/callback?tenant=1"
LOCAL = "http://127.0.0.1:3334/callback"
VERIFIER = secrets.token_urlsafe(48)
LIST_TASKS = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_tasks", "arguments": {}}}
MCP_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
FOREIGN = {"Origin": "https://evil.example"}


def challenge(verifier: str = VERIFIER) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


class Flow:
    """One client, and the browser of one user; `change` overrides parameters, and None leaves one out."""

    def __init__(self, stack: AccountStack, stored: Stored, user: str, cookie: str, client_id: str = "") -> None:
        self.stack, self.stored, self.user, self.cookie, self.client_id = stack, stored, user, cookie, client_id
        self.http = http_client(stack.url)
        self.page = {"Origin": stack.url, "Cookie": cookie}

    async def register(self, **change: Any) -> httpx2.Response:
        metadata = {"client_name": "Test client", "redirect_uris": [CALLBACK, LOCAL]} | change
        return await self.http.post("/register", json=metadata)

    def query(self, **change: str | None) -> str:
        parameters: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge(),
            "code_challenge_method": "S256",
            "state": "a state & more",
            "scope": "tasks:read tasks",
            "resource": self.stack.resource,
        }
        return urlencode({name: value for name, value in (parameters | change).items() if value is not None})

    async def ask(self, **change: str | None) -> httpx2.Response:
        return await self.http.get(f"/authorization?{self.query(**change)}", headers=self.page)

    async def decide(self, allow: bool = True, headers: Any = None, /, **change: str | None) -> httpx2.Response:
        address = f"/authorization?{self.query(**change)}"
        return await self.http.post(address, json={"allow": allow}, headers=headers or self.page)

    async def answer(self, allow: bool = True, /, **change: str | None) -> dict[str, str]:
        """Returns the parameters with which the browser goes back to the client."""
        response = await self.decide(allow, None, **change)
        assert response.status_code == 200, response.text
        location = response.json()["location"]
        assert location.startswith(change.get("redirect_uri") or CALLBACK)
        return {name: value for name, [value] in parse_qs(urlsplit(location).query).items()}

    async def exchange(self, code: str, **change: str | None) -> httpx2.Response:
        form: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "code_verifier": VERIFIER,
            "resource": self.stack.resource,
        }
        return await self.post_form("/token", form | change)

    async def tokens(self, **change: str | None) -> dict[str, Any]:
        response = await self.exchange((await self.answer(True, **change))["code"])
        assert response.status_code == 200, response.text
        return response.json()

    async def refresh(self, token: str, **change: str | None) -> httpx2.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        return await self.post_form("/token", form | change)

    async def revoke(self, token: str | None, **change: str | None) -> httpx2.Response:
        return await self.post_form("/revoke", {"token": token, "client_id": self.client_id} | change)

    async def post_form(self, path: str, form: dict[str, str | None]) -> httpx2.Response:
        return await self.http.post(path, data={name: value for name, value in form.items() if value is not None})

    async def clients(self) -> list[dict[str, Any]]:
        return (await self.http.get("/clients", headers=self.page)).json()["clients"]

    async def use(self, access_token: str) -> int:
        """Returns the status of a tool call."""
        async with http_client(self.stack.mcp.url) as mcp:
            headers = MCP_HEADERS | {"Authorization": f"Bearer {access_token}"}
            return (await mcp.post("/mcp", json=LIST_TASKS, headers=headers)).status_code


@pytest.fixture
def stored(services: Services) -> Iterator[Stored]:
    with Stored(services.database_url) as stored:
        yield stored


@pytest.fixture
async def new_flow(accounts: AccountStack, stored: Stored) -> AsyncIterator[Callable[[], Flow]]:
    flows: list[Flow] = []

    def make() -> Flow:
        user = new_name()
        stored.add_named_account(user)
        flows.append(Flow(accounts, stored, user, sign_in(stored, user)))
        return flows[-1]

    yield make
    for flow in flows:
        await flow.http.aclose()


@pytest.fixture
async def flow(new_flow: Callable[[], Flow]) -> Flow:
    flow = new_flow()
    flow.client_id = (await flow.register()).json()["client_id"]
    return flow


async def test_a_client_is_allowed_used_refreshed_and_ended(flow: Flow) -> None:
    asked = (await flow.ask()).json()
    assert asked == {
        "name": "Test client",
        "host": None,
        "address": "client.example",
        "scopes": ["tasks:read", "tasks"],
        "problem": None,
    }
    answer = await flow.answer()
    assert answer.keys() == {"tenant", "code", "state", "iss"}
    assert (answer["state"], answer["iss"]) == ("a state & more", flow.stack.url)
    response = await flow.exchange(answer["code"])
    assert response.headers["cache-control"] == "no-store"
    tokens = response.json()
    assert (tokens["token_type"], tokens["expires_in"], tokens["scope"]) == ("Bearer", 600, "tasks:read tasks")
    claims = jwt.decode(tokens["access_token"], MCP_TOKEN_SECRET, ["HS256"], audience=flow.stack.resource)
    assert (claims["sub"], claims["aud"], claims["iss"]) == (flow.user, flow.stack.resource, OWN_ISSUER)
    assert claims["exp"] - time.time() <= 600
    assert await flow.use(tokens["access_token"]) == 200
    [client] = await flow.clients()
    assert (client["id"], client["name"], client["address"]) == (claims["jti"], "Test client", "client.example")
    refreshed = (await flow.refresh(tokens["refresh_token"], scope="tasks:read")).json()
    assert refreshed["scope"] == "tasks:read"
    assert refreshed["refresh_token"] != tokens["refresh_token"]
    assert await flow.use(refreshed["access_token"]) == 200
    ended = await flow.http.delete(f"/clients/{client['id']}", headers=flow.page)
    assert ended.status_code == 204
    assert await flow.clients() == []
    again = await flow.refresh(refreshed["refresh_token"])
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    events = [(event["kind"], event["details"].get("by")) for event in flow.stored.rows_of(flow.user, "account_events")]
    assert events == [("client_allowed", None), ("client_ended", "user")]
    assert "Test client" in json.dumps(flow.stored.rows_of(flow.user, "account_events"))


async def test_requests_of_home_assistant(flow: Flow) -> None:
    """As its integration `mcp` sends them (2026): without the resource, and with parameters of other providers."""
    async with http_client(flow.stack.mcp.url) as mcp:
        challenge_header = (await mcp.post("/mcp", json=LIST_TASKS, headers=MCP_HEADERS)).headers["www-authenticate"]
        address = challenge_header.partition('resource_metadata="')[2].partition('"')[0]
        resource = (await mcp.get(address)).json()
    assert resource["resource"] == flow.stack.resource
    server = (await flow.http.get(f"{resource['authorization_servers'][0]}/.well-known/openid-configuration")).json()
    assert "none" in server["token_endpoint_auth_methods_supported"]
    scope, redirect_uri = " ".join(resource["scopes_supported"]), "https://my.home-assistant.io/redirect/oauth"
    client = {
        "redirect_uris": [redirect_uri],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "client_name": "Home Assistant",
        "scope": scope,
        "application_type": "web",
    }
    registered = await flow.http.post(server["registration_endpoint"], json=client)
    assert registered.status_code == 201
    assert registered.json().items() >= client.items()
    flow.client_id = registered.json()["client_id"]
    change = {
        "redirect_uri": redirect_uri,
        "scope": scope,
        "access_type": "offline",
        "prompt": "consent",
        "resource": None,
    }
    code = (await flow.answer(True, **change))["code"]
    tokens = (await flow.exchange(code, redirect_uri=redirect_uri, resource=None)).json()
    assert tokens.keys() >= {"access_token", "expires_in", "refresh_token", "token_type"}
    assert await flow.use(tokens["access_token"]) == 200
    refreshed = (await flow.refresh(tokens["refresh_token"])).json()
    assert await flow.use(refreshed["access_token"]) == 200


async def test_metadata(flow: Flow) -> None:
    documents = []
    for name in ("oauth-authorization-server", "openid-configuration"):
        response = await flow.http.get(f"/.well-known/{name}", headers=FOREIGN)
        assert response.headers["access-control-allow-origin"] == "*"
        documents.append(response.json())
    assert documents[0] == documents[1]
    assert documents[0]["issuer"] == flow.stack.url
    assert documents[0]["code_challenge_methods_supported"] == ["S256"]
    async with http_client(flow.stack.mcp.url) as mcp:
        challenge = (await mcp.post("/mcp", json=LIST_TASKS, headers=MCP_HEADERS)).headers["www-authenticate"]
        address = challenge.partition('resource_metadata="')[2].partition('"')[0]
        resource = (await mcp.get(address)).json()
    assert resource["resource"] == flow.stack.resource
    assert resource["authorization_servers"] == [flow.stack.url]
    assert resource["scopes_supported"] == ["tasks:read", "tasks"]


REDIRECT_URIS = {
    True: (
        *("https://a.example", "https://a.example:8443/cb?x=1", "http://localhost:1234/cb", "http://[::1]:9/cb"),
        *("http://127.0.0.1/cb", "cursor://anysphere.cursor/mcp", "vscode://x.y/z", "com.example.app:/cb"),
    ),
    False: (
        *(
            "http://a.example/cb",
            "https://a.example/cb#x",
            "https://user@a.example/cb",
            "http://localhost@evil.example",
        ),
        *("javascript:alert(1)", "javascript://a.example/%0aalert(1)", "data:text/html,x", "vbscript:x", "file:///x"),
        *("JavaScript:alert(1)", "blob:https://a.example/x", "https://a.example/?code=1", "https://a.example/?iss=x"),
        *("http://localhost.evil.example/", "http://127.0.0.1.evil.example/", "not an address", "//a.example/cb"),
        f"https://a.example/{'x' * 400}",
    ),
}


@pytest.mark.parametrize("allowed", REDIRECT_URIS)
async def test_redirect_addresses_that_can_be_registered(flow: Flow, allowed: bool) -> None:
    for uri in REDIRECT_URIS[allowed]:
        response = await flow.register(redirect_uris=[uri])
        assert response.status_code == (201 if allowed else 400), (uri, response.text)
        if allowed:
            asked = await flow.ask(client_id=response.json()["client_id"], redirect_uri=uri)
            assert (asked.status_code, asked.json().get("problem")) == (200, None), (uri, asked.text)


async def test_invalid_registrations(flow: Flow) -> None:
    for change in (
        {"redirect_uris": []},
        {"redirect_uris": [f"https://a.example/{n}" for n in range(6)]},
        {"redirect_uris": "https://a.example"},
        {"grant_types": ["client_credentials"]},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"client_name": 7},
    ):
        assert (await flow.register(**change)).status_code == 400, change
    assert (await flow.register(client_name="x" * 20_000)).status_code == 413
    many = await flow.register(redirect_uris=[1] * 3_000)
    assert (many.status_code, many.json()["error"]) == (400, "invalid_client_metadata")
    assert len(many.text) < 500, "not an error for each"
    assert (
        await flow.http.post("/register", content=b"[", headers={"content-type": "application/json"})
    ).status_code == 400


async def test_a_registered_client_has_no_secret_and_a_plain_name(flow: Flow) -> None:
    """It is told so in place of what it asked for, which RFC 7591, section 3.2.1, allows."""
    response = await flow.register(
        client_name="\u202eA\nB\x00 " + "x" * 300, scope="openid", token_endpoint_auth_method=None
    )
    assert response.status_code == 201, response.text
    client = response.json()
    assert (client["token_endpoint_auth_method"], client["scope"]) == ("none", "tasks:read tasks")
    assert "client_secret" not in client
    assert response.headers["cache-control"] == "no-store"
    name = (await flow.ask(client_id=client["client_id"])).json()["name"]
    assert name.startswith("A B x")
    assert len(name) == 80


async def test_answers_are_only_sent_to_the_clients_own_addresses(flow: Flow) -> None:
    """Without one, nothing is redirected: the page shows why."""
    for uri in (
        *("https://client.example/callback", "https://client.example:444/callback?tenant=1", CALLBACK + "&x=1"),
        *("https://client.example/Callback?tenant=1", "https://CLIENT.example/callback?tenant=1", ""),
        *("https://user@client.example/callback?tenant=1", "http://client.example/callback?tenant=1", CALLBACK + "#x"),
        *("https://client.example/callback/../callback?tenant=1", "http://127.0.0.1:3334/other", "javascript:alert(1)"),
        *("http://localhost:3334/callback", "https://127.0.0.1:3334/callback", "http://x@127.0.0.1:3334/callback"),
    ):
        for response in (await flow.ask(redirect_uri=uri), await flow.decide(redirect_uri=uri)):
            assert response.status_code == 400, uri
            assert "location" not in response.text
    assert (await flow.ask(redirect_uri=None)).status_code == 400
    assert (await flow.ask(redirect_uri="http://127.0.0.1:40123/callback")).status_code == 200, "whatever port is free"


async def test_unknown_clients(flow: Flow) -> None:
    forged = jwt.encode({"aud": "todo-assistant/client", "name": "x", "uris": [CALLBACK]}, MCP_TOKEN_SECRET)
    for client_id in (
        *("", "x", "a.b.c", "\0", "é", "x" * 5_000, forged, flow.client_id[:-3] + "abc", flow.cookie.partition("=")[2]),
        *(
            "https://127.0.0.1:1/client.json",
            "https://localhost/client.json",
            "https://169.254.169.254/latest/meta-data",
        ),
        *("http://client.example/client.json", "https://[::1]/c", "https://10.0.0.1/c", "https://client.example"),
        *("https://user@client.example/c", "https://client.example/c#x", "https://client.example:x/c"),
    ):
        for response in (await flow.ask(client_id=client_id), await flow.decide(client_id=client_id)):
            assert response.status_code == 400, (client_id, response.text)
        if not client_id.startswith("https://"):
            response = await flow.exchange("x", client_id=client_id)
            assert (response.status_code, response.json()["error"]) == (401, "invalid_client"), client_id


async def test_no_private_address_is_asked_for_a_metadata_document(flow: Flow) -> None:
    connections: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: connections.append(writer), "localhost") as server:
        port = server.sockets[0].getsockname()[1]
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "[::ffff:127.0.0.1]"):
            assert (await flow.ask(client_id=f"https://{host}:{port}/client.json")).status_code == 400
    assert connections == []


@pytest.mark.parametrize(
    ("error", "change"),
    [
        ("invalid_request", {"code_challenge": None}),
        ("invalid_request", {"code_challenge": "short"}),
        ("invalid_request", {"code_challenge": "x" * 44}),
        ("invalid_request", {"code_challenge_method": "plain"}),
        ("invalid_request", {"code_challenge_method": None}),
        ("unsupported_response_type", {"response_type": "token"}),
        ("unsupported_response_type", {"response_type": None}),
        ("invalid_scope", {"scope": "tasks chat"}),
        ("invalid_scope", {"scope": "all"}),
        ("invalid_target", {"resource": "https://other.example/mcp"}),
        ("invalid_target", {"resource": ""}),
    ],
)
async def test_requests_that_cannot_be_allowed(flow: Flow, error: str, change: dict[str, str | None]) -> None:
    assert (await flow.ask(**change)).json()["problem"].endswith(".")
    for allow in (True, False):
        answer = await flow.answer(allow, **change)
        assert (answer["error"], answer["state"], answer["iss"]) == (error, "a state & more", flow.stack.url)
        assert "code" not in answer


async def test_denied(flow: Flow) -> None:
    assert (await flow.answer(False))["error"] == "access_denied"
    assert await flow.clients() == []


async def test_scopes(flow: Flow) -> None:
    for asked, given in ((None, "tasks:read tasks"), ("tasks:read", "tasks:read"), ("tasks", "tasks:read tasks")):
        tokens = await flow.tokens(scope=asked)
        assert tokens["scope"] == given
        claims = jwt.decode(tokens["access_token"], MCP_TOKEN_SECRET, ["HS256"], audience=flow.stack.resource)
        assert claims["scope"] == given
    tokens = await flow.tokens(scope="tasks:read")
    for beyond in ("tasks", "tasks:read tasks", "chat", "all"):
        assert (await flow.refresh(tokens["refresh_token"], scope=beyond)).json()["error"] == "invalid_scope"


async def test_a_parameter_twice(flow: Flow) -> None:
    address = f"/authorization?{flow.query()}&redirect_uri=https://evil.example"
    assert (await flow.http.get(address, headers=flow.page)).status_code == 400


async def test_only_the_page_can_allow(flow: Flow, new_flow: Callable[[], Flow]) -> None:
    """Not another website, not a stranger, and no token, whosever it is."""
    cookie = {"Cookie": flow.cookie}
    own = {"sub": flow.user, "iss": OWN_ISSUER}
    access = (await flow.tokens())["access_token"]
    session = flow.cookie.partition("=")[2]
    for headers, statuses in (
        (cookie | FOREIGN, {403}),
        (cookie, {403}),
        (cookie | {"Sec-Fetch-Site": "cross-site", "Origin": flow.stack.url}, {403}),
        ({"Origin": flow.stack.url}, {401}),
        ({"Authorization": f"Bearer {access}"}, {401, 403}),
        ({"Authorization": f"Bearer {session}"}, {401}),
        (
            flow.page | {"Authorization": f"Bearer {mint_token(MCP_TOKEN_SECRET, **own, aud='todo-assistant/api')}"},
            {401, 403},
        ),
    ):
        response = await flow.decide(True, headers)
        assert response.status_code in statuses, (headers, response.text)
    form = await flow.http.post(f"/authorization?{flow.query()}", data={"allow": "true"}, headers=flow.page)
    assert form.status_code == 415
    assert len(await flow.clients()) == 1
    other = new_flow()
    [client] = await flow.clients()
    assert (await other.http.delete(f"/clients/{client['id']}", headers=other.page)).status_code == 404
    assert (await other.clients(), len(await flow.clients())) == ([], 1)


async def test_the_page_that_asks_cannot_be_framed(flow: Flow) -> None:
    """It is the same for everybody, whatever the request: it asks by itself, with the user's cookie."""
    pages = set[str]()
    for query in (flow.query(), "", flow.query(redirect_uri="https://evil.example", scope="<script>")):
        response = await flow.http.get(f"/authorize?{query}")
        assert response.status_code == 200
        assert response.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
        pages.add(response.text)
    assert len(pages) == 1


async def test_codes(flow: Flow, new_flow: Callable[[], Flow]) -> None:
    """A code is for one try: of its client, with its address and its verifier."""
    other = new_flow()
    other.client_id = (await other.register()).json()["client_id"]
    wrong: tuple[dict[str, str | None], ...] = (
        {"code_verifier": "x" * 43},
        {"code_verifier": challenge()},
        {"redirect_uri": LOCAL},
        {"redirect_uri": "https://client.example/callback"},
        {"redirect_uri": None},
        {"client_id": other.client_id},
    )
    for change in wrong:
        code = (await flow.answer())["code"]
        assert (await flow.exchange(code, **change)).status_code == 400, change
        assert (await flow.exchange(code)).json()["error"] == "invalid_grant", change
    for change in ({"code_verifier": None}, {"grant_type": "password"}, {"resource": "https://other.example/mcp"}):
        assert (await flow.exchange((await flow.answer())["code"], **change)).status_code == 400, change
    code = (await flow.answer())["code"]
    assert (await flow.exchange(code)).status_code == 200
    assert (await flow.exchange(code)).json()["error"] == "invalid_grant", "a second time"
    code = (await flow.answer())["code"]
    flow.stored.expire_codes(flow.user)
    assert (await flow.exchange(code)).json()["error"] == "invalid_grant", "expired"
    assert (await flow.exchange("x")).json()["error"] == "invalid_grant"
    assert len(await flow.clients()) == 1


async def test_refresh_tokens_are_used_once(flow: Flow) -> None:
    first = (await flow.tokens())["refresh_token"]
    second = (await flow.refresh(first)).json()["refresh_token"]
    again = await flow.refresh(first)
    assert again.status_code == 200, "the answer may have been lost"
    assert (await flow.refresh(again.json()["refresh_token"])).status_code == 200
    assert (await flow.refresh(first)).status_code == 400, "it is older than the last one"
    assert await flow.clients() == [], "somebody has stolen a token"
    assert (await flow.refresh(second)).status_code == 400

    stale = (await flow.tokens())["refresh_token"]
    fresh = (await flow.refresh(stale)).json()
    flow.stored.age_refresh(flow.user, 60)
    assert (await flow.refresh(stale)).json()["error"] == "invalid_grant", "too late for a lost answer"
    assert (await flow.refresh(fresh["refresh_token"])).json()["error"] == "invalid_grant"
    events = sorted(flow.stored.rows_of(flow.user, "account_events"), key=lambda event: event["id"])
    kinds = [event["details"].get("by") for event in events]
    assert kinds == [None, "reuse", None, "reuse"]


async def test_refresh_tokens_are_bound_to_their_client(flow: Flow, new_flow: Callable[[], Flow]) -> None:
    other = new_flow()
    other.client_id = (await other.register()).json()["client_id"]
    tokens = await flow.tokens()
    refresh, access = tokens["refresh_token"], tokens["access_token"]
    for token, client_id in ((refresh, other.client_id), (access, flow.client_id), ("x", flow.client_id)):
        assert (await flow.refresh(token, client_id=client_id)).json()["error"] == "invalid_grant"
    for token, client_id in ((refresh, other.client_id), (access, other.client_id), ("x", flow.client_id)):
        assert (await flow.revoke(token, client_id=client_id)).status_code == 200
    assert (await flow.refresh(refresh, resource="https://other.example")).json()["error"] == "invalid_target"
    assert await flow.use(refresh) == 401, "it is no access token"
    assert len(await flow.clients()) == 1


@pytest.mark.parametrize("kind", ["refresh_token", "access_token"])
async def test_revocation(flow: Flow, kind: str) -> None:
    tokens = await flow.tokens()
    assert (await flow.revoke(tokens[kind])).status_code == 200
    assert await flow.clients() == []
    assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await flow.revoke(tokens[kind])).status_code == 200, "again changes nothing"
    assert (await flow.revoke(None)).status_code == 400
    assert (await flow.revoke(tokens[kind], client_id=None)).status_code == 401


async def test_disabled_account(flow: Flow) -> None:
    code, tokens = (await flow.answer())["code"], await flow.tokens()
    flow.stored.disable_account(flow.user)
    assert (await flow.exchange(code)).json()["error"] == "invalid_grant"
    assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_code_of_a_session_that_was_ended(flow: Flow) -> None:
    code = (await flow.answer())["code"]
    assert (await flow.http.delete("/session", headers=flow.page)).status_code == 204
    assert (await flow.exchange(code)).json()["error"] == "invalid_grant"


async def test_access_tokens_open_nothing_at_the_backend(flow: Flow) -> None:
    tokens = await flow.tokens()
    for token in (tokens["access_token"], tokens["refresh_token"], flow.client_id):
        response = await flow.http.get("/tasks", headers={"Authorization": f"Bearer {token}"})
        assert response.status_code == 401
        cookie = {"Origin": flow.stack.url, "Cookie": f"todo_session={token}"}
        assert (await flow.http.get("/tasks", headers=cookie)).status_code == 401


async def test_pages_of_other_websites_can_be_clients(flow: Flow) -> None:
    """As MCP Inspector is. No cookie counts where they may send requests."""
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type", **FOREIGN}
    for path in ("/register", "/token", "/revoke"):
        response = await flow.http.options(path, headers=preflight)
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (200, "*")
        assert "access-control-allow-credentials" not in response.headers
    assert (await flow.http.options("/authorization", headers=preflight)).status_code == 403
    refused = await flow.http.post("/token", data={"grant_type": "x"}, headers={"Host": "evil.example"})
    assert refused.status_code == 421


async def test_forms_of_any_kind(flow: Flow) -> None:
    for body in (
        b"",
        b"\0",
        b"client_id",
        b"%ff=%00&client_id=%ff",
        b"&" * 8_000,
        b"a&" * 4_000,
        b"client_id=a&client_id=b",
    ):
        for path in ("/token", "/revoke"):
            headers = {"content-type": "application/x-www-form-urlencoded"}
            response = await flow.http.post(path, content=body, headers=headers)
            assert response.status_code in (400, 401), (path, body, response.text)
            assert response.json()["error"]
    assert (await flow.http.post("/token", data={"code": "x" * 10_000})).status_code == 413


async def test_no_secret_is_logged(flow: Flow) -> None:
    answer = await flow.answer()
    tokens = (await flow.exchange(answer["code"])).json()
    for secret in (answer["code"], tokens["access_token"], tokens["refresh_token"], VERIFIER):
        assert secret not in flow.stack.backend.log_text
        assert secret not in flow.stack.mcp.log_text
        for table in ("one_time_codes", "oauth_grants", "sessions", "account_events"):
            assert secret not in json.dumps(flow.stored.rows_of(flow.user, table))
