"""Every route and tool, taken from the running applications: who may use it, with which token."""

import itertools
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts

from backend import app as backend_app
from backend.accounts.accounts import disable_account
from backend.accounts.links import make_link
from backend.api.dependencies import UserRoute
from backend.app import create_app
from backend.model.providers import resolve
from backend.settings import BackendSettings
from common import scopes
from common.database import Database
from mcp_server.server import create_app as create_tool_server
from mcp_server.settings import McpSettings
from tests.api.test_oauth import Flow
from tests.api.test_routes import BODIES, with_unknown_ids
from tests.mcp.servers import ARGUMENTS
from tests.mcp.wire import LEGACY, MODERN, call, request
from tests.serving import http_client, serve
from tests.support.accounts import AccountStack, new_name
from tests.support.accounts import sign_in as sign_in_member
from tests.support.backends import LocalBackend, local_backend
from tests.support.fixtures import NewUser
from tests.support.personal_tokens import make_token, sign_in
from tests.support.stack import SIGN_IN, Services, Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.tokens import IDP_SECRET, ISSUER, MCP_TOKEN_SECRET, OTHER_SECRET, OWN_ISSUER, mint_token
from tests.waiting import until

_NO_TOKENS = {"AUTH_JWT_SECRET": "", "AUTH_ISSUER": "", "AUTH_AUDIENCE": ""}
MODES: Mapping[str, Mapping[str, str]] = {
    "password": {"AUTH_MODE": "password", **_NO_TOKENS},
    "oidc": {
        "AUTH_MODE": "oidc",
        "OIDC_ISSUER": "https://provider.example",
        "OIDC_CLIENT_ID": "todo",
        "OIDC_ALLOWED": "*",
        **_NO_TOKENS,
    },
    "proxy": {"AUTH_MODE": "proxy", "TRUSTED_PROXIES": "192.0.2.1", **_NO_TOKENS},
    "jwt": {},
}
"""Each mode that signs in, with the settings of both services; an empty one is not set."""
OAUTH = {"authorize", "token", "revoke", "register", "oauth-authorization-server", "openid-configuration"}
"""The last parts of the paths that exist only where users have accounts."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
GRANTS = (("chat",), ("tasks:read",), ("tasks",))
"""The scopes of the tokens of which each tries everything."""
GRANTS_OF_CLIENTS = (("tasks:read",), ("tasks:read", "tasks"))
SESSION = "todo-assistant/session"
KNOWN = {
    "/batch": {"id": "run"},
    "/batches": {},
    "/changes": {},
    "/counts": {},
    "/done": {},
    "/list": {"view": "all"},
    "/tasks": {"ids": "1"},
}
"""The routes of the tool server, and what finds a user's first task."""


def list_backend_routes(app: FastAPI) -> Iterator[tuple[str, str, bool]]:
    """Yields the method and path of each route, and whether it authenticates its user."""
    for route in iter_route_contexts(app.routes):
        for method in {*(route.methods or ())} - {"HEAD", "OPTIONS"}:
            yield method, str(route.path_format), isinstance(route.original_route, UserRoute)


def list_tool_server_paths(app: Any) -> list[str]:
    while not hasattr(app, "routes"):
        app = app._app if hasattr(app, "_app") else app.app
    return [route.path for route in app.routes]


def create_backend(services: Services, mode: str) -> FastAPI:
    variables = {**services.backend_environment(), **MODES[mode]}
    settings = BackendSettings.model_validate({name.lower(): value for name, value in variables.items() if value})
    return create_app(settings, resolve(settings))


def create_mcp_server(services: Services, mode: str) -> Any:
    variables = {**SIGN_IN, **MODES[mode], "DATABASE_URL": services.database_url, "MCP_URL": f"{services.mcp.url}/mcp"}
    return create_tool_server(
        McpSettings.model_validate({name.lower(): value for name, value in variables.items() if value})
    )


