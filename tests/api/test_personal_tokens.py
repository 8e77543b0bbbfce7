"""Personal access tokens: made on the page, shown once, used by programs, and ended."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import psycopg
import pytest

from common.database import advisory_locks
from tests.logins import as_admin
from tests.mcp.wire import LEGACY, MODERN, call, result
from tests.scripted_model import ScriptedModel
from tests.serving import http_client
from tests.support.backends import local_backend
from tests.support.fixtures import NewUser
from tests.support.personal_tokens import make_token, sign_in
from tests.support.script import PAUSING, add_task, says
from tests.support.stack import Stack
from tests.support.stored import Stored
from tests.support.users import User
from tests.waiting import until
from todo_client import ApiError
from todo_client.agent import Agent


@pytest.fixture
async def page(user: User) -> AsyncIterator[httpx2.AsyncClient]:
    """Sends requests as the page of the signed-in user does."""
    async with http_client(user.url, headers={"Origin": user.url}) as http:
        await sign_in(http, user)
        yield http


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def basic(token: str, name: str = "ada") -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(f'{name}:{token}'.encode()).decode()}"}


async def send_call(http: httpx2.AsyncClient, sent: httpx2.Request) -> httpx2.Response:
    return await http.post("/mcp", content=sent.content, headers=sent.headers.raw[1:])


async def test_token_is_made_used_and_ended(
    page: httpx2.AsyncClient, user: User, stack: Stack, model: ScriptedModel, stored: Stored
) -> None:
    made = await page.post("/tokens", json={"name": "notes 📓", "scopes": ["tasks", "chat", "tasks"], "days": 1})
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    token, token_id = made.json()["token"], made.json()["id"]
    [listed] = (await page.get("/tokens")).json()["tokens"]
    assert listed == {name: value for name, value in made.json().items() if name != "token"}
    assert (listed["name"], listed["scopes"], listed["last_used"]) == ("notes 📓", ["tasks", "chat"], None)
    assert token not in str(stored.rows_of(user.name, "sessions") + stored.rows_of(user.name, "account_events"))
    assert len((await page.get("/sessions")).json()["sessions"]) == 1, "it is no place where the user is signed in"
    await model.script(add_task("milk"), says("Added."))
    async with http_client(stack.backends[1].url, headers=bearer(token)) as program:
        done = await program.post("/chats/groceries/interactions", json={"user_message": "add milk"})
        assert done.status_code == 200
        [task] = (await program.get("/tasks?view=all")).json()["tasks"]
        assert task["title"] == "milk"
        async with http_client(stack.services.mcp.url) as mcp:
            added = result(await send_call(mcp, call("add_task", {"title": "tea"}, token=token)))
            assert added["title"] == "tea"
            assert (await page.delete(f"/tokens/{token_id}")).status_code == 204
            began = time.monotonic()

            async def is_rejected() -> bool:
                answers = [await program.get("/tasks?view=all"), await mcp.get("/counts", headers=bearer(token))]
                return [answer.status_code for answer in answers] == [401, 401]

            await until(is_rejected)
            assert time.monotonic() - began < 3, "a second, on a machine that is not busy"
            ended = await program.get("/tasks?view=all")
            assert ended.json()["error"] == "This token was ended. Make a new one on the page."
    assert (await page.delete(f"/tokens/{token_id}")).status_code == 404
    assert (await page.get("/tokens")).json() == {"tokens": []}
    kinds = [event["kind"] for event in stored.rows_of(user.name, "account_events")]
    assert kinds == ["sign_in", "token_made", "token_ended"]


@pytest.mark.parametrize("service", ["backend", "mcp_server"])
async def test_time_of_use(page: httpx2.AsyncClient, user: User, stored: Stored, stack: Stack, service: str) -> None:
    token = (await make_token(user))["token"]
    stored.make_sessions_older(user.name, days=3)
    url, path = (stack.url, "/tasks?view=all") if service == "backend" else (stack.services.mcp.url, "/counts")
    async with http_client(url, headers=bearer(token)) as program:
        assert (await program.get(path)).status_code == 200

    async def is_noted() -> bool:
        [listed] = (await page.get("/tokens")).json()["tokens"]
        return listed["last_used"] is not None

    await until(is_noted)


INVALID: list[tuple[Any, str]] = [
    ({"scopes": ["chat"]}, "The request needs name."),
    ({"name": "x"}, "The request needs scopes."),
    ({"name": "", "scopes": ["chat"]}, "at name: must be a visible text of 1 to 100 characters"),
    ({"name": " ", "scopes": ["chat"]}, "at name"),
    ({"name": "\u200b", "scopes": ["chat"]}, "at name"),
    ({"name": "a\nb", "scopes": ["chat"]}, "at name"),
    ({"name": "x" * 101, "scopes": ["chat"]}, "at name"),
    ({"name": "x", "scopes": []}, "at scopes"),
    ({"name": "x", "scopes": ["all"]}, "Input should be 'chat', 'tasks:read' or 'tasks'"),
    ({"name": "x", "scopes": ["public"]}, "Input should be 'chat', 'tasks:read' or 'tasks'"),
    ({"name": "x", "scopes": "chat"}, "at scopes"),
    ({"name": "x", "scopes": ["chat"], "days": 0}, "at days: Input should be greater than or equal to 1"),
    ({"name": "x", "scopes": ["chat"], "days": 3651}, "at days: Input should be less than or equal to 3650"),
    ({"name": "x", "scopes": ["chat"], "days": "90"}, "at days"),
    ({"name": "x", "scopes": ["chat"], "user_id": "y"}, "user_id is not a field of this request."),
]


async def test_invalid_requests_make_no_token(page: httpx2.AsyncClient) -> None:
    for body, sentence in INVALID:
        response = await page.post("/tokens", json=body)
        assert response.status_code == 400, body
        assert sentence in response.json()["error"]
    assert (await page.get("/tokens")).json() == {"tokens": []}


async def test_only_the_page_makes_tokens(page: httpx2.AsyncClient, user: User, new_user: NewUser) -> None:
    body = {"name": "x", "scopes": ["tasks"]}
    token = (await make_token(user, ("chat", "tasks:read", "tasks")))["token"]
    async with http_client(user.url) as http:
        for sent in (token, user.token):
            assert (await http.post("/tokens", json=body, headers=bearer(sent))).status_code == 403
        assert (await http.post("/session", headers=bearer(token))).status_code == 403, "nor does a token sign in"
        assert (await http.post("/tokens", json=body)).status_code == 401
    cookie = {"Cookie": "; ".join(f"{name}={value}" for name, value in page.cookies.items())}
    async with http_client(user.url) as http:
        assert (await http.post("/tokens", json=body, headers=cookie)).status_code == 403, "from another site"
        [listed] = (await page.get("/tokens")).json()["tokens"]
        await sign_in(http, new_user())
        http.headers["Origin"] = user.url
        assert (await http.delete(f"/tokens/{listed['id']}")).status_code == 404
        assert (await http.get("/tokens")).json() == {"tokens": []}
    [session] = (await page.get("/sessions")).json()["sessions"]
    assert (await page.delete(f"/tokens/{session['id']}")).status_code == 404
    assert (await page.delete(f"/sessions/{listed['id']}")).status_code == 404
    assert (await page.delete("/sessions")).status_code == 204
    assert len((await page.get("/tokens")).json()["tokens"]) == 1, "signing out elsewhere ends no token"


async def test_most_tokens_of_a_user(stack: Stack, user: User, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backend.app._SIGN_INS_PER_MINUTE", 1_000)
    body = {"name": "x", "scopes": ["tasks"]}
    async with (
        local_backend(stack.services) as backend,
        http_client(backend.url, headers={"Origin": backend.url}) as http,
    ):
        await sign_in(http, user)
        made = [await http.post("/tokens", json=body) for _ in range(47)]
        made += await asyncio.gather(*(http.post("/tokens", json=body) for _ in range(5)))
        assert sorted(response.status_code for response in made) == [201] * 50 + [429] * 2
        rejected = next(response for response in made if response.status_code == 429)
        assert rejected.json()["error"].startswith("You have 50 tokens")
        for _ in range(101):
            http.cookies.clear()  # or the session would be replaced
            await sign_in(http, user)
        assert len((await http.get("/tokens")).json()["tokens"]) == 50, "a sign-in ends no token"
        assert len((await http.get("/sessions")).json()["sessions"]) == 100
        assert (await http.delete(f"/tokens/{made[0].json()['id']}")).status_code == 204
        assert (await http.post("/tokens", json=body)).status_code == 201


async def test_calendar_with_a_token_as_the_password(page: httpx2.AsyncClient, user: User) -> None:
    assert (await page.post("/tasks", json={"title": "dentist", "due": "2026-11-27"})).status_code == 201
    read, chat = [(await make_token(user, [scope]))["token"] for scope in ("tasks:read", "chat")]
    async with http_client(user.url) as http:
        for headers in (basic(read), basic(read, ""), basic(read, "someone:else"[:7]), bearer(read)):
            response = await http.get("/calendar.ics", headers=headers)
            assert response.status_code == 200
            assert "SUMMARY:dentist" in response.text
            tag = {"If-None-Match": response.headers["etag"]}
        assert (await http.get("/calendar.ics", headers=basic(read) | tag)).status_code == 304
        assert (await http.get("/calendar.ics", headers=basic(chat))).status_code == 403
        wrong = [basic("x"), basic(""), {"Authorization": "Basic"}, {"Authorization": "Basic ???"}, bearer("x"), {}]
        for headers in (*wrong, {"Authorization": f"Basic {base64.b64encode(read.encode()).decode()}"}):
            response = await http.get("/calendar.ics", headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"].startswith('Basic realm="Todo"')
        for path in ("/tasks?view=all", "/calendar"):
            assert (await http.get(path, headers=basic(read))).status_code == 401, "it is the calendar's password only"
        await page.delete(f"/tokens/{(await page.get('/tokens')).json()['tokens'][0]['id']}")


async def test_no_tokens_without_sign_in(stack: Stack) -> None:
    async with local_backend(stack.services, AUTH_MODE="none") as backend, http_client(backend.url) as http:
        assert (await http.get("/tokens")).json() == {"tokens": []}
        response = await http.post("/tokens", json={"name": "x", "scopes": ["tasks"]})
        assert response.status_code == 400
        assert "no sign-in" in response.json()["error"]


async def test_stream_ends_with_its_token(page: httpx2.AsyncClient, user: User, model: ScriptedModel) -> None:
    made = await make_token(user)
    await model.script(PAUSING)
    body = {"user_message": "count"}
    async with (
        http_client(user.url, headers=bearer(made["token"])) as http,
        http.stream("POST", "/chats/groceries/interactions", json=body) as response,
    ):
        async for _ in response.aiter_text():
            await page.delete(f"/tokens/{made['id']}")
    await model.release()


async def test_tool_server_that_cannot_ask_which_tokens_were_ended(
    page: httpx2.AsyncClient, user: User, stack: Stack, stored: Stored
) -> None:
    """It serves none while it does not know, and has not forgotten afterwards."""
    token, ended = [await make_token(user) for _ in range(2)]
    assert (await page.delete(f"/tokens/{ended['id']}")).status_code == 204
    async with http_client(stack.services.mcp.url) as mcp:

        async def has_status(made: dict[str, Any], status: int) -> bool:
            return (await mcp.get("/counts", headers=bearer(made["token"]))).status_code == status

        await until(lambda: has_status(ended, 401))
        with stored.hide_table("sessions"):
            await until(lambda: has_status(token, 503))
            assert await has_status(ended, 401)
        await until(lambda: has_status(token, 200))
        assert await has_status(ended, 401)


async def test_client_for_python(user: User, model: ScriptedModel) -> None:
    """As docs/python.md shows it, with a token in place of the provider's."""
    await model.script(add_task("milk"), says("Added."))
    agent = Agent(user.url, chat="groceries", token=(await make_token(user, ["chat"]))["token"])
    assert (await agent.prompt("add milk")).text == "Added."
    with pytest.raises(ApiError, match="lacks the scope chat"):
        await Agent(user.url, chat="groceries", token=(await make_token(user, ["tasks"]))["token"]).prompt("hello")


@pytest.mark.parametrize("version", [MODERN, LEGACY])
async def test_call_that_waits_ends_with_its_token(
    page: httpx2.AsyncClient, user: User, stack: Stack, stored: Stored, version: str
) -> None:
    made = await make_token(user)
    lock = f"SELECT {advisory_locks.TASKS}"
    async with (
        await psycopg.AsyncConnection.connect(as_admin(stack.database_url)) as holder,
        http_client(stack.services.mcp.url) as mcp,
    ):
        await holder.execute(lock, {"user": user.name})
        calling = asyncio.create_task(
            send_call(mcp, call("add_task", {"title": "late"}, version=version, token=made["token"]))
        )
        await until(stored.has_waiting_statements)
        assert (await page.delete(f"/tokens/{made['id']}")).status_code == 204
        began = time.monotonic()
        response = await calling
        assert time.monotonic() - began < 3
        assert response.status_code == 401
        assert "This token was ended." in response.text
    assert stored.titles(user.name) == []