@pytest.mark.parametrize("mode", MODES)
def test_every_route_and_tool_has_a_scope(services: Services, mode: str) -> None:
    routes = [*list_backend_routes(create_backend(services, mode))]
    found = {f"{method} {path}" for method, path, _ in routes}
    missing = {*scopes.BACKEND} - found
    assert found <= {*scopes.BACKEND}
    assert {route.split("/")[-1] for route in missing} == (set() if mode != "jwt" else OAUTH)
    public = {f"{method} {path}" for method, path, authenticates in routes if not authenticates}
    assert public == {route for route in found if scopes.BACKEND[route] == scopes.PUBLIC}
    paths = list_tool_server_paths(create_mcp_server(services, mode))
    found = [scopes.METADATA_PATH if path.startswith(scopes.METADATA_PATH) else path for path in paths]
    assert {*found, scopes.METADATA_PATH} == {*scopes.TOOL_SERVER}
    assert {*ARGUMENTS} == {*scopes.TOOLS}, "which are those that tests/mcp/test_surface.py finds"


@pytest.mark.parametrize("mode", MODES)
async def test_backend_is_closed(services: Services, mode: str) -> None:
    async with serve(create_backend(services, mode)) as url, http_client(url) as http:
        for method, path, _ in list_backend_routes(create_backend(services, mode)):
            if scopes.BACKEND[f"{method} {path}"] == scopes.PUBLIC:
                continue
            for headers in (
                {},
                {"Authorization": "Bearer x"},
                {"Authorization": "Basic eDp4"},
                {"Cookie": "todo_session=x"},
            ):
                response = await http.request(method, with_unknown_ids(path), headers={"Origin": url} | headers)
                assert response.status_code == 401, (method, path, response.text)
        for path in ("/session", "/tokens"):
            assert (await http.post(path)).status_code in (400, 401)


@pytest.mark.parametrize("mode", MODES)
async def test_tool_server_is_closed(services: Services, mode: str) -> None:
    """Also at paths that do not exist, and with every method."""
    paths = list_tool_server_paths(create_mcp_server(services, mode))
    async with serve(create_mcp_server(services, mode)) as url, http_client(url) as http:
        for path in [*paths, "/", "/nothing", "/.well-known/oauth-authorization-server"]:
            if scopes.find_tool_server_scope(path) == scopes.PUBLIC:
                assert (await http.get(path)).status_code == 200, path
                continue
            for method, token in itertools.product(METHODS, (None, "x")):
                headers = {"Authorization": f"Bearer {token}"} if token else {}
                response = await http.request(method, path, headers=headers)
                assert response.status_code == 401, (method, path, response.text)
                assert response.headers["www-authenticate"].startswith("Bearer")
        for version, tool in itertools.product((MODERN, LEGACY), ARGUMENTS):
            sent = call(tool, ARGUMENTS[tool], version=version)
            assert (await http.post("/mcp", content=sent.content, headers=sent.headers.raw[1:])).status_code == 401


@dataclass(frozen=True)
class Walk:
    """Sends a token, or the page's cookie, to every route of the backend and the tool server, and to every tool.

    A cookie is sent to the tool server as a token, too.
    """

    url: str
    mcp_url: str
    token: str
    is_cookie: bool = False

    async def backend(self) -> dict[str, httpx2.Response]:
        """Returns the responses by route; no request would change anything of its user, but end other sessions."""
        headers = {"Authorization": f"Bearer {self.token}"}
        if self.is_cookie:
            headers = {"Cookie": f"todo_session={self.token}", "Origin": self.url}
        async with http_client(self.url, headers=headers) as http:
            return {
                route: await self._send(http, *route.split(" "))
                for route, scope in scopes.BACKEND.items()
                if scope != scopes.PUBLIC
            }

    async def _send(self, http: httpx2.AsyncClient, method: str, path: str) -> httpx2.Response:
        body: dict[str, Any] = {"json": {"?": 1}} if method in ("POST", "PATCH") else {}
        return await http.request(method, with_unknown_ids(path), **body)

    async def tool_server(self) -> dict[str, httpx2.Response]:
        cookie = {"Cookie": f"todo_session={self.token}"} if self.is_cookie else {}
        async with http_client(self.mcp_url, headers=cookie) as http:
            headers = {"Authorization": f"Bearer {self.token}"}
            responses = {
                path: await http.get(path, headers=headers)
                for path, scope in scopes.TOOL_SERVER.items()
                if scope == scopes.READ
            }
            calls = {tool: call(tool, {"?": 1}, token=self.token) for tool in ARGUMENTS}
            for name, sent in {**calls, "tools/list": request("tools/list", token=self.token)}.items():
                responses[name] = await http.post("/mcp", content=sent.content, headers=sent.headers.raw[1:])
            return responses

    async def check_refused(self, why: str) -> None:
        """Nothing is open. The tool server looks at the scope of a token before it looks whether it was ended."""
        for route, response in (await self.backend()).items():
            assert response.status_code == 401, (why, route, response.text)
        for name, response in (await self.tool_server()).items():
            lacks_scope = response.status_code == 403 and "lacks the scope" in response.text
            assert response.status_code == 401 or lacks_scope, (why, name, response.text)

    async def check_tools(self, granted: Sequence[str]) -> None:
        """All tools are listed, and those of the scopes can be called."""
        responses = await self.tool_server()
        listed = responses.pop("tools/list").json()["result"]["tools"]
        assert {tool["name"] for tool in listed} == {*ARGUMENTS}, "for every token"
        for name, response in responses.items():
            needed = scopes.TOOLS.get(name) or scopes.TOOL_SERVER[name]
            allowed = needed in granted or (needed == scopes.READ and scopes.TASKS in granted)
            assert response.status_code == (403 if not allowed and name not in scopes.TOOLS else response.status_code)
            assert response.status_code != 401
            assert ("lacks the scope" in response.text) is not allowed, (granted, name, response.text)


def walk(user: User, token: str) -> Walk:
    return Walk(user.url, user.stack.services.mcp.url, token)


async def test_scopes_of_tokens(user: User) -> None:
    for granted in GRANTS:
        walking = walk(user, (await make_token(user, granted))["token"])
        for route, response in (await walking.backend()).items():
            needed = scopes.BACKEND[route]
            allowed = needed in granted or (needed == scopes.READ and scopes.TASKS in granted)
            assert (response.status_code not in (401, 403)) is allowed, (granted, route, response.text)
            if not allowed:
                assert response.status_code == 403
                named = f"lacks the scope {needed}." if needed != scopes.ALL else "No token can do this."
                assert named in response.json()["error"]
        await walking.check_tools(granted)


def mint_own(user: User, **claims: Any) -> str:
    audience = ["todo-assistant/api", f"{user.stack.services.mcp.url}/mcp"]
    token = {"sub": user.name, "iss": OWN_ISSUER, "aud": audience, "jti": "x" * 22, "scope": "chat tasks all"} | claims
    return mint_token(token.pop("key", MCP_TOKEN_SECRET), **token)


def list_dead_tokens(user: User, ended: str) -> dict[str, str]:
    session = {"aud": "todo-assistant/session", "scope": "all"}
    return {
        "ended": ended,
        "expired": mint_own(user, exp=int(time.time()) - 60),
        "for another audience": mint_own(user, aud=["https://another.example"]),
        "a cookie": mint_own(user, **session),
        "of version 0.2": mint_own(user, without="jti"),
        "another secret": mint_own(user, key=OTHER_SECRET),
        "the provider's secret": mint_own(user, key=IDP_SECRET),
        "our secret, the provider's name": mint_own(user, iss=ISSUER),
        "alg none": mint_own(user, key="", algorithm="none"),
        "an odd session": mint_own(user, jti="a b"),
        "a number as session": mint_own(user, jti=7),
    }


async def test_dead_and_forged_tokens(user: User, stored: Stored) -> None:
    made = await make_token(user)
    async with http_client(user.url, headers={"Origin": user.url}) as http:
        await sign_in(http, user)
        assert (await http.delete(f"/tokens/{made['id']}")).status_code == 204
    await until(partial(is_ended, walk(user, made["token"])))
    before = stored.row_counts(user.name)
    for name, token in list_dead_tokens(user, made["token"]).items():
        await walk(user, token).check_refused(name)
    assert stored.row_counts(user.name) == before


async def is_ended(walking: Walk) -> bool:
    """Whether both services know it."""
    async with http_client(walking.url, headers={"Authorization": f"Bearer {walking.token}"}) as http:
        known = (await http.get("/tasks/counts")).status_code == 401
    return known and (await walking.tool_server())["/counts"].status_code == 401


@dataclass(frozen=True)
class Member:
    """A user with an account, and each kind of what signs in: cookies of the page and of a device, and tokens."""

    flow: Flow
    page: str
    device: str
    tokens: Mapping[tuple[str, ...], str]
    clients: Mapping[tuple[str, ...], str]
    """The access tokens of an OAuth client, like `tokens` by their scopes."""

    def walk(self, value: str) -> Walk:
        stack = self.flow.stack
        return Walk(stack.url, stack.mcp.url, value, is_cookie=value in (self.page, self.device))

    @property
    def all(self) -> dict[str, str]:
        return {
            "page": self.page,
            "device": self.device,
            **{f"token {granted}": token for granted, token in self.tokens.items()},
            **{f"client {granted}": token for granted, token in self.clients.items()},
        }


async def make_member(accounts: AccountStack, stored: Stored) -> Member:
    name = new_name()
    stored.add_named_account(name)
    flow = Flow(accounts, stored, name, sign_in_member(stored, name))
    async with flow.http:
        flow.client_id = (await flow.register()).json()["client_id"]
        code = await make_link_code(accounts, name)
        taken = await flow.http.post("/links/take", json={"code": code}, headers={"Origin": accounts.url})
        assert taken.status_code == 200, taken.text
        flow.http.cookies.clear()
        tokens = dict[tuple[str, ...], str]()
        for granted in GRANTS:
            made = await flow.http.post("/tokens", json={"name": "x", "scopes": granted}, headers=flow.page)
            tokens[granted] = made.json()["token"]
        clients = {
            granted: (await flow.tokens(scope=" ".join(granted)))["access_token"] for granted in GRANTS_OF_CLIENTS
        }
    [page, device] = [
        cookie.partition(";")[0].partition("=")[2] for cookie in (flow.cookie, taken.headers["set-cookie"])
    ]
    return Member(flow, page, device, tokens, clients)


async def make_link_code(accounts: AccountStack, name: str) -> str:
    async with Database(accounts.backend.environment["DATABASE_URL"]) as database:
        return await make_link(database, name)


@pytest.fixture
def account_rows(accounts: AccountStack) -> Iterator[Stored]:
    with Stored(accounts.backend.environment["DATABASE_URL"]) as stored:
        yield stored


@pytest.fixture
async def member(accounts: AccountStack, account_rows: Stored) -> Member:
    return await make_member(accounts, account_rows)


@pytest.mark.parametrize("kind", ["page", "device"])
async def test_cookies_can_do_everything_at_the_backend_alone(member: Member, kind: str) -> None:
    walking = member.walk(member.all[kind])
    for name, response in (await walking.tool_server()).items():
        assert response.status_code == 401, (name, response.text)
    for route, response in (await walking.backend()).items():
        assert response.status_code not in (401, 403), (route, response.text)


async def test_scopes_of_oauth_clients(member: Member) -> None:
    """Their tokens open the tool server alone."""
    for granted, token in member.clients.items():
        walking = member.walk(token)
        for route, response in (await walking.backend()).items():
            assert response.status_code == 401, (granted, route, response.text)
        await walking.check_tools(granted)


@pytest.mark.long
async def test_disabled_account(member: Member, accounts: AccountStack, account_rows: Stored) -> None:
    async with Database(accounts.backend.environment["DATABASE_URL"]) as database:
        assert await disable_account(database, member.flow.user)
    await until(partial(is_ended, member.walk(member.tokens["tasks",])))
    before = account_rows.row_counts(member.flow.user)
    for name, value in member.all.items():
        await member.walk(value).check_refused(name)
    assert account_rows.row_counts(member.flow.user) == before


@pytest.mark.long
async def test_dead_and_forged_cookies_and_tokens_of_clients(member: Member, account_rows: Stored) -> None:
    user, resource = member.flow.user, member.flow.stack.resource
    before = account_rows.row_counts(user)
    claims = {"sub": user, "iss": OWN_ISSUER, "jti": "x" * 22}
    for of, audience, scope in (("cookie", SESSION, "all"), ("client", resource, "tasks:read tasks")):
        for why, change in {
            "expired": {"exp": int(time.time()) - 60},
            "another secret": {"key": OTHER_SECRET},
            "alg none": {"key": "", "algorithm": "none"},
            "another audience": {"aud": "https://another.example"},
            "another issuer": {"iss": ISSUER},
            "no session": {"without": "jti"},
        }.items():
            sent = {"key": MCP_TOKEN_SECRET, **claims, "aud": audience, "scope": scope} | change
            token = mint_token(sent.pop("key"), **sent)
            walking = Walk(member.flow.stack.url, member.flow.stack.mcp.url, token, is_cookie=of == "cookie")
            await walking.check_refused(f"{of}, {why}")
    assert account_rows.row_counts(user) == before


@pytest.mark.long
async def test_members_see_nothing_of_another_one(member: Member, accounts: AccountStack, account_rows: Stored) -> None:
    """Whatever they sign in with, and although they know its numbers."""
    async with http_client(accounts.url, headers=member.flow.page) as http:
        assert (await http.post("/tasks", json={"title": "a secret title"})).status_code == 201
        assert (await http.post("/memory", json={"text": "a secret note"})).status_code in (200, 201)
    before = {table: account_rows.rows_of(member.flow.user, table) for table in ("tasks", "profiles", "sessions")}
    other = await make_member(accounts, account_rows)
    for value in other.all.values():
        async with http_client(accounts.mcp.url, headers={"Authorization": f"Bearer {value}"}) as http:
            for path, query in KNOWN.items():
                assert "secret" not in (await http.get(path, params=query)).text
            for tool, arguments in ARGUMENTS.items():
                sent = call(tool, arguments, token=value)
                response = await http.post("/mcp", content=sent.content, headers=sent.headers.raw[1:])
                assert "secret" not in response.text
    for cookie in (other.page, other.device):
        own = {"Cookie": f"todo_session={cookie}", "Origin": accounts.url}
        async with http_client(accounts.url, headers=own) as http:
            for route, scope in scopes.BACKEND.items():
                method, path = route.split(" ")
                has_body = method in ("POST", "PATCH") and scope != scopes.CHAT
                body: dict[str, Any] = {"json": BODIES.get((method, path), {})} if has_body else {}
                path = path.replace("{task_id}", "1").replace("{session_id}", "1")
                response = await http.request(method, with_unknown_ids(path), **body)
                assert "secret t" not in response.text, route
    assert {table: account_rows.rows_of(member.flow.user, table) for table in before} == before


async def test_tokens_of_another_user(user: User, new_user: NewUser, stored: Stored) -> None:
    async with http_client(user.url, headers={"Authorization": f"Bearer {user.token}"}) as http:
        assert (await http.post("/tasks", json={"title": "a secret title"})).status_code == 201
        assert (await http.post("/memory", json={"text": "a secret note"})).status_code in (200, 201)
    before = {table: stored.rows_of(user.name, table) for table in ("tasks", "profiles")}
    other = new_user()
    known = {"task_id": "1", "chat_id": "groceries"}
    async with http_client(user.url, headers={"Authorization": f"Bearer {(await make_token(other))['token']}"}) as http:
        for route, scope in scopes.BACKEND.items():
            method, path = route.split(" ")
            has_body = method in ("POST", "PATCH") and scope != scopes.CHAT
            body: dict[str, Any] = {"json": BODIES.get((method, path), {})} if has_body else {}
            for name, value in known.items():
                path = path.replace(f"{{{name}}}", value)
            response = await http.request(method, with_unknown_ids(path), **body)
            assert "secret t" not in response.text, route
    assert {table: stored.rows_of(user.name, table) for table in before} == before


def test_providers_token_has_all_scopes_but_makes_no_token(user: User) -> None:
    headers = {"Authorization": f"Bearer {user.token}"}
    for path in ("/tokens", "/sessions", "/tasks?view=all", "/memory", "/calendar"):
        assert httpx2.get(f"{user.url}{path}", headers=headers, trust_env=False).status_code == 200
    body = {"name": "x", "scopes": ["chat"]}
    response = httpx2.post(f"{user.url}/tokens", headers=headers, json=body, trust_env=False)
    assert (response.status_code, response.json()["error"]) == (403, scopes.explain_missing(scopes.ALL))


@asynccontextmanager
async def backend_with_a_new_route(services: Services) -> AsyncIterator[LocalBackend]:
    """Has a route for users and one for everybody, of which the table of scopes knows nothing."""
    for_users, for_all = APIRouter(route_class=UserRoute), APIRouter()

    @for_users.get("/new")
    async def get_new() -> str:
        return "secret"

    @for_all.get("/open")
    async def get_open() -> str:
        return "secret"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend_app, "_ROUTERS", (*backend_app._ROUTERS, for_users, for_all))
        async with local_backend(services) as backend:
            yield backend


async def test_route_without_a_scope_is_refused(stack: Stack, user: User) -> None:
    async with backend_with_a_new_route(stack.services) as backend, http_client(backend.url) as http:
        for path in ("/new", "/open"):
            response = await http.get(path, headers={"Authorization": f"Bearer {user.token}"})
            assert response.status_code == 403, response.text
            assert "secret" not in response.text
